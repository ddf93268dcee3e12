//! Reads the Jobs that discover a cell's hosts or read their mappings, and what they have left.

use std::sync::Arc;

use api::nova::{Cell, DiscoveryState};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_core::object_key::Key;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::cell::observed::discovery::{End, Seen, end, uid};
use crate::cell::observed::mappings::MAPPINGS_LABEL;
use crate::requested::host_discovery::{Discovery, discovery};
use crate::shared_caches::indexes::BY_CELL_UID;

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
    let all = cache.indexed(BY_CELL_UID, &Key::new(&key.namespace, uid(cell)));
    let (mapping_jobs, jobs): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|it| it.labels().contains_key(MAPPINGS_LABEL));
    let status = cell.status.as_ref();
    let attempt = status.and_then(|it| it.discovery.as_ref()).map(|it| (it.state, &it.job));
    let reading = status.and_then(|it| it.mapping_reading.as_ref()).map(|it| (it.state, &it.job));
    let failed = unrecorded(attempt, &jobs).filter(|it| matches!(end(it), Some(End::Failed(_))));
    let read = unrecorded(reading, &mapping_jobs);
    let termination_message = message(caches, key, failed).await?;
    let mapping_message = message(caches, key, read).await?;
    let secret_version = secret.and_then(|it| caches.sources.version(it));
    Ok(Some(Seen { jobs, mapping_jobs, secret_version, termination_message, mapping_message }))
}

/// Returns the Job that has ended and that is recorded as running still; `recorded` is the state of the
/// last one and its name.
fn unrecorded<'a>(
    recorded: Option<(DiscoveryState, &String)>,
    jobs: &'a [Arc<Job>],
) -> Option<&'a Job> {
    let (_, name) = recorded.filter(|it| it.0 == DiscoveryState::Running)?;
    let job = jobs.iter().find(|it| it.name_any() == *name && end(it).is_some())?;
    Some(&**job)
}

/// Returns the termination message of the pod of a Job that has ended as its pod has: empty where
/// that has succeeded without one. `None` when there is no such pod, or no Job.
async fn message(caches: &Caches, cell: &Key, job: Option<&Job>) -> Result<Option<String>> {
    let Some(job) = job else { return Ok(None) };
    let selector = format!("{JOB_NAME}={}", job.name_any());
    let pods: Vec<Pod> = caches.api.list(&cell.namespace, &selector).await?;
    let has_succeeded = end(job) == Some(End::Succeeded);
    let statuses = pods.into_iter().filter_map(|it| it.status?.container_statuses).flatten();
    let ended = statuses.filter_map(|it| it.state?.terminated);
    let mut messages = ended
        .filter(|it| (it.exit_code == 0) == has_succeeded)
        .map(|it| it.message.unwrap_or_default());
    Ok(messages.find(|it| has_succeeded || !it.trim().is_empty()))
}
