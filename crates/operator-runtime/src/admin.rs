//! The administrative endpoints: /metrics, /healthz and /readyz.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{Router, extract::State, http::StatusCode, response::IntoResponse, routing::get};
use tokio::{net::TcpListener, time::Instant};

use crate::{
    error::{Error, Result},
    metrics::Metrics,
    shutdown::Shutdown,
    workqueue::WorkQueue,
};

/// What an operator knows about its own health; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Mutex<Checks>>);

#[derive(Debug, Default)]
struct Checks {
    /// Why each check fails; `None` once it passes.
    ready: BTreeMap<String, Option<String>>,
    /// When each loop last came round, and how long it may take.
    alive: BTreeMap<String, (Instant, Duration)>,
    /// The queue of each controller.
    queues: BTreeMap<String, Arc<WorkQueue>>,
}

/// How long no pass of a controller may end although some are due, failed ones included.
const STALLED: Duration = Duration::from_mins(10);

impl Health {
    /// Adds a check to /readyz, which fails until [`Check::pass`].
    pub fn readiness(&self, name: impl Into<String>) -> Check {
        let check = Check { health: self.clone(), name: name.into() };
        check.fail("not started");
        check
    }

    /// Adds a check to /healthz, which fails when [`Pulse::beat`] was not called for `stale_after`.
    pub fn liveness(&self, name: impl Into<String>, stale_after: Duration) -> Heartbeat {
        let pulse = Heartbeat { health: self.clone(), name: name.into(), stale_after };
        pulse.beat();
        pulse
    }

    /// Adds a check to /healthz, which fails when no pass of the queue has ended for ten minutes
    /// although some were due.
    pub fn progress(&self, controller: impl Into<String>, queue: Arc<WorkQueue>) {
        self.lock().queues.insert(controller.into(), queue);
    }

    /// The readiness checks that fail, with their reasons.
    pub fn unready(&self) -> Vec<String> {
        let checks = self.lock();
        let failing = checks.ready.iter();
        failing.filter_map(|(name, why)| Some(format!("{name}: {}", why.as_ref()?))).collect()
    }

    /// The loops that stand still.
    pub fn stale(&self) -> Vec<String> {
        let checks = self.lock();
        let late = checks.alive.iter().filter(|(_, (beat, limit))| beat.elapsed() > *limit);
        let late = late
            .map(|(name, (beat, _))| format!("{name}: no sign for {} s", beat.elapsed().as_secs()));
        let stalled = checks.queues.iter().map(|(name, queue)| (name, queue.stalled_for()));
        let stalled = stalled
            .filter(|(_, it)| *it > STALLED)
            .map(|(name, it)| format!("{name}: no pass ended for {} s", it.as_secs()));
        late.chain(stalled).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Checks> {
        // Every write is a single insert: the maps are valid whoever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One readiness check.
#[derive(Clone, Debug)]
pub struct Check {
    health: Health,
    name: String,
}

impl Check {
    /// The check passes from now on.
    pub fn pass(&self) {
        self.health.lock().ready.insert(self.name.clone(), None);
    }

    /// The check fails from now on, and why.
    pub fn fail(&self, why: impl Into<String>) {
        self.health.lock().ready.insert(self.name.clone(), Some(why.into()));
    }
}

/// One loop's sign of life.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    health: Health,
    name: String,
    stale_after: Duration,
}

impl Heartbeat {
    /// The loop came round.
    pub fn beat(&self) {
        self.health.lock().alive.insert(self.name.clone(), (Instant::now(), self.stale_after));
    }
}

/// The endpoints.
pub fn router(metrics: Metrics, health: Health) -> Router {
    Router::new()
        .route("/metrics", get(text_of_metrics))
        .route("/healthz", get(async |State((_, health)): State<Shared>| verdict(&health.stale())))
        .route("/readyz", get(async |State((_, health)): State<Shared>| verdict(&health.unready())))
        .with_state((metrics, health))
}

type Shared = (Metrics, Health);

async fn text_of_metrics(State((metrics, _)): State<Shared>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([("content-type", kind)], metrics.encode())
}

/// 200 where nothing fails, else 503 with one line per failure.
fn verdict(failing: &[String]) -> (StatusCode, String) {
    if failing.is_empty() {
        (StatusCode::OK, "ok\n".into())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", failing.join("\n")))
    }
}

/// Serves until shutdown.
pub async fn serve(listener: TcpListener, router: Router, mut stop: Shutdown) -> Result<()> {
    axum::serve(listener, router)
        .with_graceful_shutdown(async move { stop.requested().await })
        .await
        .map_err(|error| Error::process("the administrative endpoints ended", error))
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use http::Request;
    use operator_core::object_key::Key;
    use tower::ServiceExt as _;

    use super::*;

    async fn fetch(health: &Health, path: &str) -> (StatusCode, String) {
        let router = router(Metrics::new("test"), health.clone());
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn readiness_names_the_checks_that_fail() {
        let health = Health::default();
        let (caches, webhook) = (health.readiness("caches"), health.readiness("webhook"));
        caches.pass();
        webhook.fail("the caBundle is not ours");
        let (status, body) = fetch(&health, "/readyz").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(body, "webhook: the caBundle is not ours\n");
        webhook.pass();
        assert_eq!(fetch(&health, "/readyz").await, (StatusCode::OK, "ok\n".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_stands_still_is_reported_by_name() {
        let health = Health::default();
        let pulse = health.liveness("webhook certificate", Duration::from_mins(1));
        tokio::time::advance(Duration::from_secs(61)).await;
        let (status, body) = fetch(&health, "/healthz").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(body.starts_with("webhook certificate: no sign"), "{body}");
        pulse.beat();
        assert_eq!(fetch(&health, "/healthz").await.0, StatusCode::OK);
    }

    #[tokio::test(start_paused = true)]
    async fn a_controller_that_ends_no_pass_for_ten_minutes_is_reported_by_name() {
        let health = Health::default();
        let queue = Arc::new(WorkQueue::default());
        health.progress("NovaCell", Arc::clone(&queue));
        queue.push(Key::new("ns", "a"));
        tokio::time::advance(Duration::from_mins(9)).await;
        assert_eq!(fetch(&health, "/healthz").await.0, StatusCode::OK);
        tokio::time::advance(Duration::from_mins(2)).await;
        let (status, body) = fetch(&health, "/healthz").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(body.starts_with("NovaCell: no pass ended for 6"), "{body}");
        let key = queue.next().await;
        queue.done(&key);
        assert_eq!(fetch(&health, "/healthz").await.0, StatusCode::OK);
    }

    #[tokio::test]
    async fn metrics_are_served_as_text() {
        let (status, body) = fetch(&Health::default(), "/metrics").await;
        assert_eq!(status, StatusCode::OK);
        assert!(body.contains("edpm_leader 0"), "{body}");
    }
}
