//! The status of a deployment, from its evaluation.

use std::collections::{BTreeMap, BTreeSet};

use api::conditions::{self, Condition, ConditionDraft, READY, Severity, merge_conditions};
use api::dataplane::condition_types::{READINESS_GATES_READY, SETUP_READY};
use api::dataplane::{DeploymentFailure, DeploymentNodeSet, DeploymentStatus, RunState};
use api::problem::Problem;
use jiff::Timestamp;
use operator_core::plan::{Step, Target, status_step};
use operator_core::run_engine::Run;
use operator_core::run_engine::outcome::FailureReason;

use crate::conditions::input_condition;
use crate::deployment::node_set_part::{EvaluatedHost, NodeSetPart};
use crate::deployment::observed::Observed;
use crate::deployment::rollout::BlockedHosts;
use crate::deployment::{disruption, messages, usage};
use crate::host::gates::Gates;
use crate::host::published_hashes::published;
use crate::reasons;

pub use api::dataplane::condition_types::{DEPLOYMENT_READY, INPUT_READY};

/// The condition type for whether every service succeeded on every host of a node set.
pub const NODE_SET_READY: &str = "NodeSetDeploymentReady";
/// The message when all is done.
const EVERYWHERE: &str = "Every service succeeded on every host.";
/// The message when no host takes part, or none does any more.
const NO_HOST: &str = "No host takes part: nothing is left to run.";

/// The evaluation of a deployment.
pub struct Evaluation<'a> {
    /// The observed objects.
    pub seen: &'a Observed,
    /// The runs that the deployment owns.
    pub runs: &'a [Run<'a>],
    /// The faults of the node sets before it begins.
    pub setup: &'a [Problem],
    /// The other faults.
    pub inputs: &'a [Problem],
    /// The evaluated parts, once it begins.
    pub parts: &'a [NodeSetPart],
    /// The node sets of a deployment that begins in this pass.
    pub begins: Option<BTreeMap<String, DeploymentNodeSet>>,
    /// The services whose runs are about to be created.
    pub made: BTreeSet<&'a str>,
    /// The effect of the disruption budget.
    pub blocked: BlockedHosts,
    /// The readiness gates; `None` without any, and before every service has succeeded.
    pub gates: Option<Gates>,
    /// The condition of a deployment that is to be deleted.
    pub deletion: Option<ConditionDraft>,
    /// The condition of a rejected write.
    pub rejection: Option<ConditionDraft>,
    /// Whether the status of a node cannot be written.
    pub is_refused: bool,
}

/// The end of a deployment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// It has not begun, or a host is not done.
    Open,
    /// Every service succeeded on every host, and a readiness gate of one does not hold.
    AwaitsGates,
    /// Every service succeeded on every host, and every readiness gate holds.
    Deployed,
    /// No progress is possible any more, and some hosts have failed for good.
    Failed,
}

