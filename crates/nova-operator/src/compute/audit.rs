//! Audits of hosts: what is requested, what a run found, and the condition of a compute.
//!
//! The runs themselves are made by [`crate::compute::audit_runs`].

pub mod condition;
pub mod observe;
pub mod report;
pub mod request;
pub mod scope;
