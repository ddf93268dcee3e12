//! Helpers shared by the tests of several crates; no program depends on this crate.

pub mod conditions;
pub mod crash;
pub mod fake_api;
pub mod golden;
pub mod http_server;
pub mod objects;
pub mod passes;
pub mod played_runs;
pub mod set_nodes;
