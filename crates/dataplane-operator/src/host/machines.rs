//! The `OpenStackBaremetalSet` that a role, a standalone node or a node set requests for its hosts.
//!
//! The set has no ownerReference. Foreground deletion would delete it before its hosts, and their
//! machines would be deprovisioned while others still use them. The finalizer on the requesting
//! object deletes the set, last of all.

pub mod machine_conditions;
pub mod machine_names;
pub mod observe;
pub mod provisioning_state;
pub mod request;
pub mod set;
pub mod template;

#[cfg(test)]
pub(crate) mod test_model;
#[cfg(test)]
pub(crate) mod test_story;

pub use provisioning_state::ProvisioningState;
pub use set::Seen;
