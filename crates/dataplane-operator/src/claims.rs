//! Whose a host is: several objects may describe one host, and one of them gets it.
//!
//! Hosts are compared by their names, within a namespace, and by the canonical form of the address
//! and port over which they are reached, across namespaces too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::api::dataplane::node_set::HostState;
use common::api::dataplane::{Node, NodeSet};
use common::host_address;
use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use shell::cache::{Cache, Key};

use crate::effective::{HOST_VAR, PORT_VAR, SSH_PORT, plain_host, plain_port};
use crate::node_set::host;

/// Index of nodes and node sets by the hosts that they describe.
pub const BY_HOST: &str = "host";

/// The namespace of keys of addresses: an address is one host in all of them.
const ALL_NAMESPACES: &str = "";

/// What an object says of the hosts that it describes.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Claim {
    /// When it was made; the older one has the host.
    created: Option<Timestamp>,
    /// Its kind, namespace and name; they decide between objects of one age.
    kind: String,
    namespace: String,
    name: String,
    /// The hosts.
    pub hosts: Vec<HostClaim>,
}

/// One host, as an object describes it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct HostClaim {
    /// How the object calls it.
    pub name: String,
    /// Its names, as `name x`.
    names: BTreeSet<String>,
    /// Its address, as `address y`.
    address: Option<String>,
    /// Whether a run of the object has succeeded there.
    is_reached: bool,
}

/// A host that belongs to another object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Taken {
    /// How the refused object calls it.
    pub host: String,
    /// By what it is known to be the same host.
    pub mark: String,
    /// The object that has it, by kind and name; `None` where that is in another namespace, of which
    /// nothing is told.
    pub owner: Option<String>,
}

impl Claim {
    /// Of a node, at the address that its status tells, or its spec where the status speaks of
    /// another generation.
    pub fn of_node(node: &Node) -> Self {
        let status = node.status.as_ref();
        let is_current =
            status.is_some_and(|it| it.observed_generation == node.metadata.generation);
        let told = status.filter(|_| is_current).and_then(|it| it.address.clone());
        Self::of_node_at(node, told.or_else(|| address_of(node)).as_deref())
    }

    /// Of a node that is reached at that address, as `host:port`.
    pub fn of_node_at(node: &Node, address: Option<&str>) -> Self {
        let name = node.name_any();
        let names = [Some(&name), node.spec.host_name.as_ref()].into_iter().flatten();
        let services = node.status.iter().flat_map(|it| &it.services);
        let is_reached = services.into_iter().any(|it| it.deployed_hash.is_some());
        let host = HostClaim {
            names: names_of(names.map(String::as_str)),
            address: address.map(|it| mark(&host_address::endpoint(it))),
            is_reached,
            name,
        };
        Self::of(node, vec![host])
    }

