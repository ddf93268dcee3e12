//! Reads everything that the judgement on a group needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{DataPlane, Node, Role, Service};
use kube::{Resource as _, ResourceExt};
use operator_core::data_sources::SourceRef;
use operator_core::data_sources::sources_of;
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::cache::Cache;
use operator_runtime::error::Result;
use operator_runtime::source_cache::SourceCache;
use operator_runtime::source_contents::SourceContents;

use crate::attachments::Attachments;
use crate::baremetal_request::provisioning_state::is_awaited;
use crate::baremetal_request::{Machines, Seen};
use crate::default_services::Found;
use crate::effective_spec::{EffectiveSpec, machine_template};
use crate::host_conflicts::caches::told_keys;
use crate::host_conflicts::{Claim, ClaimCaches};
use crate::indexes::{BY_HOST_KEY, BY_OWNER, BY_ROLE};
use crate::owner::controller;
use crate::role::inventory::{Inventory, node_inventory_name};
use crate::role::inventory_shards;
use crate::role::machine_names::{Names, known_name};
use crate::role::machine_request::{MachineRequest, known};
use crate::role::observed::{NodeGroup, Observed, data_plane_of, listed};
use crate::vars::{Objects, named};

/// The watched world.
pub struct Caches {
    /// All data planes.
    pub planes: Arc<Cache<DataPlane>>,
    /// All roles.
    pub roles: Arc<Cache<Role>>,
    /// All nodes, indexed [`BY_ROLE`].
    pub nodes: Arc<Cache<Node>>,
    /// All who describe hosts.
    pub claim_caches: ClaimCaches,
    /// All services.
    pub services: Arc<Cache<Service>>,
    /// All runs, indexed [`BY_OWNER`] and [`BY_HOST_KEY`].
    pub runs: Arc<Cache<AnsibleEe>>,
    /// All ConfigMaps and Secrets.
    pub sources: Arc<SourceCache>,
    /// The content of those that variables come from.
    pub source_contents: SourceContents,
    /// All network attachments, if the cluster has them.
    pub attachments: Arc<Attachments>,
    /// All sets of machines, if the cluster has them.
    pub machines: Arc<Machines>,
    /// For the content of sources.
    pub api: Arc<Api>,
}

/// Reads a group; `None` where nothing of it exists.
pub async fn observe(caches: &Caches, key: &Key) -> Result<Option<Observed>> {
    let Some(group) = NodeGroup::parse(key) else { return Ok(None) };
    let namespace = key.namespace.clone();
    let (role, nodes) = members(caches, &namespace, &group)?;
    if role.is_none() && nodes.is_empty() {
        caches.sources.depends(key, BTreeSet::new());
        return Ok(None);
    }
    let data_plane = plane(caches, &namespace, role.as_deref(), &nodes)?;
    let Found { services, unreadable } =
        services(caches, &namespace, listed(&group, role.as_deref(), &nodes));
    // A data plane has no word on how a host is reached.
    let effective = |it: &Arc<Node>| EffectiveSpec::of(None, role.as_deref(), it, &Objects::new());
    let (ssh_secrets, addresses): (Vec<_>, Vec<_>) =
        nodes.iter().map(effective).map(|it| (it.ssh_secret.clone(), it.address())).unzip();
    let desired = wanted_sources(&namespace, ssh_secrets, &services);
    let of_vars = sources_of_vars(&namespace, role.as_deref(), &nodes);
    let names = inventory_names(&group, &nodes);
    let config_maps = names.iter().map(|it| SourceRef::config_map(&namespace, it));
    let secrets = names.iter().map(|it| SourceRef::secret(&namespace, it));
    let beside: BTreeSet<SourceRef> = config_maps.chain(secrets).collect();
    // Before reading, so that a change in between wakes the group again.
    let all = desired.iter().chain(&of_vars).chain(&beside).cloned().collect();
    caches.sources.depends(key, all);
    let (secrets, config_maps) = beside.into_iter().partition(|it| it.is_secret);
    let (inventories, inventory_secrets) =
        (inventories(caches, config_maps), inventories(caches, secrets));
    let objects = objects(caches, of_vars).await?;
    let names_any = names_networks(role.as_deref(), &nodes);
    let networks = caches.attachments.seen(&caches.api, &namespace, names_any).await?;
    let mut sources = BTreeMap::new();
    for source in desired {
        if let Some(digests) = caches.sources.digests(&caches.api, &source).await? {
            sources.insert(source, digests);
        }
    }
    let owner = owner(role.as_deref(), &nodes);
    let runs = caches.runs.indexed(BY_OWNER, &Key::new(&namespace, &owner));
    let of_node = |(node, address): (&Arc<Node>, &Option<String>)| {
        Claim::of_node_at(node, address.as_deref())
    };
    let own: Vec<Claim> = nodes.iter().zip(&addresses).map(of_node).collect();
    let others = others(caches, &namespace, addresses, &owner);
    let claims =
        caches.claim_caches.overlapping(&own, told_keys(&namespace, runs.iter().chain(&others)));
    let machines = machines(caches, &namespace, &group, role.as_deref(), &nodes).await?;
    let movers = movers(caches, &namespace, &nodes, &machines);
    let mut seen = Observed {
        group,
        namespace,
        role,
        data_plane,
        nodes,
        services,
        unreadable,
        sources,
        objects,
        networks,
        runs,
        others,
        claims,
        machines,
        movers,
        inventories,
        inventory_secrets,
    };
    let waiting = awaited(&seen);
    if !waiting.is_empty() {
        seen.machines.answering = caches.machines.answering(&waiting).await;
    }
    Ok(Some(seen))
}

