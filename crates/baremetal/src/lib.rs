//! Sets of machines: each host gets one of Ironic's or Metal3's, is deployed with its config drive, and gives it back.
//!
//! What was done stands on the machines themselves ([`::ironic::next`]), so that a crash at any point is
//! followed by the same steps. The object's status is what a human reads, and remembers which machine
//! a host had.

pub mod addresses;
pub mod backoff;
pub mod condition_catalog;
pub mod controller;
pub mod decide;
pub mod finalizers;
pub mod ironic;
pub mod metal3;
pub mod observe;
pub mod status;

#[cfg(test)]
mod tests;

pub use controller::{BaremetalSets, Caches, map_events};
pub use observe::Observed;
