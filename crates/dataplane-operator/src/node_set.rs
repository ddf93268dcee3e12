//! A node set and its hosts.

pub mod dns;
pub mod ipam;
pub mod others;
pub mod tls;
