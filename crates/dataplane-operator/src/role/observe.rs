//! Reads the objects on which the evaluation of a group depends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{DataPlane, Node, Role, Service};
use api::shared::SourceKind;
use jiff::SignedDuration;
use kube::{Resource as _, ResourceExt};
use operator_core::certificates::{Issued, secret_of};
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::is_terminating;
use operator_core::object_key::Key;
use operator_runtime::clock;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;
use parking_lot::Mutex;

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
use crate::host::services::sources_and_bundles;
use crate::host::vars::Objects;
use crate::indexes::{BY_OWNER, BY_ROLE, BY_ROLE_LABEL, data_plane_of, role_label_key};
use crate::labels::LAST_LOOK;
use crate::role::certificates::{is_enabled, requests};
use crate::role::decide::decide;
use crate::role::deleted_runs::SeenRuns;
use crate::role::inventory_shards::node_inventory_name;
use crate::role::machine_request::{MachineRequest, names_of};
use crate::role::memory::{GroupMemory, Recalled};
use crate::role::observed::{NodeGroup, Observed, listed, own_ssh_secret, sources_of_vars};
use crate::role::{common, inventory_shards};

/// How long what earlier passes found is relied on: a resync is to see anew what no informer reports.
const LONGEST_MEMORY: SignedDuration = SignedDuration::from_mins(15);

/// The controller of roles and nodes.
pub struct NodeGroups {
    caches: Arc<Caches>,
    memories: Mutex<BTreeMap<Key, Arc<GroupMemory>>>,
    seen_runs: SeenRuns,
}

impl NodeGroups {
    /// Creates the controller with the caches that it reads.
    pub fn new(caches: Arc<Caches>) -> Self {
        Self { caches, memories: Mutex::default(), seen_runs: SeenRuns::default() }
    }

    /// Returns what is remembered of a role, without the hosts about which something has changed.
    fn memory(&self, key: &Key) -> Arc<GroupMemory> {
        // Before anything is read: what changes after that is noted for the next pass.
        let (changed, now) = (self.caches.changed_hosts.take(key), clock::now());
        let mut memories = self.memories.lock();
        let fresh =
            || Arc::new(GroupMemory::until(now.saturating_add(LONGEST_MEMORY).unwrap_or(now)));
        let memory = memories.entry(key.clone()).or_insert_with(fresh);
        if memory.expires <= now {
            *memory = fresh();
        }
        memory.forget(changed);
        Arc::clone(memory)
    }

    /// Remembers nothing of a group any more.
    fn forget(&self, key: &Key) {
        self.memories.lock().remove(key);
        self.caches.changed_hosts.forget(key);
    }
}

impl Controller for NodeGroups {
    type Observed = Observed;

    const NAME: &'static str = GROUP;

    const DECIDE: Decide<Observed> = decide;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        let caches = &self.caches;
        let Some(group) = NodeGroup::parse(key) else { return Ok(None) };
        let memory = self.memory(key);
        let (role, nodes) = members(caches, &key.namespace, &group)?;
        if role.is_none() && nodes.is_empty() {
            self.seen_runs.forget(key);
            caches.sources.depends(GROUP, key, BTreeSet::new());
            self.forget(key);
            return Ok(None);
        }
        let (owner, runs) = own_runs(caches, (&key.namespace, &group), role.as_deref(), &nodes);
        let nodes = self.seen_runs.with_deleted(key, nodes, &runs);
        let members = Members {
            caches,
            namespace: &key.namespace,
            group: &group,
            role: role.as_ref(),
            nodes: &nodes,
            owner,
            runs,
        };
        let mut seen = if common::may_remember(role.as_deref(), &nodes) {
            members.recall(key, &memory).await?
        } else {
            self.forget(key);
            members.read(key, Recalled::default()).await?
        };
        let machines = members.machines().await?;
        let movers = members.migrating(&machines);
        let leaving = nodes.iter().filter(|it| is_terminating(&***it)).chain(&movers);
        (seen.looks, seen.is_namespace_terminating) =
            looks(caches, &key.namespace, leaving, &machines).await?;
        (seen.machines, seen.migrating_nodes) = (machines, movers);
        seen.machines.answering = caches.machines.answering(&awaited(&seen)).await;
        with_certificates(caches, key, &mut seen).await?;
        Ok(Some(seen))
    }
}

