//! Reads the Jobs that discover a cell's hosts, and the message of one that failed.

use api::nova::{Cell, DiscoveryState};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_core::object_key::Key;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::cell::discovery::observed::{End, Seen, end, uid};
use crate::cell::discovery::settings::{Discovery, discovery};
use crate::indexes::BY_CELL_UID;

/// Label that the Job controller sets on pods.
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// Returns the Secret that discovers the hosts of a cell; `None` where the cell names none.
pub fn secret(cell: &Cell, key: &Key) -> Option<SourceRef> {
    match discovery(cell) {
        Discovery::Operator(settings) => Some(SourceRef::secret(&key.namespace, &settings.secret)),
        Discovery::External | Discovery::Invalid(_) => None,
    }
}

/// Reads the Jobs of a cell; returns `None` where nova's API is not read. The content of the Secret
/// is not read.
pub async fn observe(
    caches: &Caches,
    cell: &Cell,
    key: &Key,
    secret: Option<&SourceRef>,
) -> Result<Option<Seen>> {
    let Some(cache) = &caches.discovery_jobs else { return Ok(None) };
    let jobs = cache.indexed(BY_CELL_UID, &Key::new(&key.namespace, uid(cell)));
    let failed = jobs.iter().find(|it| has_failed_just_now(cell, it));
    let termination_message = match failed {
        Some(job) => message(caches, &key.namespace, &job.name_any()).await?,
        None => None,
    };
    let secret_version = secret.and_then(|it| caches.sources.version(it));
    Ok(Some(Seen { jobs, secret_version, termination_message }))
}

/// Returns whether a Job has failed and that is not recorded yet.
fn has_failed_just_now(cell: &Cell, job: &Job) -> bool {
    let attempt = cell.status.as_ref().and_then(|it| it.discovery.as_ref());
    let is_recorded_as_running =
        attempt.is_some_and(|it| it.state == DiscoveryState::Running && it.job == job.name_any());
    is_recorded_as_running && matches!(end(job), Some(End::Failed(_)))
}

/// Returns the termination message of a Job's pod, or `None` when it has left none.
async fn message(caches: &Caches, namespace: &str, job: &str) -> Result<Option<String>> {
    let pods: Vec<Pod> = caches.api.list(namespace, &format!("{JOB_NAME}={job}")).await?;
    let statuses = pods.into_iter().filter_map(|it| it.status?.container_statuses).flatten();
    let mut messages = statuses.filter_map(|it| it.state?.terminated?.message);
    Ok(messages.find(|it| !it.trim().is_empty()))
}
