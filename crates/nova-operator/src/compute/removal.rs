//! The deletion of a compute: its host is drained, a run stops nova-compute on it, what nova has of
//! it is removed, and then the finalizer is removed.
//!
//! Where nova's API is not used, nothing is drained, and the records that remain in nova are
//! reported.
//!
//! The decision uses only current objects: the compute being deleted, its recorded attempts, its
//! runs. So an operator that was down meanwhile does the same after its restart.

pub mod attempts;
pub mod build;
pub mod decide;
pub mod host_order;
pub mod inspection;
pub mod kept_options;
pub mod known_mappings;
pub mod leftover_places;
pub mod messages;
pub mod nova_steps;
pub mod observe;
pub mod observed;
pub mod orphans;
pub mod resolve;
pub mod status;

#[cfg(test)]
mod tests;

pub use decide::decide;
pub use host_order::with_progress;
pub use observed::Observed;
