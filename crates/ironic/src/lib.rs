//! Machines of an Ironic: their model, requests, assignment to hosts, and the next step of each.
//!
//! The crate is pure: no client, no clock.
//!
//! A machine is reserved by its `instance_uuid`. Ironic sets it only if there is none, and on only
//! one machine, so two sets cannot take one machine, nor one host two. The UUID is derived from the
//! set and the host, so after a crash the machine itself shows what was done.

pub mod desired_machine;
pub mod error;
pub mod history;
pub mod instance;
pub mod matching;
pub mod node;
pub mod ramdisk;
pub mod reasons;
pub mod request;
pub mod state;
pub mod state_machine;
pub mod supported_versions;
pub mod undeploy;
pub mod version;
pub mod wait_reason;

pub use desired_machine::DesiredMachine;
pub use error::Error;
pub use instance::{DeployRecord, deployment, host_of, instance_uuid};
pub use matching::{NoMachine, Terms, assign};
pub use node::Node;
pub use ramdisk::RequestValues;
pub use request::{Request, Verb};
pub use state::State;
pub use state_machine::{Next, Step, next};
pub use undeploy::{policy, release};
pub use wait_reason::Cause;

#[cfg(any(test, feature = "model"))]
pub mod test_model;
#[cfg(test)]
mod tests;
