//! dataplane-operator: hosts, what is deployed to them, and how far that is; no service by name.

pub mod admission;
pub mod attachments;
pub mod baremetal_set;
pub mod claims;
pub mod collection;
pub(crate) mod controllers;
pub mod default_services;
pub mod deployment;
pub mod effective;
pub mod endpoints;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod group;
pub mod inputs;
pub mod machines;
pub mod node_set;
pub mod operator;
pub mod optional;
pub mod plane;
pub mod reasons;
pub mod service;
pub mod vars;
