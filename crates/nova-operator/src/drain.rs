//! What nova-operator does in nova about single hosts: it drains, enables and removes them.

pub mod before;
pub mod condition;
pub mod order;
pub mod pass;
pub mod progress;
pub mod remove;
pub mod request;
pub mod service;
