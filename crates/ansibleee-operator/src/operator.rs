//! The operator's process: its informers, event mapping, scheduler and controller.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_runtime::error::Result;
use operator_runtime::manager::{Manager, ManagerBuilder};
use operator_runtime::runtime::Runtime;
use operator_runtime::workqueue::WorkQueue;

use crate::args::Args;
use crate::run::job::APP;
use crate::run::observe::{Caches, Runs, run_key};
use crate::run::scheduler::{self, Logged, Scheduler};

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
async fn work(args: &Args, builder: &ManagerBuilder, mut leader: Manager) -> Result<()> {
    if !builder.drives::<AnsibleEe>().await? {
        return leader.idle().await;
    }
    let caches = Caches::new();
    let api = builder.api(caches.absorbing());
    let (runs, schedule) = (Arc::new(WorkQueue::default()), Arc::new(WorkQueue::default()));
    map_events(&caches, &runs, &schedule);
    let ours = format!("{}={}", APP.0, APP.1);
    leader.watch_owned(&caches.runs);
    leader.watch(&caches.jobs, &ours);
    leader.watch(&caches.pods, &ours);
    leader.ready().await;

    let inherited: BTreeSet<String> = caches.runs.all().iter().filter_map(|it| it.uid()).collect();
    tracing::info!(runs = inherited.len(), term = leader.term(), "the caches are filled");
    let settings = args.settings();
    let scheduler = Scheduler {
        caches: caches.clone(),
        settings: settings.clone(),
        limits: args.limits(),
        term: leader.term().to_owned(),
        inherited,
        logged: Logged::default(),
    };
    let controller = Runs { caches, api: Arc::clone(&api), settings };
    leader.run(scheduler, Arc::clone(&api), schedule).await;
    leader.run(controller, api, runs).await;
    leader.finish().await
}

/// Maps changes to keys: each enqueues the run concerned, and every change enqueues the scheduler.
fn map_events(caches: &Caches, runs: &Arc<WorkQueue>, schedule: &Arc<WorkQueue>) {
    let to = || {
        let (runs, schedule) = (Arc::clone(runs), Arc::clone(schedule));
        move |key: Option<Key>| {
            if let Some(key) = key {
                runs.push(key);
            }
            schedule.push(scheduler::key());
        }
    };
    let push = to();
    caches.runs.on_change(move |it| push(Some(Key::of(it))));
    let push = to();
    caches.jobs.on_change(move |it| push(run_key(&it.metadata)));
    let push = to();
    caches.pods.on_change(move |it| push(run_key(&it.metadata)));
}
