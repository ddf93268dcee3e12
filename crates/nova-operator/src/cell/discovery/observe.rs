//! Reads the Jobs that discover a cell's hosts or read their mappings, and what they have left.

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
    let termination_message = match jobs.iter().find(|it| has_failed_just_now(cell, it)) {
        Some(job) => message(caches, key, job).await?,
        None => None,
    };
    let mapping_message = match mapping_jobs.iter().find(|it| has_read_just_now(cell, it)) {
        Some(job) => message(caches, key, job).await?,
        None => None,
    };
    let secret_version = secret.and_then(|it| caches.sources.version(it));
    Ok(Some(Seen { jobs, mapping_jobs, secret_version, termination_message, mapping_message }))
}

/// Returns whether a Job has failed and that is not recorded yet.
fn has_failed_just_now(cell: &Cell, job: &Job) -> bool {
    let attempt = cell.status.as_ref().and_then(|it| it.discovery.as_ref());
    let is_recorded_as_running =
        attempt.is_some_and(|it| it.state == DiscoveryState::Running && it.job == job.name_any());
    is_recorded_as_running && matches!(end(job), Some(End::Failed(_)))
}

/// Returns whether a reading of mappings has ended and that is not recorded yet.
fn has_read_just_now(cell: &Cell, job: &Job) -> bool {
    let reading = cell.status.as_ref().and_then(|it| it.mapping_reading.as_ref());
    let is_recorded_as_running =
        reading.is_some_and(|it| it.state == DiscoveryState::Running && it.job == job.name_any());
    is_recorded_as_running && end(job).is_some()
}

/// Returns the termination message of the pod of a Job that has ended as its pod has: empty where
/// that has succeeded without one. `None` when there is no such pod.
async fn message(caches: &Caches, cell: &Key, job: &Job) -> Result<Option<String>> {
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