impl Evaluation<'_> {
    /// Returns whether and how the deployment has ended.
    ///
    /// It has not while a run may still touch a host, or a node does not have the end.
    pub fn end(&self) -> End {
        if self.is_refused || self.runs.iter().any(|it| !it.is_finished()) {
            End::Open
        } else if self.blocked.is_over {
            End::Failed
        } else if self.parts.is_empty() || !self.hosts().all(EvaluatedHost::is_ended) {
            End::Open
        } else if self.lost().next().is_some() || self.hosts().any(|it| it.is_given_up) {
            End::Failed
        } else if self.gates.as_ref().is_some_and(|it| !it.condition.holds()) {
            End::AwaitsGates
        } else {
            End::Deployed
        }
    }

    fn hosts(&self) -> impl Iterator<Item = &EvaluatedHost> {
        self.parts.iter().flat_map(|it| &it.hosts)
    }

    /// Returns the hosts that take part no more although their node sets still list them.
    fn lost(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().flat_map(|it| &it.lost).map(String::as_str)
    }

    /// Returns the step that writes the status; `None` when it is up to date.
    pub fn step(&self, now: Timestamp) -> Option<Step> {
        let deployment = &*self.seen.deployment;
        let observed = deployment.status.as_ref();
        let mut desired = observed.cloned().unwrap_or_default();
        let generation = deployment.metadata.generation;
        desired.observed_generation = generation;
        desired.deployed = (self.end() == End::Deployed).then_some(true);
        self.record(&mut desired);
        let drafts = self.conditions(&desired.failures);
        desired.conditions = merge_conditions(deployment.conditions(), drafts, generation, now);
        desired.node_set_conditions = self.node_set_conditions(&desired, now);
        status_step(Target::of(deployment), observed, &desired)
    }

    /// Records the begin and the failures, and what was used and executed.
    fn record(&self, desired: &mut DeploymentStatus) {
        if !self.parts.is_empty() {
            desired.failures = messages::failures(self.parts);
        }
        let mut services = self.made.clone();
        if let Some(node_sets) = &self.begins {
            desired.node_sets.clone_from(node_sets);
            services.extend(node_sets.values().flat_map(|it| &it.services).map(String::as_str));
        }
        usage::used(self.seen, self.parts, &services, self.begins.is_some(), desired);
        for (name, text) in &mut desired.secret_hashes {
            *text = published(&self.seen.sources, &self.seen.namespace, name, text);
        }
        usage::ran(self.runs, desired);
        // The limit may have excluded all hosts of the node set.
        let is_empty =
            |it: &NodeSetPart| it.node_set.as_ref().is_some_and(|it| it.spec.nodes.is_empty());
        let is_done = |it: &&NodeSetPart| it.is_done() && (is_empty(it) || !it.hosts.is_empty());
        for part in self.parts.iter().filter(is_done) {
            desired.node_set_hashes.insert(part.name.clone(), part.begun.config_hash.clone());
            let hash =
                part.node_set.as_ref().and_then(|it| it.status.as_ref()?.bmh_ref_hash.clone());
            desired.bmh_ref_hashes.extend(hash.map(|it| (part.name.clone(), it)));
        }
    }

    fn conditions(&self, failures: &[DeploymentFailure]) -> Vec<ConditionDraft> {
        let setup = input_condition(
            SETUP_READY,
            &reasons::deployment::SET_UP,
            self.setup,
            "Every node set is set up.",
        );
        let input = input_condition(
            INPUT_READY,
            &reasons::deployment::INPUT_COMPLETE,
            self.inputs,
            "Every input is there.",
        );
        let deployment = self.deployment(failures);
        let mut all = vec![setup, input, deployment];
        all.extend(self.gates.as_ref().map(|it| it.condition.clone()));
        all.extend(self.rejection.clone());
        let text = if self.hosts().next().is_some() { EVERYWHERE } else { NO_HOST };
        let good = reasons::deployment::READY.condition(READY, text);
        // Inputs that go missing after the end do not affect its result.
        let is_over = self.end() != End::Open;
        let of_end = [DEPLOYMENT_READY, READINESS_GATES_READY];
        let counts = |it: &&ConditionDraft| !is_over || of_end.contains(&it.type_.as_str());
        all.push(conditions::ready(all.iter().filter(counts), good));
        all
    }

    fn deployment(&self, failures: &[DeploymentFailure]) -> ConditionDraft {
        if let Some(deletion) = &self.deletion {
            return deletion.clone();
        }
        if self.parts.is_empty() {
            let text = "The deployment has not begun; see SetupReady and InputReady.";
            return reasons::deployment::INIT.condition(DEPLOYMENT_READY, text);
        }
        match self.end() {
            End::Deployed | End::AwaitsGates => {
                let text = match self.hosts().count() {
                    0 => NO_HOST.to_owned(),
                    n_hosts => format!("Every service succeeded on {n_hosts} hosts."),
                };
                return reasons::deployment::READY.condition(DEPLOYMENT_READY, text);
            }
            End::Failed => {
                let n_failed = self.hosts().filter(|it| it.is_given_up).count();
                let lost: Vec<&str> = self.lost().collect();
                let texts = [messages::together(failures.iter(), n_failed), messages::lost(&lost)];
                let texts: Vec<String> = texts.into_iter().filter(|it| !it.is_empty()).collect();
                let text = format!(
                    "{} of {} hosts have failed for good. {}",
                    n_failed + lost.len(),
                    self.hosts().count() + lost.len(),
                    texts.join(" ")
                );
                return reasons::deployment::BACKOFF_LIMIT_EXCEEDED
                    .condition(DEPLOYMENT_READY, self.with_held(text));
            }
            End::Open => {}
        }
        if let Some(first) = failures.first() {
            let n_failing = self.hosts().filter(|it| it.live.is_failing()).count();
            let text = self.with_held(messages::together(failures.iter(), n_failing));
            return failing(DEPLOYMENT_READY, &first.reason, text);
        }
        if let Some(what) = messages::blocked(self.parts) {
            return reasons::RUN_BLOCKED.condition(DEPLOYMENT_READY, what);
        }
        if let Some(what) = messages::waiting(self.parts) {
            return reasons::QUEUED.condition(DEPLOYMENT_READY, what);
        }
        let is_awaited = disruption::is_all_that_is_left(self.parts);
        if let Some(what) = self.blocked.text.as_ref().filter(|_| is_awaited) {
            return reasons::AWAITING_DISRUPTION.condition(DEPLOYMENT_READY, what);
        }
        let text = "Services are being deployed; nodeSetConditions report how far it is.";
        reasons::deployment::REQUESTED.condition(DEPLOYMENT_READY, self.with_held(text.to_owned()))
    }

    /// Appends the message about blocked hosts to a text.
    fn with_held(&self, text: String) -> String {
        match &self.blocked.text {
            None => text,
            Some(held) => format!("{text} {held}"),
        }
    }

    fn node_set_conditions(
        &self,
        desired: &DeploymentStatus,
        now: Timestamp,
    ) -> BTreeMap<String, Vec<Condition>> {
        let generation = self.seen.deployment.metadata.generation;
        let lists = self.seen.named().into_iter().map(|name| {
            let previous = desired.node_set_conditions.get(name).cloned().unwrap_or_default();
            let part = self.parts.iter().find(|it| it.name == name);
            let not_begun = || {
                let text = "The deployment has not begun.";
                vec![reasons::deployment::INIT.condition(NODE_SET_READY, text)]
            };
            let drafts = part.map_or_else(not_begun, |it| of_part(it, &desired.failures));
            (name.to_owned(), merge_conditions(&previous, drafts, generation, now))
        });
        lists.collect()
    }
}

