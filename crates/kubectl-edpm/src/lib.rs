//! kubectl-edpm: what a human asks about hosts outside the cluster, answered from the cluster alone.
//!
//! Every command reads objects into a [`world::World`], and a pure function makes text of it; only
//! [`app`], [`cluster`], [`follow`] and [`watch`] know that there is an API server.

pub mod app;
pub mod args;
pub mod cluster;
pub mod error;
pub mod explain;
pub mod follow;
pub mod host;
pub mod logs;
pub mod paint;
pub mod retry;
pub mod status;
#[cfg(test)]
mod testdata;
pub mod watch;
pub mod words;
pub mod world;
