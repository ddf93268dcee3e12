//! The trusted ssh key of each host of a node set: the user's known hosts, else the learned key.

use std::collections::BTreeMap;

use operator_core::data_sources::SourceRef;
use operator_core::node_set_host::Host;
use operator_core::run_engine::host_key::HostKeyTrust;
use operator_core::run_engine::known_hosts::line;

use crate::host::conflicts::{Claim, ClaimIndex};
use crate::host::effective_spec::{OWN_OPTIONS, has_own_options};
use crate::host::ssh_trust::{Offers, SshHost};
use crate::node_set::inventory_entries::has_variable;
use crate::node_set::kept_hosts::TerminatingHosts;
use crate::node_set::node_memory::Memories;
use crate::node_set::observed::Observed;

/// Trust by the host's name in the inventory.
pub type Trusts = BTreeMap<String, HostKeyTrust>;

/// Returns the hosts as ssh reaches them, also those that are terminating and whose address is known.
pub fn ssh_hosts<'a>(
    seen: &'a Observed,
    hosts: &'a [Host<'_>],
    terminating: &'a TerminatingHosts,
    memories: &'a Memories,
) -> Vec<SshHost<'a>> {
    let (set, template) = (&*seen.set, &seen.set.spec.node_template);
    let secret = SourceRef::secret(&seen.namespace, &template.ansible_ssh_private_key_secret);
    let ssh = seen.sources.get(&secret);
    let own = hosts.iter().map(|it| SshHost::of_entry(set, memories.get(&it.name), ssh, it));
    let of_template = template.ansible.as_ref().is_some_and(|it| has_own_options(&it.ansible_vars));
    let is_own = |it: &str| OWN_OPTIONS.iter().any(|option| has_variable(it, option));
    let left = terminating.iter().filter_map(|(name, host)| {
        let (address, port) = host.address.as_ref()?;
        let has_own_options = of_template || host.entry.as_deref().is_some_and(is_own);
        let (node, address) = (memories.get(name), (address.as_str(), *port));
        Some(SshHost::of_node(set, node, ssh, name, address, has_own_options))
    });
    own.chain(left).collect()
}

/// Returns the trust in each of these hosts.
pub fn trusts(seen: &Observed, hosts: &[SshHost<'_>]) -> Trusts {
    let offers = Offers::of(&seen.runs);
    hosts.iter().map(|it| (it.name.to_owned(), it.trust(&offers))).collect()
}

/// Returns the message about hosts whose keys another host showed earlier; `None` if there are
/// none.
pub fn shared(seen: &Observed, trusts: &Trusts) -> Option<String> {
    let key = |name: &str| trusts.get(name)?.key.clone();
    let claim = Claim::of_node_set(&seen.set).with_nodes(seen.nodes.all().map(|it| it.1));
    let claim = claim.without_terminating().showing(key);
    claim.shared_keys_text(&claim.shared_keys(&ClaimIndex::of(&seen.neighbours)))
}

/// Returns the known-hosts lines of the hosts whose keys were learned.
pub fn known_hosts(hosts: &[SshHost<'_>], trusts: &Trusts) -> String {
    let of = |it: &SshHost<'_>| {
        let (host, port) = it.address;
        line(host, port, trusts.get(it.name)?.key.as_ref()?)
    };
    hosts.iter().filter_map(of).collect()
}
