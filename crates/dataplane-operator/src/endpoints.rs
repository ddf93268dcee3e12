//! Exposes ports of the hosts as Kubernetes Services, for each service that lists ports.
//!
//! The addresses are those of all nodes that get the service, whatever their role.

pub mod build;
pub mod decide;
pub mod observe;
pub mod observed;

#[cfg(test)]
mod tests;

pub use observed::Observed;
