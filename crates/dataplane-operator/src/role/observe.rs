//! Reads the objects on which the evaluation of a group depends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{DataPlane, Node, Role, Service};
use api::shared::SourceKind;
use kube::{Resource as _, ResourceExt};
use operator_core::certificates::Issued;
use operator_core::data_sources::{SourceRef, sources_of};
use operator_core::finalizers::is_terminating;
use operator_core::object_key::Key;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::controller_names::GROUP;
use crate::controller_ref::controller;
use crate::default_services::Found;
use crate::host::conflicts::Claim;
use crate::host::conflicts::caches::reported_keys;
use crate::host::effective_spec::{EffectiveSpec, machine_template, role_template};
use crate::host::inventory_metadata::Inventory;
use crate::host::machines::Seen;
use crate::host::machines::machine_names::known_name;
use crate::host::services::ca_bundle;
use crate::host::vars::{Objects, named};
use crate::indexes::{BY_OWNER, BY_ROLE, BY_ROLE_LABEL, data_plane_of, role_label_key};
use crate::labels::LAST_LOOK;
use crate::role::certificates::{is_enabled, requests, wanted_secrets};
use crate::role::decide::decide;
use crate::role::inventory_shards;
use crate::role::inventory_shards::node_inventory_name;
use crate::role::machine_request::{MachineRequest, names_of};
use crate::role::observed::{NodeGroup, Observed, listed, own_ssh_secret};

/// The controller of roles and nodes.
pub struct NodeGroups {
    /// The caches that it reads.
    pub caches: Arc<Caches>,
}

impl Controller for NodeGroups {
    type Observed = Observed;

    const NAME: &'static str = GROUP;

    const DECIDE: Decide<Observed> = decide;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        let caches = &self.caches;
        let Some(group) = NodeGroup::parse(key) else { return Ok(None) };
        let (role, nodes) = members(caches, &key.namespace, &group)?;
        if role.is_none() && nodes.is_empty() {
            caches.sources.depends(GROUP, key, BTreeSet::new());
            return Ok(None);
        }
        let mut seen = read(caches, key, group, role, nodes).await?;
        let (role, nodes) = (seen.role.as_deref(), &seen.nodes);
        let machines = machines(caches, &seen.namespace, &seen.group, role, nodes).await?;
        let movers = migrating_nodes(caches, &seen.namespace, nodes, &machines);
        let leaving = nodes.iter().filter(|it| is_terminating(&***it)).chain(&movers);
        (seen.looks, seen.is_namespace_terminating) =
            looks(caches, &seen.namespace, leaving, &machines).await?;
        (seen.machines, seen.migrating_nodes) = (machines, movers);
        seen.machines.answering = caches.machines.answering(&awaited(&seen)).await;
        with_certificates(caches, key, &mut seen).await?;
        Ok(Some(seen))
    }
}

