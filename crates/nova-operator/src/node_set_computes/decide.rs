//! The decision on a node set: one condition on the computes of its hosts, one on those that are
//! drained, and the report for the readiness gate and for deployments.

use api::conditions::{ConditionDraft, find};
use api::dataplane::HostReadiness;
use jiff::Timestamp;
use nova_config::conditions::{HOSTS_COMPUTES_UP, NODE_DRAINED};
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Kind, Plan, Step};
use operator_core::rejected_write::RejectedWrite;

use crate::computes_up::{ComputeState, condition, own_condition, plan};
use crate::node_set_computes::observed::{CRD_POLL_INTERVAL, HostReading, Observed, Report};
use crate::node_set_computes::{drain, rollout};
use crate::node_set_readiness::{self, Contents};
use crate::nova_health::ServiceHealth;

/// Returns the plan for a node set; the condition on computes is absent where nothing is counted,
/// and that on drained hosts where no host is to be drained or enabled.
///
/// A report that is rejected does not keep the conditions back.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    let conditions = seen.set.status.as_ref().map(|it| &it.conditions);
    let previous = own_condition(conditions);
    let drained = conditions.and_then(|it| find(it, NODE_DRAINED));
    let counted = seen.hosts.as_ref().filter(|it| seen.has_cells && !it.is_empty());
    let draft = counted.and_then(|hosts| {
        let states: Option<Vec<_>> = hosts.iter().map(state).collect();
        // What was reported before stays until each host was read.
        let before = || previous.map(ConditionDraft::repeated);
        states.map(|it| condition(HOSTS_COMPUTES_UP, &it)).or_else(before)
    });
    let of_status = rejected.filter(|it| it.target.kind != Kind::of::<HostReadiness>());
    let drafts = draft.into_iter().chain(drain::condition(seen, drained)).collect();
    let previous: Vec<_> = previous.into_iter().chain(drained).collect();
    let mut plan = plan(&*seen.set, &previous, drafts, of_status, now);
    if !is_terminating(&*seen.set) {
        let contents = contents(seen);
        if !contents.is_empty() && matches!(seen.report, Report::NotServed) {
            plan.requeue_in(CRD_POLL_INTERVAL);
        }
        plan.independent.extend(report_step(seen, &contents));
    }
    plan
}

/// Returns what is reported of the hosts of a node set.
fn contents(seen: &Observed) -> Contents {
    let hosts = seen.hosts.iter().flatten().map(|it| (it.name.clone(), it.health.clone()));
    Contents {
        gated: seen.has_gate.then(|| hosts.collect()),
        disruption_allowed: rollout::disruption_allowed(seen),
    }
}

/// Returns the step that writes the report, or removes it where nothing is reported.
fn report_step(seen: &Observed, contents: &Contents) -> Option<Step> {
    let found = match &seen.report {
        Report::NotServed => return None,
        Report::Missing => None,
        Report::Found(found) => Some(&**found),
    };
    if !contents.is_empty() {
        return node_set_readiness::step(&seen.set, contents, found);
    }
    let ours = found.filter(|it| node_set_readiness::is_ours(it) && !is_terminating(*it));
    ours.map(node_set_readiness::removal)
}

/// Returns a host with its state; `None` while not enough was read to say.
fn state(host: &HostReading) -> Option<(String, ComputeState)> {
    let state = match host.health.service {
        ServiceHealth::Pending => return None,
        ServiceHealth::Up { .. } => ComputeState::Up,
        ServiceHealth::Down { .. } => ComputeState::Down,
        ServiceHealth::NotFound => ComputeState::NotRegistered,
        ServiceHealth::ApiFails | ServiceHealth::CellNotAnswering => ComputeState::Unknown,
    };
    Some((host.name.clone(), state))
}
