//! Machines of Ironic: its nodes are listed, judged host by host, and sent what comes next.

pub mod hosts;
pub mod list_nodes;
pub(crate) mod remediation;
pub mod requests;
