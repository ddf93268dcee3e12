//! The caches of nova-operator, and which work queues a change in each of them enqueues.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, Role, Service};
use api::nova::{Cell, ExternalCompute};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Resource, ResourceExt};
use operator_core::keyed::Keys;
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::cache::{Cache, MetadataCache, WriteThrough};
use operator_runtime::manager::{Manager, ManagerBuilder};
use operator_runtime::source_cache::{self, SourceCache};
use operator_runtime::source_contents::SourceContents;
use operator_runtime::workqueue::WorkQueue;

use crate::change_filter::{ChangeFilter, relevant_fields};
use crate::cleanup::labels::{self, cleans_up_after};
use crate::conflicting_service::{self, ConflictingService};
use crate::indexes::{BY_CELL, BY_NODE, BY_OWNER, BY_ROLE, cell_key};
use crate::rollout_coordinator::{Requeue, RolloutCoordinator};
use crate::shared_caches::SharedCaches;

/// Delay before a cell recounts its computes, so that a rollout over many causes few writes.
const COUNT_PAUSE: Duration = Duration::from_secs(2);

/// The work queue of each controller.
#[derive(Default)]
pub struct Queues {
    /// Keys of nodes.
    pub nodes: Arc<WorkQueue>,
    /// Keys of computes.
    pub computes: Arc<WorkQueue>,
    /// Keys of cells.
    pub cells: Arc<WorkQueue>,
    /// Keys of cleanup runs.
    pub cleanups: Arc<WorkQueue>,
    /// Keys of services.
    pub services: Arc<WorkQueue>,
}

/// All caches of the operator.
pub struct Caches {
    /// All nodes, indexed [`BY_ROLE`].
    pub nodes: Arc<Cache<Node>>,
    /// All roles.
    pub roles: Arc<Cache<Role>>,
    /// All services of phase 0.
    pub services: Arc<Cache<Service>>,
    /// All cells.
    pub cells: Arc<Cache<Cell>>,
    /// All computes, indexed [`BY_NODE`] and [`BY_CELL`].
    pub computes: Arc<Cache<ExternalCompute>>,
    /// All runs, indexed [`BY_OWNER`].
    pub runs: Arc<Cache<AnsibleEe>>,
    /// The Secrets and ConfigMaps that computes depend on.
    pub compute_sources: Arc<SourceCache>,
    /// The Secrets and ConfigMaps that cells depend on.
    pub cell_sources: Arc<SourceCache>,
    /// The Secrets and ConfigMaps that services of type nova depend on.
    pub service_sources: Arc<SourceCache>,
    /// The contents of those Secrets and ConfigMaps.
    pub source_contents: SourceContents,
    /// The rollout state of the computes of each role.
    pub coordinator: RolloutCoordinator,
    /// The API client, for kinds that are not cached.
    pub api: Arc<Api>,
    /// Whether this operator reconciles `NovaCell` objects.
    pub cells_are_ours: bool,
    secrets: Arc<MetadataCache<Secret>>,
    config_maps: Arc<MetadataCache<ConfigMap>>,
}

