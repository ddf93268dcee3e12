//! The trusted ssh key of each host of a node set: the user's known hosts, else the learned key.

use std::collections::BTreeMap;

use api::dataplane::{Node, NodeSet};
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
use crate::node_set::nodes::memory::Memories;
use crate::node_set::observed::Observed;

/// Trust by the host's name in the inventory.
pub type Trusts = BTreeMap<String, HostKeyTrust>;

/// Returns the trust in each host, also in those that are terminating and whose address is known.
pub fn trusts(
    seen: &Observed,
    hosts: &[Host<'_>],
    terminating: &TerminatingHosts,
    memories: &Memories,
) -> Trusts {
    let offers = Offers::of(&seen.runs);
    let template = &seen.set.spec.node_template;
    let secret = SourceRef::secret(&seen.namespace, &template.ansible_ssh_private_key_secret);
    let ssh = seen.sources.get(&secret);
    let one = |it: &Host<'_>| {
        (it.name.clone(), trust((&seen.set, memories.get(&it.name)), ssh, it, &offers))
    };
    let of_terminating = |(name, it): (&String, &TerminatingHost)| {
        let node = memories.get(name);
        Some((name.clone(), terminating_trust((&seen.set, node), ssh, (name, it), &offers)?))
    };
    hosts.iter().map(one).chain(terminating.iter().filter_map(of_terminating)).collect()
}

/// Returns the trust in a host that was taken out of a node set; `None` if its address is not
/// known.
fn terminating_trust(
    (set, node): (&NodeSet, Option<&Node>),
    ssh: Option<&Digests>,
    (name, host): (&str, &TerminatingHost),
    offers: &Offers<'_>,
) -> Option<HostKeyTrust> {
    let (address, port) = host.address.as_ref()?;
    let template = set.spec.node_template.ansible.as_ref();
    let of_template = template.is_some_and(|it| has_own_options(&it.ansible_vars));
    let is_own = |it: &str| OWN_OPTIONS.iter().any(|option| has_variable(it, option));
    let has_own_options = of_template || host.entry.as_deref().is_some_and(is_own);
    Some(recorded_in((set, node), ssh, (name, (address, *port)), has_own_options, offers))
}

/// Returns the trust in one host of a node set, as its node records it; `ssh` holds the digests of its
/// ssh Secret, if that exists.
pub fn trust(
    (set, node): (&NodeSet, Option<&Node>),
    ssh: Option<&Digests>,
    host: &Host<'_>,
    offers: &Offers<'_>,
) -> HostKeyTrust {
    let levels = [host.node.ansible.as_ref(), set.spec.node_template.ansible.as_ref()];
    let mut vars = levels.into_iter().flatten().map(|it| &it.ansible_vars);
    let at = (host.name.as_str(), (host.ansible_host.as_str(), host.ansible_port));
    recorded_in((set, node), ssh, at, vars.any(has_own_options), offers)
}

fn recorded_in(
    (set, node): (&NodeSet, Option<&Node>),
    ssh: Option<&Digests>,
    (name, address): (&str, (&str, i32)),
    has_own_options: bool,
    offers: &Offers<'_>,
) -> HostKeyTrust {
    let status = node.and_then(|it| it.status.as_ref());
    let host = SshHost {
        name,
        address,
        has_own_options,
        ssh,
        recorded: status.and_then(|it| it.host_key.as_ref()),
        machine: status.and_then(|it| it.machine.as_ref()),
        created: set.creation_timestamp().map(|it| it.0),
    };
    host.trust(offers, accepted(node.and_then(|it| it.annotations().get(ACCEPT))))
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
