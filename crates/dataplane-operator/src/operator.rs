//! The process: its informers, its controllers, the event mapping between them, and its
//! permissions.

use std::sync::Arc;

use api::baremetal::BaremetalSet;
use api::dataplane::{DataPlane, Deployment, Node, NodeSet, Role, Service};
use baremetal::backoff::RequestBackoff;
use baremetal::{BaremetalSets, Pool, metrics};
use operator_core::keyed::Keys;
use operator_runtime::api::Api;
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::error::Result;
use operator_runtime::http_client::HttpClients;
use operator_runtime::manager::{Manager, ManagerBuilder};
use operator_runtime::optional_informer::appears;
use operator_runtime::runtime::Runtime;
use operator_runtime::webhook::stand_by;
use operator_runtime::workqueue::WorkQueue;

use crate::admission::{self, AdmissionCaches};
use crate::args::Args;
use crate::caches::{Caches, Settings};
use crate::data_plane::observe::DataPlanes;
use crate::default_services::DefaultServices;
use crate::deployment::observe::Deployments;
use crate::host::conflicts::ClaimCaches;
use crate::host::machines::request::CRD_POLL_INTERVAL;
use crate::node_set::observe::NodeSets;
use crate::role::observe::NodeGroups;
use crate::service::observe::Services;
use crate::{data_plane, deployment, node_set, role, service};

pub use rules::{DEFINITIONS, RULES};

mod rules;

/// The operator's name, used for its field manager, its Lease and its user agent.
pub const NAME: &str = "dataplane-operator";

/// Runs until the process is asked to shut down.
pub async fn run(args: Args) -> Result<()> {
    let Args { common, webhook, digests, endpoints, .. } = args;
    let settings = Settings {
        service_networks: args.service_networks,
        defaults: DefaultServices::with_gates(&args.default_service_gates),
        runner: args.runner_image,
    };
    let mut runtime = Runtime::start(NAME, &common).await?;
    let pool = Pool::new(HttpClients::new(endpoints.allowed_endpoint_networks));
    let pool = pool.counted(metrics::request_times(&runtime.metrics()));
    let builder = ManagerBuilder::of(&runtime, NAME, &common);
    let known = AdmissionCaches::default();
    if webhook.enable_webhooks {
        admission::webhook(&known).serve(&webhook, &mut runtime).await?;
        let (ready, stop) = (runtime.health().readiness("admission"), runtime.shutdown());
        let mut registry = CacheRegistry::default();
        let caches = ClaimCaches::new(&mut registry);
        let standing_by = stand_by(builder.clone(), known.clone(), caches, registry, ready, stop);
        runtime.spawn("admission's watches", standing_by);
    }
    let work = async move |builder: &ManagerBuilder, manager: Manager| {
        let keys = builder.keys(&digests).await?;
        work(builder, manager, keys, known, settings, pool).await
    };
    runtime.spawn("controllers", builder.lead(work));
    runtime.run().await
}

/// The workqueue of each controller.
#[derive(Default)]
struct Queues {
    data_planes: Arc<WorkQueue>,
    roles: Arc<WorkQueue>,
    node_sets: Arc<WorkQueue>,
    deployments: Arc<WorkQueue>,
    services: Arc<WorkQueue>,
    machines: Arc<WorkQueue>,
}

/// Starts the informers and runs the controllers while this replica leads.
async fn work(
    builder: &ManagerBuilder,
    mut manager: Manager,
    keys: Keys,
    known: AdmissionCaches,
    settings: Settings,
    pool: Pool,
) -> Result<()> {
    let mut registry = CacheRegistry::default();
    let caches = Caches::new(builder, &mut registry, NAME, &keys, settings);
    let machines = Arc::new(baremetal::Caches {
        sets: Arc::clone(&caches.baremetal_sets),
        sources: Arc::clone(&caches.sources),
        metal3: Arc::clone(&caches.metal3),
        pool,
        pauses: RequestBackoff::default(),
        api: Arc::clone(&caches.api),
    });
    let queues = Queues::default();
    map_events(&queues, &caches, &machines);
    // All event handlers are registered by now, so no change is missed.
    registry.watch(manager.informers());
    manager.ready().await;
    known.lead(caches.hosts.clone());
    // Objects of another operator may not even be readable, and an informer of a kind that is not
    // served would block all controllers.
    let mut late = Some((machines, queues.machines));
    if is_served(&caches.api).await?
        && let Some((machines, queue)) = late.take()
    {
        run_machines(builder, &mut manager, machines, queue).await?;
    }
    let (api, all) = (|| Arc::clone(&caches.api), || Arc::clone(&caches));
    if builder.drives::<DataPlane>().await? {
        manager.run(DataPlanes { caches: all() }, api(), queues.data_planes).await;
    }
    if builder.drives::<Role>().await? && builder.drives::<Node>().await? {
        manager.run(NodeGroups::new(all()), api(), queues.roles).await;
    }
    if builder.drives::<NodeSet>().await? {
        let makes_nodes =
            builder.drives::<Node>().await? && builder.has_spec_field::<Node>("leaving").await?;
        let node_sets = NodeSets { caches: all(), makes_nodes };
        manager.run(node_sets, api(), queues.node_sets).await;
        if builder.drives::<Deployment>().await? {
            manager.run(Deployments { caches: all() }, api(), queues.deployments).await;
        }
    }
    if builder.drives::<Service>().await? {
        manager.run(Services { caches: all() }, api(), queues.services).await;
    }
    if let Some((machines, queue)) = late {
        tokio::select! {
            outcome = manager.informers().end() => return outcome,
            () = appears(|| is_served(&caches.api), CRD_POLL_INTERVAL) => {}
        }
        run_machines(builder, &mut manager, machines, queue).await?;
    }
    manager.finish().await
}

/// Registers what each change enqueues.
fn map_events(queues: &Queues, caches: &Arc<Caches>, machines: &Arc<baremetal::Caches>) {
    role::event_mapping::map_events(&queues.roles, caches);
    data_plane::event_mapping::map_events(&queues.data_planes, &queues.roles, caches);
    service::event_mapping::map_events(&queues.services, caches);
    node_set::event_mapping::map_events(&queues.node_sets, caches);
    deployment::event_mapping::map_events(&queues.deployments, caches);
    baremetal::event_mapping::map_events(&queues.machines, machines);
}

/// Runs the controller of `OpenStackBaremetalSet`s, unless another operator reconciles them; the
/// cluster has to serve the kind.
async fn run_machines(
    builder: &ManagerBuilder,
    manager: &mut Manager,
    caches: Arc<baremetal::Caches>,
    queue: Arc<WorkQueue>,
) -> Result<()> {
    if builder.drives::<BaremetalSet>().await? {
        manager.informers().watch_owned(&caches.sets);
        let api = Arc::clone(&caches.api);
        manager.run(BaremetalSets { caches }, api, queue).await;
    }
    Ok(())
}

async fn is_served(api: &Api) -> Result<bool> {
    api.serves::<BaremetalSet>().await
}
