//! Asks an Ironic: version, credentials, certificates, time limits, and one list for all who look.
//!
//! What is asked, and what the answers mean, is the pure crate `ironic`'s business.

mod answer;
pub mod credentials;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod keystone;
pub mod pool;
pub mod session;
mod timed;

pub use credentials::Credentials;
pub use pool::Pool;
pub use session::{Session, Turn};

#[cfg(test)]
mod tests;
