//! The finalizer of baremetal sets.

/// Held on a baremetal set until its machines are given back.
pub const MACHINES: &str = "baremetal.openstack.org/machines";
