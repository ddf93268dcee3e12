//! The library of nova-operator: the list of its controllers.

pub mod conf;
pub mod oslo;
pub mod probe;
