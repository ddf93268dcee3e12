//! The hosts that an object describes, and which of several objects owns a host.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::dataplane::{Node, NodeSet, Role};
use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use operator_core::object_key::Key;
use operator_core::run_engine::connection_vars::{
    HOST_VAR, PORT_VAR, SSH_PORT, plain_host, plain_port,
};
use operator_core::run_engine::host_key::HostKey;
use operator_core::{host_address, node_set_host};

use crate::annotations::{ACCEPT_SHARED, NETWORK_SCOPE};
use crate::host::conflicts::host_keys::{accepted, key_of};
use crate::host::effective_spec::EffectiveSpec;
use crate::host::inputs;
use crate::host::vars::Objects;

/// Index namespace of addresses, because an address means one host across all namespaces.
const ALL_NAMESPACES: &str = "";

/// The hosts that an object claims.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Claim {
    /// When the object was created. The older object owns a host.
    created: Option<Timestamp>,
    /// Kind, namespace and name of the object; they decide between objects of the same age.
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The hosts.
    pub hosts: Vec<HostClaim>,
    /// The network scope of hosts whose nodes name none; empty for the default scope.
    scope: String,
}

/// One host, as an object describes it.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct HostClaim {
    /// Its name in the object.
    pub name: String,
    /// Its names, as `name x`.
    names: BTreeSet<String>,
    /// Its address, as `address y`.
    address: Option<String>,
    /// The network scope of the address; empty for the default scope.
    scope: String,
    /// The address without a port, as `host y`.
    any_port: Option<String>,
    /// Its ssh host key, if it was learned.
    pub key: Option<HostKey>,
    /// Fingerprints of keys that it may present although other hosts do too.
    pub(super) shared: BTreeSet<String>,
    /// Its path in the object.
    pub path: String,
    /// Whether a deployment of the object has succeeded at that address.
    pub is_reached: bool,
    /// Whether it was taken out of the object, and others still clean up after it.
    pub is_terminating: bool,
}

/// A host that a younger object describes as well.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Contested<'a> {
    /// The host.
    pub host: &'a HostClaim,
    /// The mark that identifies both as the same host.
    pub mark: String,
    /// The younger object.
    pub other: &'a Claim,
}

/// A host that belongs to another object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AddressTaken {
    /// Its name in the rejected object.
    pub host: String,
    /// Its path in the rejected object.
    pub path: String,
    /// The mark that identifies both as the same host.
    pub mark: String,
    /// The owning object, by kind and name; `None` if it is in another namespace, about which
    /// nothing is disclosed.
    pub owner: Option<String>,
    /// Whether it was taken out of that object already, and is still terminating.
    pub is_terminating: bool,
}

impl Claim {
    /// Returns the claim of a node. Its address is the one in its status, or, if the status is of
    /// another generation, the one that its spec has under this role.
    pub fn of_node(node: &Node, role: Option<&Role>) -> Self {
        let spec = || EffectiveSpec::of(None, role, node, &Objects::new()).address();
        Self::of_node_at(node, role, reported_address(node).or_else(spec).as_deref())
    }

    /// Returns the claim of a node that is reached at that address, as `host:port`. The host of a
    /// node of a node set is claimed by its node set.
    pub fn of_node_at(node: &Node, role: Option<&Role>, address: Option<&str>) -> Self {
        if node.node_set().is_some() {
            return Self::of(node, Vec::new());
        }
        let name = node.name_any();
        let is_reached = address.is_some_and(|it| has_reached(node, it));
        let host = HostClaim {
            names: names_of_node(node),
            address: address.map(|it| mark(&host_address::endpoint(it))),
            scope: scope_of(Some(node), role),
            any_port: address.map(at_any_port),
            key: node.status.as_ref().and_then(|it| HostKey::parse(it.host_key.as_deref()?)),
            shared: accepted(node.annotations().get(ACCEPT_SHARED)),
            path: "spec".into(),
            is_reached,
            name,
            ..HostClaim::default()
        };
        Self::of(node, vec![host])
    }

