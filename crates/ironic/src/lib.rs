//! Machines of an Ironic: what it tells of them, what it is asked, which one is taken for a host, and
//! the next step of each. Pure: no client, no clock.
//!
//! A machine is reserved by its `instance_uuid`. Ironic sets it only where there is none, and on one
//! machine alone, so neither two sets can take one machine, nor one host two. The UUID is derived from
//! the set and the host: after a crash, what was done is found again on the machine itself.

pub mod error;
pub mod instance;
pub mod matching;
pub mod node;
pub mod ramdisk;
pub mod release;
pub mod request;
pub mod state;
pub mod state_machine;
pub mod supported_versions;
pub mod version;
pub mod wait_reason;
pub mod wish;

pub use error::Error;
pub use instance::{DeployRecord, deployment, host_of, instance_uuid};
pub use matching::{NoMachine, Terms, assign};
pub use node::Node;
pub use ramdisk::Given;
pub use release::{policy, release};
pub use request::{Method, Request, Verb};
pub use state::State;
pub use state_machine::{Next, Step, next};
pub use wait_reason::Cause;
pub use wish::Wish;

#[cfg(any(test, feature = "model"))]
pub mod model;
#[cfg(test)]
mod tests;
