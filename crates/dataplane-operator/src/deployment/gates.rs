//! The readiness gates that a deployment awaits once every service has succeeded.

use api::dataplane::{Node, NodeDeployment};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;

use crate::deployment::hosts;
use crate::deployment::node_set_part::NodeSetPart;
use crate::deployment::observed::Observed;
use crate::host::gates::{self, GatedHosts, Gates};

/// Returns the state of the gates; `None` while a service is left to run, without gates, and for a
/// deployment that is to be deleted, which waits for none.
///
/// Only services that the node set lists count: for the others no operator looks after its hosts.
pub fn evaluate(seen: &Observed, parts: &[NodeSetPart], now: Timestamp) -> Option<Gates> {
    let deployment = &*seen.deployment;
    if is_terminating(deployment) || !parts.iter().all(|it| it.shown.is_done()) {
        return None;
    }
    let gated: Vec<GatedHosts<'_>> = parts.iter().filter_map(|it| gated_hosts(seen, it)).collect();
    let previous = deployment.status.as_ref().map(|it| it.conditions.as_slice());
    gates::evaluate(&gated, previous.unwrap_or_default(), now)
}

/// Returns the hosts of a part that its node set still has, each with its node once that names this
/// deployment, or one that was at the host later; `None` without a node set.
///
/// Hosts on which a younger deployment has begun are that one's.
fn gated_hosts<'a>(seen: &'a Observed, part: &'a NodeSetPart) -> Option<GatedHosts<'a>> {
    let set = part.node_set.as_deref()?;
    let present = hosts::by_name(set);
    let last = |node: &'a Node| -> Option<&'a NodeDeployment> {
        node.status.as_ref()?.deployment.as_ref()
    };
    let names = part.shown.hosts.keys().filter(|it| present.contains_key(*it));
    let hosts = names.map(|it| (it.as_str(), seen.node(&part.name, it)));
    let is_ours = |(_, it): &(&str, Option<&'a Node>)| {
        !it.and_then(last).is_some_and(|it| seen.younger.contains(&it.uid))
    };
    let uid = seen.deployment.uid();
    let is_current = |host: &str, node: &'a Node| {
        let is_later =
            |it: &NodeDeployment| ended_at(seen, host).is_some_and(|end| it.since.0 >= end);
        last(node).is_some_and(|it| Some(&it.uid) == uid.as_ref() || is_later(it))
    };
    let current =
        |(host, node): (&'a str, Option<&'a Node>)| (host, node.filter(|it| is_current(host, it)));
    let is_listed = |it: &&String| set.spec.services.contains(*it);
    let service = |name: &'a String| Some((name.as_str(), &**seen.services.get(name)?));
    Some(GatedHosts {
        set,
        services: part.services.iter().filter(is_listed).filter_map(service).collect(),
        hosts: hosts.filter(is_ours).map(current).collect(),
    })
}

/// Returns when the last run of the deployment on a host ended; `None` where its runs are gone.
fn ended_at(seen: &Observed, host: &str) -> Option<Timestamp> {
    let runs = seen.runs.iter().filter(|it| it.spec.hosts.iter().any(|it| it.name == host));
    runs.filter_map(|it| Some(it.status.as_ref()?.completion_time.as_ref()?.0)).max()
}
