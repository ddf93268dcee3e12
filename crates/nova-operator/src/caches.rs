//! The caches of nova-operator, and which work queues a change in each of them enqueues.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::dataplane::{Node, Service};
use api::nova::Cell;
use api::rabbitmq::RabbitMqUser;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use operator_core::keyed::Keys;
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::cache::{Cache, MetadataCache};
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::cert_manager::CertManager;
use operator_runtime::http_client::HttpClients;
use operator_runtime::manager::ManagerBuilder;
use operator_runtime::optional_informer::OptionalInformer;
use operator_runtime::source_cache::SourceCache;

use crate::audit_limits::AuditLimits;
use crate::group::Group;
use crate::group::conflicting_service::{is_of_type, listed};
use crate::nova::metrics::NovaMetrics;
use crate::nova::monitor::objects::MonitoredObjects;
use crate::nova::monitor::{ClientSettings, NovaMonitor};
use crate::requested::mounted_cell;
use crate::requested::mounted_cell::NovaServices;
use crate::rollout::RolloutCoordinator;
use crate::shared_caches::SharedCaches;
use crate::shared_caches::discovery_jobs;
use crate::shared_caches::indexes::{
    BY_APPLICATION_CREDENTIAL, BY_CELL_UID, application_credential_key,
};
use crate::shared_caches::queues::Queues;

/// How nova's API is read.
pub struct NovaApi<'a> {
    /// The time between two readings.
    pub interval: Duration,
    /// How requests are sent.
    pub http: HttpClients,
    /// The metrics that count them.
    pub metrics: NovaMetrics,
    /// The queues that a change in it enters.
    pub queues: &'a Queues,
}

/// All caches of the operator.
pub struct Caches {
    /// Nodes, roles, node sets, computes and runs.
    pub shared: SharedCaches,
    /// All services of phase 0.
    pub services: Arc<Cache<Service>>,
    /// All cells.
    pub cells: Arc<Cache<Cell>>,
    /// The metadata of all Secrets, indexed [`BY_APPLICATION_CREDENTIAL`].
    pub secrets: Arc<MetadataCache<Secret>>,
    /// All users of message buses; watched once the cluster serves the kind.
    pub rabbitmq_users: Arc<OptionalInformer<RabbitMqUser>>,
    /// Issuers and certificates, if the cluster has cert-manager.
    pub cert_manager: CertManager,
    /// The Secrets and ConfigMaps that computes, cells and services of type nova depend on.
    pub sources: Arc<SourceCache>,
    /// The rollout state of the computes of each role.
    pub coordinator: RolloutCoordinator,
    /// The API client, for kinds that are not cached.
    pub api: Arc<Api>,
    /// Whether this operator reconciles `NovaCell` objects.
    pub cells_are_ours: bool,
    /// The limits of all audits.
    pub audit_limits: AuditLimits,
    /// The readers of nova's APIs, or `None` where they are not read.
    pub nova: Option<Arc<NovaMonitor>>,
    /// The Jobs that discover hosts or read their mappings, indexed [`BY_CELL_UID`]; `None` where
    /// nova's API is not read.
    pub discovery_jobs: Option<Arc<Cache<Job>>>,
}

/// Creates the reader of nova's API.
fn monitor(
    builder: &ManagerBuilder,
    nova_api: &NovaApi<'_>,
    objects: MonitoredObjects,
) -> Arc<NovaMonitor> {
    let settings = ClientSettings {
        metrics: nova_api.metrics.clone(),
        leadership: builder.leadership(),
        http: nova_api.http.clone(),
    };
    NovaMonitor::new(nova_api.interval, settings, objects, nova_api.queues.clone())
}

