//! The readiness gates of services: types of conditions that other operators report for each host.
//!
//! What a type means is not known here. Gates are in no hash and hold no run: they count once
//! every service has succeeded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::conditions::{Condition, ConditionDraft, find, one_line};
use api::dataplane::condition_types::READINESS_GATES_READY;
use api::dataplane::{HostReadiness, NodeSet, Service};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use crate::conditions::{NAMED, first_texts};
use crate::reasons;

/// How long a gate may be unreported before the condition names it as a fault.
const REPORTED_WITHIN: SignedDuration = SignedDuration::from_mins(5);

/// The length limit of the part of a message about one host.
const TEXT: usize = 300;

/// The hosts of a node set on which every service has succeeded, and what is reported of them.
pub struct GatedHosts<'a> {
    /// The node set.
    pub set: &'a NodeSet,
    /// Services that ran on the hosts and that the node set lists, by name.
    pub services: Vec<(&'a str, &'a Service)>,
    /// The inventory names of the hosts.
    pub hosts: BTreeSet<&'a str>,
    /// UIDs of the deployments that a report must have observed.
    pub deployments: &'a [String],
    /// All reports about the node set.
    pub reports: &'a [Arc<HostReadiness>],
}

/// The state of all gates.
#[derive(Clone, Debug, PartialEq)]
pub struct Gates {
    /// The condition.
    pub condition: ConditionDraft,
    /// When a gate that is not reported by then becomes a fault.
    pub deadline: Option<Timestamp>,
}

/// The state of one gate.
enum GateState {
    /// No report, or only one from before the last deployment; with the cause.
    Unreported { gate: String, cause: String },
    /// Hosts have entries; with a sentence about each of the first.
    Waiting(String),
    /// Every host satisfies it.
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
    let unreported = states.iter().find_map(|it| match it {
        GateState::Unreported { gate, cause } => Some((gate, cause)),
        GateState::Waiting(_) | GateState::Satisfied => None,
    });
    let waiting: Vec<&str> = states.iter().filter_map(GateState::waiting).collect();
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
    let (reason, text) = if is_overdue {
        (
            &reasons::readiness_gates::GATE_NOT_REPORTED,
            format!("{gate} is not reported by any operator: {cause}"),
        )
    } else {
        (&reasons::readiness_gates::GATE_AWAITED, format!("{gate} is not reported yet: {cause}"))
    };
    let texts: Vec<&str> = std::iter::once(text.as_str()).chain(waiting.iter().copied()).collect();
    let condition = reason.condition(READINESS_GATES_READY, texts.join(" "));
    Gates { condition, deadline: (!is_overdue).then_some(deadline) }
}

impl GateState {
    fn waiting(&self) -> Option<&str> {
        match self {
            Self::Waiting(text) => Some(text),
            Self::Unreported { .. } | Self::Satisfied => None,
        }
    }
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
        let set = self.set.name_any();
        let of_type = || self.reports.iter().filter(|it| it.spec.condition_type == type_);
        let gate = format!("Condition type {type_} of service {service}");
        if of_type().next().is_none() {
            let cause = format!(
                "no OpenStackDataPlaneHostReadiness with it names OpenStackDataPlaneNodeSet {set}. \
                 Start the operator that reports it, or list a service without this gate."
            );
            return GateState::Unreported { gate, cause };
        }
        if let Some(old) = of_type().find(|it| !self.is_current(it)) {
            let cause = format!(
                "OpenStackDataPlaneHostReadiness {} is from before the last deployment of \
                 OpenStackDataPlaneNodeSet {set}. Look at the operator that writes it.",
                old.name_any()
            );
            return GateState::Unreported { gate, cause };
        }
        let entries: BTreeMap<&str, String> = of_type()
            .flat_map(|it| &it.spec.not_ready)
            .filter(|(host, _)| self.hosts.contains(host.as_str()))
            .map(|(host, it)| {
                let text = format!("{host}: {}: {}", it.reason, it.message);
                (host.as_str(), one_line(&text, TEXT))
            })
            .collect();
        if entries.is_empty() {
            return GateState::Satisfied;
        }
        let (n_waiting, n_hosts) = (entries.len(), self.hosts.len());
        let mut texts = vec![format!(
            "{n_waiting} of {n_hosts} hosts of OpenStackDataPlaneNodeSet {set} do not satisfy \
             readiness gate {type_} of service {service}."
        )];
        texts.extend(entries.into_values().take(NAMED));
        GateState::Waiting(first_texts(texts, n_waiting.saturating_sub(NAMED)))
    }

    /// Returns whether a report was made after the deployments.
    ///
    /// The node set's generation is not compared: an edit reaches no host without a deployment, so
    /// it leaves `Ready` as it is.
    fn is_current(&self, report: &HostReadiness) -> bool {
        self.deployments.iter().all(|it| report.spec.observed_deployments.contains(it))
    }
}