impl Caches {
    /// Returns empty caches, which [`Caches::watch`] fills.
    ///
    /// `manager` is the field manager by which a Secret is recognized as unchanged: it still owns
    /// the fields it wrote. `keys` are the keys of the digests of Secret contents.
    pub fn new(
        builder: &ManagerBuilder,
        manager: &'static str,
        keys: &Keys,
        cells_are_ours: bool,
    ) -> Arc<Self> {
        let shared_caches = SharedCaches::new();
        let coordinator = RolloutCoordinator::new(shared_caches.clone());
        let SharedCaches { nodes, roles, computes, runs } = shared_caches;
        let (cells, services) = (Cache::new(vec![]), Cache::new(vec![]));
        // A manual edit of a rendered Secret shows in the fields that our field manager still owns.
        let secrets = source_cache::metadata::<Secret>(manager, vec![]);
        let config_maps = MetadataCache::<ConfigMap>::new(vec![]);
        let absorbing: Vec<Arc<dyn WriteThrough>> = vec![
            Arc::<Cache<Node>>::clone(&nodes),
            Arc::<Cache<Cell>>::clone(&cells),
            Arc::<Cache<Service>>::clone(&services),
            Arc::<Cache<ExternalCompute>>::clone(&computes),
            Arc::<Cache<AnsibleEe>>::clone(&runs),
            Arc::<MetadataCache<Secret>>::clone(&secrets),
        ];
        let sources = || SourceCache::new(keys, Arc::clone(&secrets), Arc::clone(&config_maps));
        let (compute_sources, cell_sources, service_sources) = (sources(), sources(), sources());
        let (source_contents, api) = (SourceContents::default(), builder.api(absorbing));
        Arc::new(Self {
            nodes,
            roles,
            services,
            cells,
            computes,
            runs,
            compute_sources,
            cell_sources,
            service_sources,
            source_contents,
            coordinator,
            api,
            cells_are_ours,
            secrets,
            config_maps,
        })
    }

    /// Returns the caches that the cell rules need.
    pub fn watched(&self) -> SharedCaches {
        SharedCaches {
            nodes: Arc::clone(&self.nodes),
            roles: Arc::clone(&self.roles),
            computes: Arc::clone(&self.computes),
            runs: Arc::clone(&self.runs),
        }
    }

    /// Starts all informers.
    pub fn watch(&self, manager: &mut Manager) {
        self.watched().watch(manager.informers());
        manager.watch(&self.services, "");
        manager.watch_owned(&self.cells);
        manager.watch(&self.secrets, "");
        manager.watch(&self.config_maps, "");
    }

    /// Returns the service of type nova among those of a node, or `None` when there is none.
    pub fn conflicting_service(
        &self,
        role: Option<&Role>,
        node: &Node,
    ) -> Option<ConflictingService> {
        let namespace = node.namespace().unwrap_or_default();
        let known: BTreeMap<&str, Arc<Service>> = conflicting_service::listed(role, node)
            .iter()
            .filter_map(|it| Some((it.as_str(), self.services.get(&Key::new(&namespace, it))?)))
            .collect();
        conflicting_service::of(role, node, |name| known.get(name).map(|it| &**it))
    }

    /// Returns the nodes that list a service.
    fn listing(&self, service: &Service) -> Vec<Arc<Node>> {
        let (name, namespace) = (service.name_any(), service.namespace());
        let lists = |node: &Arc<Node>| {
            let key = node
                .spec
                .role
                .as_ref()
                .map(|it| Key::new(namespace.clone().unwrap_or_default(), it));
            let role = key.and_then(|it| self.roles.get(&it));
            conflicting_service::listed(role.as_deref(), node).contains(&name)
        };
        let here = |it: &Arc<Node>| it.namespace() == namespace;
        self.nodes.all().into_iter().filter(|it| here(it) && lists(it)).collect()
    }

