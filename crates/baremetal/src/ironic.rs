//! Machines of Ironic: lists its nodes, evaluates host by host, and sends the next requests.

mod failure_causes;
pub mod hosts;
pub mod list_nodes;
mod provisioner;
mod remediation;
pub mod requests;

/// Ironic as the provisioner of a set.
pub(crate) struct Nodes;
