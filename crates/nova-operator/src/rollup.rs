//! What nova-operator says on objects of others: roles, node sets and services.

pub mod foreign_condition;
pub mod group_computes;
pub mod service_keys;
