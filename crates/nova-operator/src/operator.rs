//! The process: its RBAC rules and its controllers.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use api::nova::{Cell, ExternalCompute};
use jiff::SignedDuration;
use operator_core::keyed::Keys;
use operator_core::rbac::{EVENTS, READ, Rule, WRITE, definitions};
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::cert_manager;
use operator_runtime::error::Result;
use operator_runtime::http_client::HttpClients;
use operator_runtime::manager::{Manager, ManagerBuilder};
use operator_runtime::optional_informer::appears;
use operator_runtime::runtime::Runtime;
use operator_runtime::webhook::stand_by;
use operator_runtime::workqueue::WorkQueue;

use crate::admission;
use crate::admission::caches::AdmissionCaches;
use crate::admission::release_cache::Releases;
use crate::args::Args;
use crate::audit_limits::AuditLimits;
use crate::caches::{Caches, NovaApi};
use crate::cell::readings::CellReadings;
use crate::cell::{CellHealth, Probes};
use crate::compute::ComputeDeployment;
use crate::compute::audit_runs::observe::AuditRuns;
use crate::compute::credentials::observe::HeldCredentials;
use crate::compute::lifecycle::ComputeLifecycle;
use crate::compute::removal::orphans::Orphans;
use crate::images::Images;
use crate::nova::metrics::NovaMetrics;
use crate::nova::orders::NovaOrders;
use crate::rollup::group_computes::GroupComputes;
use crate::rollup::service_keys::observe::ServiceConfig;
use crate::shared_caches::SharedCaches;
use crate::shared_caches::queues::Queues;
use crate::wiring::event_mapping::map_events;

/// How often it is looked whether the cluster has the definition of users of message buses.
const DEFINITION_POLL_INTERVAL: Duration = Duration::from_mins(1);

/// The operator's name: its field manager, its Lease and its user agent.
pub const NAME: &str = "nova-operator";

/// RBAC rules of the operator in the watched namespaces.
pub const RULES: &[Rule] = &[
    Rule::of(
        &["dataplane.openstack.org"],
        &["openstackdataplanenodesets", "openstackdataplaneroles", "openstackdataplaneservices"],
        READ,
    ),
    // The finalizer on a node that has a compute.
    Rule::of(
        &["dataplane.openstack.org"],
        &["openstackdataplanenodes"],
        &["get", "list", "patch", "watch"],
    ),
    // The conditions of this operator on each; one on a node requests its redeploy.
    Rule::of(
        &["dataplane.openstack.org"],
        &[
            "openstackdataplanenodes/status",
            "openstackdataplanenodesets/status",
            "openstackdataplaneroles/status",
            "openstackdataplaneservices/status",
        ],
        &["patch"],
    ),
    // blockOwnerDeletion in the owner references of computes.
    Rule::of(&["dataplane.openstack.org"], &["openstackdataplanenodes/finalizers"], &["update"]),
    Rule::of(&["nova.openstack.org"], &["novaexternalcomputes"], WRITE),
    // The finalizer on a cell that has computes.
    Rule::of(&["nova.openstack.org"], &["novacells"], &["get", "list", "patch", "watch"]),
    Rule::of(
        &["nova.openstack.org"],
        &["novaexternalcomputes/status", "novacells/status"],
        &["patch"],
    ),
    // blockOwnerDeletion in the owner references of runs and rendered Secrets.
    Rule::of(
        &["nova.openstack.org"],
        &["novaexternalcomputes/finalizers", "novacells/finalizers"],
        &["update"],
    ),
    Rule::of(
        &["ansibleee.openstack.org"],
        &["openstackansibleees"],
        &["create", "delete", "get", "list", "watch"],
    ),
    // Whether the namespace is being deleted: then finalizers are removed at once.
    Rule::of(&[""], &["namespaces"], &["get"]),
    Rule::of(&[""], &["configmaps"], READ),
    Rule::of(&[""], &["secrets"], &["create", "get", "list", "patch", "watch"]),
    // libvirt's certificates, if the cluster has cert-manager.
    cert_manager::RULES[0],
    cert_manager::RULES[1],
    // The finalizer on a user of a message bus that computes log in as.
    Rule::of(&["rabbitmq.openstack.org"], &["rabbitmqusers"], &["get", "list", "patch", "watch"]),
    EVENTS,
];

/// RBAC rules in the watched namespaces that the operator has only where it reads nova's API.
pub const NOVA_API_RULES: &[Rule] = &[
    // The Jobs that discover hosts of cells, and read their mappings.
    Rule::of(&["batch"], &["jobs"], &["create", "delete", "get", "list", "watch"]),
    // The termination message of such a Job.
    Rule::of(&[""], &["pods"], &["list"]),
];

/// The right to read the definitions of the kinds that this operator reconciles.
pub const DEFINITIONS: Rule =
    definitions(&["novacells.nova.openstack.org", "novaexternalcomputes.nova.openstack.org"]);

