//! The runs that audit hosts: one at a time for each role, none beside a deployment of its hosts.
//!
//! The controller watches roles, nodes, computes and all runs.

pub mod build;
pub mod decide;
pub mod observe;
pub mod observed;
pub mod schedule;

#[cfg(test)]
mod tests;

pub use decide::decide;
pub use observed::Observed;