/// The sets of machines, where somebody asks for one, or has.
async fn machines(
    caches: &Caches,
    namespace: &str,
    group: &NodeGroup,
    role: Option<&Role>,
    nodes: &[Arc<Node>],
) -> Result<Seen> {
    let has = |it: &Arc<Node>| it.status.as_ref().is_some_and(|it| it.machine.is_some());
    let asks = |it: &Arc<Node>| machine_template(role, it).is_some();
    let role_asks =
        role.is_some_and(|it| it.spec.baremetal_set_template.is_some() && !it.spec.pre_provisioned);
    if !role_asks && !nodes.iter().any(|it| has(it) || asks(it)) {
        return Ok(Seen::default());
    }
    // The machine of a node that cannot be read would be given back, and its disks wiped.
    caches.nodes.check_readable(namespace)?;
    let (NodeGroup::Role(name) | NodeGroup::Node(name)) = group;
    caches.machines.seen(&caches.api, &Key::new(namespace, name)).await
}

/// Nodes of other groups whose hosts the group's set still has.
fn movers(
    caches: &Caches,
    namespace: &str,
    members: &[Arc<Node>],
    machines: &Seen,
) -> Vec<Arc<Node>> {
    let names = Names::of(members, machines.set.as_deref());
    let hosts = machines.set.iter().flat_map(|it| it.spec.baremetal_hosts.keys());
    let left: BTreeSet<&String> = hosts.filter(|it| names.owner(it).is_none()).collect();
    if left.is_empty() {
        return Vec::new();
    }
    let is_here = |it: &Arc<Node>| it.namespace().as_deref() == Some(namespace);
    let has = |it: &Arc<Node>| left.contains(&known_name(it));
    caches.nodes.all().into_iter().filter(|it| is_here(it) && has(it)).collect()
}

/// The addresses of hosts whose machines are there, and whose ssh has not answered yet.
fn awaited(seen: &Observed) -> BTreeSet<String> {
    let Some(machine_request) = MachineRequest::of(seen) else { return BTreeSet::new() };
    let Some(set) = machine_request.set(seen) else { return BTreeSet::new() };
    let address = |node: &Arc<Node>| {
        let (data_plane, role) = (seen.data_plane.as_deref(), seen.role.as_deref());
        let effective = EffectiveSpec::of(data_plane, role, node, &seen.objects);
        let known = known(node, &effective, &seen.machines.answering);
        let is_awaited = is_awaited(set, &machine_request.names.asked(node), &known);
        effective.address().filter(|_| is_awaited)
    };
    seen.nodes.iter().filter_map(address).collect()
}

