//! What was observed of the discovery of a cell's hosts, as plain data.

use std::sync::Arc;

use api::conditions::{ConditionStatus, find};
use api::nova::{Cell, ExternalCompute};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use nova_config::conditions::HOST_MAPPED;
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Step, Target};

/// The Jobs of a cell, and its Secret.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The Jobs of the cell that map hosts.
    pub jobs: Vec<Arc<Job>>,
    /// Its Jobs that read which hosts are mapped.
    pub mapping_jobs: Vec<Arc<Job>>,
    /// The version of the Secret that the cell names, or `None` when it names none or the Secret
    /// does not exist.
    pub secret_version: Option<String>,
    /// The termination message of the recorded attempt's pod; `None` when there is none, or it is
    /// recorded already.
    pub termination_message: Option<String>,
    /// The same of the recorded reading of mappings; empty where its pod has succeeded and left no
    /// text.
    pub mapping_message: Option<String>,
}

impl Seen {
    /// Whether a Job of the cell has not ended: a cell has one at a time.
    pub fn is_busy(&self) -> bool {
        self.jobs.iter().chain(&self.mapping_jobs).any(|it| end(it).is_none())
    }
}

/// How a Job ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum End {
    /// Its pod succeeded.
    Succeeded,
    /// It failed, for this reason.
    Failed(String),
}

/// Returns how a Job ended, or `None` before that.
pub fn end(job: &Job) -> Option<End> {
    let conditions = job.status.as_ref()?.conditions.iter().flatten();
    conditions.filter(|it| it.status == "True").find_map(|it| match it.type_.as_str() {
        "Complete" => Some(End::Succeeded),
        "Failed" => Some(End::Failed(it.message.clone().unwrap_or_default())),
        _ => None,
    })
}

/// Returns the steps that delete Jobs which have ended, but those that are kept.
pub fn deletions(jobs: &[Arc<Job>], is_kept: impl Fn(&Job) -> bool) -> Vec<Step> {
    let has_ended = |it: &Job| end(it).is_some() && !is_terminating(it);
    let not_needed = jobs.iter().filter(|it| has_ended(it) && !is_kept(it));
    not_needed.map(|it| Step::delete(Target::of(&**it), "its result is recorded")).collect()
}

/// A host that nova reports as not mapped, and since when.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Unmapped {
    /// The host, as its service is registered.
    pub host: String,
    /// Since when `HostMapped` of its compute is False.
    pub since: Timestamp,
}

/// Returns the host of a compute that nova reports as not mapped, or `None` when it is mapped, that
/// is unknown, or the compute is terminating.
pub fn unmapped(compute: &ExternalCompute) -> Option<Unmapped> {
    let status = compute.status.as_ref()?;
    let mapped = find(&status.conditions, HOST_MAPPED)?;
    let is_unmapped = mapped.status == ConditionStatus::False && !is_terminating(compute);
    let host = status.host_name.clone().filter(|_| is_unmapped)?;
    Some(Unmapped { host, since: mapped.last_transition_time.0 })
}

/// Returns the hosts of the computes of a cell that nova reports as not mapped, by name.
pub fn all_unmapped(computes: &[Arc<ExternalCompute>]) -> Vec<Unmapped> {
    let mut hosts: Vec<Unmapped> = computes.iter().filter_map(|it| unmapped(it)).collect();
    hosts.sort();
    hosts
}

/// Returns the UID of a cell; empty when it has none.
pub fn uid(cell: &Cell) -> String {
    cell.uid().unwrap_or_default()
}
