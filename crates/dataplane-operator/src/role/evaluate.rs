//! The evaluation of a host of a group: its next step, from its runs.

use api::dataplane::{Node, RunState, ServiceRun};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::run_engine::retry::Retries;
use operator_core::run_engine::rollout::{BlockReason, RolloutState};
use operator_core::run_engine::runs_by_host::RunsByHost;
use operator_core::run_engine::service_sequence::{
    self, NeededRun, ServiceSequence, of_former_owner,
};
use operator_core::run_engine::{DesiredService, Host, SequenceState};

use crate::host::networks;
use crate::host::services::ServiceFaults;
use crate::role::redeploy;
use crate::role::resolved::{ResolvedHost, is_first_deployment, recorded_services};

/// Why the rollout to a host is blocked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BlockedRollout {
    /// What blocks it.
    pub blocked: BlockReason,
    /// The names of the first failed hosts, where these use up the disruption budget; else empty.
    pub failing: String,
}

impl BlockedRollout {
    /// Returns the message for the host's conditions.
    pub fn text(&self) -> String {
        let text = match self.blocked {
            BlockReason::LimitReached => {
                "It waits for its turn: as many hosts as maxUnavailable of the role allows are being \
                 deployed or fail."
            }
            BlockReason::Stuck => return format!("It waits for its turn: {}", self.way_on()),
            BlockReason::Paused => {
                "It waits: pauseOnFailure of the role is set, and a host of the role fails; see the \
                 role."
            }
        };
        text.to_owned()
    }

    /// Returns which hosts use up the disruption budget, and how the user unblocks the rollout.
    pub fn way_on(&self) -> String {
        format!(
            "all places that maxUnavailable of the role allows are held by hosts that fail: {}. \
             Correct what their conditions name, and what is corrected is deployed to them first; or \
             raise deployStrategy.maxUnavailable of the role, or take them out of the count with \
             deployStrategy.deploy: false on their nodes.",
            self.failing
        )
    }
}

/// Where a host stands in the rollout of its group before any host is admitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Turn {
    /// Its state with respect to the disruption budget.
    pub state: RolloutState,
    /// Whether a run would begin on it now.
    pub begins: bool,
    /// Whether its present attempt has begun or waits in a run.
    pub is_at_work: bool,
    /// Whether it counts: its own `deploy` is not false.
    pub is_counted: bool,
}

/// The result of evaluating one host.
#[derive(Clone, Debug)]
pub struct EvaluatedHost<'a> {
    /// What holds of it whatever its runs do.
    pub host: &'a ResolvedHost<'a>,
    /// The result of its service sequence.
    pub sequence: ServiceSequence,
    /// Why its deployment does not begin yet, when the disruption budget blocks it.
    pub blocked: Option<BlockedRollout>,
    /// A service that failed on this host and is no longer listed, until all listed services have
    /// succeeded: listing another service instead has corrected nothing yet.
    unlisted: Option<&'a str>,
}

impl<'a> EvaluatedHost<'a> {
    fn of(host: &'a ResolvedHost<'a>, mut sequence: ServiceSequence) -> Self {
        let unlisted = unlisted(host.node, &host.desired).filter(|_| host.has_services);
        if host.has_services {
            sequence.services.extend(unlisted.and_then(|it| kept(it, &sequence)));
        } else {
            // What was recorded stays for when the role is back.
            let recorded = recorded_services(host.node).iter();
            let known = |it| if host.has_moved { of_former_owner(it) } else { it.clone() };
            sequence.services = recorded.map(known).collect();
        }
        let unlisted = unlisted.map(|it| it.name.as_str());
        Self { host, sequence, blocked: None, unlisted }
    }

    /// Returns the host as one that the disruption budget keeps from beginning.
    #[must_use]
    pub fn held(self, blocked: BlockedRollout) -> Self {
        Self { blocked: Some(blocked), ..Self::of(self.host, self.sequence.held()) }
    }

    /// Returns the state of the host with respect to the disruption budget.
    pub fn rollout_state(&self) -> RolloutState {
        let was_deployed = !is_first_deployment(self.host.node);
        // Before its status reports the failure, so that no host begins in the pass that first sees
        // it.
        if matches!(self.sequence.state, SequenceState::Failed { .. }) {
            return if was_deployed { RolloutState::Failed } else { RolloutState::FailedNew };
        }
        let mut state = RolloutState::of(self.recorded(), was_deployed);
        if state == RolloutState::Failed {
            // The inputs to be tried now may differ from those that failed.
            let is_listed = |it: &&ServiceRun| Some(it.name.as_str()) != self.unlisted;
            let listed: Vec<ServiceRun> =
                self.sequence.services.iter().filter(is_listed).cloned().collect();
            state = RolloutState::of(&listed, was_deployed);
            if self.unlisted.is_some()
                && self.sequence.state != SequenceState::Done
                && !state.fails()
            {
                state = RolloutState::Corrected;
            }
        }
        // Otherwise its run was withdrawn, or never created.
        let is_under_way = self.is_under_way();
        let is_due = is_under_way || self.sequence.needed_run().is_some();
        match state {
            RolloutState::Disturbed if !is_under_way => RolloutState::Ready,
            RolloutState::Started if !is_under_way => RolloutState::New,
            // It cannot be tried at present, so other hosts do not wait for it.
            RolloutState::Corrected if !is_due => RolloutState::Failed,
            RolloutState::New
            | RolloutState::Started
            | RolloutState::FailedNew
            | RolloutState::Ready
            | RolloutState::Down
            | RolloutState::Disturbed
            | RolloutState::Failed
            | RolloutState::Corrected => state,
        }
    }

