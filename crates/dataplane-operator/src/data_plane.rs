//! A data plane, which maintains the roles and nodes of its maps and sums up their conditions.
//!
//! It acts in place of a user: it writes what its maps state into the specs of roles and nodes, and
//! does not know how these are deployed.

pub mod children;
pub mod decide;
pub mod desired;
pub mod event_mapping;
pub mod map;
pub mod observe;
pub mod observed;
pub mod orphans;
pub mod rollup;
pub mod status;

#[cfg(test)]
mod tests;

pub use observed::Observed;