    /// Returns the claim of a node set to the hosts in its spec.
    pub fn of_node_set(set: &NodeSet) -> Self {
        let scope = scope_of(None, Some(set));
        let claim = |it: node_set_host::Host<'_>| HostClaim {
            names: names_of([it.key, it.name.as_str(), it.host_name.as_str()].into_iter()),
            address: Some(mark(&host_address::with_port(&it.ansible_host, it.ansible_port))),
            scope: scope.clone(),
            any_port: Some(at_any_port(&it.address())),
            path: format!("spec.nodes[{}]", it.key),
            name: it.name,
            ..HostClaim::default()
        };
        let hosts = node_set_host::hosts(set).into_iter().map(claim).collect();
        Self { scope: scope.clone(), ..Self::of(set, hosts) }
    }

    /// Returns the claim of a node set with what its nodes say of each host, also to the hosts that were
    /// taken out and whose nodes are still there.
    #[must_use]
    pub fn with_nodes<'a>(mut self, nodes: impl IntoIterator<Item = &'a Arc<Node>>) -> Self {
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (idx, host) in self.hosts.iter().enumerate() {
            places.entry(host.name.clone()).or_default().push(idx);
        }
        for node in nodes {
            let status = node.status.as_ref();
            let reached = status.and_then(|it| it.deployed_address.as_deref());
            let reached = reached.map(|it| mark(&host_address::endpoint(it)));
            let hosts = places.entry(node.name_any()).or_default();
            if hosts.is_empty() {
                hosts.push(self.hosts.len());
                self.hosts.push(taken_out(node));
            }
            for idx in hosts {
                let host = &mut self.hosts[*idx];
                host.shared = accepted(node.annotations().get(ACCEPT_SHARED));
                own_scope(&**node).unwrap_or(&self.scope).clone_into(&mut host.scope);
                host.key = status.and_then(|it| HostKey::parse(it.host_key.as_deref()?));
                host.is_reached =
                    reached.is_some() && (host.is_terminating || host.address == reached);
            }
        }
        self
    }

    /// Returns the claim without the hosts that are still terminating.
    #[must_use]
    pub fn without_terminating(mut self) -> Self {
        self.hosts.retain(|it| !it.is_terminating);
        self
    }

    fn of<K: Resource<DynamicType = ()>>(object: &K, hosts: Vec<HostClaim>) -> Self {
        let created = object.meta().creation_timestamp.as_ref().map(|it| it.0);
        let (kind, name) = (K::kind(&()).into_owned(), object.name_any());
        let namespace = object.namespace().unwrap_or_default();
        Self { created, kind, namespace, name, hosts, scope: String::new() }
    }

    /// Returns the keys of the index [`BY_HOST`](crate::indexes::BY_HOST) under which the claim is found.
    pub fn keys(&self) -> Vec<Key> {
        let names = self.hosts.iter().flat_map(|it| &it.names);
        let names = names.map(|it| Key::new(&self.namespace, it));
        let learned = self.hosts.iter().filter_map(|it| it.key.as_ref());
        let names = names.chain(learned.map(|it| key_of(&self.namespace, it)));
        let addresses = self.hosts.iter().filter_map(|it| it.address.as_ref());
        let addresses = addresses.map(|it| Key::new(ALL_NAMESPACES, it));
        let keys: BTreeSet<Key> = names.chain(addresses).collect();
        keys.into_iter().collect()
    }

    /// Returns the keys under which other claims of its hosts are found, including those whose port
    /// is not known yet.
    pub fn lookup_keys(&self) -> Vec<Key> {
        let hosts = self.hosts.iter().filter_map(|it| it.any_port.as_ref());
        let hosts: BTreeSet<Key> = hosts.map(|it| Key::new(ALL_NAMESPACES, it)).collect();
        self.keys().into_iter().chain(hosts).collect()
    }

    /// Returns the object's kind and name.
    pub fn title(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    /// Keeps only the hosts that differ from those of `old`.
    #[must_use]
    pub fn changed_since(mut self, old: Option<&Self>) -> Self {
        let was: BTreeSet<&HostClaim> = old.into_iter().flat_map(|it| &it.hosts).collect();
        self.hosts.retain(|it| !was.contains(it));
        self
    }

    /// Returns whether another claim is of the same object.
    pub fn is_of_same(&self, other: &Self) -> bool {
        (&self.kind, &self.namespace, &self.name) == (&other.kind, &other.namespace, &other.name)
    }

    /// Sort key: an object that is not created yet is younger than all others.
    pub(super) fn age(&self) -> (bool, Option<Timestamp>, &str, &str, &str) {
        (self.created.is_none(), self.created, &self.kind, &self.namespace, &self.name)
    }
}

