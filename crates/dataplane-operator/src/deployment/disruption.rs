//! The hosts that a deployment may disturb, as other operators say on their nodes.
//!
//! Why a host has to wait is not known here: each operator has an entry of its own, under the prefix of
//! its conditions.

use std::collections::BTreeSet;

use api::conditions::ConditionStatus;
use api::dataplane::{DisruptionHolder, DisruptionTarget, Node};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::run_engine::rollout::named;

use crate::deployment::hosts::may_serve;
use crate::deployment::node_set_part::{EvaluatedHost, Hold, NodeSetPart};
use crate::deployment::observed::Observed;
use crate::host::gates::{REPORTED_WITHIN, entry};

/// End of the type of a condition by which an operator says, under its own prefix, whether the host is
/// in service; only one that is False counts.
const SERVICE_UP: &str = "/ServiceUp";

/// Returns whether an operator has the host, if it is in service, wait until it may be disturbed.
pub fn is_restricted(host: &EvaluatedHost) -> bool {
    host.node.as_deref().is_some_and(restricts)
}

/// Returns whether the host, if it is in service, has to wait: an operator does not let this
/// deployment disturb it, or has no entry on its node yet.
pub fn has_to_wait(seen: &Observed, node_set: &str, host: &EvaluatedHost, now: Timestamp) -> bool {
    let Some(node) = host.node.as_deref() else { return false };
    lacking(seen, node).is_some()
        || awaited(seen, node_set, node).is_some_and(|(_, deadline)| now < deadline)
}

/// Returns whether an operator lets any deployment disturb the host: then it counts as unavailable.
pub fn is_disturbed(host: &EvaluatedHost) -> bool {
    let node = host.node.as_deref();
    node.is_some_and(|it| it.disruption_holders().iter().any(|it| it.allowed.is_some()))
}

/// Returns whether an operator says that the host of a node is down.
pub fn is_down(node: &Node) -> bool {
    let conditions = node.conditions().iter();
    let mut reports = conditions.filter(|it| it.type_.ends_with(SERVICE_UP));
    reports.any(|it| it.status == ConditionStatus::False)
}

/// Returns the hosts of a node set that may serve and that each operator which restricts them lets
/// this deployment disturb. While it is at a host, the host has no target any more.
pub fn allowed<'a>(seen: &Observed, part: &'a NodeSetPart) -> BTreeSet<&'a str> {
    let uid = seen.deployment.uid();
    let lets_us =
        |it: &DisruptionHolder| it.allowed.as_ref().map(|it| &it.deployment) == uid.as_ref();
    let is_allowed = |node: &Node| {
        let mut holders = node.disruption_holders().iter().filter(|it| it.holds);
        may_serve(seen, node) && restricts(node) && holders.all(lets_us)
    };
    let allowed = part.hosts.iter().filter(|it| it.node.as_deref().is_some_and(is_allowed));
    allowed.map(|it| it.name.as_str()).collect()
}

/// Returns the first host that an operator restricts, and the name of the operator.
pub fn first_restricted(parts: &[NodeSetPart]) -> Option<(&str, &str)> {
    parts.iter().flat_map(|it| &it.hosts).find_map(|host| {
        let holder = host.node.as_ref()?.disruption_holders().iter().find(|it| it.holds)?;
        Some((host.name.as_str(), holder.name.as_str()))
    })
}

/// Returns the deployment's own target of a host, which waits there to be disturbed.
pub fn our_target<'a>(seen: &Observed, node: &'a Node) -> Option<&'a DisruptionTarget> {
    let uid = seen.deployment.metadata.uid.as_ref();
    node.disruption_target().filter(|it| Some(&it.deployment) == uid)
}

/// Returns whether deployments of the host of a node, if it is in service, wait until they may disturb it.
fn restricts(node: &Node) -> bool {
    node.disruption_holders().iter().any(|it| it.holds)
}

/// Returns the first operator for which a host waits and that does not let this deployment disturb it;
/// none does while there is no target.
fn lacking<'a>(seen: &Observed, node: &'a Node) -> Option<&'a DisruptionHolder> {
    let target = our_target(seen, node);
    let lacks = |it: &&DisruptionHolder| target.is_none() || it.allowed.as_ref() != target;
    node.disruption_holders().iter().filter(|it| it.holds).find(lacks)
}

