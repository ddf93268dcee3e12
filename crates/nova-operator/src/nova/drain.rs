//! What nova-operator does in nova about single hosts: it drains, enables and removes them, and
//! deletes what removed ones have left.

pub mod before;
pub mod condition;
pub mod few;
pub mod findings;
pub mod held;
pub mod identity;
pub mod leftover;
pub mod migration_limit;
pub mod migrations;
pub mod order;
pub mod pass;
pub mod progress;
pub mod remove;
pub mod request;
pub mod service;
pub mod unknown;
