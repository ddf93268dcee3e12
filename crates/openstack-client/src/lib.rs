//! A client of OpenStack: tokens and catalog of Keystone, and what the life of a compute needs of
//! nova, placement and neutron.
//!
//! Every response has a time limit and a size limit, and all lists of a namespace share memory. What a
//! server says is repeated only from where that service puts its messages.

pub mod catalog;
mod client;
pub mod compute;
pub mod error;
mod footprint;
pub mod keystone;
mod message;
mod microversion;
pub mod network;
pub mod placement;
mod response;
mod shared_request;
mod text;

pub use compute::{Compute, ComputeService, Hypervisor, Migration, Server, ServiceState};
pub use error::{Error, Fault, Service};
pub use keystone::{Login, Token};
pub use network::{Agent, Network};
pub use placement::{Placement, Provider};
pub use text::is_id;

#[cfg(any(test, fuzzing))]
pub mod fuzzing;

#[cfg(test)]
mod tests;
