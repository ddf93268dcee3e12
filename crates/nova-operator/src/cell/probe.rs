//! The two probes of a cell: a login to each of its brokers, and a request to its Keystone.
//!
//! # Guarantees
//! A probe ends within [`DEADLINE`] for each server, a few of which are asked at a time, and leaves no
//! task or connection behind; a look-up of a name ends when the resolver gives up. No result contains
//! a password, nor text from a server that contains one.

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
