//! Baremetal sets: each host gets a machine of Ironic or Metal3, is deployed with its config drive,
//! and gives it back.
//!
//! Progress is recorded on the machines themselves ([`::ironic::next`]), so that after a crash at
//! any point the same steps follow. The status of the set is for users, and records which machine a
//! host had.

pub mod addresses;
pub mod backoff;
pub mod condition_catalog;
pub mod controller;
pub mod decide;
pub mod event_mapping;
pub mod finalizers;
mod hosts;
pub mod ironic;
pub mod metal3;
pub mod metrics;
pub mod observe;
mod reasons;
mod remediation;
pub mod status;

#[cfg(test)]
mod tests;

pub use controller::{BaremetalSets, Caches};
pub use ironic_client::Pool;
pub use observe::Observed;