    /// Of a node set.
    pub fn of_node_set(set: &NodeSet) -> Self {
        let recorded = set.status.as_ref().map(|it| it.hosts.as_slice()).unwrap_or_default();
        let reached: BTreeSet<&str> = recorded
            .iter()
            .filter(|it| it.hash.is_some() || it.state == HostState::Deployed)
            .map(|it| it.name.as_str())
            .collect();
        let claim = |it: host::Host<'_>| HostClaim {
            names: names_of([it.key, it.name.as_str(), it.host_name.as_str()].into_iter()),
            address: Some(mark(&host_address::with_port(&it.ansible_host, it.ansible_port))),
            is_reached: reached.contains(it.name.as_str()),
            name: it.name,
        };
        Self::of(set, host::hosts(set).into_iter().map(claim).collect())
    }

    fn of<K: Resource<DynamicType = ()>>(object: &K, hosts: Vec<HostClaim>) -> Self {
        let created = object.meta().creation_timestamp.as_ref().map(|it| it.0);
        let (kind, name) = (K::kind(&()).into_owned(), object.name_any());
        let namespace = object.namespace().unwrap_or_default();
        Self { created, kind, namespace, name, hosts }
    }

    /// The keys of the index [`BY_HOST`].
    pub fn keys(&self) -> Vec<Key> {
        let names = self.hosts.iter().flat_map(|it| &it.names);
        let names = names.map(|it| Key::new(&self.namespace, it));
        let addresses = self.hosts.iter().filter_map(|it| it.address.as_ref());
        let addresses = addresses.map(|it| Key::new(ALL_NAMESPACES, it));
        let keys: BTreeSet<Key> = names.chain(addresses).collect();
        keys.into_iter().collect()
    }

    /// What other objects say of the same hosts.
    pub fn others(&self, nodes: &Cache<Node>, node_sets: &Cache<NodeSet>) -> Vec<Self> {
        let mut found: BTreeMap<(String, String, String), Self> = BTreeMap::new();
        let mut add = |it: Self| {
            found.insert((it.kind.clone(), it.namespace.clone(), it.name.clone()), it);
        };
        for key in self.keys() {
            let nodes: Vec<Arc<Node>> = nodes.indexed(BY_HOST, &key);
            for node in nodes {
                add(Self::of_node(&node));
            }
            let node_sets: Vec<Arc<NodeSet>> = node_sets.indexed(BY_HOST, &key);
            for node_set in node_sets {
                add(Self::of_node_set(&node_set));
            }
        }
        found.remove(&(self.kind.clone(), self.namespace.clone(), self.name.clone()));
        found.into_values().collect()
    }

    /// Its hosts that belong to others among these.
    pub fn taken(&self, others: &[Self]) -> Vec<Taken> {
        let of_host = |host| others.iter().find_map(|it| self.taken_by(it, host));
        self.hosts.iter().filter_map(of_host).collect()
    }

    /// A host that belongs to another object: in the same namespace to the older one. Across namespaces
    /// naming an address takes nothing, and who is in service stays so: the other one has it where its
    /// runs have reached it and ours have not. The host itself decides between two that have.
    fn taken_by(&self, other: &Self, host: &HostClaim) -> Option<Taken> {
        let is_here = self.namespace == other.namespace;
        let is_older = other.age() < self.age();
        let owns =
            |it: &&HostClaim| if is_here { is_older } else { it.is_reached && !host.is_reached };
        let mark = other.hosts.iter().filter(owns).find_map(|it| host.shared(it, is_here))?;
        let owner = is_here.then(|| format!("{} {}", other.kind, other.name));
        Some(Taken { host: host.name.clone(), mark, owner })
    }

    fn age(&self) -> (Option<Timestamp>, &str, &str, &str) {
        (self.created, &self.kind, &self.namespace, &self.name)
    }

    /// The hosts that it describes twice, each with the one that comes before it.
    pub fn twice(&self) -> Vec<(&str, &str, String)> {
        let mut found = Vec::new();
        for (idx, host) in self.hosts.iter().enumerate() {
            let before = self.hosts[..idx].iter().find_map(|it| {
                let mark = it.shared(host, true)?;
                Some((host.name.as_str(), it.name.as_str(), mark))
            });
            found.extend(before);
        }
        found
    }
}

impl HostClaim {
    /// By what two hosts are one; `with_names` says whether their names tell.
    fn shared(&self, other: &Self, with_names: bool) -> Option<String> {
        let address = self.address.as_ref().filter(|it| Some(*it) == other.address.as_ref());
        let name = || self.names.intersection(&other.names).next().filter(|_| with_names);
        address.or_else(name).cloned()
    }
}

impl Taken {
    /// Object, cause and next step; `object` is the one that is refused.
    pub fn message(&self, object: &str) -> String {
        let Self { host, mark, owner } = self;
        match owner {
            Some(owner) => format!(
                "Host {host} of {object} belongs to {owner}, which is older and has the same \
                 {mark}: take it out of one of the two, for a host is deployed by one of them only."
            ),
            None => format!(
                "Host {host} of {object} has the {mark}, at which an object of another namespace \
                 has deployed its host: correct the address, or ask who administers the cluster \
                 whose host it is."
            ),
        }
    }
}