/// Returns the operator, by its prefix, whose entry a host waits for, and until when: it reports a gate
/// of one of the services of the node set, so it may hold the host, and has no entry on the node yet. So
/// no deployment goes on at a node that is new, as after an upgrade or a restore, before that operator
/// has looked at it.
fn awaited<'a>(seen: &'a Observed, node_set: &str, node: &Node) -> Option<(&'a str, Timestamp)> {
    let listed = seen.node_sets.get(node_set).into_iter().flat_map(|it| &it.spec.services);
    let services = listed.filter_map(|it| seen.services.get(it));
    let gates = services.flat_map(|it| &it.spec.readiness_gates);
    let mut prefixes = gates.filter_map(|it| Some(it.condition_type.rsplit_once('/')?.0));
    let prefix = prefixes.find(|it| entry(node, it).is_none())?;
    let said = node.status.as_ref().and_then(|it| it.deployment.as_ref()).map(|it| it.since.0);
    let created = [seen.deployment.creation_timestamp(), node.creation_timestamp()];
    let since = created.into_iter().flatten().map(|it| it.0).chain(said).max()?;
    Some((prefix, since + REPORTED_WITHIN))
}

/// Returns until when the first host waits for the entry of an operator.
pub fn deadline(seen: &Observed, part: &NodeSetPart) -> Option<Timestamp> {
    let of_host = |it: &EvaluatedHost| Some(awaited(seen, &part.name, it.node.as_deref()?)?.1);
    waiting_in(part).filter_map(of_host).min()
}

/// Returns the hosts of a node set that wait until they may be disturbed.
fn waiting_in(part: &NodeSetPart) -> impl Iterator<Item = &EvaluatedHost> {
    part.hosts.iter().filter(|it| it.blocked == Some(Hold::Disruption))
}

/// Returns whether nothing is at work, and hosts wait until they may be disturbed.
pub fn is_all_that_is_left(parts: &[NodeSetPart]) -> bool {
    parts.iter().any(|it| waiting_in(it).next().is_some())
        && !parts.iter().flat_map(|it| &it.hosts).any(|it| it.sequence.is_due())
}

/// Returns the message about hosts that wait until they may be disturbed; `None` without any.
pub fn waiting(seen: &Observed, parts: &[NodeSetPart]) -> Option<String> {
    let texts: Vec<String> = parts.iter().flat_map(|it| of_part(seen, it)).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

fn of_part(seen: &Observed, part: &NodeSetPart) -> Vec<String> {
    let held = |hold: Hold| part.hosts.iter().filter(move |it| it.blocked == Some(hold));
    let names = |hold: Hold| held(hold).map(|it| it.name.as_str()).collect::<Vec<_>>();
    let (waiting, later) = (names(Hold::Disruption), names(Hold::ServiceForAll));
    let set = format!("OpenStackDataPlaneNodeSet {}", part.name);
    let n_all = part.hosts.len();
    let count = |held: &[&str]| format!("{} of {n_all} hosts of {set} wait", held.len());
    let text = format!("{} until they may be disturbed: {}.", count(&waiting), named(&waiting));
    let waits = (!waiting.is_empty()).then_some(text);
    let text = format!(
        "{} until the other node sets have come to what is for all of them ({}): {}.",
        count(&later),
        part.begun.joined.join(", "),
        named(&later)
    );
    let arrives = (!later.is_empty()).then_some(text);
    let cause = held(Hold::Disruption).find_map(|it| cause(seen, &part.name, it));
    waits.into_iter().chain(cause).chain(arrives).collect()
}

/// Returns the text that names the operator for which a host waits.
fn cause(seen: &Observed, node_set: &str, host: &EvaluatedHost) -> Option<String> {
    let (node, host, namespace) = (host.node.as_deref()?, &host.name, &seen.namespace);
    if let Some(holder) = lacking(seen, node) {
        return Some(format!(
            "{holder} does not let it go on at OpenStackDataPlaneNode {host} yet; see its conditions \
             there: kubectl describe -n {namespace} openstackdataplanenode/{host}. Where that operator \
             does not run any more: {}",
            removal(namespace, host, node, &holder.name),
            holder = holder.name,
        ));
    }
    let (prefix, deadline) = awaited(seen, node_set, node)?;
    Some(format!(
        "{prefix}, which reports a readiness gate, has no entry in status.disruption.holders of \
         OpenStackDataPlaneNode {host} yet; the host waits for it until {deadline:.0}. See whether that \
         operator runs."
    ))
}

/// Returns the command that takes the entry of an operator off a node.
fn removal(namespace: &str, host: &str, node: &Node, holder: &str) -> String {
    let place = node.disruption_holders().iter().position(|it| it.name == holder);
    let path = format!("/status/disruption/holders/{}", place.unwrap_or_default());
    format!(
        "kubectl patch -n {namespace} openstackdataplanenode/{host} --subresource=status --type=json \
         -p '[{{\"op\":\"test\",\"path\":\"{path}/name\",\"value\":\"{holder}\"}},\
         {{\"op\":\"remove\",\"path\":\"{path}\"}}]'"
    )
}