impl HostClaim {
    /// Returns the mark by which two descriptions are the same host; `None` if they are not. Names
    /// count only `with_names`.
    pub(super) fn shared<'a>(&'a self, other: &Self, with_names: bool) -> Option<&'a String> {
        let address = self.address.as_ref().filter(|it| Some(*it) == other.address.as_ref());
        let address = address.filter(|_| self.scope == other.scope);
        let name = || self.names.iter().find(|it| with_names && other.names.contains(*it));
        address.or_else(name)
    }

    /// Returns its address and its names: two descriptions without one in common are of two hosts.
    pub(super) fn marks(&self) -> impl Iterator<Item = &String> {
        self.address.iter().chain(&self.names)
    }
}

impl AddressTaken {
    /// Formats object, cause and next step; `object` is the rejected one.
    pub fn message(&self, object: &str) -> String {
        let Self { host, mark, owner, .. } = self;
        let text = match owner {
            Some(owner) if self.is_terminating => format!(
                "Host {host} of {object} was taken out of {owner}, which has the same {mark}, and is \
                 still terminating there: it is deployed once its OpenStackDataPlaneNode is gone there, \
                 see docs/removal.md."
            ),
            Some(owner) => format!(
                "Host {host} of {object} belongs to {owner}, which is older and has the same \
                 {mark}: take it out of one of the two, for a host is deployed by one of them only."
            ),
            None => format!(
                "Host {host} of {object} has the {mark}, at which an object of another namespace \
                 has deployed its host: correct the address, or ask who administers the cluster \
                 whose host it is."
            ),
        };
        if !mark.starts_with("address ") {
            return text;
        }
        format!(
            "{text} If it is another machine at that address in another network, annotate \
             {NETWORK_SCOPE} with a word for that network."
        )
    }
}

/// Returns the claim to a host that was taken out of its node set, with what its node knows.
fn taken_out(node: &Node) -> HostClaim {
    let name = node.name_any();
    let address = node.status.as_ref().and_then(|it| it.address.as_deref());
    HostClaim {
        names: names_of([name.as_str()].into_iter()),
        address: address.map(|it| mark(&host_address::endpoint(it))),
        any_port: address.map(at_any_port),
        path: format!("status.hosts[{name}]"),
        is_terminating: true,
        name,
        ..HostClaim::default()
    }
}

/// Returns the keys of the index [`BY_HOST`](crate::indexes::BY_HOST) for a node, by its own spec and status only.
///
/// If its role may set the port and the status does not report it yet, the node is found by its
/// host at any port.
pub fn keys_of_node(node: &Node) -> Vec<Key> {
    let namespace = node.namespace().unwrap_or_default();
    let names = names_of_node(node).into_iter().map(|it| Key::new(&namespace, it));
    let learned = node.status.as_ref().and_then(|it| HostKey::parse(it.host_key.as_deref()?));
    let names = names.chain(learned.map(|it| key_of(&namespace, &it)));
    let address =
        reported_address(node).map(|it| mark(&host_address::endpoint(&it))).or_else(|| own(node));
    names.chain(address.map(|it| Key::new(ALL_NAMESPACES, it))).collect()
}

