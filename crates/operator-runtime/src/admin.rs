//! The administrative endpoints: /metrics, /healthz and /readyz.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{Router, extract::State, http::StatusCode, response::IntoResponse, routing::get};
use parking_lot::Mutex;
use tokio::{net::TcpListener, time::Instant};

use crate::{
    error::{Error, Result},
    metrics::Metrics,
    shutdown::Shutdown,
    workqueue::WorkQueue,
};

/// The health checks of an operator process; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Mutex<Checks>>);

#[derive(Debug, Default)]
struct Checks {
    /// Readiness checks: why each one fails, `None` once it passes.
    ready: BTreeMap<String, Option<String>>,
    /// Liveness checks: last heartbeat of each loop, and the maximum age.
    alive: BTreeMap<String, (Instant, Duration)>,
    /// The workqueue of each controller.
    queues: BTreeMap<String, Arc<WorkQueue>>,
}

/// Maximum time in which no reconcile of a controller ends, failed ones included, while some are
/// due.
const STALLED: Duration = Duration::from_mins(10);

impl Health {
    /// Adds a check to /readyz, which fails until [`Check::pass`].
    pub fn readiness(&self, name: impl Into<String>) -> Check {
        let check = Check { health: self.clone(), name: name.into() };
        check.fail("not started");
        check
    }

    /// Adds a check to /healthz, which fails when [`Heartbeat::beat`] was not called for
    /// `stale_after`.
    pub fn liveness(&self, name: impl Into<String>, stale_after: Duration) -> Heartbeat {
        let pulse = Heartbeat { health: self.clone(), name: name.into(), stale_after };
        pulse.beat();
        pulse
    }

    /// Adds a check to /healthz, which fails when no reconcile of the queue has ended for ten
    /// minutes although some were due.
    pub fn progress(&self, controller: impl Into<String>, queue: Arc<WorkQueue>) {
        self.0.lock().queues.insert(controller.into(), queue);
    }

    /// Returns the failing readiness checks with their reasons.
    pub fn unready(&self) -> Vec<String> {
        let checks = self.0.lock();
        let failing = checks.ready.iter();
        failing.filter_map(|(name, why)| Some(format!("{name}: {}", why.as_ref()?))).collect()
    }

    /// Returns the stalled loops and controllers.
    pub fn stale(&self) -> Vec<String> {
        let checks = self.0.lock();
        let late = checks.alive.iter().filter(|(_, (beat, limit))| beat.elapsed() > *limit);
        let late = late
            .map(|(name, (beat, _))| format!("{name}: no sign for {} s", beat.elapsed().as_secs()));
        let stalled = checks.queues.iter().map(|(name, queue)| (name, queue.stalled_for()));
        let stalled = stalled
            .filter(|(_, it)| *it > STALLED)
            .map(|(name, it)| format!("{name}: no pass ended for {} s", it.as_secs()));
        late.chain(stalled).collect()
    }
}

/// One readiness check.
#[derive(Clone, Debug)]
pub struct Check {
    health: Health,
    name: String,
}

impl Check {
    /// Lets the check pass from now on.
    pub fn pass(&self) {
        self.health.0.lock().ready.insert(self.name.clone(), None);
    }

    /// Lets the check fail from now on, with a reason.
    pub fn fail(&self, why: impl Into<String>) {
        self.health.0.lock().ready.insert(self.name.clone(), Some(why.into()));
    }
}

/// The heartbeat of one loop.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    health: Health,
    name: String,
    stale_after: Duration,
}

impl Heartbeat {
    /// Records a heartbeat.
    pub fn beat(&self) {
        self.health.0.lock().alive.insert(self.name.clone(), (Instant::now(), self.stale_after));
    }
}

/// Returns the router of the endpoints.
pub fn router(metrics: Metrics, health: Health) -> Router {
    Router::new()
        .route("/metrics", get(text_of_metrics))
        .route(
            "/healthz",
            get(async |State((_, health)): State<Shared>| health_response(&health.stale())),
        )
        .route(
            "/readyz",
            get(async |State((_, health)): State<Shared>| health_response(&health.unready())),
        )
        .with_state((metrics, health))
}

type Shared = (Metrics, Health);

async fn text_of_metrics(State((metrics, _)): State<Shared>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([("content-type", kind)], metrics.encode())
}

/// Returns 200 when nothing fails, else 503 with one line per failure.
fn health_response(failing: &[String]) -> (StatusCode, String) {
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