/// Reads a group, except for its machines.
async fn read(
    caches: &Caches,
    key: &Key,
    group: NodeGroup,
    role: Option<Arc<Role>>,
    nodes: Vec<Arc<Node>>,
) -> Result<Observed> {
    let namespace = key.namespace.clone();
    let alone = nodes.first().filter(|_| matches!(group, NodeGroup::Node(_)));
    let owner = role.as_ref().and_then(|it| it.uid()).or_else(|| alone?.uid()).unwrap_or_default();
    let listed = listed(&group, role.as_deref(), &nodes).to_vec();
    let known = known_services(caches, &namespace, &listed, role.as_deref());
    let (Found { services, unreadable }, certificate_sources) = known;
    // A data plane does not affect a host's connection.
    let effective = |it: &Arc<Node>| EffectiveSpec::of(None, role.as_deref(), it, &Objects::new());
    let (ssh_secrets, addresses): (Vec<_>, Vec<_>) =
        nodes.iter().map(effective).map(|it| (it.ssh_secret.clone(), it.address())).unzip();
    let mut desired = wanted_sources(&namespace, role.as_deref(), &ssh_secrets, &services);
    let requests = requests(role.as_deref(), &listed, &services, &certificate_sources);
    desired.extend(wanted_secrets(&namespace, &nodes, &requests));
    let of_vars = sources_of_vars(&namespace, role.as_deref(), &nodes);
    let beside = inventory_sources(&namespace, &group, &nodes);
    // Registered before reading, so that a change in between enqueues the group again.
    let all = desired.iter().chain(&of_vars).chain(&beside).cloned().collect();
    caches.sources.depends(GROUP, key, all);
    let inventory_secrets = inventories(caches, &beside, SourceKind::Secret);
    let inventories = inventories(caches, &beside, SourceKind::ConfigMap);
    let objects = caches.sources.contents_of(&caches.api, of_vars).await?;
    let names_networks = names_networks(role.as_deref(), &nodes);
    let networks = caches.attachments.seen(&caches.api, &namespace, names_networks).await?;
    let sources = caches.sources.digests_of(&caches.api, desired).await?;
    let runs = own_runs(caches, &namespace, &owner);
    let (others, claims) =
        around(caches, &namespace, &owner, &runs, role.as_deref(), &nodes, &addresses);
    Ok(Observed {
        data_plane: data_plane(caches, &namespace, role.as_deref(), alone)?,
        group,
        namespace,
        role,
        nodes,
        services,
        certificate_sources,
        defaults: caches.defaults.clone(),
        unreadable,
        runner: caches.runner,
        sources,
        objects,
        networks,
        runs,
        looks: Vec::new(),
        is_namespace_terminating: false,
        others,
        claims,
        machines: Seen::default(),
        issued: Issued::default(),
        migrating_nodes: Vec::new(),
        inventories,
        inventory_secrets,
    })
}

/// Adds what is known of the certificates of a role's hosts. Reads nothing if they get none and have
/// none.
async fn with_certificates(caches: &Caches, key: &Key, seen: &mut Observed) -> Result<()> {
    let Some(role) = seen.role.clone() else { return Ok(()) };
    let labelled = role_label_key(&key.namespace, &role.name_any());
    let secrets = caches.secrets.indexed(BY_ROLE_LABEL, &labelled);
    let had = |it: &Arc<Node>| it.status.as_ref().is_some_and(|it| it.tls.is_some());
    let cert_manager = &caches.external_apis.cert_manager;
    let has_some =
        !secrets.is_empty() || seen.nodes.iter().any(had) || cert_manager.is_owner(&*role);
    if !is_enabled(Some(&role)) && !has_some {
        return Ok(());
    }
    let issued = cert_manager.issued(&caches.api, &key.namespace).await?;
    let secrets = secrets.iter();
    let secrets = secrets.map(|it| (it.name_any(), it.resource_version().unwrap_or_default()));
    seen.issued = Issued { secrets: secrets.collect(), ..issued };
    Ok(())
}

/// The runs of the group's owner that deploy services.
fn own_runs(caches: &Caches, namespace: &str, owner: &str) -> Vec<Arc<AnsibleEe>> {
    let mut runs = caches.runs.indexed(BY_OWNER, &Key::new(namespace, owner));
    // A node without a role owns both.
    runs.retain(|it| !it.labels().contains_key(LAST_LOOK));
    runs
}

/// Returns runs of other owners to which one of the hosts presented its ssh host key, and the claims
/// of all objects that describe one of the hosts.
fn around(
    caches: &Caches,
    namespace: &str,
    owner: &str,
    runs: &[Arc<AnsibleEe>],
    role: Option<&Role>,
    nodes: &[Arc<Node>],
    addresses: &[Option<String>],
) -> (Vec<Arc<AnsibleEe>>, Vec<Claim>) {
    let mut others = caches.runs_with_keys(namespace, addresses.iter().flatten().cloned());
    others.retain(|run| run.owner_references().iter().all(|it| it.uid != owner));
    let reported = reported_keys(namespace, runs.iter().chain(&others));
    let hosts = nodes.iter().zip(addresses);
    let own: Vec<Claim> =
        hosts.map(|(node, it)| Claim::of_node_at(node, role, it.as_deref())).collect();
    let claims = caches.hosts.overlapping(&own, reported);
    (others, claims)
}