/// Where a node's own spec says that its host is, as `host:port`.
fn address_of(node: &Node) -> Option<String> {
    let own = node.spec.node.as_ref();
    let var = |name: &str| own.and_then(|it| it.ansible_vars.get(name));
    let host = var(HOST_VAR).and_then(plain_host).map(str::to_owned);
    let host = host.or_else(|| node.spec.ansible_host.clone());
    let host = host.or_else(|| node.spec.host_name.clone()).filter(|it| !it.is_empty())?;
    let port = var(PORT_VAR).and_then(plain_port).or_else(|| own?.ansible_port);
    Some(host_address::with_port(&host, port.unwrap_or(SSH_PORT)))
}

fn names_of<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let name = |it: &str| format!("name {}", host_address::host(it));
    names.filter(|it| !it.is_empty()).map(name).collect()
}

fn mark(address: &str) -> String {
    format!("address {address}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn claim(name: &str, created: &str, hosts: &Value) -> Claim {
        let set: NodeSet = serde_json::from_value(json!({
            "apiVersion": "dataplane.openstack.org/v1beta1",
            "kind": "OpenStackDataPlaneNodeSet",
            "metadata": { "name": name, "namespace": "ns", "creationTimestamp": created },
            "spec": { "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" }, "nodes": hosts },
        }))
        .unwrap();
        Claim::of_node_set(&set)
    }

    fn node(name: &str, created: &str, spec: &Value) -> Claim {
        let node: Node = serde_json::from_value(json!({
            "apiVersion": "dataplane.openstack.org/v1beta1",
            "kind": "OpenStackDataPlaneNode",
            "metadata": { "name": name, "namespace": "ns", "creationTimestamp": created },
            "spec": spec,
        }))
        .unwrap();
        Claim::of_node(&node)
    }

    fn at(address: &str) -> Value {
        json!({ "ansible": { "ansibleHost": address } })
    }

    const OLD: &str = "2026-01-01T00:00:00Z";
    const NEW: &str = "2026-01-02T00:00:00Z";

    #[test]
    fn the_older_object_has_the_host_whatever_its_kind() {
        let set = |created| claim("set", created, &json!({ "a": at("192.0.2.1") }));
        let same_name = json!({ "ansibleHost": "192.0.2.9" });
        let same_address = json!({ "ansibleHost": "192.0.2.1" });
        for (name, spec, mark) in [
            ("a", same_name, "name a"),
            ("b", same_address, "address 192.0.2.1"),
            ("b", json!({ "hostName": "A" }), "name a"),
        ] {
            let (old, new) = (node(name, OLD, &spec), node(name, NEW, &spec));
            let taken = set(NEW).taken(std::slice::from_ref(&old));
            assert_eq!((taken.len(), taken[0].mark.as_str()), (1, mark));
            assert_eq!(taken[0].owner, Some(format!("OpenStackDataPlaneNode {name}")));
            assert_eq!(set(OLD).taken(std::slice::from_ref(&new)), []);
            assert_eq!(old.taken(&[set(NEW)]), []);
            let text = new.taken(&[set(OLD)])[0].message("OpenStackDataPlaneNode b");
            assert!(text.contains("belongs to OpenStackDataPlaneNodeSet set"), "{text}");
        }
    }

    #[test]
    fn of_two_objects_of_one_age_the_name_decides_and_hosts_that_differ_are_nobodys_business() {
        let hosts = json!({ "a": at("192.0.2.1") });
        let (one, two) = (claim("one", OLD, &hosts), claim("two", OLD, &hosts));
        assert_eq!(one.taken(std::slice::from_ref(&two)), []);
        assert_eq!(two.taken(&[one]).len(), 1);
        let other = claim("zero", OLD, &json!({ "b": at("192.0.2.2") }));
        assert_eq!(two.taken(&[other]), []);
    }

    #[test]
    fn a_host_that_stands_twice_in_one_node_set_is_found() {
        let nodes = json!({ "a": at("192.0.2.1"), "b": at("192.0.2.1"), "c": at("192.0.2.3") });
        let found = claim("set", OLD, &nodes);
        assert_eq!(found.twice(), [("b", "a", "address 192.0.2.1".to_owned())]);
        let mut renamed = json!({ "a": at("192.0.2.1"), "c": at("192.0.2.3") });
        renamed["c"]["hostName"] = json!("a.example.org");
        assert_eq!(claim("set", OLD, &renamed).twice(), [("a", "a", "name a".to_owned())]);
    }

    #[test]
    fn two_nodes_at_one_address_are_one_host_however_it_is_spelled_and_two_ports_are_two() {
        for (one, other, is_one) in [
            (json!({ "ansibleHost": "192.0.2.1" }), json!({ "ansibleHost": "192.0.2.1" }), true),
            (
                json!({ "ansibleHost": "N0.Example.org" }),
                json!({ "ansibleHost": "n0.example.org." }),
                true,
            ),
            (
                json!({ "ansibleHost": "2001:db8::1" }),
                json!({ "ansibleHost": "2001:DB8:0::1" }),
                true,
            ),
            (
                json!({ "ansibleHost": "192.0.2.1" }),
                json!({ "node": { "ansibleVars": { "ansible_host": "::ffff:192.0.2.1" } } }),
                true,
            ),
            (
                json!({ "ansibleHost": "192.0.2.1" }),
                json!({ "ansibleHost": "192.0.2.1", "node": { "ansiblePort": 2022 } }),
                false,
            ),
        ] {
            let (old, new) = (node("a", OLD, &one), node("b", NEW, &other));
            let taken = new.taken(std::slice::from_ref(&old));
            assert_eq!(taken.len(), usize::from(is_one), "{one} {other}");
            assert_eq!(old.taken(std::slice::from_ref(&new)), []);
        }
    }

    #[test]
    fn across_namespaces_only_a_host_that_was_reached_is_taken_and_nothing_is_told_of_its_owner() {
        let at = |namespace: &str, created: &str, is_reached: bool| {
            let services = json!([{ "name": "s", "state": "Succeeded", "hash": "h", "attempt": 1,
                "deployedHash": "h", "since": OLD }]);
            let node: Node = serde_json::from_value(json!({
                "apiVersion": "dataplane.openstack.org/v1beta1",
                "kind": "OpenStackDataPlaneNode",
                "metadata": { "name": format!("of-{namespace}"), "namespace": namespace, "creationTimestamp": created },
                "spec": { "ansibleHost": "192.0.2.1" },
                "status": if is_reached { json!({ "services": services }) } else { json!({}) },
            }))
            .unwrap();
            Claim::of_node(&node)
        };
        let taken = |mine: &Claim, other: Claim| mine.taken(&[other]).len();
        let new = at("mine", NEW, false);
        assert_eq!(taken(&new, at("theirs", OLD, false)), 0, "naming an address takes nothing");
        assert_eq!(taken(&at("mine", OLD, false), at("theirs", NEW, true)), 1);
        for created in [OLD, NEW] {
            assert_eq!(taken(&at("mine", created, true), at("theirs", OLD, true)), 0);
        }
        let text = new.taken(&[at("theirs", OLD, true)])[0].message("OpenStackDataPlaneNode mine");
        assert!(text.contains("address 192.0.2.1"), "{text}");
        assert!(!text.contains("theirs"), "{text}");
    }

    #[test]
    fn a_claim_is_found_by_each_of_its_marks() {
        let mut nodes = json!({ "a": at("192.0.2.1") });
        nodes["a"]["hostName"] = json!("A.example.org");
        let keys = claim("set", OLD, &nodes).keys();
        let expected = [("", "address 192.0.2.1"), ("ns", "name a"), ("ns", "name a.example.org")];
        assert_eq!(keys, expected.map(|(namespace, it)| Key::new(namespace, it)));
    }
}
