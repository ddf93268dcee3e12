//! The trusted ssh key of each host of a node set: the user's known hosts, else the learned key.

use std::collections::BTreeMap;

use api::dataplane::{HostMachine, Node, NodeSet};
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_core::node_set_host::Host;
use operator_core::run_engine::host_key::{ACCEPT, HostKeyTrust, accepted};
use operator_core::run_engine::known_hosts::line;
use operator_runtime::source_cache::Digests;

use crate::host::conflicts::Claim;
use crate::host::effective_spec::{OWN_OPTIONS, has_own_options};
use crate::host::ssh_trust::{Offers, SshHost};
use crate::node_set::inventory_entries::has_variable;
use crate::node_set::kept_hosts::{TerminatingHost, TerminatingHosts};
use crate::node_set::machine_request::Machines;
use crate::node_set::observed::Observed;

/// Trust by the host's name in the inventory.
pub type Trusts = BTreeMap<String, HostKeyTrust>;

/// Returns the trust in each host, also in those that are terminating and whose address is known.
pub fn trusts(
    seen: &Observed,
    hosts: &[Host<'_>],
    terminating: &TerminatingHosts,
    machines: &Machines,
) -> Trusts {
    let offers = Offers::of(&seen.runs);
    let template = &seen.set.spec.node_template;
    let secret = SourceRef::secret(&seen.namespace, &template.ansible_ssh_private_key_secret);
    let ssh = seen.sources.get(&secret);
    let one = |it: &Host<'_>| {
        let node = node(seen, &it.name);
        let recorded = recorded(&seen.set, node, &it.name);
        let recorded = recorded.filter(|_| !machines.is_new(&it.name));
        let machine = machines.records.get(&it.name);
        (it.name.clone(), trust((&seen.set, node), ssh, it, recorded, machine, &offers))
    };
    let of_terminating = |(name, it): (&String, &TerminatingHost)| {
        Some((name.clone(), terminating_trust(seen, ssh, name, it, machines, &offers)?))
    };
    hosts.iter().map(one).chain(terminating.iter().filter_map(of_terminating)).collect()
}

/// Returns the node of a host, also of one that leaves.
fn node<'a>(seen: &'a Observed, host: &str) -> Option<&'a Node> {
    seen.nodes.get(host).map(|it| &**it)
}

/// Returns the trust in a host that was taken out of a node set; `None` if its address is not
/// known.
fn terminating_trust(
    seen: &Observed,
    ssh: Option<&Digests>,
    name: &str,
    host: &TerminatingHost,
    machines: &Machines,
    offers: &Offers<'_>,
) -> Option<HostKeyTrust> {
    let (set, node) = (&seen.set, node(seen, name));
    let (address, port) = host.address.as_ref()?;
    let template = set.spec.node_template.ansible.as_ref();
    let of_template = template.is_some_and(|it| has_own_options(&it.ansible_vars));
    let is_own = |it: &str| OWN_OPTIONS.iter().any(|option| has_variable(it, option));
    let host = SshHost {
        name,
        address: (address, *port),
        has_own_options: of_template || host.entry.as_deref().is_some_and(is_own),
        ssh,
        recorded: recorded(set, node, name),
        machine: machines.of_terminating.get(name),
        created: set.creation_timestamp().map(|it| it.0),
    };
    Some(host.trust(offers, accepted_of(node)))
}

/// Returns the key that a host has shown, as the status of its node set records it; of a host that
/// another node set has handed over, as its node does.
pub fn recorded<'a>(set: &'a NodeSet, node: Option<&'a Node>, host: &str) -> Option<&'a String> {
    let status = set.status.as_ref();
    let of_node = || {
        let known = node?.status.as_ref()?;
        let described = known.observed_node_set.as_ref().map(|it| &it.uid);
        known.host_key.as_ref().filter(|_| described != set.metadata.uid.as_ref())
    };
    status.and_then(|it| it.host_keys.get(host)).or_else(of_node)
}

/// Returns the fingerprint that the user accepts of a host, by the annotation of its node.
fn accepted_of(node: Option<&Node>) -> Option<String> {
    accepted(node?.annotations().get(ACCEPT))
}

/// Returns the trust in one host of a node set, which has this node; `ssh` holds the digests of its
/// ssh Secret, if that exists, and `recorded` is the key of the present installation of its machine.
pub fn trust(
    (set, node): (&NodeSet, Option<&Node>),
    ssh: Option<&Digests>,
    host: &Host<'_>,
    recorded: Option<&String>,
    machine: Option<&HostMachine>,
    offers: &Offers<'_>,
) -> HostKeyTrust {
    let levels = [host.node.ansible.as_ref(), set.spec.node_template.ansible.as_ref()];
    let mut vars = levels.into_iter().flatten().map(|it| &it.ansible_vars);
    let host = SshHost {
        name: &host.name,
        address: (&host.ansible_host, host.ansible_port),
        has_own_options: vars.any(has_own_options),
        ssh,
        recorded,
        machine,
        created: set.creation_timestamp().map(|it| it.0),
    };
    host.trust(offers, accepted_of(node))
}

/// Returns the message about hosts whose keys another host showed earlier; `None` if there are
/// none.
pub fn shared(seen: &Observed, trusts: &Trusts) -> Option<String> {
    let key = |name: &str| trusts.get(name)?.key.clone();
    let claim = Claim::of_node_set(&seen.set).with_nodes(seen.nodes.all().map(|it| it.1));
    let claim = claim.without_terminating().showing(key);
    claim.shared_keys_text(&claim.shared_keys(&seen.neighbours))
}

/// Returns the known-hosts lines of the hosts whose keys were learned.
pub fn known_hosts(hosts: &[Host<'_>], terminating: &TerminatingHosts, trusts: &Trusts) -> String {
    let own = hosts.iter().map(|it| (&it.name, it.ansible_host.as_str(), it.ansible_port));
    let terminating = terminating.iter().filter_map(|(name, it)| {
        let (host, port) = it.address.as_ref()?;
        Some((name, host.as_str(), *port))
    });
    let of = |(name, host, port)| line(host, port, trusts.get(name)?.key.as_ref()?);
    own.chain(terminating).filter_map(of).collect()
}

/// Returns the learned keys as the status reports them.
pub fn learned_keys(trusts: &Trusts) -> BTreeMap<String, String> {
    let reported =
        |(name, it): (&String, &HostKeyTrust)| Some((name.clone(), it.key.as_ref()?.to_string()));
    trusts.iter().filter_map(reported).collect()
}
