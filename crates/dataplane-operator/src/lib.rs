//! The library of dataplane-operator: the list of its controllers.
