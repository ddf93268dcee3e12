//! The hosts of a node set as a deployment's runs target them.

use std::collections::BTreeMap;

use api::conditions::find;
use api::dataplane::condition_types::NODES_ACCEPTED;
use api::dataplane::{Deployment, HostState, Node, NodeDeployment, NodeSet, ServiceRun};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_core::node_set_host::{Host, hosts, machine_template};
use operator_core::run_engine::limit;
use operator_runtime::source_cache::Digests;

use crate::deployment::observed::Observed;
use crate::host::node_state::hash_of;

/// Returns the hosts of a node set by their inventory names.
pub fn by_name(node_set: &NodeSet) -> BTreeMap<String, Host<'_>> {
    hosts(node_set).into_iter().map(|it| (it.name.clone(), it)).collect()
}

/// Returns whether all services of the node set have succeeded once on a host.
pub fn in_service(node: &Node) -> bool {
    node.status.as_ref().is_some_and(|it| it.deployed_config_hash.is_some())
}

/// Returns whether a host may serve: it is in service, or another deployment has begun there, of which
/// some services may have succeeded; once this one is there, their records say so.
pub fn may_serve(seen: &Observed, node: &Node) -> bool {
    let is_over = |it: &NodeDeployment| it.state != HostState::Deploying || !is_ours(seen, node);
    let uid = seen.deployment.uid().unwrap_or_default();
    let is_anothers = |it: &ServiceRun| {
        it.deployed_hash.as_ref().is_some_and(|own| *own != hash_of(&uid, &it.name))
    };
    in_service(node)
        || last_deployment(node).is_some_and(is_over)
        || node.status.iter().flat_map(|it| &it.services).any(is_anothers)
}

/// Returns the deployment that is at a host, or was last.
pub fn last_deployment(node: &Node) -> Option<&NodeDeployment> {
    node.status.as_ref()?.deployment.as_ref()
}

/// Returns whether the deployment is the last one that has begun on a host.
pub fn is_ours(seen: &Observed, node: &Node) -> bool {
    let uid = seen.deployment.metadata.uid.as_ref();
    last_deployment(node).is_some_and(|it| Some(&it.uid) == uid)
}

/// Returns when a host was made: its node, or the installation of its machine, whichever was later.
pub fn made_at(node: &Node) -> Option<Timestamp> {
    let created = node.creation_timestamp().map(|it| it.0);
    let machine = node.status.as_ref().and_then(|it| it.machine.as_ref());
    created.max(machine.and_then(|it| it.installed.as_ref()).map(|it| it.0))
}

/// Returns whether a host still takes part in the deployment, which has begun with it at this time: it
/// does not go, it was not made anew since, and it was not away when the last service ended.
pub fn takes_part(seen: &Observed, node: &Node, since: Timestamp) -> bool {
    let is_done = last_deployment(node).is_some_and(|it| it.state == HostState::Deployed);
    let was_away = seen.deployment.has_run() && is_ours(seen, node) && !is_done;
    !node.is_leaving() && !was_away && made_at(node).is_none_or(|it| it <= since)
}

/// Returns the digests of a node set's ssh Secret; `None` when it does not exist.
pub fn ssh_digests<'a>(seen: &'a Observed, node_set: &NodeSet) -> Option<&'a Digests> {
    let secret = &node_set.spec.node_template.ansible_ssh_private_key_secret;
    seen.sources.get(&SourceRef::secret(&seen.namespace, secret))
}

/// Returns the hosts of a node set that the limit of a deployment does not exclude.
pub fn within_limit(deployment: &Deployment, node_set: &NodeSet) -> impl Iterator<Item = String> {
    let (limit, name) = (deployment.spec.ansible_limit.as_deref(), node_set.name_any());
    let is_in = move |host: &String| !limit.is_some_and(|it| limit::leaves_out(it, host, &[&name]));
    by_name(node_set).into_keys().filter(is_in)
}

/// Returns the hosts of a node set that take part: of those within the limit, not the ones that go,
/// and not those whose node cannot be made, as the node set says.
pub fn hosts_of<'a>(seen: &'a Observed, node_set: &'a str) -> impl Iterator<Item = String> + 'a {
    let set = seen.node_sets.get(node_set);
    let is_refused = set.is_some_and(|it| find(it.conditions(), NODES_ACCEPTED).is_some());
    let takes_part =
        move |host: &String| seen.node(node_set, host).map_or(!is_refused, |it| !it.is_leaving());
    let within = set.into_iter().flat_map(|it| within_limit(&seen.deployment, it));
    within.filter(takes_part)
}

/// Returns whether a host's machine lets services begin, and its node records nothing of another
/// system; true when no machine was requested.
pub fn has_machine(set: &NodeSet, host: &str, node: Option<&Node>) -> bool {
    let machine = set.status.as_ref().and_then(|it| it.machines.get(host));
    let described = node.and_then(|it| it.status.as_ref()?.machine.as_ref()?.installation.as_ref());
    machine_template(set).is_none()
        || machine.is_some_and(|it| it.ready && it.installation.as_ref() == described)
}
