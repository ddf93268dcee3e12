//! The two questions that tell whether a cell can be used: a login to each of its brokers, and an
//! answer of its Keystone.
//!
//! # Guarantees
//! Each question ends within [`DEADLINE`] and leaves no task, thread or connection behind.
//! No outcome holds a password, nor text that a server sent back and that holds one.

pub(crate) mod amqp;
pub(crate) mod keystone;
mod transport_url;

#[cfg(test)]
mod tests;

pub use amqp::{HostOutcome, Login, amqp_login};
pub use keystone::{KeystoneFault, keystone_answers};
pub use shell::stream::{Trust, TrustFault};
pub use transport_url::{Broker, TransportUrl, UrlFault};

use std::time::Duration;

/// How long one server may take to answer; servers are asked at the same time.
pub const DEADLINE: Duration = Duration::from_secs(5);
