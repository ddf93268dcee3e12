//! A deployment of node sets: it runs each service once on each host, and tells how far it is.
//!
//! It owns its runs and its own status; what that means for a node set, the node set says itself.

pub mod build;
pub mod course;
pub mod decide;
pub mod faults;
pub mod holding;
pub mod hosts;
pub mod judge;
pub mod news;
pub mod observe;
pub mod observed;
pub mod others;
pub mod part;
pub mod record;
pub mod services;
pub mod status;
pub mod texts;
pub mod tls;
pub mod turns;
pub mod wake;

#[cfg(test)]
mod tests;

pub use observed::Observed;
