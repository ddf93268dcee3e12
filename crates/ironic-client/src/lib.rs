//! A client of Ironic: version, credentials, certificates, time limits, and one shared list.
//!
//! The crate `ironic` defines requests and interprets responses; it is pure.

mod answer;
pub mod credentials;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod keystone_error;
pub mod pool;
pub mod session;

pub use credentials::Credentials;
pub use pool::Pool;
pub use session::{Session, SessionSlot};

#[cfg(test)]
mod tests;
