//! The readiness gates that a deployment awaits once every service has succeeded.

use jiff::Timestamp;
use operator_core::finalizers::is_terminating;

use crate::deployment::node_set_part::NodeSetPart;
use crate::deployment::observed::Observed;
use crate::host::gates::{self, GatedHosts, Gates};

/// Returns the state of the gates; `None` while a service is left to run, without gates, and for a
/// deployment that is to be deleted, which waits for none.
///
/// Only services that the node set lists count: for the others no operator looks after its hosts.
pub fn evaluate(seen: &Observed, parts: &[NodeSetPart], now: Timestamp) -> Option<Gates> {
    let deployment = &*seen.deployment;
    if is_terminating(deployment) || !parts.iter().all(NodeSetPart::is_done) {
        return None;
    }
    let gated: Vec<GatedHosts<'_>> = parts.iter().filter_map(|it| gated_hosts(seen, it)).collect();
    gates::evaluate(&gated, deployment.conditions(), now)
}

/// Returns the hosts of a part on which no other deployment has begun since; `None` without a node
/// set.
fn gated_hosts<'a>(seen: &'a Observed, part: &'a NodeSetPart) -> Option<GatedHosts<'a>> {
    let set = part.node_set.as_deref()?;
    let hosts = part.hosts.iter().filter(|it| it.has_begun);
    let is_listed = |it: &&String| set.spec.services.contains(*it);
    let service = |name: &'a String| Some((name.as_str(), &**seen.services.get(name)?));
    Some(GatedHosts {
        set,
        services: part.begun.services.iter().filter(is_listed).filter_map(service).collect(),
        hosts: hosts.map(|it| (it.name.as_str(), it.node.as_deref())).collect(),
    })
}
