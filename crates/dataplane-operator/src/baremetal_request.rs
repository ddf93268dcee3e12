//! Machines for hosts: the `OpenStackBaremetalSet` that a role, a node without one or a node set asks
//! for, and what its status says of each host.
//!
//! The set has no ownerReference: a deletion in the foreground would take it before its hosts, and
//! their machines would be given back while others still work on them. The finalizer on whoever asks
//! for it deletes it, last of all.

pub mod machine_conditions;
pub mod observe;
pub mod provisioning_state;
pub mod set;
pub mod template;

#[cfg(test)]
pub(crate) mod test_model;

pub use observe::{Machines, Seen};
pub use provisioning_state::ProvisioningState;
pub use set::DesiredMachine;
