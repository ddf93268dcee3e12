//! dataplane-operator: hosts, what is deployed to them, and how far that is; no service by name.

pub mod admission;
pub mod applied;
pub mod attachments;
pub mod baremetal_set;
pub(crate) mod caches;
pub mod claims;
pub mod collection;
pub mod conditions;
pub(crate) mod controllers;
pub mod default_services;
pub mod deployment;
pub mod effective;
pub mod endpoints;
pub mod finalizers;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod group;
pub mod indexes;
pub mod inputs;
pub mod machines;
pub mod node_set;
pub mod operator;
pub mod optional;
pub mod owner;
pub mod plane;
pub mod problem;
pub mod reasons;
pub mod service;
pub mod vars;
