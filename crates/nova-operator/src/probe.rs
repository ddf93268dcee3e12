//! The two probes of a cell: a login to each of its brokers, and a request to its Keystone.
//!
//! # Guarantees
//! Each probe ends within [`DEADLINE`] and leaves no task, thread or connection behind. No result
//! contains a password, nor text from a server that contains one.

pub(crate) mod amqp;
mod deadline;
pub(crate) mod keystone;
pub(crate) mod keystone_fault;

#[cfg(test)]
mod tests;

pub use amqp::amqp_login;
pub use amqp::outcome::{HostOutcome, Login};
pub use deadline::DEADLINE;
pub use keystone::keystone_answers;
pub use keystone_fault::KeystoneFault;
pub use operator_runtime::tls_stream::{CaTrust, TrustFault};
