//! A role and its hosts: the unit of decision, for hosts of a role share runs.
//!
//! One controller writes the status of a role and of all its nodes, so that no two writers decide
//! about one host.
//! A node that names no role is a group of its own, with the services that it lists itself.

pub mod blocked_rollout;
pub mod build;
pub mod decide;
pub mod deletion;
pub mod faults;
pub mod finalizer;
pub mod host;
pub mod host_key;
pub mod inventory;
pub mod inventory_shards;
pub mod machine_names;
pub mod machine_request;
pub mod networks;
pub mod node_status;
pub mod observe;
pub mod observed;
pub mod provisioning;
pub mod redeploy;
pub mod rollout;
pub mod secret_vars;
pub mod status;
pub mod vars;

#[cfg(test)]
mod tests;

pub use observed::{NodeGroup, Observed};
