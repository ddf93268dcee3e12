//! A node set: its inventory, what is deployed on each of its hosts, and what has changed since.
//!
//! It runs nothing itself: deployments do, and it follows what their statuses tell.

pub mod build;
pub mod decide;
pub mod faults;
pub mod host;
pub mod host_keys;
pub mod inputs;
pub mod inventory;
pub mod observe;
pub mod outcome;
pub mod status;
pub mod wake;

#[cfg(test)]
mod tests;

pub use observe::{Observed, World};
