//! The reconciliation of a role and its nodes, which are evaluated together because they share
//! runs.
//!
//! One controller writes the status of a role and of all its nodes, so that only one writer decides
//! about a host. A node that names no role is a group of its own, with the services that it lists
//! itself.

pub mod arrivals;
pub mod build;
pub mod certificates;
pub mod common;
pub mod decide;
pub mod deleted_runs;
pub mod deletion;
pub mod evaluate;
pub mod event_mapping;
pub mod faults;
pub mod finalizer;
pub mod inventory_part;
pub mod inventory_shards;
pub mod last_looks;
pub mod machine_request;
pub mod memory;
pub mod node_status;
pub mod observe;
pub mod observed;
pub mod redeploy;
pub mod resolve;
pub mod resolved;
pub mod rollout;
pub mod secret_vars;
pub mod status;
pub mod summary;

#[cfg(test)]
mod tests;

pub use observed::{NodeGroup, Observed};
