//! Reads everything that the judgement on a node set needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::{Deployment, Node, NodeSet, Service};
use common::engine::mounts::node_sets::inventory_name;
use kube::ResourceExt;
use shell::api::Api;
use shell::cache::{Cache, Key};
use shell::error::Result;
use shell::sources::{Digests, SourceRef, Sources};
use shell::vault::{Content, Vault};

use crate::attachments::Attachments;
use crate::claims::{BY_HOST, Claim};
use crate::default_services;
use crate::group::faults::{Named, sources_of};
use crate::group::networks::Networks;
use crate::group::observe::{BY_HOST_KEY, Inventory};
use crate::node_set::{host, outcome};
use crate::vars::{Objects, named};

/// Index of deployments by the node sets that they name.
pub const BY_NODE_SET: &str = "node set";

/// Plain copies of everything that was seen.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The node set.
    pub set: Arc<NodeSet>,
    /// Its namespace.
    pub namespace: String,
    /// The services that it lists, where they exist.
    pub services: BTreeMap<String, Arc<Service>>,
    /// ConfigMaps and Secrets that are referred to, where they exist.
    pub sources: BTreeMap<SourceRef, Digests>,
    /// Content of what lists of `ansibleVarsFrom` name, where it exists.
    pub objects: Objects,
    /// Which network attachments exist.
    pub networks: Networks,
    /// The deployments that name it.
    pub deployments: Vec<Arc<Deployment>>,
    /// Runs that were told the key of one of its hosts.
    pub runs: Vec<Arc<AnsibleEe>>,
    /// Other objects that describe one of its hosts.
    pub neighbours: Vec<Claim>,
    /// What stands on its inventory Secret, where it exists.
    pub inventory: Option<Inventory>,
    /// The content of that Secret, read only while a deployment is under way.
    pub written: Option<Content>,
}

/// The watched world.
pub struct World {
    /// All node sets, indexed [`BY_HOST`].
    pub node_sets: Arc<Cache<NodeSet>>,
    /// All deployments, indexed [`BY_NODE_SET`].
    pub deployments: Arc<Cache<Deployment>>,
    /// All nodes, indexed [`BY_HOST`].
    pub nodes: Arc<Cache<Node>>,
    /// All services.
    pub services: Arc<Cache<Service>>,
    /// All runs, indexed [`BY_HOST_KEY`].
    pub runs: Arc<Cache<AnsibleEe>>,
    /// All ConfigMaps and Secrets.
    pub sources: Arc<Sources>,
    /// The content of those that variables come from.
    pub vault: Vault,
    /// All network attachments, if the cluster has them.
    pub attachments: Arc<Attachments>,
    /// For the content of sources.
    pub api: Arc<Api>,
}

/// The index [`BY_NODE_SET`].
pub fn node_sets_of(deployment: &Deployment) -> Vec<Key> {
    let namespace = deployment.namespace().unwrap_or_default();
    let names: BTreeSet<&String> = deployment.spec.node_sets.iter().collect();
    names.into_iter().map(|it| Key::new(&namespace, it)).collect()
}

/// Reads a node set; `None` where it does not exist.
pub async fn observe(world: &World, key: &Key) -> Result<Option<Observed>> {
    let namespace = key.namespace.clone();
    let Some(set) = world.node_sets.get(key) else {
        world.sources.depends(key, BTreeSet::new());
        return Ok(None);
    };
    let find = |name: &String| {
        Some((name.clone(), default_services::get(&world.services, &Key::new(&namespace, name))?))
    };
    let services: BTreeMap<_, _> = set.spec.services.iter().filter_map(find).collect();
    let wanted = wanted_sources(&namespace, &set, &services);
    let of_vars: BTreeSet<SourceRef> =
        sources_of_vars(&set).iter().map(|it| it.source(&namespace)).collect();
    let own = SourceRef::secret(&namespace, &inventory_name(&key.name));
    // Before reading, so that a change in between wakes the node set again.
    let all = wanted.iter().chain(&of_vars).chain([&own]).cloned().collect();
    world.sources.depends(key, all);
    let deployments = world.deployments.indexed(BY_NODE_SET, key);
    let inventory = Inventory::of(&world.sources, &own);
    let is_busy = deployments.iter().any(|it| outcome::is_under_way(it, &set));
    let written = if is_busy { content(world, &own).await? } else { None };
    let mut objects = Objects::new();
    for source in of_vars {
        if let Some(content) = content(world, &source).await? {
            objects.insert(source, content);
        }
    }
    let mut sources = BTreeMap::new();
    for source in wanted {
        if let Some(digests) = world.sources.digests(&world.api, &source).await? {
            sources.insert(source, digests);
        }
    }
    let names_any = !set.spec.network_attachments.is_empty();
    let networks = world.attachments.seen(&world.api, &namespace, names_any).await?;
    let (runs, neighbours) = (runs(world, &namespace, &set), neighbours(world, &namespace, &set));
    Ok(Some(Observed {
        set,
        namespace,
        services,
        sources,
        objects,
        networks,
        deployments,
        runs,
        neighbours,
        inventory,
        written,
    }))
}

async fn content(world: &World, source: &SourceRef) -> Result<Option<Content>> {
    world.vault.content(&world.api, &world.sources, source).await
}

/// The ssh Secret, and what the services are given.
fn wanted_sources(
    namespace: &str,
    set: &NodeSet,
    services: &BTreeMap<String, Arc<Service>>,
) -> BTreeSet<SourceRef> {
    let ssh = &set.spec.node_template.ansible_ssh_private_key_secret;
    let data = services.values().flat_map(|it| sources_of(&it.spec)).map(|it| it.source(namespace));
    data.chain([SourceRef::secret(namespace, ssh)]).collect()
}

/// The objects that lists of `ansibleVarsFrom` name.
pub fn sources_of_vars(set: &NodeSet) -> Vec<Named> {
    let template = set.spec.node_template.ansible.as_ref();
    let own = set.spec.nodes.values().filter_map(|it| it.ansible.as_ref());
    let lists = template.into_iter().chain(own).map(|it| it.ansible_vars_from.as_slice());
    lists.flat_map(named).collect()
}

/// Runs that were told the key of a host at one of the addresses.
fn runs(world: &World, namespace: &str, set: &NodeSet) -> Vec<Arc<AnsibleEe>> {
    let of_host =
        |it: host::Host<'_>| world.runs.indexed(BY_HOST_KEY, &Key::new(namespace, it.address()));
    let found = host::hosts(set).into_iter().flat_map(of_host);
    // A run may have been told by several of the hosts.
    found.map(|it| (it.name_any(), it)).collect::<BTreeMap<_, _>>().into_values().collect()
}

fn neighbours(world: &World, namespace: &str, set: &NodeSet) -> Vec<Claim> {
    let keys = Claim::of_node_set(set).keys(namespace);
    let mut nodes = BTreeMap::new();
    let mut sets = BTreeMap::new();
    for key in &keys {
        nodes.extend(world.nodes.indexed(BY_HOST, key).into_iter().map(|it| (it.name_any(), it)));
        let others = world.node_sets.indexed(BY_HOST, key).into_iter();
        sets.extend(others.filter(|it| it.uid() != set.uid()).map(|it| (it.name_any(), it)));
    }
    let nodes = nodes.values().map(|it| Claim::of_node(it));
    nodes.chain(sets.values().map(|it| Claim::of_node_set(it))).collect()
}