impl Caches {
    /// Returns empty caches, whose informers `registry` starts.
    ///
    /// `manager` is the field manager by which a Secret is recognized as unchanged: it still owns
    /// the fields it wrote. `keys` are the keys of the digests of Secret contents. `nova_api` is how
    /// nova's API is read; `None` where it is not. `audit_limits` are the limits of all audits.
    pub fn new(
        builder: &ManagerBuilder,
        registry: &mut CacheRegistry,
        manager: &'static str,
        keys: &Keys,
        cells_are_ours: bool,
        nova_api: Option<&NovaApi<'_>>,
        audit_limits: AuditLimits,
    ) -> Arc<Self> {
        let shared = SharedCaches::new(registry);
        // A manual edit of a rendered Secret shows in the fields that our field manager still owns.
        let secrets = secrets(registry, manager);
        let config_maps = registry.metadata::<ConfigMap>(manager, vec![]);
        let sources = SourceCache::new(&[], keys, &secrets, &config_maps);
        let (services, cells) = (registry.cache::<Service>(vec![]), registry.owned(vec![]));
        let coordinator = RolloutCoordinator::new(shared.clone());
        let discovery_jobs = nova_api.is_some().then(|| discovery_jobs(registry));
        let nova = nova_api.map(|nova_api| {
            let objects = MonitoredObjects { caches: shared.clone(), cells_are_ours };
            monitor(builder, nova_api, objects)
        });
        let rabbitmq_users = Arc::new(OptionalInformer::new(builder, registry));
        let cert_manager = CertManager::new(builder, registry);
        let api = builder.api(registry);
        Arc::new(Self {
            shared,
            services,
            cells,
            secrets,
            rabbitmq_users,
            cert_manager,
            sources,
            coordinator,
            api,
            cells_are_ours,
            audit_limits,
            nova,
            discovery_jobs,
        })
    }

    /// Returns the cells of a namespace.
    pub fn cells_of(&self, namespace: &str) -> Vec<Key> {
        Key::of_each(self.cells.in_namespace(namespace))
    }

    /// Returns the services of type nova of a node; `group` is what it belongs to, `None` where that does not
    /// exist.
    pub fn nova_services(&self, group: Option<&Group>, node: &Node) -> NovaServices {
        let namespace = node.namespace().unwrap_or_default();
        let known = |it: &String| self.services.get(&Key::new(&namespace, it));
        let known: BTreeMap<&str, Arc<Service>> = mounted_cell::names(group, node)
            .filter_map(|it| Some((it.as_str(), known(it)?)))
            .collect();
        mounted_cell::of_node(group, node, &known, &self.cells_of(&namespace))
    }

    /// Whether a node lists a service of a type; `group` is as above.
    pub fn lists(&self, group: Option<&Group>, node: &Node, type_: &str) -> bool {
        let namespace = node.namespace().unwrap_or_default();
        let known = |it: &String| self.services.get(&Key::new(&namespace, it));
        listed(group, node).iter().any(|it| is_of_type(it, known(it).as_deref(), type_))
    }

    /// Returns the nodes that list a service, or on whose hosts it was run.
    pub fn listing(&self, service: &Service) -> Vec<Arc<Node>> {
        let name = service.name_any();
        let lists = |node: &Arc<Node>| {
            let group = self.shared.group_of(node);
            let mut recorded = node.status.iter().flat_map(|it| &it.services);
            listed(group.as_ref(), node).contains(&name) || recorded.any(|it| it.name == name)
        };
        let here = self.shared.nodes.in_namespace(&service.namespace().unwrap_or_default());
        here.into_iter().filter(lists).collect()
    }
}

/// Returns the cache of the metadata of Secrets, with the fields that `manager` owns.
fn secrets(registry: &mut CacheRegistry, manager: &'static str) -> Arc<MetadataCache<Secret>> {
    let by_namespace = Box::new(application_credential_key);
    registry.metadata(manager, vec![(BY_APPLICATION_CREDENTIAL, by_namespace)])
}

fn discovery_jobs(registry: &mut CacheRegistry) -> Arc<Cache<Job>> {
    let of_cell = |it: &Job| discovery_jobs::owner_key(it).into_iter().collect();
    registry.labelled(discovery_jobs::LABEL, vec![(BY_CELL_UID, Box::new(of_cell))])
}
