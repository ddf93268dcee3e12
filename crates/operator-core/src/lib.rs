//! Pure functions that the operators share: plans, conditions, hashes and the run engine.

pub mod applied;
pub mod certificate_networks;
pub mod certificates;
pub mod condition_catalog;
pub mod data_sources;
pub mod finalizers;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod hash;
pub mod host_address;
pub mod host_identity;
pub mod host_key_checking;
pub mod keyed;
pub mod node_set_host;
pub mod object_key;
pub mod plan;
pub mod rbac;
pub mod reasons;
pub mod rejected_write;
pub mod run_engine;
pub mod shares;
pub mod upstream_hash;
