//! The deletion of a compute: a run stops nova-compute on the host, the records that remain in nova
//! are reported, and then the finalizer is removed.
//!
//! The decision uses only current objects: the compute being deleted, its recorded attempts, its
//! runs. So an operator that was down meanwhile does the same after its restart.

pub mod build;
pub mod decide;
pub mod labels;
pub mod messages;
pub mod orphans;
pub mod status;

#[cfg(test)]
mod tests;

pub use decide::decide;