/// Runs the process until it receives a signal or fails.
pub async fn run(args: Args) -> Result<()> {
    let Args { common, digests, webhook, endpoints, images, nova_release, .. } = args;
    let http = HttpClients::new(endpoints.allowed_endpoint_networks);
    let images = Images::from(images);
    let nova_api = args.read_nova_api.then_some(Duration::from_secs(args.nova_api_interval));
    let reconcile_novacell = args.reconcile_novacell;
    let audit_limits = AuditLimits {
        least_interval: SignedDuration::from_secs(args.least_audit_interval),
        max_open: usize::from(args.max_open_audits),
    };
    let mut runtime = Runtime::start(NAME, &common).await?;
    let metrics = NovaMetrics::register(&runtime.metrics());
    let releases = Releases::new(nova_release);
    let builder = ManagerBuilder::of(&runtime, NAME, &common);
    let known = AdmissionCaches::default();
    if webhook.enable_webhooks {
        let webhooks = admission::webhook(images.clone(), releases.clone(), &known);
        webhooks.serve(&webhook, &mut runtime).await?;
        let (ready, stop) = (runtime.health().readiness("admission"), runtime.shutdown());
        let mut registry = CacheRegistry::default();
        let caches = SharedCaches::new(&mut registry);
        let standing_by = stand_by(builder.clone(), known.clone(), caches, registry, ready, stop);
        runtime.spawn("admission's watches", standing_by);
    }
    let work = async move |builder: &ManagerBuilder, manager: Manager| {
        let keys = builder.keys(&digests).await?;
        let options =
            Options { images, releases, reconcile_novacell, nova_api, http, metrics, audit_limits };
        work(builder, manager, keys, known, options).await
    };
    runtime.spawn("controllers", builder.lead(work));
    runtime.run().await
}

/// What the controllers are started with.
struct Options {
    images: Images,
    releases: Releases,
    reconcile_novacell: bool,
    /// The interval at which nova's API is read, or `None` where it is not read.
    nova_api: Option<Duration>,
    http: HttpClients,
    metrics: NovaMetrics,
    audit_limits: AuditLimits,
}

/// Starts the informers and the controllers.
async fn work(
    builder: &ManagerBuilder,
    mut manager: Manager,
    keys: Keys,
    known: AdmissionCaches,
    options: Options,
) -> Result<()> {
    let Options { images, releases, reconcile_novacell, nova_api, http, metrics, audit_limits } =
        options;
    let drives_computes = builder.drives::<ExternalCompute>().await?;
    let drives_cells = reconcile_novacell && builder.drives::<Cell>().await?;
    let mut registry = CacheRegistry::default();
    let queues = Queues::default();
    let nova_api =
        nova_api.map(|interval| NovaApi { interval, http: http.clone(), metrics, queues: &queues });
    let nova_api = nova_api.as_ref();
    let caches =
        Caches::new(builder, &mut registry, NAME, &keys, drives_cells, nova_api, audit_limits);
    map_events(&caches, &queues);
    registry.watch(manager.informers());
    manager.ready().await;
    known.lead(caches.shared.clone());
    releases.learn(&caches.cells);
    let (all, api) = (|| Arc::clone(&caches), || Arc::clone(&caches.api));
    if drives_computes {
        // A node and its compute have one name.
        let orders = orders(&caches, &[&queues.computes, &queues.nodes]);
        let creation =
            ComputeLifecycle { caches: all(), images: images.clone(), orders: orders.clone() };
        manager.run(creation, api(), queues.nodes).await;
        let release = releases.default_release();
        let deployment = ComputeDeployment { caches: all(), images, release, orders };
        manager.run(deployment, api(), queues.computes).await;
        manager.run(Orphans { caches: all() }, api(), queues.cleanups).await;
        manager.run(ServiceConfig { caches: all() }, api(), queues.services).await;
        manager.run(GroupComputes { caches: all() }, api(), queues.groups).await;
        manager.run(AuditRuns { caches: all() }, api(), queues.audits).await;
        manager.run(HeldCredentials { caches: all() }, api(), queues.held_credentials).await;
        // Something may be held that no compute uses any more.
        let (users, api) = (Arc::clone(&caches.rabbitmq_users), api());
        manager.spawn(async move {
            appears(|| users.open(&api), DEFINITION_POLL_INTERVAL).await;
            pending().await
        });
    }
    if (drives_computes || drives_cells)
        && let Some(monitor) = &caches.nova
    {
        // Nova's API is read for each cell, of other operators too.
        let readings = CellReadings::new(&caches, monitor);
        manager.run(readings, api(), queues.cell_readings).await;
    }
    if drives_cells {
        let probes = Probes::new(http, Arc::clone(&queues.cells));
        let orders = orders(&caches, &[&queues.cells]);
        let cells = CellHealth { caches: all(), probes, orders };
        manager.run(cells, api(), queues.cells).await;
    }
    manager.finish().await
}

/// Returns the orders about hosts of the objects in these queues, or `None` where nova's API is not used.
fn orders(caches: &Caches, queues: &[&Arc<WorkQueue>]) -> Option<Arc<NovaOrders>> {
    let (monitor, queues) = (caches.nova.as_ref()?, queues.iter().copied().cloned().collect());
    Some(NovaOrders::new(Arc::clone(monitor), queues))
}
