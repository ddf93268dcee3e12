//! The readiness gates that a deployment awaits once every service has succeeded.

use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;

use crate::deployment::hosts;
use crate::deployment::node_set_part::NodeSetPart;
use crate::deployment::observed::Observed;
use crate::node_set::readiness_gates::{self, GatedHosts, Gates};

/// Returns the state of the gates; `None` while a service is left to run, without gates, and for a
/// deployment that is to be deleted, which waits for none.
///
/// Only services that the node set lists count: for the others no operator reports its hosts.
pub fn evaluate(seen: &Observed, parts: &[NodeSetPart], now: Timestamp) -> Option<Gates> {
    let deployment = &*seen.deployment;
    if is_terminating(deployment) || !parts.iter().all(|it| it.shown.is_done()) {
        return None;
    }
    let uid = [deployment.uid().unwrap_or_default()];
    let gated: Vec<GatedHosts<'_>> =
        parts.iter().filter_map(|it| gated_hosts(seen, it, &uid)).collect();
    let previous = deployment.status.as_ref().map(|it| it.conditions.as_slice());
    readiness_gates::evaluate(&gated, previous.unwrap_or_default(), now)
}

/// Returns the hosts of a part that its node set still has; `None` without a node set.
fn gated_hosts<'a>(
    seen: &'a Observed,
    part: &'a NodeSetPart,
    deployments: &'a [String],
) -> Option<GatedHosts<'a>> {
    let set = part.node_set.as_deref()?;
    let present = hosts::by_name(set);
    let names = part.shown.hosts.keys().filter(|it| present.contains_key(*it));
    let is_listed = |it: &&String| set.spec.services.contains(*it);
    let service = |name: &'a String| Some((name.as_str(), &**seen.services.get(name)?));
    Some(GatedHosts {
        set,
        services: part.services.iter().filter(is_listed).filter_map(service).collect(),
        hosts: names.map(String::as_str).collect(),
        deployments,
        reports: seen.readiness.get(&part.name).map(Vec::as_slice).unwrap_or_default(),
    })
}
