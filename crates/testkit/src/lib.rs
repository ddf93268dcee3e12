//! What the tests of several crates share; no program depends on it.

pub mod crash;
pub mod golden;