/// Returns one condition for each service that has begun on a host, and their summary.
fn of_part(part: &NodeSetPart, failures: &[DeploymentFailure]) -> Vec<ConditionDraft> {
    let one = |idx: usize| {
        let has_begun = part.hosts.iter().map(|it| &it.live).any(|it| {
            let is_at_it = it.state != RunState::Pending || it.is_failing();
            it.done > idx || (it.done == idx && is_at_it)
        });
        has_begun.then(|| of_service(part, idx, failures))
    };
    let mut all: Vec<ConditionDraft> = (0..part.begun.services.len()).filter_map(one).collect();
    let text = match part.hosts.len() {
        0 => "Nothing was run: no host of the node set takes part.",
        _ => EVERYWHERE,
    };
    let good = reasons::deployment::READY.condition(NODE_SET_READY, text);
    let open = going_on(part);
    let sum =
        if part.is_done() { good } else { conditions::ready(&all, open).with_type(NODE_SET_READY) };
    all.push(sum);
    all
}

fn of_service(part: &NodeSetPart, idx: usize, failures: &[DeploymentFailure]) -> ConditionDraft {
    let name = part.begun.services[idx].as_str();
    let type_ = messages::service_condition(name);
    let n_hosts = part.hosts.len();
    let n_done = part.hosts.iter().filter(|it| it.live.done > idx).count();
    if n_done == n_hosts {
        let text = format!("Service {name} succeeded on {n_done} hosts.");
        return reasons::deployment::READY.condition(&type_, text);
    }
    let here = || part.hosts.iter().filter(|it| it.live.done == idx && it.live.is_failing());
    let is_its = |it: &&DeploymentFailure| it.node_set == part.name && it.service == name;
    let text = messages::together(failures.iter().filter(is_its), here().count());
    let first = here().next().and_then(|it| it.live.reason.clone());
    match first {
        Some(_) if here().any(|it| it.is_given_up) => {
            reasons::deployment::BACKOFF_LIMIT_EXCEEDED.condition(&type_, text)
        }
        Some(reason) => failing(&type_, &reason, text),
        None => {
            let text = format!("Service {name} has succeeded on {n_done} of {n_hosts} hosts.");
            reasons::deployment::REQUESTED.condition(&type_, text)
        }
    }
}

/// Returns the condition for a recorded failure that is tried again.
fn failing(type_: &str, recorded: &str, text: String) -> ConditionDraft {
    let reason = FailureReason::parse(recorded).reason();
    reason.condition(type_, text).with_severity(Severity::Warning)
}

/// Returns the condition of a node set that is not done.
fn going_on(part: &NodeSetPart) -> ConditionDraft {
    let text = "Hosts wait for their turn; DeploymentReady names what they wait for.";
    match part.hosts.iter().find_map(|it| it.blocked) {
        Some(blocked) => blocked.reason().condition(NODE_SET_READY, text),
        None if !part.lost.is_empty() => reasons::deployment::BACKOFF_LIMIT_EXCEEDED
            .condition(NODE_SET_READY, messages::lost(&part.lost)),
        None => {
            reasons::deployment::REQUESTED.condition(NODE_SET_READY, "Services are being deployed.")
        }
    }
}
