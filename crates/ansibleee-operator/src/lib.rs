//! The library of ansibleee-operator: the list of its controllers.