/// Runs of other owners that were told the key of a host at one of the addresses.
fn others(
    caches: &Caches,
    namespace: &str,
    addresses: Vec<Option<String>>,
    owner: &str,
) -> Vec<Arc<AnsibleEe>> {
    let is_other = |run: &Arc<AnsibleEe>| run.owner_references().iter().all(|it| it.uid != owner);
    let of_address = |it| caches.runs.indexed(BY_HOST_KEY, &Key::new(namespace, it));
    let found = addresses.into_iter().flatten().flat_map(of_address).filter(is_other);
    // A run may have been told by several of the hosts.
    found.map(|it| (it.name_any(), it)).collect::<BTreeMap<_, _>>().into_values().collect()
}

async fn objects(caches: &Caches, sources: BTreeSet<SourceRef>) -> Result<Objects> {
    let mut objects = Objects::new();
    for source in sources {
        if let Some(content) =
            caches.source_contents.content(&caches.api, &caches.sources, &source).await?
        {
            objects.insert(source, content);
        }
    }
    Ok(objects)
}

/// The UID of the role, or of a node that names none: whose runs they are.
fn owner(role: Option<&Role>, nodes: &[Arc<Node>]) -> String {
    let alone = nodes.first().filter(|it| matches!(NodeGroup::of(it), NodeGroup::Node(_)));
    role.and_then(ResourceExt::uid).or_else(|| alone?.uid()).unwrap_or_default()
}

fn names_networks(role: Option<&Role>, nodes: &[Arc<Node>]) -> bool {
    role.is_some_and(|it| !it.spec.network_attachments.is_empty())
        || nodes.iter().any(|it| !it.spec.network_attachments.is_empty())
}

/// The role, where the group has one, and its nodes.
type Members = (Option<Arc<Role>>, Vec<Arc<Node>>);

fn members(caches: &Caches, namespace: &str, group: &NodeGroup) -> Result<Members> {
    Ok(match group {
        NodeGroup::Role(name) => {
            let key = Key::new(namespace, name);
            (caches.roles.try_get(&key)?, caches.nodes.indexed(BY_ROLE, &key))
        }
        NodeGroup::Node(name) => {
            let node = caches.nodes.try_get(&Key::new(namespace, name))?;
            // The node may have got a role since the key was queued: then that group decides.
            let is_alone = |it: &Arc<Node>| NodeGroup::of(it) == *group;
            (None, node.filter(is_alone).into_iter().collect())
        }
    })
}

/// The data plane that the role names; of a node without a role the one whose entry it is.
fn plane(
    caches: &Caches,
    namespace: &str,
    role: Option<&Role>,
    nodes: &[Arc<Node>],
) -> Result<Option<Arc<DataPlane>>> {
    let name = match role {
        Some(role) => data_plane_of(role),
        None => nodes
            .first()
            .filter(|it| matches!(NodeGroup::of(it), NodeGroup::Node(_)))
            .and_then(|it| controller(it.meta()))
            .filter(|it| it.kind == DataPlane::kind(&()))
            .map(|it| it.name.as_str()),
    };
    Ok(name.map(|it| caches.planes.try_get(&Key::new(namespace, it))).transpose()?.flatten())
}

fn services(caches: &Caches, namespace: &str, names: &[String]) -> Found {
    let mut found = Found::default();
    found.lookup(&caches.services, namespace, names.iter().cloned());
    found
}

fn wanted_sources(
    namespace: &str,
    ssh_secrets: Vec<Option<String>>,
    services: &BTreeMap<String, Arc<Service>>,
) -> BTreeSet<SourceRef> {
    let ssh = ssh_secrets.into_iter().flatten().map(|it| SourceRef::secret(namespace, &it));
    let data = services.values().flat_map(|it| sources_of(&it.spec)).map(|it| it.source(namespace));
    ssh.chain(data).collect()
}

/// The objects that lists of `ansibleVarsFrom` name.
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

/// The inventory objects that the group has or is to have; a Secret beside one has its name.
fn inventory_names(group: &NodeGroup, nodes: &[Arc<Node>]) -> BTreeSet<String> {
    let role = match group {
        NodeGroup::Role(name) => inventory_shards::names(name, nodes.len()),
        NodeGroup::Node(_) => BTreeSet::new(),
    };
    nodes.iter().map(|it| node_inventory_name(&it.name_any())).chain(role).collect()
}

fn inventories(caches: &Caches, names: BTreeSet<SourceRef>) -> BTreeMap<String, Inventory> {
    let read = |it: SourceRef| Some((it.key.name.clone(), Inventory::of(&caches.sources, &it)?));
    names.into_iter().filter_map(read).collect()
}
