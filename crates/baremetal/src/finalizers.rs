//! The finalizer of sets of machines.

/// On a set of machines, until these are given back.
pub const MACHINES: &str = "baremetal.openstack.org/machines";
