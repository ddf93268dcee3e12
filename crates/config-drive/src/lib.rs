//! The config drive of a host: its first boot's input without metadata service and DHCP.
//!
//! The crate is pure: the same input always gives the same bytes.
//!
//! [`Drive::of`] builds it from a [`Host`], or returns all its faults. [`Drive::configdrive`]
//! returns the value of `configdrive` in the request that deploys an Ironic node.

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
mod user_data;

pub use api::baremetal::ConfigDriveFormat;
pub use drive::{Drive, LIMIT};
pub use fault::Fault;
pub use format::ApiVersion;
pub use input::{Host, Network, Uplink, User, UserTexts};

#[cfg(test)]
mod tests;
