//! Reads everything that the judgement on a group needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::{DataPlane, Node, Role, Service};
use common::engine::rollout::Limits;
use kube::ResourceExt;
use shell::api::Api;
use shell::cache::{Cache, Key};
use shell::error::Result;
use shell::owned::Owned;
use shell::sources::{Digests, SourceRef, Sources};

use crate::effective::{Effective, role_strategy};
use crate::group::build::{INVENTORY_HASH, node_inventory_name, role_inventory_name};
use crate::group::faults::sources_of;

/// Index of nodes by the role that they name.
pub const BY_ROLE: &str = "role";
/// Index of runs, roles and nodes by the UID of their owner.
pub const BY_OWNER: &str = "owner";

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

    fn parse(key: &Key) -> Option<Self> {
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
    /// The services that the role lists, where they exist.
    pub services: BTreeMap<String, Arc<Service>>,
    /// ConfigMaps and Secrets that are referred to, where they exist.
    pub sources: BTreeMap<SourceRef, Digests>,
    /// The runs that the role owns.
    pub runs: Vec<Arc<AnsibleEe>>,
    /// What stands on each inventory object that exists.
    pub inventories: BTreeMap<String, Inventory>,
}

/// An inventory object, as far as its metadata tells.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Inventory {
    /// Hash of the content that was written.
    pub hash: String,
    /// What of it nobody has changed since.
    pub owned: Owned,
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
    /// All services.
    pub services: Arc<Cache<Service>>,
    /// All runs, indexed [`BY_OWNER`].
    pub runs: Arc<Cache<AnsibleEe>>,
    /// All ConfigMaps and Secrets.
    pub sources: Arc<Sources>,
    /// For the content of sources.
    pub api: Arc<Api>,
}

/// Reads a group; `None` where nothing of it exists.
pub async fn observe(world: &World, key: &Key) -> Result<Option<Observed>> {
    let Some(group) = Group::parse(key) else { return Ok(None) };
    let namespace = key.namespace.clone();
    let (role, nodes) = members(world, &namespace, &group);
    if role.is_none() && nodes.is_empty() {
        world.sources.depends(key, BTreeSet::new());
        return Ok(None);
    }
    let plane = plane(world, &namespace, role.as_deref());
    let services = services(world, &namespace, role.as_deref());
    let wanted = wanted_sources(&namespace, role.as_deref(), &nodes, &services);
    let inventory_names = inventory_names(&namespace, &group, &nodes);
    // Before reading, so that a change in between wakes the group again.
    world.sources.depends(key, wanted.iter().chain(&inventory_names).cloned().collect());
    let inventories = inventories(world, inventory_names);
    let mut sources = BTreeMap::new();
    for source in wanted {
        if let Some(digests) = world.sources.digests(&world.api, &source).await? {
            sources.insert(source, digests);
        }
    }
    let owner = role.as_ref().and_then(|it| it.uid()).unwrap_or_default();
    let runs = world.runs.indexed(BY_OWNER, &Key::new(&namespace, owner));
    Ok(Some(Observed {
        group,
        namespace,
        role,
        plane,
        nodes,
        services,
        sources,
        runs,
        inventories,
    }))
}

fn members(world: &World, namespace: &str, group: &Group) -> (Option<Arc<Role>>, Vec<Arc<Node>>) {
    match group {
        Group::Role(name) => {
            let key = Key::new(namespace, name);
            (world.roles.get(&key), world.nodes.indexed(BY_ROLE, &key))
        }
        Group::Node(name) => {
            let node = world.nodes.get(&Key::new(namespace, name));
            // The node may have got a role since the key was queued: then that group decides.
            let is_alone = |it: &Arc<Node>| Group::of(it) == *group;
            (None, node.filter(is_alone).into_iter().collect())
        }
    }
}

fn plane(world: &World, namespace: &str, role: Option<&Role>) -> Option<Arc<DataPlane>> {
    let name = role.and_then(data_plane_of)?;
    world.planes.get(&Key::new(namespace, name))
}

/// The name of the data plane that a role names.
pub fn data_plane_of(role: &Role) -> Option<&str> {
    role.spec.data_plane.as_deref().filter(|it| !it.is_empty())
}

fn services(world: &World, namespace: &str, role: Option<&Role>) -> BTreeMap<String, Arc<Service>> {
    let names = role.map(|it| it.spec.services.as_slice()).unwrap_or_default();
    let find =
        |name: &String| world.services.get(&Key::new(namespace, name)).map(|it| (name.clone(), it));
    names.iter().filter_map(find).collect()
}

fn wanted_sources(
    namespace: &str,
    role: Option<&Role>,
    nodes: &[Arc<Node>],
    services: &BTreeMap<String, Arc<Service>>,
) -> BTreeSet<SourceRef> {
    let ssh = nodes
        .iter()
        // A data plane has no word on it.
        .filter_map(|it| Effective::of(None, role, it).ssh_secret)
        .map(|it| SourceRef::secret(namespace, &it));
    let data = services.values().flat_map(|it| sources_of(&it.spec)).map(|it| it.source(namespace));
    ssh.chain(data).collect()
}

/// The inventory objects that the group has or is to have.
fn inventory_names(namespace: &str, group: &Group, nodes: &[Arc<Node>]) -> BTreeSet<SourceRef> {
    let role = match group {
        Group::Role(name) => Some(role_inventory_name(name)),
        Group::Node(_) => None,
    };
    let names = nodes.iter().map(|it| node_inventory_name(&it.name_any())).chain(role);
    names.map(|it| SourceRef::config_map(namespace, &it)).collect()
}

fn inventories(world: &World, names: BTreeSet<SourceRef>) -> BTreeMap<String, Inventory> {
    let read = |source: SourceRef| {
        let hash = world.sources.annotation(&source, INVENTORY_HASH)?;
        Some((source.key.name.clone(), Inventory { hash, owned: world.sources.owned(&source) }))
    };
    names.into_iter().filter_map(read).collect()
}
