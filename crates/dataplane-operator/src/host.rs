//! What roles and node sets share about the hosts that they bring into service.

pub mod networks;
pub mod runs;
pub mod services;
pub mod ssh_trust;
