//! Reads everything that the judgement on a group needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::{DataPlane, Node, Role, Service};
use common::engine::host_key::HostKey;
use common::engine::rollout::Limits;
use common::plan::Target;
use kube::{Resource as _, ResourceExt};
use shell::api::Api;
use shell::cache::{Cache, Key};
use shell::error::Result;
use shell::owned::Owned;
use shell::sources::{Digests, SourceRef, Sources};
use shell::vault::Vault;

use crate::attachments::Attachments;
use crate::claims::{Claim, ClaimCaches, key_of};
use crate::default_services::Found;
use crate::effective::{Effective, machine_template, role_strategy};
use crate::group::build::{INVENTORY_HASH, node_inventory_name};
use crate::group::faults::sources_of;
use crate::group::machines::{Asker, known};
use crate::group::names::{Names, known_name};
use crate::group::networks::Networks;
use crate::group::parts;
use crate::machines::course::is_awaited;
use crate::machines::{Machines, Seen};
use crate::plane::children::controller;
use crate::vars::{Objects, named};

/// Index of nodes by the role that they name.
pub const BY_ROLE: &str = "role";
/// Index of runs, roles and nodes by the UID of their owner.
pub const BY_OWNER: &str = "owner";

/// The keys of the index [`BY_HOST`](crate::claims::BY_HOST) for what runs were told as hosts' own ssh
/// keys.
pub fn told_keys<'a>(
    namespace: &'a str,
    runs: impl Iterator<Item = &'a Arc<AnsibleEe>>,
) -> BTreeSet<Key> {
    let reports = runs.flat_map(|it| it.status.iter().flat_map(|it| &it.host_keys));
    let keys = reports.filter_map(|it| HostKey::parse(it.key.as_deref()?));
    keys.map(|it| key_of(namespace, &it)).collect()
}

/// Index of runs by the addresses whose hosts told them their own keys.
pub const BY_HOST_KEY: &str = "host key";

/// Which hosts are decided together.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Group {
    /// The nodes that name this role.
    Role(String),
    /// A node that names no role.
    Node(String),
}

impl Group {
    /// The group that a node belongs to.
    pub fn of(node: &Node) -> Self {
        match node.spec.role.clone().filter(|it| !it.is_empty()) {
            Some(role) => Self::Role(role),
            None => Self::Node(node.name_any()),
        }
    }

    /// The queue's key of the group: no object's name has a slash.
    pub fn key(&self, namespace: &str) -> Key {
        match self {
            Self::Role(name) => Key::new(namespace, format!("role/{name}")),
            Self::Node(name) => Key::new(namespace, format!("node/{name}")),
        }
    }

    /// The group of a key of the queue; others' keys have none.
    pub fn parse(key: &Key) -> Option<Self> {
        match key.name.split_once('/')? {
            ("role", name) => Some(Self::Role(name.to_owned())),
            ("node", name) => Some(Self::Node(name.to_owned())),
            _ => None,
        }
    }
}

/// Plain copies of everything that was seen.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Which hosts these are.
    pub group: Group,
    /// Their namespace.
    pub namespace: String,
    /// The role, where it exists.
    pub role: Option<Arc<Role>>,
    /// The data plane that the role names, where it exists.
    pub plane: Option<Arc<DataPlane>>,
    /// The nodes, by name.
    pub nodes: Vec<Arc<Node>>,
    /// The listed services, where they exist.
    pub services: BTreeMap<String, Arc<Service>>,
    /// Those of them that cannot be read: the field, and why.
    pub unreadable: BTreeMap<String, String>,
    /// ConfigMaps and Secrets that are referred to, where they exist.
    pub sources: BTreeMap<SourceRef, Digests>,
    /// Content of what lists of `ansibleVarsFrom` name, where it exists.
    pub objects: Objects,
    /// Which network attachments exist.
    pub networks: Networks,
    /// The runs that the role owns, or the node without a role.
    pub runs: Vec<Arc<AnsibleEe>>,
    /// Runs of other owners that were told the key of one of the hosts.
    pub others: Vec<Arc<AnsibleEe>>,
    /// What all objects that describe one of the hosts say of it.
    pub claims: Vec<Claim>,
    /// What was seen of machines.
    pub machines: Seen,
    /// Nodes of other groups whose hosts the group's machines have.
    pub movers: Vec<Arc<Node>>,
    /// What stands on each inventory object that exists.
    pub inventories: BTreeMap<String, Inventory>,
    /// What stands on each Secret beside an inventory that exists, by the inventory's name.
    pub inventory_secrets: BTreeMap<String, Inventory>,
}

impl Observed {
    /// The services in order: the role's, or those of a node that names no role.
    pub fn listed(&self) -> &[String] {
        listed(&self.group, self.role.as_deref(), &self.nodes)
    }

    /// Whoever owns the runs; nobody where no services are listed by anything that exists.
    pub fn parent(&self) -> Option<Target> {
        match (&self.group, &self.role) {
            (Group::Role(_), role) => role.as_ref().map(|it| Target::of(&**it)),
            (Group::Node(_), _) if self.listed().is_empty() => None,
            (Group::Node(_), _) => self.nodes.first().map(|it| Target::of(&**it)),
        }
    }
}

