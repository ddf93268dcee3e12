//! The hosts of a node set as a deployment's runs target them.

use std::collections::BTreeMap;

use api::conditions::find;
use api::dataplane::{HostState, Node, NodeSet, NodeSetHost};
use operator_core::data_sources::SourceRef;
use operator_core::node_set_host::{Host, hosts, machine_template};
use operator_core::run_engine::limit;
use operator_runtime::source_cache::Digests;

use crate::deployment::observed::Observed;
use crate::node_set::nodes::acceptance::NODES_ACCEPTED;

/// Returns the hosts of a node set by their inventory names.
pub fn by_name(node_set: &NodeSet) -> BTreeMap<String, Host<'_>> {
    hosts(node_set).into_iter().map(|it| (it.name.clone(), it)).collect()
}

/// Returns the hosts of a node set on which all of its services have succeeded once.
pub fn in_service(node_set: &NodeSet) -> impl Iterator<Item = &NodeSetHost> {
    node_set.status.iter().flat_map(|it| &it.hosts).filter(|it| it.hash.is_some())
}

/// Returns the hosts of a node set that may serve: all of its services have succeeded on them once,
/// or a deployment of some of them has, or one has failed after it had begun.
pub fn may_serve(node_set: &NodeSet) -> impl Iterator<Item = &NodeSetHost> {
    let all = node_set.status.iter().flat_map(|it| &it.hosts);
    let has_ended = |it: &NodeSetHost| matches!(it.state, HostState::Deployed | HostState::Failed);
    all.filter(move |it| it.hash.is_some() || has_ended(it))
}

/// Returns the digests of a node set's ssh Secret; `None` when it does not exist.
pub fn ssh_digests<'a>(seen: &'a Observed, node_set: &NodeSet) -> Option<&'a Digests> {
    let secret = &node_set.spec.node_template.ansible_ssh_private_key_secret;
    seen.sources.get(&SourceRef::secret(&seen.namespace, secret))
}

/// Returns the hosts of a node set that the limit does not exclude.
pub fn within_limit<'a>(
    seen: &'a Observed,
    node_set: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let limit = seen.deployment.spec.ansible_limit.as_deref();
    let is_in =
        move |host: &String| !limit.is_some_and(|it| limit::leaves_out(it, host, &[node_set]));
    let node_set = seen.node_sets.get(node_set);
    node_set.into_iter().flat_map(|it| by_name(it).into_keys()).filter(is_in)
}

/// Returns the hosts of a node set that take part: of those within the limit, not the ones that go,
/// and not those whose node cannot be made, as the node set says.
pub fn hosts_of<'a>(seen: &'a Observed, node_set: &'a str) -> impl Iterator<Item = String> + 'a {
    let set = seen.node_sets.get(node_set);
    let conditions = set.and_then(|it| Some(it.status.as_ref()?.conditions.as_slice()));
    let is_refused = find(conditions.unwrap_or_default(), NODES_ACCEPTED).is_some();
    let takes_part =
        move |host: &String| seen.node(node_set, host).map_or(!is_refused, |it| !it.is_leaving());
    within_limit(seen, node_set).filter(takes_part)
}

/// Returns the node of a host that does not go.
pub fn staying_node<'a>(seen: &'a Observed, node_set: &str, host: &str) -> Option<&'a Node> {
    seen.node(node_set, host).filter(|it| !it.is_leaving())
}

/// Returns whether a host's machine lets services begin; true when no machine was requested.
pub fn has_machine(set: &NodeSet, host: &str) -> bool {
    let machine = set.status.as_ref().and_then(|it| it.machines.get(host));
    machine_template(set).is_none() || machine.is_some_and(|it| it.ready)
}
