//! The removal of hosts that leave a node set: each is drained, nova-compute is stopped on it, and
//! what nova has of it is removed; then its host finalizer goes, and dataplane-operator lets go of
//! it.
//!
//! Everything follows from the report about the node set, the node set and the runs, so an operator
//! that was restarted goes on where it was.

pub mod build;
pub mod condition;
pub mod decide;
pub mod finalizers;
pub mod labels;
pub mod observe;
pub mod observed;
pub mod owner;
pub mod record;
