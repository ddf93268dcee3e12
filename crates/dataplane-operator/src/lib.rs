//! The dataplane-operator, which deploys services to hosts and reports the progress.
//!
//! No service is known to it by name.

pub mod admission;
pub mod annotations;
pub mod args;
pub(crate) mod caches;
pub mod collection;
pub mod condition_catalog;
pub mod conditions;
pub mod controller_names;
pub mod controller_ref;
pub mod data_plane;
pub mod default_services;
pub mod deployment;
pub mod endpoints;
pub mod external_apis;
pub mod finalizers;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod host;
pub mod ignored_annotations;
pub mod indexes;
pub mod labels;
pub mod node_set;
pub mod operator;
mod reasons;
pub mod role;
pub mod service;
pub mod spec_warnings;