/// Reads the sets of machines, if the group requests one or a node has a machine.
async fn machines(
    caches: &Caches,
    namespace: &str,
    group: &NodeGroup,
    role: Option<&Role>,
    nodes: &[Arc<Node>],
) -> Result<Seen> {
    let has = |it: &Arc<Node>| it.status.as_ref().is_some_and(|it| it.machine.is_some());
    let asks = |it: &Arc<Node>| machine_template(role, it).is_some();
    let role_asks = role.is_some_and(|it| role_template(it).is_some());
    if !role_asks && !nodes.iter().any(|it| has(it) || asks(it)) {
        return Ok(Seen::default());
    }
    // If a node that cannot be parsed were missed, its machine would be given back and wiped.
    caches.hosts.nodes.check_readable(namespace)?;
    let (NodeGroup::Role(name) | NodeGroup::Node(name)) = group;
    caches.machines.seen(&caches.api, &Key::new(namespace, name)).await
}

/// Returns nodes of other groups for whose hosts the group's set still has machines.
fn migrating_nodes(
    caches: &Caches,
    namespace: &str,
    members: &[Arc<Node>],
    machines: &Seen,
) -> Vec<Arc<Node>> {
    let names = names_of(members, machines.set.as_deref());
    let hosts = machines.set.iter().flat_map(|it| it.spec.baremetal_hosts.keys());
    let left: BTreeSet<&String> = hosts.filter(|it| names.owner(it).is_none()).collect();
    if left.is_empty() {
        return Vec::new();
    }
    let is_here = |it: &Arc<Node>| {
        it.namespace().as_deref() == Some(namespace) && NodeGroup::of(it).is_some()
    };
    let has = |it: &Arc<Node>| left.contains(&known_name(it));
    caches.hosts.nodes.all().into_iter().filter(|it| is_here(it) && has(it)).collect()
}

/// Returns the runs that look for guests on the hosts of nodes that are `leaving` a group with machines,
/// and, where such a node or a set of machines is going, whether the namespace is being deleted, so
/// that no such run can be made.
async fn looks(
    caches: &Caches,
    namespace: &str,
    leaving: impl Iterator<Item = &Arc<Node>>,
    machines: &Seen,
) -> Result<(Vec<Arc<AnsibleEe>>, bool)> {
    let leaving = leaving.filter(|_| machines.set.is_some());
    let uids: Vec<String> = leaving.filter_map(|it| it.uid()).collect();
    let mut sets = machines.set.iter().chain(&machines.others);
    let may_go = !uids.is_empty() || sets.any(|it| is_terminating(&**it));
    let goes = may_go && caches.api.is_namespace_terminating(namespace).await?;
    Ok((caches.looks(namespace, uids), goes))
}

/// Returns the addresses of hosts whose machines are provisioned but whose ssh has not answered
/// yet.
fn awaited(seen: &Observed) -> BTreeSet<String> {
    let Some(request) = MachineRequest::of(seen) else { return BTreeSet::new() };
    let address = |node: &Arc<Node>| {
        let effective = seen.effective(node);
        effective.address().filter(|_| request.is_awaited(node, &effective))
    };
    seen.nodes.iter().filter_map(address).collect()
}

fn names_networks(role: Option<&Role>, nodes: &[Arc<Node>]) -> bool {
    role.is_some_and(|it| !it.spec.network_attachments.is_empty())
        || nodes.iter().any(|it| !it.spec.network_attachments.is_empty())
}

/// A role, if there is one, and its nodes.
type Members = (Option<Arc<Role>>, Vec<Arc<Node>>);

/// Returns the role, if the group has one, and its nodes.
fn members(caches: &Caches, namespace: &str, group: &NodeGroup) -> Result<Members> {
    Ok(match group {
        NodeGroup::Role(name) => {
            let key = Key::new(namespace, name);
            (caches.hosts.roles.try_get(&key)?, caches.hosts.nodes.indexed(BY_ROLE, &key))
        }
        NodeGroup::Node(name) => {
            let node = caches.hosts.nodes.try_get(&Key::new(namespace, name))?;
            // The node may have got a role since the key was enqueued: then that group is
            // evaluated.
            let is_alone = |it: &Arc<Node>| NodeGroup::of(it).as_ref() == Some(group);
            (None, node.filter(is_alone).into_iter().collect())
        }
    })
}

