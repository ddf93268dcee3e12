//! A deployment of node sets: it runs each service once on each host, and tells how far it is.
//!
//! It owns its runs and its own status; what that means for a node set, the node set says itself.

pub mod build;
pub mod concurrent_deployments;
pub mod decide;
pub mod evaluate;
pub mod event_mapping;
pub mod faults;
pub mod finalizer;
pub mod hosts;
pub mod messages;
pub mod node_set_part;
pub mod observe;
pub mod observed;
pub mod progress_batching;
pub mod rollout;
pub mod service_schedule;
pub mod services;
pub mod status;
pub mod tls;
pub mod usage;

#[cfg(test)]
mod tests;

pub use observed::Observed;
