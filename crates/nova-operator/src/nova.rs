//! What nova has of the hosts of computes, and the requests that change it.

pub mod drain;
pub mod fault;
pub mod health;
pub mod identity;
pub mod metrics;
pub mod monitor;
pub mod orders;
pub mod reading;
