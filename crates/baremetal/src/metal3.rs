//! Machines of Metal3: each host of a set gets a `BareMetalHost`, and gives it back.
//!
//! What was done stands on the `BareMetalHost` itself: labels and `consumerRef` say whose it is, an
//! annotation says from what it was provisioned. Each write can be repeated, and none is made before what
//! it relies on was seen, so that a crash at any point is followed by the same steps.

pub mod bare_metal_host;
pub mod decide;
pub mod host;
pub mod hosts;
pub mod image;
pub mod list_hosts;
pub mod owned_machines;
mod remediation;
pub mod selection;
pub mod status;
pub mod writes;

pub use bare_metal_host::Seen;
pub use list_hosts::{Metal3, RULES};
