//! `OpenStackAnsibleEE`: admitted by the scheduler, run once as a Job, its result recorded.

pub mod build;
pub mod content_digest;
pub mod deadline;
pub mod decide;
pub mod environment;
pub mod host_keys;
pub mod job_result;
pub mod key_checks;
pub mod observe;
pub mod playbook;
pub mod pod_problems;
pub mod pod_spec_rules;
pub mod result;
pub mod scheduler;
pub mod scheduling_policy;
pub mod settings;
#[cfg(test)]
mod simulation_tests;
pub mod status;
pub mod summary;
pub mod validate;
pub mod variables;
