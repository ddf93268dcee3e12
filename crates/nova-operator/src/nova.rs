//! What nova has of the hosts of computes, and what it is made to do about them.

pub mod drain;
pub mod fault;
pub mod health;
pub mod identity;
pub mod metrics;
pub mod monitor;
pub mod orders;
pub mod reading;
