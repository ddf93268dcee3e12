//! The conditions of nova-operator on roles, node sets and services, which other operators own.

pub mod foreign_condition;
pub mod group_computes;
pub mod service_keys;
