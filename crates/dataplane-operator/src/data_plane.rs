//! A data plane: the roles and nodes of its maps, made and kept, and how far all of them are.
//!
//! It is a human's stand-in: it writes what its maps state into the specs of roles and nodes, and
//! knows nothing of how these are deployed.

pub mod children;
pub mod decide;
pub mod desired;
pub mod event_mapping;
pub mod map;
pub mod observe;
pub mod orphans;
pub mod rollup;
pub mod status;

#[cfg(test)]
mod tests;

pub use observe::Observed;