    /// Enqueues the objects that depend on a changed object.
    pub fn map_events(self: &Arc<Self>, queues: &Queues) {
        let (caches, nodes, computes) =
            (Arc::clone(self), Arc::clone(&queues.nodes), Arc::clone(&queues.computes));
        let requeue = self.requeue(queues);
        self.nodes.on_change(move |it| {
            nodes.push(Key::of(it));
            let of_node = caches.computes.indexed(BY_NODE, &Key::of(it));
            push_all(&computes, &of_node);
            for compute in &of_node {
                requeue(&Key::of(&**compute));
            }
        });
        let (caches, nodes, computes) =
            (Arc::clone(self), Arc::clone(&queues.nodes), Arc::clone(&queues.computes));
        self.roles.on_change(move |it| {
            for node in caches.nodes.indexed(BY_ROLE, &Key::of(it)) {
                nodes.push(Key::of(&*node));
                push_all(&computes, &caches.computes.indexed(BY_NODE, &Key::of(&*node)));
            }
        });
        self.map_services(queues);
        self.map_cells(queues);
        let (nodes, cells, computes) =
            (Arc::clone(&queues.nodes), Arc::clone(&queues.cells), Arc::clone(&queues.computes));
        let (caches, cleanups) = (Arc::clone(self), Arc::clone(&queues.cleanups));
        let requeue = self.requeue(queues);
        self.computes.on_change(move |it| {
            computes.push(Key::of(it));
            nodes.push(Key::of(it));
            requeue(&Key::of(it));
            if it.metadata.deletion_timestamp.is_some() {
                cells.push(cell_key(it));
            }
            let uid = Key::new(it.namespace().unwrap_or_default(), it.uid().unwrap_or_default());
            for run in caches.runs.indexed(BY_OWNER, &uid) {
                push_cleanup(&cleanups, &run);
            }
        });
        let (computes, cleanups) = (Arc::clone(&queues.computes), Arc::clone(&queues.cleanups));
        self.runs.on_change(move |it| {
            if let Some(owner) = compute_of(it) {
                computes.push(owner);
            }
            push_cleanup(&cleanups, it);
        });
        let (computes, cells) = (Arc::clone(&queues.computes), Arc::clone(&queues.cells));
        self.compute_sources.on_change(move |key| computes.push(key));
        self.cell_sources.on_change(move |key| cells.push(key));
        let services = Arc::clone(&queues.services);
        self.service_sources.on_change(move |key| services.push(key));
    }

    /// Enqueues a cell and its computes when something changes that can concern them.
    fn map_cells(self: &Arc<Self>, queues: &Queues) {
        let (caches, cells, computes) =
            (Arc::clone(self), Arc::clone(&queues.cells), Arc::clone(&queues.computes));
        let concern = ChangeFilter::default();
        self.cells.on_change(move |it| {
            let key = Key::of(it);
            // Changes of counters alone enqueue nothing: otherwise each count would cause another.
            if concern.changes(&key, || caches.cells.get(&key).map(|it| relevant_fields(&it))) {
                cells.push(key.clone());
                push_all(&computes, &caches.computes.indexed(BY_CELL, &key));
            }
        });
    }

    /// Returns a function that refreshes the rollout state of a compute and enqueues the computes
    /// and cells that the change affects.
    fn requeue(self: &Arc<Self>, queues: &Queues) -> impl Fn(&Key) + Send + Sync + use<> {
        let caches = Arc::clone(self);
        let (computes, cells) = (Arc::clone(&queues.computes), Arc::clone(&queues.cells));
        move |key| {
            let Requeue { computes: next, cells: counting } = caches.coordinator.refresh(key);
            for compute in next {
                computes.push(compute);
            }
            for cell in counting {
                cells.push_in(cell, COUNT_PAUSE);
            }
        }
    }

    /// Enqueues a changed service, and the nodes and computes that list it: a service of type nova
    /// conflicts with their computes.
    fn map_services(self: &Arc<Self>, queues: &Queues) {
        let (caches, nodes, computes) =
            (Arc::clone(self), Arc::clone(&queues.nodes), Arc::clone(&queues.computes));
        let services = Arc::clone(&queues.services);
        self.services.on_change(move |it| {
            services.push(Key::of(it));
            for node in caches.listing(it) {
                nodes.push(Key::of(&*node));
                push_all(&computes, &caches.computes.indexed(BY_NODE, &Key::of(&*node)));
            }
        });
    }
}

fn push_all(queue: &WorkQueue, objects: &[Arc<ExternalCompute>]) {
    for object in objects {
        queue.push(Key::of(&**object));
    }
}

fn push_cleanup(queue: &WorkQueue, run: &AnsibleEe) {
    if cleans_up_after(run).is_some() {
        queue.push(Key::of(run));
    }
}

/// Returns the compute that owns a run, or that the run cleans up after.
fn compute_of(run: &AnsibleEe) -> Option<Key> {
    let kind = ExternalCompute::kind(&());
    let owner = run.owner_references().iter().find(|it| it.kind == kind);
    let owner = owner.map(|it| Key::new(run.namespace().unwrap_or_default(), &it.name));
    owner.or_else(|| labels::compute_of(run))
}
