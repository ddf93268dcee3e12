//! A host independent of the kinds that describe it: its group, its stages and its runs.

use std::fmt;

use api::ansibleee::{AnsibleEe, HostOutcome, JobStatus};
use api::conditions::{ConditionStatus, READY};
use api::dataplane::condition_types::UP_TO_DATE;
use api::dataplane::{Deployment, Node, NodeSet, Role, RunState, ServiceRun};
use api::nova::{Cell, ExternalCompute};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::run_engine::Run;

use crate::kinds::DEPLOYMENT;
use crate::object_meta::place;
use crate::run::{job_status, owner_of, service_of};
use crate::stage::{Group, Phase, Stage};

/// A host: one node, which a role or a node set may have.
#[derive(Clone, Debug)]
pub struct Host<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name in the inventory.
    pub name: &'a str,
    /// The object that describes it.
    pub node: &'a Node,
    /// The object that the host inherits from, a role or a node set, if any.
    pub group: Option<Group<'a>>,
    /// The role that it inherits from, where that exists.
    pub role: Option<&'a Role>,
    /// Its compute, if any.
    pub compute: Option<&'a ExternalCompute>,
    /// The cell of its compute, where that exists.
    pub cell: Option<&'a Cell>,
    /// Its stages, in the order in which they run.
    pub stages: Vec<Stage<'a>>,
    /// The runs that target it, oldest first.
    pub runs: Vec<&'a AnsibleEe>,
    /// The node set whose entry describes it, where that exists.
    pub node_set: Option<&'a NodeSet>,
    /// The deployments of that node set that may target it, oldest first.
    pub deployments: Vec<&'a Deployment>,
}

/// The progress of a service on a host; its run may be ahead of the recorded status.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// The service.
    pub service: &'a str,
    /// The state, from both the status and the run.
    pub state: Step,
    /// The record in the status, if any.
    pub recorded: Option<&'a ServiceRun>,
    /// Its newest run on this host, if it is still kept.
    pub run: Option<&'a AnsibleEe>,
}

/// The state of a service on a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// It waits for an earlier service.
    Pending,
    /// Its run exists and waits.
    Queued,
    /// Its run is in progress.
    Running,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl<'a> Host<'a> {
    /// Returns the sort key: namespace, group, name.
    pub fn place(&self) -> (&str, &str, &str) {
        (self.namespace, self.group.as_ref().map(|it| it.name).unwrap_or_default(), self.name)
    }

    /// Whether the user may refer to the host by this name.
    pub fn is_called(&self, name: &str) -> bool {
        is_called(self.node, name)
    }

    /// Returns the first stage that is not ready, or `None` when all are.
    pub fn open_stage(&self) -> Option<&Stage<'a>> {
        self.stages.iter().find(|it| it.truth(READY) != ConditionStatus::True)
    }

    /// Combines a condition over all stages: false if any is false, else unknown if any is unknown.
    pub fn truth(&self, condition: &str) -> ConditionStatus {
        all(self.stages.iter().map(|it| it.truth(condition)))
    }

    /// Returns whether all that is deployed was deployed with the present inputs. A compute to which
    /// the operator deploys nothing has no say.
    pub fn up_to_date(&self) -> ConditionStatus {
        let is_deployed = |it: &&Stage<'_>| !it.desired.is_empty() || it.name.is_empty();
        all(self.stages.iter().filter(is_deployed).map(|it| it.truth(UP_TO_DATE)))
    }

    /// Returns the progress of the services of a stage, in order.
    pub fn progress<'b>(&self, stage: &'b Stage<'a>) -> Vec<Progress<'b>> {
        // Records of services that are no longer listed are irrelevant.
        stage.desired.iter().map(|it| self.of_service(stage, it)).collect()
    }

    /// Returns the progress of one service of a stage; `None` when the stage has no such service.
    pub fn service<'b>(&self, stage: &'b Stage<'a>, name: &str) -> Option<Progress<'b>> {
        self.progress(stage).into_iter().find(|it| it.service == name)
    }

    /// Returns the service of a stage that runs or is queued, else the first that has not
    /// succeeded. Returns `None` when all have succeeded.
    pub fn current<'b>(&self, stage: &'b Stage<'a>) -> Option<Progress<'b>> {
        let all = self.progress(stage);
        let is_at_work = |it: &&Progress<'_>| matches!(it.state, Step::Running | Step::Queued);
        let is_open = |it: &&Progress<'_>| it.state != Step::Succeeded;
        all.iter().find(is_at_work).or_else(|| all.iter().find(is_open)).cloned()
    }

    /// Returns the service of a stage whose run is running or queued.
    pub fn at_work<'b>(&self, stage: &'b Stage<'a>) -> Option<Progress<'b>> {
        self.current(stage).filter(|it| matches!(it.state, Step::Running | Step::Queued))
    }

    /// Returns the services that its role or node set lists, in order.
    pub fn listed(&self) -> Vec<&str> {
        match self.node_set {
            Some(set) => set.spec.services.iter().map(String::as_str).collect(),
            None => self.stages.iter().flat_map(|it| it.desired.iter().copied()).collect(),
        }
    }

    fn of_service<'b>(&self, stage: &'b Stage<'a>, service: &'b str) -> Progress<'b> {
        let recorded = stage.services.iter().find(|it| it.name == service);
        let of_stage = |it: &&&AnsibleEe| belongs(it, stage) && service_of(it) == Some(service);
        let run = self.runs.iter().filter(of_stage).max_by_key(|it| attempt(it, self.name));
        let run = run.copied();
        Progress { service, state: step(recorded, run, self.name), recorded, run }
    }
}

