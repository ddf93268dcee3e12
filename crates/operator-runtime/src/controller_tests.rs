//! Tests of one reconcile, over an in-memory server.

use k8s_openapi::api::core::v1::ConfigMap;
use operator_core::plan::{Kind, Step, Target, Write};
use parking_lot::Mutex;
use serde_json::{Value, json};
use testkit::fake_api::{FakeApi, failure};

use super::*;
use crate::api::tests::{leading, object};

/// Writes a status, then another object; reports a rejection in the status.
struct Two;

fn target(name: &str) -> Target {
    let kind = Kind::of::<ConfigMap>();
    Target { kind, namespace: "ns".into(), name: name.into(), uid: None }
}

fn status(text: &str) -> Step {
    let status = json!({ "text": text });
    let write = Write::Status { status, resource_version: None, notices: vec![] };
    Step { target: target("a"), write, reason: "of the test".into() }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "`Decide` is given a reference")]
fn decide_two(_seen: &(), rejected: Option<&RejectedWrite>, _now: Timestamp) -> Plan {
    let mut steps = vec![status("good")];
    steps.extend(rejected.map(|it| status(&it.message)));
    let object = Step::apply(target("b"), json!({ "metadata": {} }), "of the test");
    let look_again = Some(Duration::from_secs(7));
    steps.push(object);
    Plan { steps, requeue_after: look_again, ..Plan::default() }
}

impl Controller for Two {
    type Observed = ();

    const NAME: &'static str = "two";

    const DECIDE: Decide<()> = decide_two;

    async fn observe(&self, key: &Key) -> Result<Option<()>> {
        Ok((key.name == "a").then_some(()))
    }
}

async fn pass(server: &FakeApi, name: &str) -> Result<Option<Duration>> {
    reconcile(&Two, &leading(server, vec![]), &WorkQueue::default(), &Key::new("ns", name)).await
}

#[tokio::test]
async fn an_object_that_is_gone_is_not_decided_about() {
    let server = FakeApi::answering([]);
    assert_eq!(pass(&server, "x").await.unwrap(), None);
}

#[tokio::test]
async fn a_refused_write_is_told_once_and_fails_the_pass() {
    let answers =
        [(200, object("a", "1", "5")), failure(403, "Forbidden"), (200, object("a", "1", "6"))];
    let server = FakeApi::answering(answers);
    assert_eq!(pass(&server, "a").await.unwrap_err().reason(), "Forbidden");
    let bodies: Vec<Value> = server.requests().into_iter().map(|it| it.body).collect();
    assert_eq!(
        (&bodies[0]["status"]["text"], &bodies[2]["status"]["text"]),
        (&json!("good"), &json!("fake API: Forbidden"))
    );
}

#[tokio::test]
async fn a_refusal_that_cannot_be_told_hides_nothing() {
    let answers =
        [(200, object("a", "1", "5")), failure(422, "Invalid"), failure(500, "InternalError")];
    let server = FakeApi::answering(answers);
    assert_eq!(pass(&server, "a").await.unwrap_err().reason(), "Invalid");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn other_failures_are_told_nowhere() {
    let server = FakeApi::answering([(200, object("a", "1", "5")), failure(500, "InternalError")]);
    assert_eq!(pass(&server, "a").await.unwrap_err().reason(), "ServerError");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn an_object_that_was_deleted_meanwhile_is_no_failure_and_ends_the_plan() {
    let server = FakeApi::answering([failure(404, "NotFound")]);
    assert_eq!(pass(&server, "a").await.unwrap(), Some(Duration::from_secs(7)));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_write_over_a_newer_version_is_tried_again_after_a_second_however_often() {
    let (queue, backoff, metrics) =
        (WorkQueue::default(), Backoff::default(), Metrics::new("test"));
    let key = Key::new("ns", "a");
    for _ in 0..3 {
        let server = FakeApi::answering([failure(409, "Conflict")]);
        let start = tokio::time::Instant::now();
        super::pass(&Two, &leading(&server, vec![]), &queue, &backoff, &metrics, &key).await;
        // Neither an Event nor a status says so.
        assert_eq!(server.requests().len(), 1);
        assert_eq!(queue.next().await, key);
        assert!(start.elapsed() <= Duration::from_secs(2));
        queue.done(&key);
    }
    assert_eq!(backoff.failing(), 0);
}

/// Has something else done than writes, and records which orders were given and which ones kept.
#[derive(Default)]
struct Ordering(Mutex<Vec<(&'static str, Vec<&'static str>)>>);

impl Ordering {
    fn note(&self, what: &'static str, orders: &[Order<&'static str>]) {
        self.0.lock().push((what, orders.iter().map(|it| it.what).collect()));
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "`Decide` is given a reference")]
fn decide_ordering(
    seen: &bool,
    rejected: Option<&RejectedWrite>,
    _now: Timestamp,
) -> Plan<&'static str> {
    let mut steps = vec![status("good")];
    let independent = seen.then(|| status("apart")).into_iter().collect();
    steps.extend(rejected.map(|it| status(&it.message)));
    let orders = vec![Order { what: "drain", reason: "of the test".into() }];
    Plan { independent, steps, orders, ..Plan::default() }
}

impl Controller<&'static str> for Ordering {
    /// Whether something is to be written apart from the steps.
    type Observed = bool;

    const NAME: &'static str = "ordering";

    const DECIDE: Decide<bool, &'static str> = decide_ordering;

    async fn observe(&self, key: &Key) -> Result<Option<bool>> {
        Ok((key.name != "x").then_some(key.name == "apart"))
    }

    fn give_orders(&self, _key: &Key, orders: &[Order<&'static str>]) {
        self.note("given", orders);
    }

    fn keep_orders(&self, _key: &Key, orders: &[Order<&'static str>]) {
        self.note("kept", orders);
    }
}

#[tokio::test]
async fn orders_begin_only_after_the_writes_or_the_report_of_a_rejected_one() {
    let ok = || (200, object("a", "1", "5"));
    let (given, kept, gone) = (("given", vec!["drain"]), ("kept", vec!["drain"]), ("kept", vec![]));
    let refused = || failure(403, "Forbidden");
    let begun = || vec![kept.clone(), given.clone()];
    for (name, answers, expected) in [
        ("a", [ok(), ok(), ok()], begun()),
        ("a", [refused(), ok(), ok()], begun()),
        ("a", [refused(), refused(), ok()], vec![kept.clone()]),
        ("a", [failure(500, "InternalError"), ok(), ok()], vec![kept.clone()]),
        ("a", [failure(404, "NotFound"), ok(), ok()], vec![kept.clone()]),
        // What was to be written apart has failed, and the status is written.
        ("apart", [failure(500, "InternalError"), ok(), ok()], begun()),
        ("apart", [failure(500, "InternalError"), failure(500, "x"), ok()], vec![kept.clone()]),
        ("x", [ok(), ok(), ok()], vec![gone]),
    ] {
        let server = FakeApi::answering(answers);
        let controller = Ordering::default();
        let _ = reconcile(
            &controller,
            &leading(&server, vec![]),
            &WorkQueue::default(),
            &Key::new("ns", name),
        )
        .await;
        assert_eq!(*controller.0.lock(), expected);
    }
}