    /// Returns whether a pause stops it: nothing of its deployment has begun, and it has not
    /// failed.
    pub fn may_be_paused(&self) -> bool {
        !self.sequence.has_begun && !self.rollout_state().fails()
    }

    /// Returns whether its present attempt has begun or waits in a run.
    pub fn is_at_work(&self) -> bool {
        self.sequence.is_due() && self.is_under_way()
    }

    /// Returns where it stands in the rollout of its group.
    pub fn turn(&self) -> Turn {
        let own = self.host.node.spec.deploy_strategy.as_ref();
        Turn {
            state: self.rollout_state(),
            begins: self.sequence.needed_run().is_some(),
            is_at_work: self.is_at_work(),
            is_counted: own.and_then(|it| it.deploy) != Some(false),
        }
    }

    /// Returns whether it is evaluated alike for as long as it, its runs and its group stay as they are: no
    /// time is awaited, and no other object describes it.
    pub fn stays(&self) -> bool {
        let ResolvedHost { problems, is_taken, shared_key, .. } = self.host;
        let waits = self.sequence.retry_at().is_some() || networks::are_unserved(problems);
        !waits && !is_taken && shared_key.is_none()
    }

    fn is_under_way(&self) -> bool {
        matches!(self.sequence.state, SequenceState::InRun { .. }) || self.sequence.has_begun
    }

    fn recorded(&self) -> &[ServiceRun] {
        recorded_services(self.host.node)
    }
}

/// Evaluates one host with the faults and the runs of its group, whatever the other hosts do.
pub fn evaluate<'a>(
    host: &'a ResolvedHost<'a>,
    problems: &ServiceFaults,
    runs: &RunsByHost<'_>,
    now: Timestamp,
) -> EvaluatedHost<'a> {
    let sequence = sequence(host, runs, now);
    let waits =
        |it: &NeededRun| problems.blocks(&it.service) || host.uncertified.contains(&it.service);
    let is_held = !host.may_run || sequence.needed_run().is_some_and(waits);
    EvaluatedHost::of(host, if is_held { sequence.held() } else { sequence })
}

fn sequence(host: &ResolvedHost<'_>, runs: &RunsByHost<'_>, now: Timestamp) -> ServiceSequence {
    let (name, namespace) = (&host.effective.name, host.node.namespace().unwrap_or_default());
    let ssh_secret = host.effective.ssh_secret.as_deref().unwrap_or_default();
    let ssh_version = host.ssh.map(|it| it.version.as_str()).unwrap_or_default();
    let host = Host {
        name,
        desired: &host.desired,
        recorded: recorded_services(host.node),
        has_moved: host.has_moved,
        records_begin: false,
        ssh_key: (ssh_secret, ssh_version),
        trust: &host.trust,
        namespace: Some(&namespace),
        retries: Retries::Healing(&redeploy::redeploy_command(host.node)),
    };
    service_sequence::evaluate(&host, runs.of_host(name).iter().copied(), now)
}

/// Returns the record of a service that failed on a host in service and is no longer desired.
fn unlisted<'a>(node: &'a Node, desired: &[DesiredService]) -> Option<&'a ServiceRun> {
    let is_listed = |it: &ServiceRun| desired.iter().any(|own| own.service == it.name);
    let fails = |it: &&ServiceRun| it.state == RunState::Failed || it.reason.is_some();
    let mut recorded = recorded_services(node).iter().filter(fails);
    recorded.find(|it| !is_listed(it)).filter(|_| !is_first_deployment(node))
}

/// Returns that record while the status still has to report it: until the host is done, or another
/// service has failed.
fn kept(unlisted: &ServiceRun, sequence: &ServiceSequence) -> Option<ServiceRun> {
    let reports = |it: &ServiceRun| it.name == unlisted.name || it.state == RunState::Failed;
    let is_reported =
        sequence.state == SequenceState::Done || sequence.services.iter().any(reports);
    (!is_reported).then(|| ServiceRun { state: RunState::Failed, run: None, ..unlisted.clone() })
}