fn listed<'a>(group: &Group, role: Option<&'a Role>, nodes: &'a [Arc<Node>]) -> &'a [String] {
    match group {
        Group::Role(_) => role.map(|it| it.spec.services.as_slice()).unwrap_or_default(),
        Group::Node(_) => nodes.first().map(|it| it.spec.services.as_slice()).unwrap_or_default(),
    }
}

/// An inventory object, as far as its metadata tells.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Inventory {
    /// Hash of the content that was written.
    pub hash: String,
    /// What of it nobody has changed since.
    pub owned: Owned,
    /// Whether it would go with its owner, as earlier versions made it.
    pub has_owner: bool,
}

impl Inventory {
    /// What stands on an inventory object; nothing where there is none, or none of ours.
    pub fn of(sources: &Sources, object: &SourceRef) -> Option<Self> {
        let hash = sources.annotation(object, INVENTORY_HASH)?;
        Some(Self { hash, owned: sources.owned(object), has_owner: sources.has_owner(object) })
    }
}

impl Observed {
    /// What is allowed of a rollout over the group.
    pub fn limits(&self) -> Limits {
        role_strategy(self.plane.as_deref(), self.role.as_deref()).limits()
    }
}

/// The watched world.
pub struct World {
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
    pub sources: Arc<Sources>,
    /// The content of those that variables come from.
    pub vault: Vault,
    /// All network attachments, if the cluster has them.
    pub attachments: Arc<Attachments>,
    /// All sets of machines, if the cluster has them.
    pub machines: Arc<Machines>,
    /// For the content of sources.
    pub api: Arc<Api>,
}

/// Reads a group; `None` where nothing of it exists.
pub async fn observe(world: &World, key: &Key) -> Result<Option<Observed>> {
    let Some(group) = Group::parse(key) else { return Ok(None) };
    let namespace = key.namespace.clone();
    let (role, nodes) = members(world, &namespace, &group)?;
    if role.is_none() && nodes.is_empty() {
        world.sources.depends(key, BTreeSet::new());
        return Ok(None);
    }
    let plane = plane(world, &namespace, role.as_deref(), &nodes)?;
    let Found { services, unreadable } =
        services(world, &namespace, listed(&group, role.as_deref(), &nodes));
    // A data plane has no word on how a host is reached.
    let effective = |it: &Arc<Node>| Effective::of(None, role.as_deref(), it, &Objects::new());
    let (ssh_secrets, addresses): (Vec<_>, Vec<_>) =
        nodes.iter().map(effective).map(|it| (it.ssh_secret.clone(), it.address())).unzip();
    let wanted = wanted_sources(&namespace, ssh_secrets, &services);
    let of_vars = sources_of_vars(&namespace, role.as_deref(), &nodes);
    let names = inventory_names(&group, &nodes);
    let config_maps = names.iter().map(|it| SourceRef::config_map(&namespace, it));
    let secrets = names.iter().map(|it| SourceRef::secret(&namespace, it));
    let beside: BTreeSet<SourceRef> = config_maps.chain(secrets).collect();
    // Before reading, so that a change in between wakes the group again.
    let all = wanted.iter().chain(&of_vars).chain(&beside).cloned().collect();
    world.sources.depends(key, all);
    let (secrets, config_maps) = beside.into_iter().partition(|it| it.is_secret);
    let (inventories, inventory_secrets) =
        (inventories(world, config_maps), inventories(world, secrets));
    let objects = objects(world, of_vars).await?;
    let names_any = names_networks(role.as_deref(), &nodes);
    let networks = world.attachments.seen(&world.api, &namespace, names_any).await?;
    let mut sources = BTreeMap::new();
    for source in wanted {
        if let Some(digests) = world.sources.digests(&world.api, &source).await? {
            sources.insert(source, digests);
        }
    }
    let owner = owner(role.as_deref(), &nodes);
    let runs = world.runs.indexed(BY_OWNER, &Key::new(&namespace, &owner));
    let of_node = |(node, address): (&Arc<Node>, &Option<String>)| {
        Claim::of_node_at(node, address.as_deref())
    };
    let own: Vec<Claim> = nodes.iter().zip(&addresses).map(of_node).collect();
    let others = others(world, &namespace, addresses, &owner);
    let claims =
        world.claim_caches.overlapping(&own, told_keys(&namespace, runs.iter().chain(&others)));
    let machines = machines(world, &namespace, &group, role.as_deref(), &nodes).await?;
    let movers = movers(world, &namespace, &nodes, &machines);
    let mut seen = Observed {
        group,
        namespace,
        role,
        plane,
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
        seen.machines.answering = world.machines.answering(&waiting).await;
    }
    Ok(Some(seen))
}

/// The sets of machines, where somebody asks for one, or has.
async fn machines(
    world: &World,
    namespace: &str,
    group: &Group,
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
    world.nodes.check_readable(namespace)?;
    let (Group::Role(name) | Group::Node(name)) = group;
    world.machines.seen(&world.api, &Key::new(namespace, name)).await
}

