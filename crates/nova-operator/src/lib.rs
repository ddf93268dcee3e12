//! The library of nova-operator: the list of its controllers.

pub mod oslo;
