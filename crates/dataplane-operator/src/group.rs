//! A role and its hosts: the unit of decision, for hosts of a role share runs.
//!
//! One controller writes the status of a role and of all its nodes, so that no two writers decide
//! about one host.
//! A node that names no role is a group of its own, with the services that it lists itself.

pub mod build;
pub mod decide;
pub mod faults;
pub mod hold;
pub mod holding;
pub mod host;
pub mod host_key;
pub mod instance;
pub mod inventory;
pub mod leaving;
pub mod machines;
pub mod names;
pub mod networks;
pub mod observe;
pub mod observed;
pub mod parts;
pub mod provisioning;
pub mod secret_vars;
pub mod status;
pub mod turns;
pub mod vars;

#[cfg(test)]
mod tests;

pub use observed::{NodeGroup, Observed};
