//! The operator's process: its informers, event mapping, scheduler and controller.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::error::Result;
use operator_runtime::event_mapping::EventMapping;
use operator_runtime::manager::{Manager, ManagerBuilder};
use operator_runtime::runtime::Runtime;
use operator_runtime::workqueue::WorkQueue;

use crate::args::Args;
use crate::run::observe::{Caches, Runs, run_key};
use crate::run::scheduler::{self, Logged, Scheduler, Verdicts};

/// The operator's name, which is its field manager, its Lease and its user agent.
pub const NAME: &str = "ansibleee-operator";

/// Runs the operator until the process is asked to stop.
pub async fn run(args: Args) -> Result<()> {
    let mut runtime = Runtime::start(NAME, &args.common).await?;
    let builder = ManagerBuilder::of(&runtime, NAME, &args.common);
    runtime.spawn(
        "controllers",
        builder
            .lead(async move |builder: &ManagerBuilder, leader| work(&args, builder, leader).await),
    );
    runtime.run().await
}

/// Runs the informers, the scheduler and the controller of single runs.
async fn work(args: &Args, builder: &ManagerBuilder, mut manager: Manager) -> Result<()> {
    if !builder.drives::<AnsibleEe>().await? {
        return manager.idle().await;
    }
    let mut registry = CacheRegistry::default();
    let caches = Caches::new(&mut registry);
    let api = builder.api(&registry);
    let (runs, schedule) = (Arc::new(WorkQueue::default()), Arc::new(WorkQueue::default()));
    map_events(&caches, &runs, &schedule);
    registry.watch(manager.informers());
    manager.ready().await;

    let inherited: BTreeSet<String> = caches.runs.all().iter().filter_map(|it| it.uid()).collect();
    tracing::info!(runs = inherited.len(), term = manager.term(), "the caches are filled");
    let settings = args.settings();
    let scheduler = Scheduler {
        caches: caches.clone(),
        settings: settings.clone(),
        limits: args.limits(),
        term: manager.term().to_owned(),
        inherited,
        logged: Logged::default(),
        verdicts: Verdicts::default(),
    };
    let controller = Runs { caches, api: Arc::clone(&api), settings };
    manager.run(scheduler, Arc::clone(&api), schedule).await;
    manager.run(controller, api, runs).await;
    manager.finish().await
}

/// Maps changes to keys: each enqueues the run concerned, and every change enqueues the scheduler.
fn map_events(caches: &Caches, runs: &Arc<WorkQueue>, schedule: &Arc<WorkQueue>) {
    let caches = Arc::new(caches.clone());
    let run = EventMapping::new(runs, &caches);
    run.watches(&caches.runs, |_, run| [Key::of(run)]);
    run.watches(&caches.jobs, |_, job| run_key(&job.metadata));
    run.watches(&caches.pods, |_, pod| run_key(&pod.metadata));
    let scheduler = EventMapping::new(schedule, &caches);
    scheduler.watches(&caches.runs, |_, _| [scheduler::key()]);
    scheduler.watches(&caches.jobs, |_, _| [scheduler::key()]);
    scheduler.watches(&caches.pods, |_, _| [scheduler::key()]);
}
