//! Machines of Metal3: each host of a set gets a `BareMetalHost`, and gives it back.
//!
//! What was done stands on the `BareMetalHost` itself: labels and `consumerRef` say whose it is, an
//! annotation says from what it was provisioned. Each write can be repeated, and none is made before what
//! it relies on was seen, so that a crash at any point is followed by the same steps.

mod advice;
pub mod choose;
pub mod decide;
pub mod host;
pub mod hosts;
pub mod image;
pub mod look;
pub mod mine;
pub mod seen;
pub mod status;
pub mod writes;

pub use look::{Metal3, RULES};
pub use seen::Seen;
