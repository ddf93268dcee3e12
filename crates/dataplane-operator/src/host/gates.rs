//! The readiness gates of services: types of conditions that other operators write on the nodes of
//! hosts.
//!
//! What a type means is not known here. Gates are in no hash and hold no run: they count once
//! every service has succeeded.

use std::collections::BTreeMap;

use api::conditions::{Condition, ConditionDraft, ConditionStatus, find, first_names, one_line};
use api::dataplane::condition_types::READINESS_GATES_READY;
use api::dataplane::{DisruptionHolder, Node, NodeDeployment, NodeSet, Service};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use crate::conditions::{NAMED, first_texts};
use crate::reasons;

/// The length limit of the part of a message about one host.
const TEXT: usize = 300;
/// How long an operator may have no entry on a node: after that nothing waits for it, and its gate counts
/// as a fault.
pub const REPORTED_WITHIN: SignedDuration = SignedDuration::from_mins(5);

/// The hosts of a node set on which every service has succeeded.
pub struct GatedHosts<'a> {
    /// The node set.
    pub set: &'a NodeSet,
    /// Services that ran on the hosts and that the node set lists, by name.
    pub services: Vec<(&'a str, &'a Service)>,
    /// Their nodes, by the inventory names of the hosts; `None` while the node does not say yet what
    /// was deployed last.
    pub hosts: BTreeMap<&'a str, Option<&'a Node>>,
}

/// The state of all gates.
#[derive(Clone, Debug, PartialEq)]
pub struct Gates {
    /// The condition.
    pub condition: ConditionDraft,
    /// When a gate that is not reported by then becomes a fault.
    pub deadline: Option<Timestamp>,
}

/// The state of one gate, which every host satisfies if it has neither.
struct GateState {
    /// The gate, and why nothing is said of it on some hosts.
    unreported: Option<(String, String)>,
    /// A sentence about each of the first hosts that do not satisfy it.
    waiting: Option<String>,
}

/// What is said of a gate on one host.
enum OnHost {
    /// Its operator has no entry on the node.
    Without,
    /// What its operator says is from before the last deployment.
    Old,
    /// The host does not satisfy it, with the cause.
    Waiting(String),
    Satisfied,
}

