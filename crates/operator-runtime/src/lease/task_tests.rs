//! Tests of the election's task, over a fake API server.

use std::time::Duration;

use testkit::fake_api::{FakeApi, failure};
use tokio::time::{Instant, sleep, timeout};

use super::{Leadership, LeadershipWatch, Timing, elect, leading};
use crate::{
    api::tests::client,
    shutdown::{Shutdown, shutdown},
};

/// Returns a server whose responses take time, so that two replicas really race.
fn server() -> FakeApi {
    FakeApi::default().with_latency(Duration::from_millis(3))
}

fn elected(server: &FakeApi, me: &str, stop: Shutdown) -> LeadershipWatch {
    elect(client(server), ("edpm-system", "op"), timing(), me, stop).0
}

fn timing() -> Timing {
    Timing::of(Duration::from_secs(30))
}

async fn follows(watch: &mut LeadershipWatch) {
    watch.wait_for(|it| *it == Leadership::Following).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_of_two_leads_and_the_other_follows_within_seconds_of_its_orderly_end() {
    let server = server();
    let ((trigger, stop), (_other_trigger, other_stop)) = (shutdown(), shutdown());
    let mut one = elected(&server, "one", stop);
    assert_eq!(leading(&mut one).await.as_deref(), Some("one/0"));
    let mut other = elected(&server, "other", other_stop);
    sleep(Duration::from_mins(10)).await;
    assert!(one.borrow().leads() && !other.borrow().leads());
    let requests = server.requests();
    let writes = requests.iter().filter(|it| it.verb != "GET" && it.code < 300).count();
    assert!((50..=61).contains(&writes), "six writes a minute, not {writes} in ten minutes");

    trigger.request();
    let took_over = timeout(Duration::from_secs(3), leading(&mut other)).await;
    assert_eq!(took_over.unwrap().as_deref(), Some("other/1"));
    assert!(!one.borrow().leads());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_anyone_takes_over_and_returns_when_it_can() {
    let server = server();
    let (_trigger, stop) = shutdown();
    let mut one = elected(&server, "one", stop);
    leading(&mut one).await;
    server.intercept(|_| Some(failure(500, "InternalError")));
    let start = Instant::now();
    follows(&mut one).await;
    assert!(start.elapsed() <= Duration::from_secs(20), "{:?}", start.elapsed());
    server.intercept(|_| None);
    assert_eq!(leading(&mut one).await.as_deref(), Some("one/0"), "nobody led in between");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_vanished_is_replaced_after_the_lease_ran_out() {
    let server = server();
    let (_trigger, stop) = shutdown();
    let (watch, task) =
        elect(client(&server), ("edpm-system", "op"), timing(), "one", stop.clone());
    leading(&mut watch.clone()).await;
    task.abort();
    let mut other = elected(&server, "other", stop);
    let start = Instant::now();
    assert_eq!(leading(&mut other).await.as_deref(), Some("other/1"));
    let waited = start.elapsed().as_secs();
    assert!((29..=33).contains(&waited), "{waited}");
}