/// A role, if there is one, and its nodes.
struct Members<'a> {
    caches: &'a Caches,
    namespace: &'a str,
    group: &'a NodeGroup,
    role: Option<&'a Arc<Role>>,
    nodes: &'a [Arc<Node>],
    /// The UID of the role, or of the node without one.
    owner: String,
    /// The runs of that owner that deploy services.
    runs: Vec<Arc<AnsibleEe>>,
}

impl<'a> Members<'a> {
    fn role(&self) -> Option<&'a Role> {
        self.role.map(|it| &**it)
    }

    /// Reads what concerns a group, with as much of it from memory as still holds.
    async fn recall(&self, key: &Key, memory: &Arc<GroupMemory>) -> Result<Observed> {
        let shards = inventory_shards::of_hosts(self.group, self.nodes);
        let seen = self.read(key, memory.recall(self.nodes, &shards, &self.runs)).await?;
        if memory.fits(common::of(&seen)) {
            return Ok(seen);
        }
        // Nothing is known now, but what this pass finds is kept, with what is read now.
        let seen = self.read(key, memory.recall(self.nodes, &shards, &self.runs)).await?;
        memory.fits(common::of(&seen));
        Ok(seen)
    }

    /// Reads what concerns a group, except for its machines, and except for what concerns a known host
    /// alone.
    async fn read(&self, key: &Key, recalled: Recalled) -> Result<Observed> {
        let Self { caches, namespace, nodes, .. } = *self;
        let role = self.role();
        let listed = listed(self.group, role, nodes);
        let (Found { services, unreadable }, certificate_sources) = self.known_services(listed);
        // A data plane does not affect a host's connection.
        let effective = |it: &Arc<Node>| EffectiveSpec::of(None, role, it, &Objects::new());
        let unknown: Vec<&Arc<Node>> = recalled.unknown(nodes).map(|it| it.1).collect();
        let (own, addresses): (Vec<_>, Vec<_>) = unknown
            .iter()
            .copied()
            .map(effective)
            .map(|it| (it.ssh_secret.clone(), it.address()))
            .unzip();
        let known = recalled.hosts().map(|it| it.ssh_secret.as_deref());
        let ssh_secrets = own.iter().map(Option::as_deref).chain(known).collect();
        let mut desired = self.wanted_sources(&ssh_secrets, &services);
        let requests = requests(role, listed, &services, &certificate_sources);
        for name in nodes.iter().filter(|_| !requests.is_empty()).map(|it| it.name_any()) {
            let certificates = requests.iter().map(|it| secret_of(it, &name));
            desired.extend(certificates.map(|it| SourceRef::secret(namespace, &it)));
        }
        let of_vars = sources_of_vars(namespace, role, nodes);
        let shared = self.inventory_sources();
        // Registered before reading, so that a change in between enqueues the group again.
        let all = desired.iter().chain(&of_vars).chain(&shared).cloned().collect();
        caches.sources.depends(GROUP, key, all);
        let [inventories, inventory_secrets] = self.inventories(&unknown, &shared);
        let objects = caches.sources.contents_of(&caches.api, of_vars).await?;
        let are_named = self.name_networks();
        let networks = caches.attachments.seen(&caches.api, namespace, are_named).await?;
        let sources = caches.sources.digests_of(&caches.api, desired).await?;
        let (others, claims) = self.around(&unknown, &addresses);
        Ok(Observed {
            data_plane: self.data_plane()?,
            group: self.group.clone(),
            namespace: namespace.to_owned(),
            role: self.role.cloned(),
            nodes: nodes.to_vec(),
            services,
            certificate_sources,
            defaults: caches.defaults.clone(),
            unreadable,
            runner: caches.runner,
            sources,
            objects,
            networks,
            runs: self.runs.clone(),
            looks: Vec::new(),
            is_namespace_terminating: false,
            others,
            claims,
            machines: Seen::default(),
            issued: Issued::default(),
            migrating_nodes: Vec::new(),
            inventories,
            inventory_secrets,
            recalled,
        })
    }

    /// Returns the metadata of the inventory objects that exist, and of the Secrets beside them: of these
    /// `shared` ones, and of those of the `unknown` hosts.
    fn inventories(
        &self,
        unknown: &[&Arc<Node>],
        shared: &BTreeSet<SourceRef>,
    ) -> [BTreeMap<String, Inventory>; 2] {
        let own = unknown.iter().map(|it| node_inventory_name(&it.name_any()));
        let all: Vec<SourceRef> =
            own.flat_map(|it| self.inventory_source(&it)).chain(shared.iter().cloned()).collect();
        let sources = &self.caches.sources;
        [SourceKind::ConfigMap, SourceKind::Secret].map(|kind| {
            let of_kind = all.iter().filter(|it| it.kind == kind);
            of_kind
                .filter_map(|it| Some((it.key.name.clone(), Inventory::of(sources, it)?)))
                .collect()
        })
    }

    /// The node without a role, if it is one.
    fn alone(&self) -> Option<&Arc<Node>> {
        self.nodes.first().filter(|_| matches!(self.group, NodeGroup::Node(_)))
    }

    /// Returns runs of other owners to which one of the `unknown` hosts presented its ssh host key, and the
    /// claims of all objects that describe one of them.
    fn around(
        &self,
        unknown: &[&Arc<Node>],
        addresses: &[Option<String>],
    ) -> (Vec<Arc<AnsibleEe>>, Vec<Claim>) {
        let Self { caches, namespace, .. } = *self;
        let mut others = caches.runs_with_keys(namespace, addresses.iter().flatten().cloned());
        others.retain(|run| run.owner_references().iter().all(|it| it.uid != self.owner));
        let names: BTreeSet<&str> =
            unknown.iter().filter_map(|it| it.metadata.name.as_deref()).collect();
        let reported =
            reported_keys(namespace, self.runs.iter().chain(&others), |it| names.contains(it));
        let (hosts, role) = (unknown.iter().zip(addresses), self.role());
        let own: Vec<Claim> =
            hosts.map(|(node, it)| Claim::of_node_at(node, role, it.as_deref())).collect();
        let claims = caches.hosts.overlapping(&own, reported);
        (others, claims)
    }

    /// Reads the sets of machines, if the group requests one or a node has a machine.
    async fn machines(&self) -> Result<Seen> {
        let role = self.role();
        let has = |it: &Arc<Node>| it.status.as_ref().is_some_and(|it| it.machine.is_some());
        let asks = |it: &Arc<Node>| machine_template(role, it).is_some();
        let role_asks = role.is_some_and(|it| role_template(it).is_some());
        if !role_asks && !self.nodes.iter().any(|it| has(it) || asks(it)) {
            return Ok(Seen::default());
        }
        // If a node that cannot be parsed were missed, its machine would be given back and wiped.
        self.caches.hosts.nodes.check_readable(self.namespace)?;
        let (NodeGroup::Role(name) | NodeGroup::Node(name)) = self.group;
        self.caches.machines.seen(&self.caches.api, &Key::new(self.namespace, name)).await
    }

    /// Returns nodes of other groups for whose hosts the group's set still has machines.
    fn migrating(&self, machines: &Seen) -> Vec<Arc<Node>> {
        if machines.set.is_none() {
            return Vec::new();
        }
        let names = names_of(self.nodes, machines.set.as_deref());
        let hosts = machines.set.iter().flat_map(|it| it.spec.baremetal_hosts.keys());
        let left: BTreeSet<&String> = hosts.filter(|it| names.owner(it).is_none()).collect();
        if left.is_empty() {
            return Vec::new();
        }
        let has = |it: &Arc<Node>| NodeGroup::of(it).is_some() && left.contains(&known_name(it));
        self.caches.hosts.nodes.in_namespace(self.namespace).into_iter().filter(has).collect()
    }

    fn name_networks(&self) -> bool {
        self.role.is_some_and(|it| !it.spec.network_attachments.is_empty())
            || self.nodes.iter().any(|it| !it.spec.network_attachments.is_empty())
    }

    /// Returns the data plane that the role names; for a node without a role, the one that controls it.
    fn data_plane(&self) -> Result<Option<Arc<DataPlane>>> {
        let name = match self.role {
            Some(role) => data_plane_of(role),
            None => self
                .alone()
                .and_then(|it| controller(it.meta()))
                .filter(|it| it.kind == DataPlane::kind(&()))
                .map(|it| it.name.as_str()),
        };
        let find = |it| self.caches.data_planes.try_get(&Key::new(self.namespace, it));
        Ok(name.map(find).transpose()?.flatten())
    }

    /// The listed services, and for those that define no certificates the service whose certificates
    /// they use, where hosts get any.
    fn known_services(&self, listed: &[String]) -> (Found, BTreeMap<String, Arc<Service>>) {
        let (known, namespace) = (self.caches.known_services(), self.namespace);
        let mut found = Found::of(known, namespace, listed.iter().cloned());
        if !is_enabled(self.role()) {
            return (found, BTreeMap::new());
        }
        let mut lent = Found::lent(known, namespace, &found.services, listed);
        found.unreadable.append(&mut lent.unreadable);
        (found, lent.services)
    }

    /// Returns the ssh Secrets of the nodes, or of a role that has none yet, and the data sources of the
    /// services, with their CA bundles where hosts get certificates.
    fn wanted_sources(
        &self,
        ssh_secrets: &BTreeSet<Option<&str>>,
        services: &BTreeMap<String, Arc<Service>>,
    ) -> BTreeSet<SourceRef> {
        let role = self.role();
        let of_role = role.filter(|_| ssh_secrets.is_empty()).and_then(own_ssh_secret);
        let ssh = ssh_secrets.iter().flatten().copied().chain(of_role);
        let ssh = ssh.map(|it| SourceRef::secret(self.namespace, it));
        let (services, has_bundles) = (services.values(), is_enabled(role));
        ssh.chain(sources_and_bundles(self.namespace, services, has_bundles)).collect()
    }

    /// Returns the ConfigMaps that hold the inventories which the role has or is to have, and the Secrets of
    /// the same names beside them.
    fn inventory_sources(&self) -> BTreeSet<SourceRef> {
        match self.group {
            NodeGroup::Role(name) => {
                let names = inventory_shards::names(name, self.nodes.len());
                names.iter().flat_map(|it| self.inventory_source(it)).collect()
            }
            NodeGroup::Node(_) => BTreeSet::new(),
        }
    }

    fn inventory_source(&self, name: &str) -> [SourceRef; 2] {
        [SourceRef::config_map(self.namespace, name), SourceRef::secret(self.namespace, name)]
    }
}

/// Returns the UID of a role, or of the node without one, and its runs that deploy services.
fn own_runs(
    caches: &Caches,
    (namespace, group): (&str, &NodeGroup),
    role: Option<&Role>,
    nodes: &[Arc<Node>],
) -> (String, Vec<Arc<AnsibleEe>>) {
    let alone = || nodes.first().filter(|_| matches!(group, NodeGroup::Node(_)))?.uid();
    let owner = role.and_then(ResourceExt::uid).or_else(alone).unwrap_or_default();
    let mut runs = caches.runs.indexed(BY_OWNER, &Key::new(namespace, &owner));
    // A node without a role owns both.
    runs.retain(|it| !it.labels().contains_key(LAST_LOOK));
    (owner, runs)
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

/// The role, if the group has one, and its nodes.
type RoleAndNodes = (Option<Arc<Role>>, Vec<Arc<Node>>);

/// Returns who belongs to a group.
fn members(caches: &Caches, namespace: &str, group: &NodeGroup) -> Result<RoleAndNodes> {
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
