//! A deployment of node sets, which runs each service once on each host and reports the progress.
//!
//! It owns its runs, its own status, and on each node what it records of the host.

pub mod build;
pub mod decide;
pub mod disruption;
pub mod evaluate;
pub mod event_mapping;
pub mod faults;
pub mod finalizer;
pub mod gates;
pub mod hosts;
pub mod messages;
pub mod node_records;
pub mod node_set_part;
pub mod observe;
pub mod observed;
pub mod order;
pub mod rollout;
pub mod service_schedule;
pub mod services;
pub mod status;
pub mod tls;
pub mod usage;

#[cfg(test)]
mod tests;

pub use observed::Observed;
