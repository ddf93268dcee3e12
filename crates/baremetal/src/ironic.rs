//! Machines of Ironic: lists its nodes, evaluates host by host, and sends the next requests.

pub mod decide;
pub mod hosts;
pub mod list_nodes;
pub(crate) mod remediation;
pub mod requests;
pub mod status;