/// Evaluates the gates of all services; `None` when none is listed, or no host takes part.
///
/// `previous` are the recorded conditions of the object that gets this one. They have the time
/// since which a gate is not reported.
pub fn evaluate(all: &[GatedHosts<'_>], previous: &[Condition], now: Timestamp) -> Option<Gates> {
    let with_hosts = all.iter().filter(|it| !it.hosts.is_empty());
    let states: Vec<GateState> = with_hosts.flat_map(GatedHosts::states).collect();
    if states.is_empty() {
        return None;
    }
    let unreported = states.iter().find_map(|it| it.unreported.as_ref());
    let waiting: Vec<&str> = states.iter().filter_map(|it| it.waiting.as_deref()).collect();
    let gates = match unreported {
        Some((gate, cause)) => unreported_gate(gate, cause, &waiting, previous, now),
        None if waiting.is_empty() => {
            let text = "Every host satisfies each readiness gate of its services.";
            reported(reasons::readiness_gates::READY.condition(READINESS_GATES_READY, text))
        }
        None => reported(
            reasons::readiness_gates::HOSTS_NOT_READY
                .condition(READINESS_GATES_READY, waiting.join(" ")),
        ),
    };
    Some(gates)
}

fn reported(condition: ConditionDraft) -> Gates {
    Gates { condition, deadline: None }
}

/// Returns the state while a gate is not reported: unknown at first, later a fault that stays until
/// the gate is reported.
fn unreported_gate(
    gate: &str,
    cause: &str,
    waiting: &[&str],
    previous: &[Condition],
    now: Timestamp,
) -> Gates {
    let recorded = find(previous, READINESS_GATES_READY);
    let with = |word: &str| recorded.filter(|it| it.reason == word);
    let since = with(reasons::readiness_gates::GATE_AWAITED.word)
        .map_or(now, |it| it.last_transition_time.0);
    let deadline = since + REPORTED_WITHIN;
    let is_overdue =
        now >= deadline || with(reasons::readiness_gates::GATE_NOT_REPORTED.word).is_some();
    let (reason, by) = if is_overdue {
        (&reasons::readiness_gates::GATE_NOT_REPORTED, "by any operator")
    } else {
        (&reasons::readiness_gates::GATE_AWAITED, "yet")
    };
    let text = format!("{gate} is not reported {by}: {cause}");
    let texts: Vec<&str> = std::iter::once(text.as_str()).chain(waiting.iter().copied()).collect();
    let condition = reason.condition(READINESS_GATES_READY, texts.join(" "));
    Gates { condition, deadline: (!is_overdue).then_some(deadline) }
}

impl GatedHosts<'_> {
    /// Returns the state of each gate. A type that several services list is one gate, named after
    /// the first of them.
    fn states(&self) -> Vec<GateState> {
        let mut gates: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, service) in &self.services {
            for gate in &service.spec.readiness_gates {
                gates.entry(gate.condition_type.as_str()).or_insert(name);
            }
        }
        gates.into_iter().map(|(type_, service)| self.state(type_, service)).collect()
    }

    fn state(&self, type_: &str, service: &str) -> GateState {
        let (mut without, mut old, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for (name, node) in &self.hosts {
            match on_host(*node, type_) {
                OnHost::Without => without.push(*name),
                OnHost::Old => old.push(*name),
                OnHost::Waiting(text) => texts.push(one_line(&format!("{name}: {text}"), TEXT)),
                OnHost::Satisfied => {}
            }
        }
        let gate = || format!("Condition type {type_} of service {service}");
        let (set, n_hosts) = (self.set.name_any(), self.hosts.len());
        let count =
            |n_some| format!("{n_some} of {n_hosts} hosts of OpenStackDataPlaneNodeSet {set}");
        let cause = if !without.is_empty() {
            Some(format!(
                "the operator that reports it has no entry in status.disruption.holders of \
                 OpenStackDataPlaneNode {}, which is so of {}. Start that operator, or list a service \
                 without this gate.",
                first_names(&without, NAMED),
                count(without.len())
            ))
        } else if !old.is_empty() {
            Some(format!(
                "what OpenStackDataPlaneNode {} says is from before the last deployment, which is so \
                 of {}. Look at the operator that writes it.",
                first_names(&old, NAMED),
                count(old.len())
            ))
        } else {
            None
        };
        let n_waiting = texts.len();
        let waiting = (n_waiting > 0).then(|| {
            let text = format!(
                "{} do not satisfy readiness gate {type_} of service {service}.",
                count(n_waiting)
            );
            let first = [text].into_iter().chain(texts.into_iter().take(NAMED)).collect();
            first_texts(first, n_waiting.saturating_sub(NAMED))
        });
        GateState { unreported: cause.map(|it| (gate(), it)), waiting }
    }
}

/// Returns the entry of an operator on a node, by the prefix of its conditions.
pub fn entry<'a>(node: &'a Node, prefix: &str) -> Option<&'a DisruptionHolder> {
    node.disruption_holders().iter().find(|it| it.name == prefix)
}

/// Returns what is said of a gate on a host.
///
/// The node set's generation is not compared: an edit reaches no host without a deployment, so it
/// leaves `Ready` as it is.
fn on_host(node: Option<&Node>, type_: &str) -> OnHost {
    let Some(node) = node else { return OnHost::Old };
    let prefix = type_.rsplit_once('/').map_or("", |it| it.0);
    let Some(entry) = entry(node, prefix) else { return OnHost::Without };
    let status = node.status.as_ref();
    let last = status.and_then(|it| it.deployment.as_ref());
    let ended = last.and_then(NodeDeployment::succeeded);
    let is_current = ended.is_some() && entry.seen == ended;
    let conditions = status.map(|it| it.conditions.as_slice()).unwrap_or_default();
    match find(conditions, type_).filter(|_| is_current) {
        None => OnHost::Old,
        Some(it) if it.status == ConditionStatus::True => OnHost::Satisfied,
        Some(it) => OnHost::Waiting(format!("{}: {}", it.reason, it.message)),
    }
}
