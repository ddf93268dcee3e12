//! A node set: its inventory, what is deployed on each of its hosts, and what has changed since.
//!
//! It creates no runs. Deployments do, and record on its nodes what they have done; the node set sums
//! that up.

pub mod build;
pub mod certificate_bundles;
pub mod decide;
pub mod deployment_history;
pub mod dns;
pub mod event_mapping;
pub mod external_resources;
pub mod faults;
pub mod host_key_trust;
pub mod inputs;
pub mod inventory;
pub mod inventory_entries;
pub mod ipam;
pub mod kept_hosts;
pub mod last_looks;
pub mod machine_request;
pub mod node_acceptance;
pub mod node_memory;
pub mod nodes;
pub mod observe;
pub mod observed;
pub mod observed_nodes;
pub mod resolve;
pub mod status;
pub mod terminating;
pub mod tls;

#[cfg(test)]
mod tests;

pub use observed::Observed;
