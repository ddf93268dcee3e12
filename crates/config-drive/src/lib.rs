//! The config drive of a host: what a machine without a metadata service and without DHCP is told at
//! its first boot. Pure: the same input gives the same bytes, everywhere and always.
//!
//! [`Drive::of`] makes it from a [`Host`], or tells every fault of it; [`Drive::configdrive`] gives the
//! value of `configdrive` in the request that deploys a node of Ironic.

mod authorized_key;
mod cloud_config;
mod drive;
mod fault;
mod format;
pub mod from_baremetal_set;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod host;
mod input;
mod iso;
mod json;
mod meta_data;
mod network;
mod secret;
mod set;
mod user_data;

pub use api::baremetal::ConfigDriveFormat;
pub use drive::{Drive, LIMIT};
pub use fault::Fault;
pub use format::ApiVersion;
pub use input::{Given, Host, Link, LinkKind, Network, RootPassword, Route, Subnet, User};
pub use secret::Secret;
pub use set::faults_among;

/// Everything that is wrong with a host's input, in the order of its fields; empty for a good one.
pub fn faults(host: &Host) -> Vec<Fault> {
    Drive::of(host).err().unwrap_or_default()
}

#[cfg(test)]
mod tests;
