//! The reconcile loop shared by all kinds: observe, query external systems, decide, execute the
//! plan, give the orders.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use operator_core::object_key::Key;
use operator_core::plan::{NoOrder, Order, Plan};
use operator_core::rejected_write::RejectedWrite;
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::api::{Api, PlanStopped};
use crate::backoff::Backoff;
use crate::clock;
use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::workqueue::WorkQueue;

/// Time limit of one reconcile; after it the reconcile is cancelled and retried.
const PASS_DEADLINE: Duration = Duration::from_mins(1);

/// Pause before the next pass over an object of which a written one had changed meanwhile.
const OUTDATED_PAUSE: Duration = Duration::from_secs(1);

/// Number of keys of one controller that are reconciled concurrently.
const WORKERS: usize = 8;

/// Makes a plan of what was observed, at a time, given the write that was rejected.
pub type Decide<S, O = NoOrder> = fn(&S, Option<&RejectedWrite>, Timestamp) -> Plan<O>;

/// The kind-specific part of a controller: it reads the state and decides on it. `O` is what it has
/// other systems do.
pub trait Controller<O: Send + Sync + 'static = NoOrder>: Send + Sync + 'static {
    /// Everything that the decision needs, as plain data.
    type Observed: Send + Sync;

    /// Name of the controller in logs and metrics, one word.
    const NAME: &'static str;

    /// Decides on the observed state. It is pure and total: user mistakes become conditions, never
    /// errors.
    ///
    /// `rejected` is a write of the last decision on the same state that was rejected for good:
    /// quota, permissions, an admission policy, another object with the same name. The plan's
    /// status steps then report it; its other steps are not executed.
    const DECIDE: Decide<Self::Observed, O>;

    /// Reads the state. Returns `None` when the object is gone and nothing is left to do.
    fn observe(&self, key: &Key) -> impl Future<Output = Result<Option<Self::Observed>>> + Send;

    /// Sends the requests to systems other than the API server that the decision needs, before the
    /// plan is made and executed, and records their outcome in `_seen`. The default sends none.
    fn query_external(
        &self,
        _seen: &mut Self::Observed,
        _now: Timestamp,
    ) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Has these orders about an object carried out from now on, and no others. An order that was
    /// given before goes on as it is. By default there are none.
    fn give_orders(&self, _key: &Key, _orders: &[Order<O>]) {}

    /// Ends the orders about an object that are not among these, and gives none.
    fn keep_orders(&self, _key: &Key, _orders: &[Order<O>]) {}
}

/// Reconciles one key once. Returns the delay until the requested requeue, if there is one.
///
/// # Guarantees
/// Record, then order: orders that are not decided any more end before the writes, and those of a plan
/// are given once its steps are made, or a rejected write is reported. If a step fails otherwise, no
/// order begins. An order follows from what was observed and is given in each pass, so that none is
/// lost with the process.
async fn reconcile<C, O>(
    controller: &C,
    api: &Api,
    queue: &WorkQueue,
    key: &Key,
) -> Result<Option<Duration>>
where
    C: Controller<O>,
    O: Send + Sync + 'static,
{
    let Some(mut seen) = controller.observe(key).await? else {
        controller.keep_orders(key, &[]);
        return Ok(None);
    };
    let now = clock::now();
    controller.query_external(&mut seen, now).await;
    let begun = Instant::now();
    let plan = (C::DECIDE)(&seen, None, now);
    queue.rest(key, begun.elapsed());
    controller.keep_orders(key, &plan.orders);
    let Err(PlanStopped { at, error }) = api.carry_out(&plan).await else {
        controller.give_orders(key, &plan.orders);
        return Ok(plan.requeue_after);
    };
    let is_apart = at < plan.independent.len() && error.is_answer() && !error.is_gone();
    if is_apart && error.rejection().is_none() {
        // All steps are made, the status among them: orders follow from no independent write.
        controller.give_orders(key, &plan.orders);
    }
    if error.is_gone() {
        // The deletion's watch event enqueues the objects concerned.
        tracing::debug!(error = error.chain(), "deleted meanwhile");
        return Ok(plan.requeue_after);
    }
    if let (Some((reason, words)), Some(step)) = (error.rejection(), plan.all().nth(at)) {
        let rejected = RejectedWrite::of(step, reason, words);
        let mut report = (C::DECIDE)(&seen, Some(&rejected), now).only_statuses();
        // Writes that already succeeded before the failed one are not repeated.
        report.steps.retain(|step| !plan.all().take(at).any(|done| done == step));
        match api.carry_out(&report).await {
            Ok(()) => controller.give_orders(key, &report.orders),
            Err(PlanStopped { error, .. }) => {
                tracing::debug!(error = error.chain(), "the rejected write could not be reported");
            }
        }
    }
    Err(error)
}

/// Processes the workqueue until the process ends.
///
/// # Guarantees
/// A key is processed by one worker at a time, and rests a few times as long as it was evaluated before
/// it is processed again. A failed reconcile is retried with exponential backoff per key, and one that wrote to an object that had changed meanwhile after a second.
pub async fn run<C, O>(
    controller: Arc<C>,
    api: Arc<Api>,
    queue: Arc<WorkQueue>,
    metrics: Metrics,
) -> Result<()>
where
    C: Controller<O>,
    O: Send + Sync + 'static,
{
    let backoff = Arc::new(Backoff::default());
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let (controller, api) = (Arc::clone(&controller), Arc::clone(&api));
        let (queue, backoff) = (Arc::clone(&queue), Arc::clone(&backoff));
        let metrics = metrics.clone();
        workers.spawn(async move {
            loop {
                let key = queue.next().await;
                let span = tracing::info_span!("reconcile", controller = C::NAME, key = %key);
                pass(&*controller, &api, &queue, &backoff, &metrics, &key).instrument(span).await;
                queue.done(&key);
                metrics.queue_depth(C::NAME, queue.len());
            }
        });
    }
    workers.join_next().await;
    Err(Error::Process { what: format!("a worker of controller {} ended", C::NAME), source: None })
}

async fn pass<C, O>(
    controller: &C,
    api: &Api,
    queue: &WorkQueue,
    backoff: &Backoff,
    metrics: &Metrics,
    key: &Key,
) where
    C: Controller<O>,
    O: Send + Sync + 'static,
{
    let start = Instant::now();
    let outcome = tokio::time::timeout(PASS_DEADLINE, reconcile(controller, api, queue, key)).await;
    metrics.reconciled(C::NAME, start.elapsed());
    let error = match outcome {
        Ok(Ok(requeue_after)) => {
            backoff.reset(key);
            if let Some(pause) = requeue_after {
                queue.push_in(key.clone(), pause);
            }
            return;
        }
        Ok(Err(error)) => error,
        Err(_) => Error::Timeout { what: format!("reconcile {key}"), after: PASS_DEADLINE },
    };
    // Nothing is wrong, so that the pauses do not grow; most often the change itself asks for a pass
    // before that.
    let pause = if error.is_outdated() { OUTDATED_PAUSE } else { backoff.failed(key) };
    metrics.reconcile_failed(C::NAME, error.reason());
    if error.is_expected() {
        tracing::debug!(error = error.chain(), ?pause, "an expected error; trying again");
    } else {
        tracing::warn!(reason = error.reason(), error = error.chain(), ?pause, "pass failed");
    }
    queue.push_in(key.clone(), pause);
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
