//! A host as the commands see it, whichever kinds describe it: its group, its stages, its runs.

use std::fmt;

use api::ansibleee::{AnsibleEe, HostOutcome, JobStatus};
use api::conditions::{ConditionStatus, READY};
use api::dataplane::{RunState, ServiceRun};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::run_engine::Run;

use crate::kinds::DEPLOYMENT;
use crate::node_set_host::Member;
use crate::object_meta::place;
use crate::run::{job_status, owner_of, service_of};
use crate::stage::{Group, Phase, Stage};

/// A host.
#[derive(Clone, Debug)]
pub struct Host<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name in the inventory.
    pub name: String,
    /// What it follows, if anything.
    pub group: Option<Group<'a>>,
    /// Where it is reached, as `host:port`.
    pub address: Option<String>,
    /// When it was described.
    pub created: Option<Timestamp>,
    /// What is done to it, in this order.
    pub stages: Vec<Stage<'a>>,
    /// The runs that are about it, oldest first.
    pub runs: Vec<&'a AnsibleEe>,
    /// What it is in its node set, where it has one.
    pub member: Option<Member<'a>>,
}

/// How a service stands on a host, with what its run tells before the status does.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// The service.
    pub service: &'a str,
    /// How it stands.
    pub state: Step,
    /// What the status says, if anything.
    pub recorded: Option<&'a ServiceRun>,
    /// Its newest run on this host, where it is still there.
    pub run: Option<&'a AnsibleEe>,
}

/// How a service stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// Its turn has not come.
    Pending,
    /// Its run waits.
    Queued,
    /// It runs.
    Running,
    /// It ended well.
    Succeeded,
    /// It ended otherwise.
    Failed,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "Pending",
            Self::Queued => "Queued",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        })
    }
}

impl<'a> Host<'a> {
    /// What hosts are sorted by.
    pub fn place(&self) -> (&str, &str, &str) {
        (self.namespace, self.group.as_ref().map(|it| it.name).unwrap_or_default(), &self.name)
    }

    /// Whether a human may call it so.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.member.as_ref().is_some_and(|it| it.is_called(name))
    }

    /// The stage that is not ready yet.
    pub fn open_stage(&self) -> Option<&Stage<'a>> {
        self.stages.iter().find(|it| it.truth(READY) != ConditionStatus::True)
    }

    /// What holds for all stages: false if it is of one.
    pub fn truth(&self, condition: &str) -> ConditionStatus {
        let truths: Vec<ConditionStatus> =
            self.stages.iter().map(|it| it.truth(condition)).collect();
        if truths.contains(&ConditionStatus::False) {
            ConditionStatus::False
        } else if truths.contains(&ConditionStatus::Unknown) {
            ConditionStatus::Unknown
        } else {
            ConditionStatus::True
        }
    }

    /// How the services of a stage stand, in order.
    pub fn progress<'b>(&self, stage: &'b Stage<'a>) -> Vec<Progress<'b>> {
        // A record of a service that is no longer listed tells nothing that matters.
        stage.desired.iter().map(|it| self.of_service(stage, it)).collect()
    }

    /// The service of a stage that is on its way or has failed, if there is one.
    pub fn current<'b>(&self, stage: &'b Stage<'a>) -> Option<Progress<'b>> {
        let all = self.progress(stage);
        let is_at_work = |it: &&Progress<'_>| matches!(it.state, Step::Running | Step::Queued);
        let is_open = |it: &&Progress<'_>| it.state != Step::Succeeded;
        all.iter().find(is_at_work).or_else(|| all.iter().find(is_open)).cloned()
    }

    /// The service of a stage whose run is under way, or waits.
    pub fn at_work<'b>(&self, stage: &'b Stage<'a>) -> Option<Progress<'b>> {
        self.current(stage).filter(|it| matches!(it.state, Step::Running | Step::Queued))
    }

    /// The services that its role, or its node set, lists for it, in order.
    pub fn listed(&self) -> Vec<&str> {
        match &self.member {
            Some(member) => member.node_set.spec.services.iter().map(String::as_str).collect(),
            None => self.stages.iter().flat_map(|it| it.desired.iter().copied()).collect(),
        }
    }

    fn of_service<'b>(&self, stage: &'b Stage<'a>, service: &'b str) -> Progress<'b> {
        let recorded = stage.services.iter().find(|it| it.name == service);
        let of_stage = |it: &&&AnsibleEe| belongs(it, stage) && service_of(it) == Some(service);
        let run = self.runs.iter().filter(of_stage).max_by_key(|it| attempt(it, &self.name));
        let run = run.copied();
        Progress { service, state: step(recorded, run, &self.name), recorded, run }
    }
}

/// Runs of a role are those of its nodes.
fn belongs(run: &AnsibleEe, stage: &Stage<'_>) -> bool {
    let Some((kind, name)) = owner_of(run) else { return false };
    match stage.phase {
        Phase::Nova => kind == stage.kind && name == stage.name,
        Phase::Prepare => !["NovaExternalCompute", DEPLOYMENT].contains(&kind),
        // The attempts of two deployments cannot be compared.
        Phase::Deploy => {
            kind == DEPLOYMENT && stage.deployment.is_some_and(|it| place(it).1 == name)
        }
    }
}

fn attempt(run: &AnsibleEe, host: &str) -> (i64, Option<Timestamp>) {
    let number = Run::of(run).and_then(|it| it.attempts.get(host).map(|it| it.attempt));
    (number.unwrap_or_default(), run.creation_timestamp().map(|it| it.0))
}

/// A run that goes on is the newest news; one that has ended counts while the status still waits.
fn step(recorded: Option<&ServiceRun>, run: Option<&AnsibleEe>, host: &str) -> Step {
    let of_run = run.and_then(|it| {
        let run = Run::of(it)?;
        Some(match job_status(it) {
            JobStatus::Pending => Step::Queued,
            JobStatus::Running => Step::Running,
            JobStatus::Succeeded | JobStatus::Failed
                if recorded.is_some_and(|it| run.carries(host, it)) =>
            {
                // A host that a limit left out has nothing to say of a run that succeeded.
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
