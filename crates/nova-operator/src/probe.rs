//! The two questions that tell whether a cell can be used: a login to each of its brokers, and an
//! answer of its Keystone.
//!
//! # Guarantees
//! Each question ends within [`DEADLINE`] and leaves no task, thread or connection behind.
//! No outcome holds a password, nor text that a server sent back and that holds one.

pub(crate) mod amqp;
mod deadline;
pub(crate) mod keystone;

#[cfg(test)]
mod tests;

pub use amqp::amqp_login;
pub use amqp::outcome::{HostOutcome, Login};
pub use deadline::DEADLINE;
pub use keystone::{KeystoneFault, keystone_answers};
pub use operator_runtime::tls_stream::{CaTrust, TrustFault};
