//! Host ownership: several objects may describe one host, and one of them gets it.
//!
//! Hosts are compared by name within a namespace, and by the canonical form of the address and port
//! of their connection, also across namespaces.

pub mod caches;
pub mod claim_index;
pub mod host_claim;
pub mod host_keys;
pub mod shared_keys;

pub use caches::ClaimCaches;
pub use claim_index::ClaimIndex;
pub use host_claim::{AddressTaken, Claim, Contested, has_reached, has_reached_host, keys_of_node};
pub use host_keys::key_of;

#[cfg(test)]
mod tests;
