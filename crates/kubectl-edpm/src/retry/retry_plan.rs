//! `retry` for hosts of node sets: a deployment like the last one, limited to the hosts that need
//! it.

use std::collections::BTreeSet;

use api::ansibleee::AnsibleEe;
use api::conditions::READY;
use api::dataplane::deployment::DeploymentSpec;
use api::dataplane::{Deployment, Node};
use kube::ResourceExt;

use super::order::Order;
use crate::conditions::said;
use crate::deployments::{is_last, waiting};
use crate::error::{Error, Result};
use crate::host::{Host, Step};
use crate::kinds::DEPLOYMENT;
use crate::object_meta::place;
use crate::snapshot::Snapshot;

/// The length of the name prefix: the API server appends five characters, and names of deployments
/// have at most 63.
const NAME: usize = 57;

/// Returns a deployment for a host on which the last one failed; with `is_forced` also for a host
/// without a failure, with all services. Otherwise it is an error.
pub(super) fn of_host(host: &Host<'_>, is_forced: bool) -> Result<Order> {
    let (namespace, set) = (host.namespace, host.node.node_set().unwrap_or_default());
    let stage = &host.stages[0];
    let last = stage.deployment;
    let under_way = last.filter(|it| !it.has_ended()).or_else(|| waiting(host));
    if let Some(open) = under_way.filter(|_| !is_forced) {
        return Err(still_trying(host, open));
    }
    let is_done = host.progress(stage).iter().all(|it| it.state == Step::Succeeded);
    let failed = last.filter(|it| it.has_ended() && !is_done);
    let limit = BTreeSet::from([host.name.to_owned()]);
    let sets = vec![set.to_owned()];
    if let Some(deployment) = failed {
        return Ok(like(namespace, place(deployment).1, &deployment.spec, sets, &limit));
    }
    if !is_forced {
        let why = stage.condition(READY).map(|it| format!(" ({})", said(it))).unwrap_or_default();
        return Err(Error::message(format!(
            "no deployment has failed on {}{why}; --force creates one of all services of {set} there",
            host.name
        )));
    }
    Ok(like(namespace, set, &DeploymentSpec::default(), sets, &limit))
}

/// Returns a deployment for hosts of a run, whose owner is a deployment.
pub(super) fn of_run(
    caches: &Snapshot,
    namespace: &str,
    run: &AnsibleEe,
    owner: &str,
    hosts: Vec<String>,
) -> Result<Vec<Order>> {
    let deployment = caches.deployments.iter().find(|it| place(*it) == (namespace, owner));
    let Some(deployment) = deployment else {
        return Err(Error::message(format!(
            "{DEPLOYMENT} {owner} of OpenStackAnsibleEE {} has gone: create another one",
            run.name_any()
        )));
    };
    if !deployment.has_ended() {
        return Err(Error::message(format!(
            "{DEPLOYMENT} {owner} is under way, and automatically retries what failed: see its \
             status"
        )));
    }
    let hosts: BTreeSet<String> = hosts.into_iter().collect();
    let of_hosts: BTreeSet<&str> = caches
        .nodes
        .iter()
        .filter(|it| place(*it).0 == namespace && hosts.contains(place(*it).1))
        .filter_map(Node::node_set)
        .collect();
    let has_any = |set: &&String| of_hosts.contains(set.as_str());
    let sets = deployment.spec.node_sets.iter().filter(has_any).cloned().collect();
    Ok(vec![like(namespace, owner, &deployment.spec, sets, &hosts)])
}

/// Returns a deployment with the spec of another one, limited to some hosts.
fn like(
    namespace: &str,
    name: &str,
    spec: &DeploymentSpec,
    node_sets: Vec<String>,
    hosts: &BTreeSet<String>,
) -> Order {
    let limit: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let spec = DeploymentSpec { node_sets, ansible_limit: Some(limit.join(",")), ..spec.clone() };
    let mut deployment = Deployment::new("", spec);
    deployment.metadata.name = None;
    let begin: String = name.chars().take(NAME).collect();
    deployment.metadata.generate_name = Some(format!("{begin}-"));
    deployment.metadata.namespace = Some(namespace.to_owned());
    Order::Deployment(Box::new(deployment))
}

/// Returns the error for a deployment that has not ended, as it retries by itself, or has not
/// begun.
fn still_trying(host: &Host<'_>, deployment: &Deployment) -> Error {
    let name = place(deployment).1;
    let is_failing =
        || host.stages[0].services.iter().any(|it| it.failures > 0 && it.reason.is_some());
    let doing = if !is_last(host.node, deployment) {
        "has not begun there"
    } else if is_failing() {
        "automatically retries what failed"
    } else {
        "is under way"
    };
    Error::message(format!(
        "{DEPLOYMENT} {name} {doing}; --force creates another one, which begins after it"
    ))
}
