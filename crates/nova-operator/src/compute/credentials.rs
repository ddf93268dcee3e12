//! What computes log in with is held until each of them was deployed with something newer.
//!
//! infra-operator and keystone-operator make a new login beside the old one and revoke the old one
//! when nothing holds it; they know of no host outside of node sets. A compute holds what it uses in
//! its own pass, before the first run with it, and records the names in its status. This controller
//! has one key for each object that is held, and releases it when no compute records it any more.

pub mod decide;
pub mod lookup;
pub mod observe;
pub mod observed;

#[cfg(test)]
mod tests;

pub use decide::decide;
pub use observed::Observed;
