//! Machines of Metal3: each host of a set gets a `BareMetalHost`, and gives it back.
//!
//! Progress is recorded on the `BareMetalHost` itself: labels and `consumerRef` name its owner, and
//! an annotation holds the hash of what it was provisioned from. Each write is idempotent, and none
//! is made before its preconditions were observed, so that after a crash at any point the same
//! steps follow.

pub mod bare_metal_host;
pub(crate) mod host;
mod hosts;
pub mod image;
pub mod list_hosts;
pub mod owned_machines;
mod provisioner;
pub mod selection;
pub mod writes;

pub use list_hosts::{Metal3, RULES};
