//! The hosts of a node set as the runs of a deployment see them.

use std::collections::BTreeMap;

use common::api::dataplane::NodeSet;
use common::engine::build::{KNOWN_HOSTS, Reach};
use common::engine::host_key::{HostKey, Trust};
use shell::sources::{Digests, SourceRef};

use crate::deployment::observe::Observed;
use crate::node_set::host::{Host, hosts};

/// The hosts of a node set by their names in the inventory.
pub fn by_name(node_set: &NodeSet) -> BTreeMap<String, Host<'_>> {
    hosts(node_set).into_iter().map(|it| (it.name.clone(), it)).collect()
}

/// What is known of a node set's ssh Secret, where it exists.
pub fn ssh_digests<'a>(seen: &'a Observed, node_set: &NodeSet) -> Option<&'a Digests> {
    let secret = &node_set.spec.node_template.ansible_ssh_private_key_secret;
    seen.sources.get(&SourceRef::secret(&seen.namespace, secret))
}

/// How a host is reached by a run.
///
/// A key that was learned on the way is asked for again, pinned, until the node set tells of it: its
/// inventory has it then, and before that ssh finds it in the run's own file.
pub fn reach(
    seen: &Observed,
    node_set: &NodeSet,
    (name, address): (&str, &str),
    trust: &Trust,
    was_key_refused: bool,
) -> Reach {
    let digests = ssh_digests(seen, node_set);
    let told = node_set.status.as_ref().and_then(|it| it.host_keys.get(name));
    let is_in_inventory = told.and_then(|it| HostKey::parse(it)) == trust.key;
    Reach {
        address: address.to_owned(),
        ssh_secret: node_set.spec.node_template.ansible_ssh_private_key_secret.clone(),
        ssh_version: digests.map(|it| it.version.clone()).unwrap_or_default(),
        has_known_hosts: digests.is_some_and(|it| it.keys.contains_key(KNOWN_HOSTS)),
        scan: trust.scan(was_key_refused || !is_in_inventory),
        trusted: trust.token(),
    }
}
