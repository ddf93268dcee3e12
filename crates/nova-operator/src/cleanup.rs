//! The end of a compute: nova-compute is stopped on its host, what is left in nova is told, and only
//! then the compute goes.
//!
//! It is all judged from what is there: the compute being deleted, its recorded attempts, the runs.
//! So an operator that was down meanwhile does the same a little later.

pub mod build;
pub mod decide;
pub mod labels;
pub mod messages;
pub mod orphans;

#[cfg(test)]
mod tests;

pub use decide::{decide, refused};
pub use orphans::Orphans;
