//! What a run tells of itself: its service, the object that it was made for, and how far it is.

use api::ansibleee::{AnsibleEe, JobStatus};
use kube::ResourceExt;
use operator_core::run_engine::run::SERVICE_LABEL;

/// The service that a run deploys; nothing for one that was made by hand.
pub fn service_of(run: &AnsibleEe) -> Option<&str> {
    run.labels().get(SERVICE_LABEL).map(String::as_str)
}

/// The object that a run was made for.
pub fn owner_of(run: &AnsibleEe) -> Option<(&str, &str)> {
    let mut owners = run.owner_references().iter();
    let owner = owners.find(|it| it.controller == Some(true))?;
    Some((&owner.kind, &owner.name))
}

/// How far a run is; one that nobody has looked at yet is pending.
pub fn job_status(run: &AnsibleEe) -> JobStatus {
    run.status.as_ref().and_then(|it| it.job_status).unwrap_or(JobStatus::Pending)
}