/// Nodes of other groups whose hosts the group's set still has.
fn movers(
    world: &World,
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
    world.nodes.all().into_iter().filter(|it| is_here(it) && has(it)).collect()
}

/// The addresses of hosts whose machines are there, and whose ssh has not answered yet.
fn awaited(seen: &Observed) -> BTreeSet<String> {
    let Some(asker) = Asker::of(seen) else { return BTreeSet::new() };
    let Some(set) = asker.set(seen) else { return BTreeSet::new() };
    let address = |node: &Arc<Node>| {
        let (plane, role) = (seen.plane.as_deref(), seen.role.as_deref());
        let effective = Effective::of(plane, role, node, &seen.objects);
        let known = known(node, &effective, &seen.machines.answering);
        let is_awaited = is_awaited(set, &asker.names.asked(node), &known);
        effective.address().filter(|_| is_awaited)
    };
    seen.nodes.iter().filter_map(address).collect()
}

/// Runs of other owners that were told the key of a host at one of the addresses.
fn others(
    world: &World,
    namespace: &str,
    addresses: Vec<Option<String>>,
    owner: &str,
) -> Vec<Arc<AnsibleEe>> {
    let is_other = |run: &Arc<AnsibleEe>| run.owner_references().iter().all(|it| it.uid != owner);
    let of_address = |it| world.runs.indexed(BY_HOST_KEY, &Key::new(namespace, it));
    let found = addresses.into_iter().flatten().flat_map(of_address).filter(is_other);
    // A run may have been told by several of the hosts.
    found.map(|it| (it.name_any(), it)).collect::<BTreeMap<_, _>>().into_values().collect()
}

async fn objects(world: &World, sources: BTreeSet<SourceRef>) -> Result<Objects> {
    let mut objects = Objects::new();
    for source in sources {
        if let Some(content) = world.vault.content(&world.api, &world.sources, &source).await? {
            objects.insert(source, content);
        }
    }
    Ok(objects)
}

/// The UID of the role, or of a node that names none: whose runs they are.
fn owner(role: Option<&Role>, nodes: &[Arc<Node>]) -> String {
    let alone = nodes.first().filter(|it| matches!(Group::of(it), Group::Node(_)));
    role.and_then(ResourceExt::uid).or_else(|| alone?.uid()).unwrap_or_default()
}

fn names_networks(role: Option<&Role>, nodes: &[Arc<Node>]) -> bool {
    role.is_some_and(|it| !it.spec.network_attachments.is_empty())
        || nodes.iter().any(|it| !it.spec.network_attachments.is_empty())
}

/// The role, where the group has one, and its nodes.
type Members = (Option<Arc<Role>>, Vec<Arc<Node>>);

fn members(world: &World, namespace: &str, group: &Group) -> Result<Members> {
    Ok(match group {
        Group::Role(name) => {
            let key = Key::new(namespace, name);
            (world.roles.try_get(&key)?, world.nodes.indexed(BY_ROLE, &key))
        }
        Group::Node(name) => {
            let node = world.nodes.try_get(&Key::new(namespace, name))?;
            // The node may have got a role since the key was queued: then that group decides.
            let is_alone = |it: &Arc<Node>| Group::of(it) == *group;
            (None, node.filter(is_alone).into_iter().collect())
        }
    })
}

/// The data plane that the role names; of a node without a role the one whose entry it is.
fn plane(
    world: &World,
    namespace: &str,
    role: Option<&Role>,
    nodes: &[Arc<Node>],
) -> Result<Option<Arc<DataPlane>>> {
    let name = match role {
        Some(role) => data_plane_of(role),
        None => nodes
            .first()
            .filter(|it| matches!(Group::of(it), Group::Node(_)))
            .and_then(|it| controller(it.meta()))
            .filter(|it| it.kind == DataPlane::kind(&()))
            .map(|it| it.name.as_str()),
    };
    Ok(name.map(|it| world.planes.try_get(&Key::new(namespace, it))).transpose()?.flatten())
}

/// The name of the data plane that a role names.
pub fn data_plane_of(role: &Role) -> Option<&str> {
    role.spec.data_plane.as_deref().filter(|it| !it.is_empty())
}

fn services(world: &World, namespace: &str, names: &[String]) -> Found {
    let mut found = Found::default();
    found.look_up(&world.services, namespace, names.iter().cloned());
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
fn inventory_names(group: &Group, nodes: &[Arc<Node>]) -> BTreeSet<String> {
    let role = match group {
        Group::Role(name) => parts::names(name, nodes.len()),
        Group::Node(_) => BTreeSet::new(),
    };
    nodes.iter().map(|it| node_inventory_name(&it.name_any())).chain(role).collect()
}

fn inventories(world: &World, names: BTreeSet<SourceRef>) -> BTreeMap<String, Inventory> {
    let read = |it: SourceRef| Some((it.key.name.clone(), Inventory::of(&world.sources, &it)?));
    names.into_iter().filter_map(read).collect()
}
