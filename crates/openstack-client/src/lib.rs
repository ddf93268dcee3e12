//! A client of OpenStack: tokens and catalog of Keystone, compute services and hypervisors of nova.
//!
//! Every response has a time limit and a size limit, and what a server says is repeated only from
//! where that service puts its messages.

pub mod catalog;
pub mod compute;
pub mod error;
pub mod keystone;
mod message;
pub mod microversion;
mod response;

pub use compute::{Compute, ComputeService, Hypervisor, ServiceState};
pub use error::{Error, Fault, Service};
pub use keystone::{Login, Token};

#[cfg(any(test, fuzzing))]
pub mod fuzzing;

#[cfg(test)]
mod tests;
