//! The decision on a node set: one condition on the computes of its hosts, one on those that are
//! drained, one on those that leave, and the report about them.

use api::ansibleee::AnsibleEe;
use api::conditions::{Condition, ConditionDraft, find, printable};
use api::dataplane::{HostReadiness, NodeSet};
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::annotations::{AUDIT, AUDIT_REPAIR};
use nova_config::conditions::{
    HOSTS_COMPUTES_UP, HOSTS_REMOVED, NODE_CONFIGURATION_IN_SYNC, NODE_DRAINED,
};
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Kind, Plan, Step, Target};
use operator_core::rejected_write::RejectedWrite;

use crate::computes_up::{condition, own_condition, plan, state_of};
use crate::drain::order::OrderOfHost;
use crate::node_set_computes::observed::{CRD_POLL_INTERVAL, HostReading, Observed, Report};
use crate::node_set_computes::removal::decide::Decision;
use crate::node_set_computes::{drain, orders, removal, rollout};
use crate::node_set_readiness::{self, Contents};
use crate::nova_health::ServiceHealth;
use crate::reasons;

/// Returns the plan for a node set; the condition on computes is absent where nothing is counted,
/// that on drained hosts where no host is to be drained or enabled, and that on hosts that leave
/// where none does.
///
/// A report or a run that is rejected does not keep the conditions back, nor the orders about hosts:
/// they follow from what is recorded already.
pub fn decide(
    seen: &Observed,
    rejected: Option<&RejectedWrite>,
    now: Timestamp,
) -> Plan<OrderOfHost> {
    let conditions = seen.set.status.as_ref().map(|it| &it.conditions);
    let previous = own_condition(conditions);
    let drained = conditions.and_then(|it| find(it, NODE_DRAINED));
    let counted = seen.hosts.as_ref().filter(|it| seen.has_cells && !it.is_empty());
    let draft = counted.and_then(|hosts| {
        let state = |it: &HostReading| Some((it.name.clone(), state_of(&it.health.service)?));
        let states: Option<Vec<_>> = hosts.iter().map(state).collect();
        // What was reported before stays until each host was read.
        let before = || previous.map(ConditionDraft::repeated);
        let draft = states.map(|it| condition(HOSTS_COMPUTES_UP, &it));
        draft.map(|it| with_cause(it, hosts)).or_else(before)
    });
    let report = seen.report.found().filter(|it| node_set_readiness::is_ours(it));
    let removal = removal::decide::decide(&seen.set, &seen.removals, report, now);
    let own = |type_| conditions.and_then(|it| find(it, type_));
    let removed = removed(seen, &removal, rejected, own(HOSTS_REMOVED));
    let is_status = |it: &&RejectedWrite| it.target.kind == Kind::of::<NodeSet>();
    let drafts = draft.into_iter().chain(drain::condition(seen, drained)).chain(removed);
    let drafts = drafts.chain(audits(&seen.set));
    let others = [HOSTS_REMOVED, NODE_CONFIGURATION_IN_SYNC].into_iter().filter_map(own);
    let previous: Vec<_> = previous.into_iter().chain(drained).chain(others).collect();
    let rejected = rejected.filter(is_status);
    // Of a node set that is being deleted, only the removal of its hosts is reported.
    let is_over = is_terminating(&*seen.set) && removal.held.is_empty();
    let mut plan = if is_over {
        Plan::with_resync()
    } else {
        plan(&*seen.set, &previous, drafts.collect(), rejected, now)
    };
    let contents = contents(seen, &removal, report, now);
    let is_reported = !contents.is_empty() && !is_terminating(&*seen.set);
    plan.independent.extend(report_step(seen, &contents));
    let left = removal::decide::left_in_nova(&removal);
    plan.events.extend(left.map(|it| (Target::of(&*seen.set), it)));
    plan.independent.extend(removal.steps);
    plan.orders = orders::orders(seen, now);
    if let Some(at) = removal.retry_at {
        plan.requeue_at(at, now);
    }
    if is_reported && matches!(seen.report, Report::NotServed) {
        plan.requeue_in(CRD_POLL_INTERVAL);
    }
    plan
}

/// Returns the condition on audits, which an annotation requests in vain.
fn audits(set: &NodeSet) -> Option<ConditionDraft> {
    let is_there = |it: &&str| set.annotations().get(*it).is_some_and(|it| !it.is_empty());
    let found: Vec<&str> = [AUDIT, AUDIT_REPAIR].into_iter().filter(is_there).collect();
    let annotations = found.join(" and ");
    let text = format!("Hosts of node sets are not audited: remove {annotations}.");
    let reason = reasons::audit::AUDITS_NOT_SUPPORTED;
    (!found.is_empty()).then(|| reason.condition(NODE_CONFIGURATION_IN_SYNC, text))
}

/// Adds why hosts are unknown, where their cell does not report that.
fn with_cause(mut draft: ConditionDraft, hosts: &[HostReading]) -> ConditionDraft {
    let is_unknown = |it: &&HostReading| it.health.service == ServiceHealth::ApiFails;
    let causes = hosts.iter().filter(is_unknown).find_map(|it| it.health.cause.as_ref());
    let Some(cause) = causes else { return draft };
    draft.message = printable(&format!("{} Nova's API cannot be read: {cause}", draft.message));
    draft
}

/// Returns the condition on hosts that leave; a run that is rejected takes precedence.
fn removed(
    seen: &Observed,
    removal: &Decision,
    rejected: Option<&RejectedWrite>,
    previous: Option<&Condition>,
) -> Option<ConditionDraft> {
    let draft = removal::condition::condition(&seen.removals, removal, previous)?;
    let of_run = rejected.filter(|it| it.target.kind == Kind::of::<AnsibleEe>());
    let before: Vec<Condition> = previous.cloned().into_iter().collect();
    Some(of_run.map_or(draft, |it| it.condition(HOSTS_REMOVED, &before)))
}

/// Returns what is reported of the hosts of a node set; `report` is the present report, if it is
/// one of this operator.
fn contents(
    seen: &Observed,
    removal: &Decision,
    report: Option<&HostReadiness>,
    now: Timestamp,
) -> Contents {
    Contents {
        gated: seen.has_gate.then(|| seen.hosts.clone().unwrap_or_default()),
        disruption_allowed: rollout::disruption_allowed(seen),
        finalizers: removal::finalizers::desired(&seen.set, &seen.removals, removal, report, now),
    }
}

/// Returns the step that writes the report, or removes it where nothing is reported.
fn report_step(seen: &Observed, contents: &Contents) -> Option<Step> {
    if matches!(seen.report, Report::NotServed) {
        return None;
    }
    let (set, found) = (&seen.set, seen.report.found());
    let ours = found.filter(|it| node_set_readiness::is_ours(it));
    if is_terminating(&**set) {
        ours?;
        return node_set_readiness::step(set, contents, ours);
    }
    let is_foreign = found.is_some() && ours.is_none();
    if contents.gated.is_some() || (!contents.is_empty() && !is_foreign) {
        return node_set_readiness::step(set, contents, found);
    }
    ours.filter(|it| !is_terminating(*it)).map(node_set_readiness::removal)
}
