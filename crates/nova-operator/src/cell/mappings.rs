//! Reads whether nova still maps hosts that are removed, where the cell's annotations give the
//! discovery of hosts to the operator: one Job of one pod at a time for all of them, which runs
//! `nova-manage cell_v2 list_hosts`.
//!
//! The reading is recorded in the cell's status before its Job is created, with its hosts; its
//! result stands there until the removals of these hosts go on.

pub mod build;
pub mod decide;