/// Returns the data plane that the role names; for a node without a role, the one that controls it.
fn data_plane(
    caches: &Caches,
    namespace: &str,
    role: Option<&Role>,
    alone: Option<&Arc<Node>>,
) -> Result<Option<Arc<DataPlane>>> {
    let name = match role {
        Some(role) => data_plane_of(role),
        None => alone
            .and_then(|it| controller(it.meta()))
            .filter(|it| it.kind == DataPlane::kind(&()))
            .map(|it| it.name.as_str()),
    };
    Ok(name.map(|it| caches.data_planes.try_get(&Key::new(namespace, it))).transpose()?.flatten())
}

/// The listed services, and for those that define no certificates the service whose certificates
/// they use, where hosts get any.
fn known_services(
    caches: &Caches,
    namespace: &str,
    listed: &[String],
    role: Option<&Role>,
) -> (Found, BTreeMap<String, Arc<Service>>) {
    let mut found = Found::of(caches.known_services(), namespace, listed.iter().cloned());
    if !is_enabled(role) {
        return (found, BTreeMap::new());
    }
    let mut lent = Found::lent(caches.known_services(), namespace, &found.services, listed);
    found.unreadable.append(&mut lent.unreadable);
    (found, lent.services)
}

/// Returns the ssh Secrets of the nodes, or of a role that has none yet, and the data sources of the
/// services, with their CA bundles where hosts get certificates.
fn wanted_sources(
    namespace: &str,
    role: Option<&Role>,
    ssh_secrets: &[Option<String>],
    services: &BTreeMap<String, Arc<Service>>,
) -> BTreeSet<SourceRef> {
    let of_role = role.filter(|_| ssh_secrets.is_empty()).and_then(own_ssh_secret);
    let ssh = ssh_secrets.iter().flatten().map(String::as_str).chain(of_role);
    let ssh = ssh.map(|it| SourceRef::secret(namespace, it));
    let data = services.values().flat_map(|it| sources_of(&it.spec)).map(|it| it.source(namespace));
    let bundles = services.values().filter(|_| is_enabled(role)).filter_map(|it| ca_bundle(it));
    let bundles = bundles.map(|it| SourceRef::secret(namespace, it.0));
    ssh.chain(data).chain(bundles).collect()
}

/// Returns the objects that lists of `ansibleVarsFrom` name.
fn sources_of_vars(
    namespace: &str,
    role: Option<&Role>,
    nodes: &[Arc<Node>],
) -> BTreeSet<SourceRef> {
    let template = role.and_then(|it| it.spec.node_template.as_ref());
    let own = nodes.iter().filter_map(|it| it.spec.node.as_ref());
    let lists = template.into_iter().chain(own).map(|it| it.ansible_vars_from.as_slice());
    lists.flat_map(named).map(|it| it.source(namespace)).collect()
}

/// Returns the ConfigMaps that hold the inventories which the group has or is to have, and the
/// Secrets of the same names beside them.
fn inventory_sources(
    namespace: &str,
    group: &NodeGroup,
    nodes: &[Arc<Node>],
) -> BTreeSet<SourceRef> {
    let of_role = match group {
        NodeGroup::Role(name) => inventory_shards::names(name, nodes.len()),
        NodeGroup::Node(_) => BTreeSet::new(),
    };
    let names = nodes.iter().map(|it| node_inventory_name(&it.name_any())).chain(of_role);
    let objects =
        |it: String| [SourceRef::config_map(namespace, &it), SourceRef::secret(namespace, &it)];
    names.flat_map(objects).collect()
}

fn inventories(
    caches: &Caches,
    objects: &BTreeSet<SourceRef>,
    kind: SourceKind,
) -> BTreeMap<String, Inventory> {
    let read = |it: &SourceRef| Some((it.key.name.clone(), Inventory::of(&caches.sources, it)?));
    objects.iter().filter(|it| it.kind == kind).filter_map(read).collect()
}
