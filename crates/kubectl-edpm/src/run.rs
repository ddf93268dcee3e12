//! Accessors for a run: its service, its owner and its state.

use api::ansibleee::{AnsibleEe, JobStatus};
use kube::ResourceExt;
use operator_core::run_engine::run::SERVICE_LABEL;

/// Returns the service that a run deploys, or `None` for a run that a user created.
pub fn service_of(run: &AnsibleEe) -> Option<&str> {
    run.labels().get(SERVICE_LABEL).map(String::as_str)
}

/// Returns kind and name of a run's controller owner, if any.
pub fn owner_of(run: &AnsibleEe) -> Option<(&str, &str)> {
    let mut owners = run.owner_references().iter();
    let owner = owners.find(|it| it.controller == Some(true))?;
    Some((&owner.kind, &owner.name))
}

/// Returns the state of a run; one without a status is pending.
pub fn job_status(run: &AnsibleEe) -> JobStatus {
    run.status.as_ref().and_then(|it| it.job_status).unwrap_or(JobStatus::Pending)
}
