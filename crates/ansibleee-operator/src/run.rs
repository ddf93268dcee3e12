//! `OpenStackAnsibleEE`: admitted by the scheduler, run once as a Job, its result recorded.

pub mod decide;
pub mod end;
pub mod environment;
pub mod host_keys;
pub mod identity;
pub mod job;
pub mod key_checks;
pub mod observe;
pub mod playbook;
pub mod result;
pub mod rules;
pub mod schedule;
pub mod scheduler;
pub mod settings;
#[cfg(test)]
mod simulation_tests;
pub mod status;
pub mod summary;
pub mod trouble;
pub mod validate;
pub mod variables;
