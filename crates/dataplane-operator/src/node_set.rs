//! A node set: its inventory, what is deployed on each of its hosts, and what has changed since.
//!
//! It runs nothing itself: deployments do, and it follows what their statuses tell.

pub mod build;
pub mod bundles;
pub mod certificates;
pub mod decide;
pub mod dns;
pub mod faults;
pub mod host_keys;
pub mod inputs;
pub mod inventory;
pub mod ipam;
pub mod judged;
pub mod machines;
pub mod names;
pub mod observe;
pub mod observed;
pub mod others;
pub mod outcome;
pub mod served;
pub mod status;
pub mod tls;
pub mod wake;

#[cfg(test)]
mod tests;

pub use observe::Caches;
pub use observed::Observed;
