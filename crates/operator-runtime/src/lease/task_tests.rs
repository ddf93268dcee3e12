//! Tests of the election's task against a small server with one Lease.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::body::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tower::service_fn;

use super::{Leadership, LeadershipWatch, Timing, elect, leading};
use crate::{
    client::client_over,
    error::BoxError,
    metrics::Metrics,
    shutdown::{Shutdown, shutdown},
};

/// One Lease, its writes counted; `broken` makes every request fail.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    lease: Option<Value>,
    writes: u64,
    broken: bool,
}

impl Server {
    fn with<T>(&self, change: impl FnOnce(&mut Kept) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn answer(&self, method: &Method, body: Value) -> (u16, Value) {
        let failure = |code: u16, reason: &str| {
            (code, json!({ "kind": "Status", "status": "Failure", "code": code, "reason": reason }))
        };
        self.with(|kept| match (kept.broken, method.as_str(), &kept.lease) {
            (true, ..) => failure(500, "InternalError"),
            (_, "GET", None) => failure(404, "NotFound"),
            (_, "GET", Some(lease)) => (200, lease.clone()),
            (_, "POST", Some(_)) => failure(409, "AlreadyExists"),
            (_, "PUT", Some(lease))
                if lease["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] =>
            {
                failure(409, "Conflict")
            }
            _ => {
                kept.writes += 1;
                let mut lease = body;
                lease["metadata"]["resourceVersion"] = json!(kept.writes.to_string());
                kept.lease = Some(lease.clone());
                (200, lease)
            }
        })
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
                // Responses take time, so that two replicas really race.
                sleep(Duration::from_millis(3)).await;
                let (code, answer) = server.answer(&head.method, body);
                let bytes = Full::new(Bytes::from(answer.to_string()));
                Ok::<_, BoxError>(Response::builder().status(code).body(bytes)?)
            }
        });
        client_over(service, "edpm-system", &Metrics::new("test"))
    }

    fn elect(&self, me: &str, stop: Shutdown) -> LeadershipWatch {
        elect(self.client(), ("edpm-system", "op"), timing(), me, stop).0
    }
}

fn timing() -> Timing {
    Timing::of(Duration::from_secs(30))
}

async fn follows(watch: &mut LeadershipWatch) {
    watch.wait_for(|it| *it == Leadership::Following).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_of_two_leads_and_the_other_follows_within_seconds_of_its_orderly_end() {
    let server = Server::default();
    let ((trigger, stop), (_other_trigger, other_stop)) = (shutdown(), shutdown());
    let mut one = server.elect("one", stop);
    assert_eq!(leading(&mut one).await.as_deref(), Some("one/0"));
    let mut other = server.elect("other", other_stop);
    sleep(Duration::from_mins(10)).await;
    assert!(one.borrow().leads() && !other.borrow().leads());
    let writes = server.with(|it| it.writes);
    assert!((50..=61).contains(&writes), "six writes a minute, not {writes} in ten minutes");

    trigger.request();
    let took_over = timeout(Duration::from_secs(3), leading(&mut other)).await;
    assert_eq!(took_over.unwrap().as_deref(), Some("other/1"));
    assert!(!one.borrow().leads());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_anyone_takes_over_and_returns_when_it_can() {
    let server = Server::default();
    let (_trigger, stop) = shutdown();
    let mut one = server.elect("one", stop);
    leading(&mut one).await;
    server.with(|it| it.broken = true);
    let start = Instant::now();
    follows(&mut one).await;
    assert!(start.elapsed() <= Duration::from_secs(20), "{:?}", start.elapsed());
    server.with(|it| it.broken = false);
    assert_eq!(leading(&mut one).await.as_deref(), Some("one/0"), "nobody led in between");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_vanished_is_replaced_after_the_lease_ran_out() {
    let server = Server::default();
    let (_trigger, stop) = shutdown();
    let (watch, task) =
        elect(server.client(), ("edpm-system", "op"), timing(), "one", stop.clone());
    leading(&mut watch.clone()).await;
    task.abort();
    let mut other = server.elect("other", stop);
    let start = Instant::now();
    assert_eq!(leading(&mut other).await.as_deref(), Some("other/1"));
    let waited = start.elapsed().as_secs();
    assert!((29..=33).contains(&waited), "{waited}");
}
