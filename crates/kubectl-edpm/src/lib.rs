//! kubectl-edpm: what a human asks about hosts outside the cluster, answered from the cluster alone.
//!
//! Every command reads objects into a [`world::World`], and a pure function makes text of it; only
//! [`app`], [`cluster`] and [`watch`] know that there is an API server.

pub mod app;
pub mod args;
pub mod cluster;
pub mod error;
pub mod host;
pub mod paint;
pub mod status;
#[cfg(test)]
mod testdata;
pub mod watch;
pub mod words;
pub mod world;
