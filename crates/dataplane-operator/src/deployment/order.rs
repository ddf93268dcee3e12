//! Which of several deployments goes first on hosts that they have in common: one that has begun, else
//! the older one.

use std::collections::BTreeSet;

use api::conditions::{ConditionStatus, find, first_names};
use api::dataplane::condition_types::{INPUT_READY, SETUP_READY};
use api::dataplane::{Deployment, HostState, Node, NodeSet, RunState};
use api::problem::Problem;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;

use crate::conditions::NAMED;
use crate::deployment::hosts::{hosts_of, last_deployment, within_limit};
use crate::deployment::observed::Observed;
use crate::host::node_state::failed_service;
use crate::reasons;

/// Returns whether a deployment has begun: from then on its hosts and services are fixed.
pub fn has_begun(deployment: &Deployment) -> bool {
    deployment.status.as_ref().is_some_and(|it| !it.node_sets.is_empty())
}

/// Returns by what deployments are ordered: the time of their creation, and their names.
fn age(deployment: &Deployment) -> (Option<Timestamp>, String) {
    (deployment.creation_timestamp().map(|it| it.0), deployment.name_any())
}

/// Returns the faults of a deployment that has to wait for others before it begins.
pub fn faults(seen: &Observed) -> Vec<Problem> {
    let first = seen.others.iter().filter(|it| comes_first(it, &seen.deployment));
    first.flat_map(|it| seen.node_sets.values().filter_map(|set| fault(seen, it, set))).collect()
}

/// Returns whether a deployment waits for another one before it begins.
///
/// An older one that cannot begin itself is not waited for; where this one could not begin until now
/// either, both may have waited for the same.
fn comes_first(other: &Deployment, ours: &Deployment) -> bool {
    if has_begun(other) {
        return !other.has_run();
    }
    let may_begin = !is_faulty(other) || is_faulty(ours);
    age(other) < age(ours) && !is_terminating(other) && may_begin
}

fn is_faulty(deployment: &Deployment) -> bool {
    let of_type = |type_| find(deployment.conditions(), type_);
    let mut reported = [SETUP_READY, INPUT_READY].into_iter().filter_map(of_type);
    let waits = reasons::deployment::DEPLOYMENT_UNDER_WAY.word;
    reported.any(|it| it.status == ConditionStatus::False && it.reason != waits)
}

fn fault(seen: &Observed, other: &Deployment, set: &NodeSet) -> Option<Problem> {
    let name = set.name_any();
    let theirs: BTreeSet<String> = match other.part_of(set) {
        Some(part) => part.hosts.iter().cloned().collect(),
        None if has_begun(other) || !other.spec.node_sets.contains(&name) => BTreeSet::new(),
        None => within_limit(other, set).collect(),
    };
    let common: Vec<String> = hosts_of(seen, &name).filter(|it| theirs.contains(it)).collect();
    if common.is_empty() {
        return None;
    }
    let text = format!(
        "OpenStackDataPlaneDeployment {other} goes first on {n_hosts} hosts of \
         OpenStackDataPlaneNodeSet {name} ({hosts}): this one begins once that one has run, or is \
         gone. Delete it to go on without: kubectl delete -n {namespace} \
         openstackdataplanedeployment/{other}",
        other = other.name_any(),
        n_hosts = common.len(),
        hosts = first_names(&common, NAMED),
        namespace = seen.namespace,
    );
    Some(Problem::new(&reasons::deployment::DEPLOYMENT_UNDER_WAY, text))
}

/// Returns whether another deployment goes first on a host that this one has not begun with: it is
/// older, or at work there and does not rest after a failure. Two that have begun have hosts in common
/// only where neither saw the other begin.
pub fn goes_first(seen: &Observed, set: &NodeSet, host: &str, node: &Node) -> bool {
    let failed = node.status.as_ref().and_then(failed_service);
    let rests = failed.is_some_and(|it| it.state == RunState::Failed);
    let last = last_deployment(node).filter(|it| it.state == HostState::Deploying && !rests);
    let is_first = |other: &Deployment| {
        let is_at_it = last.is_some_and(|it| Some(&it.uid) == other.metadata.uid.as_ref());
        let part = other.part_of(set).filter(|_| !other.has_run());
        (is_at_it || age(other) < age(&seen.deployment))
            && part.is_some_and(|it| it.hosts.iter().any(|it| it == host))
    };
    seen.others.iter().any(|it| is_first(it))
}
