//! The hosts of a node set as runs see them: names, addresses, and by which key each is known.

use std::collections::BTreeMap;

use common::api::dataplane::{AnsibleOpts, NodeSet, NodeSetNode};
use common::engine::build::{KNOWN_HOSTS, Reach};
use common::engine::host_key::{self, ACCEPT, HostKey, Trust};
use common::engine::known_hosts::covers;
use kube::ResourceExt;
use shell::sources::{Digests, SourceRef};

use crate::deployment::observe::Observed;
use crate::group::host_key::{OWN_OPTIONS, Offers};

/// The ssh port where neither node nor template names one.
const SSH_PORT: i32 = 22;
/// The network of the control plane, as statuses name it.
const CTLPLANE: &str = "ctlplane";

/// Where a host is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// The address that ssh connects to.
    pub host: String,
    /// The port that ssh connects to.
    pub port: i32,
    /// Whether the human takes ssh's options, or the connection as a whole, into their own hands.
    pub has_own_options: bool,
}

impl Place {
    /// `host:port`, the identity of the machine for those who must not share it.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// The hosts of a node set by their names in the inventory.
pub fn places(node_set: &NodeSet) -> BTreeMap<String, Place> {
    let template = node_set.spec.node_template.ansible.as_ref();
    let place = |(key, node): (&String, &NodeSetNode)| {
        let host_name = node.host_name.as_ref().filter(|it| !it.is_empty()).unwrap_or(key);
        let own = node.ansible.as_ref();
        let levels = || [own, template].into_iter().flatten();
        let host = own.and_then(|it| it.ansible_host.clone());
        let host = host.or_else(|| reserved(node_set, host_name));
        let port = levels().find_map(|it| it.ansible_port.filter(|it| *it > 0));
        let has =
            |it: &AnsibleOpts| OWN_OPTIONS.iter().any(|var| it.ansible_vars.contains_key(*var));
        let place = Place {
            host: host.unwrap_or_else(|| host_name.clone()),
            port: port.unwrap_or(SSH_PORT),
            has_own_options: levels().any(has),
        };
        (inventory_name(host_name).to_owned(), place)
    };
    node_set.spec.nodes.iter().map(place).collect()
}

/// The inventory knows a host by the first label of its name.
fn inventory_name(host_name: &str) -> &str {
    host_name.split('.').next().unwrap_or(host_name)
}

/// The address that was reserved for the host on the control plane's network.
fn reserved(node_set: &NodeSet, host_name: &str) -> Option<String> {
    node_set.status.as_ref()?.all_ips.get(host_name)?.get(CTLPLANE).cloned()
}

/// What is known of a node set's ssh Secret, where it exists.
pub fn ssh_digests<'a>(seen: &'a Observed, node_set: &NodeSet) -> Option<&'a Digests> {
    let secret = &node_set.spec.node_template.ansible_ssh_private_key_secret;
    seen.sources.get(&SourceRef::secret(&seen.namespace, secret))
}

/// The command by which a human accepts a host's present key, up to the fingerprint.
pub fn accept_command(namespace: &str, node_set: &str) -> String {
    format!(
        "kubectl annotate --overwrite -n {namespace} openstackdataplanenodeset/{node_set} {ACCEPT}="
    )
}

/// By which key a host is known: the human's known hosts, else the one that was learned.
pub fn trust(
    seen: &Observed,
    node_set: &NodeSet,
    name: &str,
    place: &Place,
    offers: &Offers<'_>,
) -> Trust {
    let recorded = recorded_key(node_set, name);
    let known = ssh_digests(seen, node_set).map(|it| it.texts.get(KNOWN_HOSTS));
    let is_learned = match known {
        _ if place.has_own_options => false,
        // A Secret that is not there says nothing about known hosts: all stays as it was.
        None => recorded.is_some(),
        Some(text) => !text.is_some_and(|it| covers(it, &place.host, place.port)),
    };
    if !is_learned {
        return Trust::default();
    }
    let accepted = host_key::accepted(node_set.annotations().get(ACCEPT));
    let since = node_set.creation_timestamp().map(|it| it.0);
    Trust::learned(recorded, accepted, &offers.keys(name, since, &place.address()))
}

/// The key that the node set tells of: its inventory has it.
fn recorded_key(node_set: &NodeSet, name: &str) -> Option<HostKey> {
    HostKey::parse(node_set.status.as_ref()?.host_keys.get(name)?)
}

/// How a host is reached by a run.
///
/// A key that was learned on the way is asked for again, pinned, until the node set's inventory has
/// it: ssh then finds it in the run's own file.
pub fn reach(
    seen: &Observed,
    node_set: &NodeSet,
    (name, place): (&str, &Place),
    trust: &Trust,
    was_key_refused: bool,
) -> Reach {
    let digests = ssh_digests(seen, node_set);
    let is_in_inventory = recorded_key(node_set, name) == trust.key;
    Reach {
        address: place.address(),
        ssh_secret: node_set.spec.node_template.ansible_ssh_private_key_secret.clone(),
        ssh_version: digests.map(|it| it.version.clone()).unwrap_or_default(),
        has_known_hosts: digests.is_some_and(|it| it.keys.contains_key(KNOWN_HOSTS)),
        scan: trust.scan(was_key_refused || !is_in_inventory),
        trusted: trust.token(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_host_is_where_its_node_says_else_where_it_was_reserved_else_at_its_name() {
        let node_set: NodeSet = serde_json::from_value(json!({
            "apiVersion": "dataplane.openstack.org/v1beta1",
            "kind": "OpenStackDataPlaneNodeSet",
            "metadata": { "name": "compute", "namespace": "ns" },
            "spec": {
                "nodeTemplate": {
                    "ansibleSSHPrivateKeySecret": "key", "ansible": { "ansiblePort": 2022 },
                },
                "nodes": {
                    "a": { "ansible": { "ansibleHost": "192.0.2.1", "ansiblePort": 22 } },
                    "b": { "hostName": "b.example.org" },
                    "c": { "hostName": "c9.example.org" },
                    "d": { "hostName": "", "ansible": { "ansibleVars": { "ansible_connection": "local" } } },
                },
            },
            "status": { "allIPs": { "b.example.org": { "ctlplane": "192.0.2.2" } } },
        }))
        .unwrap();
        let found = places(&node_set);
        let addresses: Vec<(&str, String)> =
            found.iter().map(|(name, it)| (name.as_str(), it.address())).collect();
        let expected = [
            ("a", "192.0.2.1:22"),
            ("b", "192.0.2.2:2022"),
            ("c9", "c9.example.org:2022"),
            ("d", "d:2022"),
        ];
        assert_eq!(addresses, expected.map(|(name, it)| (name, it.to_owned())));
        assert!(found["d"].has_own_options && !found["a"].has_own_options);
    }
}