/// Whether the user may refer to a host by this name: that of its node, its own, or its key in the
/// node set.
pub fn is_called(node: &Node, name: &str) -> bool {
    let status = node.status.as_ref();
    let key = status.and_then(|it| it.observed_node_set.as_ref()?.key.as_deref());
    let names = [Some(place(node).1), key, status.and_then(|it| it.host_name.as_deref())];
    names.contains(&Some(name))
}

/// Returns false if any is false, else unknown if any is unknown.
fn all(truths: impl Iterator<Item = ConditionStatus>) -> ConditionStatus {
    let truths: Vec<ConditionStatus> = truths.collect();
    if truths.contains(&ConditionStatus::False) {
        ConditionStatus::False
    } else if truths.contains(&ConditionStatus::Unknown) {
        ConditionStatus::Unknown
    } else {
        ConditionStatus::True
    }
}

/// Whether a run belongs to a stage; runs of a role count for its nodes.
fn belongs(run: &AnsibleEe, stage: &Stage<'_>) -> bool {
    let Some((kind, name)) = owner_of(run) else { return false };
    match stage.phase {
        Phase::Nova => kind == stage.kind && name == stage.name,
        Phase::Prepare => !["NovaExternalCompute", DEPLOYMENT].contains(&kind),
        // Attempt numbers of two deployments are not comparable.
        Phase::Deploy => {
            kind == DEPLOYMENT && stage.deployment.is_some_and(|it| place(it).1 == name)
        }
    }
}

fn attempt(run: &AnsibleEe, host: &str) -> (i64, Option<Timestamp>) {
    let number = Run::of(run).and_then(|it| it.attempts.get(host).map(|it| it.attempt));
    (number.unwrap_or_default(), run.creation_timestamp().map(|it| it.0))
}

/// Combines status and run. An open run overrides the status; an ended run counts while the status
/// is still pending or running.
fn step(recorded: Option<&ServiceRun>, run: Option<&AnsibleEe>, host: &str) -> Step {
    let of_run = run.and_then(|it| {
        let run = Run::of(it)?;
        Some(match job_status(it) {
            JobStatus::Pending => Step::Queued,
            JobStatus::Running => Step::Running,
            JobStatus::Succeeded | JobStatus::Failed
                if recorded.is_some_and(|it| run.carries(host, it)) =>
            {
                // A host that `ansible_limit` excluded has no outcome in a run that succeeded.
                let is_good = run.has_succeeded() || run.outcome(host) == HostOutcome::Ok;
                if is_good { Step::Succeeded } else { Step::Failed }
            }
            JobStatus::Succeeded | JobStatus::Failed => return None,
        })
    });
    match (of_run, recorded.map(|it| it.state)) {
        (Some(going @ (Step::Queued | Step::Running)), _) => going,
        (_, Some(RunState::Succeeded)) => Step::Succeeded,
        (_, Some(RunState::Failed)) => Step::Failed,
        (Some(ended), Some(RunState::Pending | RunState::Running)) => ended,
        (None, Some(RunState::Running)) => Step::Running,
        (_, Some(RunState::Pending) | None) => Step::Pending,
    }
}
