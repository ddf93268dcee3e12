//! Whose a host is: two objects may describe one host, but only the older one gets it.
//!
//! Hosts are compared by their names and by the address over which they are reached.

use std::collections::BTreeSet;

use common::api::dataplane::{Node, NodeSet};
use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use shell::cache::Key;

use crate::node_set::host;

/// Index of nodes and node sets by the hosts that they describe.
pub const BY_HOST: &str = "host";

/// What an object says of the hosts that it describes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claim {
    /// When it was made; the older one has the host.
    created: Option<Timestamp>,
    /// Its kind and name; they decide between objects of one age.
    kind: String,
    name: String,
    /// The hosts.
    pub hosts: Vec<HostClaim>,
}

/// One host, as an object describes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostClaim {
    /// How the object calls it.
    pub name: String,
    /// By what it is known: `name x` and `address y`.
    pub marks: BTreeSet<String>,
}

/// A host that belongs to another object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Taken {
    /// How the refused object calls it.
    pub host: String,
    /// By what it is known to be the same host.
    pub mark: String,
    /// The object that has it, by kind and name.
    pub owner: String,
}

impl Claim {
    /// Of a node.
    pub fn of_node(node: &Node) -> Self {
        let spec = &node.spec;
        let name = node.name_any();
        let address = spec.ansible_host.as_ref().or(spec.host_name.as_ref());
        let names = [Some(&name), spec.host_name.as_ref()];
        let marks = marks(names.into_iter().flatten(), address);
        Self::of(node, vec![HostClaim { name, marks }])
    }

    /// Of a node set.
    pub fn of_node_set(set: &NodeSet) -> Self {
        let claim = |it: host::Host<'_>| {
            let names = [it.key, it.name.as_str(), it.host_name.as_str()].map(str::to_owned);
            HostClaim { marks: marks(names.iter(), Some(&it.ansible_host)), name: it.name }
        };
        Self::of(set, host::hosts(set).into_iter().map(claim).collect())
    }

    fn of<K: Resource<DynamicType = ()>>(object: &K, hosts: Vec<HostClaim>) -> Self {
        let created = object.meta().creation_timestamp.as_ref().map(|it| it.0);
        let (kind, name) = (K::kind(&()).into_owned(), object.name_any());
        Self { created, kind, name, hosts }
    }

    /// The keys of the index [`BY_HOST`].
    pub fn keys(&self, namespace: &str) -> Vec<Key> {
        let marks: BTreeSet<&String> = self.hosts.iter().flat_map(|it| &it.marks).collect();
        marks.into_iter().map(|it| Key::new(namespace, it)).collect()
    }

    /// The hosts that older objects among these have.
    pub fn taken(&self, others: &[Self]) -> Vec<Taken> {
        let age = |it: &Self| (it.created, it.kind.clone(), it.name.clone());
        let older: Vec<&Self> = others.iter().filter(|it| age(it) < age(self)).collect();
        let owner = |host: &HostClaim| {
            older.iter().find_map(|it| {
                let marks = it.hosts.iter().flat_map(|it| &it.marks);
                let mark = marks.into_iter().find(|it| host.marks.contains(*it))?.clone();
                let owner = format!("{} {}", it.kind, it.name);
                Some(Taken { host: host.name.clone(), mark, owner })
            })
        };
        self.hosts.iter().filter_map(owner).collect()
    }

    /// The hosts that it describes twice, each with the one that comes before it.
    pub fn twice(&self) -> Vec<(&str, &str, &str)> {
        let mut found = Vec::new();
        for (idx, host) in self.hosts.iter().enumerate() {
            let before = self.hosts[..idx].iter().find_map(|it| {
                let mark = it.marks.intersection(&host.marks).next()?;
                Some((host.name.as_str(), it.name.as_str(), mark.as_str()))
            });
            found.extend(before);
        }
        found
    }
}

impl Taken {
    /// Object, cause and next step; `object` is the one that is refused.
    pub fn message(&self, object: &str) -> String {
        let Self { host, mark, owner } = self;
        format!(
            "Host {host} of {object} belongs to {owner}, which is older and has the same {mark}: \
             take it out of one of the two, for a host is deployed by one of them only."
        )
    }
}

fn marks<'a>(
    names: impl Iterator<Item = &'a String>,
    address: Option<&String>,
) -> BTreeSet<String> {
    let name = |it: &String| format!("name {}", it.to_ascii_lowercase());
    let address = address.map(|it| format!("address {}", it.to_ascii_lowercase()));
    names.filter(|it| !it.is_empty()).map(name).chain(address).collect()
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
            assert_eq!(taken[0].owner, format!("OpenStackDataPlaneNode {name}"));
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
        assert_eq!(found.twice(), [("b", "a", "address 192.0.2.1")]);
        let mut renamed = json!({ "a": at("192.0.2.1"), "c": at("192.0.2.3") });
        renamed["c"]["hostName"] = json!("a.example.org");
        assert_eq!(claim("set", OLD, &renamed).twice(), [("a", "a", "name a")]);
    }

    #[test]
    fn a_claim_is_found_by_each_of_its_marks() {
        let mut nodes = json!({ "a": at("192.0.2.1") });
        nodes["a"]["hostName"] = json!("A.example.org");
        let keys = claim("set", OLD, &nodes).keys("ns");
        let expected = ["address 192.0.2.1", "name a", "name a.example.org"];
        assert_eq!(keys, expected.map(|it| Key::new("ns", it)));
    }
}