/// Returns the address in a node's status, if the status is of the present generation. That of a node
/// of a node set says nothing of addresses.
fn reported_address(node: &Node) -> Option<String> {
    let status = node.status.as_ref()?;
    let is_current =
        node.node_set().is_some() || status.observed_generation == node.metadata.generation;
    status.address.clone().filter(|_| is_current)
}

/// Returns whether a deployment of all the node's services has succeeded at that address, which is
/// one of the inputs that its status records.
///
/// The records of single services are not enough: they stay while no run may start, whereas the
/// status reports the new address of a moved node at once.
pub fn has_reached(node: &Node, address: &str) -> bool {
    let Some(status) = &node.status else { return false };
    let reported = status.address.as_deref();
    let reported =
        reported.filter(|it| host_address::endpoint(it) == host_address::endpoint(address));
    let mut spellings = [Some(address), reported].into_iter().flatten();
    let deployed = &status.deployed_inputs;
    inputs::have_services(deployed) && spellings.any(|it| inputs::are_at(deployed, it))
}

/// Returns the same for a host, whatever its ssh port is now.
pub fn has_reached_host(node: &Node, host: &str) -> bool {
    let Some(deployed) = node.status.as_ref().map(|it| &it.deployed_inputs) else { return false };
    let canonical = host_address::host(host);
    let mut spellings = [host, &canonical].into_iter();
    inputs::have_services(deployed) && spellings.any(|it| inputs::are_of_host(deployed, it))
}

/// Returns the mark of the address in a node's own spec, for any port if the role may set the port.
/// Returns `None` if the spec has no address.
fn own(node: &Node) -> Option<String> {
    let own = node.spec.node.as_ref();
    let var = |name: &str| own.and_then(|it| it.ansible_vars.get(name));
    let host = var(HOST_VAR).and_then(plain_host).map(str::to_owned);
    let host = host.or_else(|| node.spec.ansible_host.clone());
    let host = host.or_else(|| node.spec.host_name.clone()).filter(|it| !it.is_empty())?;
    let port = var(PORT_VAR).and_then(plain_port).or_else(|| own?.ansible_port);
    let has_role = node.spec.role.as_ref().is_some_and(|it| !it.is_empty());
    Some(match port {
        None if has_role => at_any_port(&format!("{host}:{SSH_PORT}")),
        port => mark(&host_address::with_port(&host, port.unwrap_or(SSH_PORT))),
    })
}

/// Returns the value of [`NETWORK_SCOPE`] of an object.
fn own_scope<K: ResourceExt>(object: &K) -> Option<&str> {
    object.annotations().get(NETWORK_SCOPE).map(|it| it.trim())
}

/// Returns the network scope of a host: that of its node, else that of its role or node set.
fn scope_of<G: ResourceExt>(node: Option<&Node>, group: Option<&G>) -> String {
    let own = node.and_then(own_scope);
    own.or_else(|| own_scope(group?)).unwrap_or_default().to_owned()
}

/// Returns the key of the index [`BY_HOST`](crate::indexes::BY_HOST) for a host of that name.
pub fn key_of_name(namespace: &str, name: &str) -> Key {
    Key::new(namespace, mark_of_name(name))
}

fn names_of_node(node: &Node) -> BTreeSet<String> {
    let name = node.name_any();
    names_of([Some(&name), node.spec.host_name.as_ref()].into_iter().flatten().map(String::as_str))
}

fn names_of<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    names.filter(|it| !it.is_empty()).map(mark_of_name).collect()
}

fn mark_of_name(name: &str) -> String {
    format!("name {}", host_address::host(name))
}

fn mark(address: &str) -> String {
    format!("address {address}")
}

/// Returns the mark of `host:port` for any port.
fn at_any_port(address: &str) -> String {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    format!("host {}", host_address::host(host))
}
