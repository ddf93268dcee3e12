//! Tests of the requests to the API server and the handling of its responses, over an in-memory
//! server.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use operator_core::reasons::FORBIDDEN;
use testkit::fake_api::{FakeApi, Request, Response, failure};
use tokio::sync::watch;
use tokio::time::Instant;

use super::*;
use crate::cache::Cache;
use crate::client;
use crate::lease::Leadership;
use crate::metrics::Metrics;

/// Returns a client with the operators' limits.
pub(crate) fn client(server: &FakeApi) -> Client {
    client::tests::client(server, &Metrics::new("test"))
}

/// Returns the API of an operator that leads.
pub(crate) fn leading(server: &FakeApi, caches: Vec<Arc<dyn WriteThrough>>) -> Api {
    let leadership = Leadership::Leading { term: "me/0".into(), until: None };
    Api::new(client(server), "op", "op-0", watch::channel(leadership).1, caches)
}

/// Returns the API of an operator that does not lead, and has no caches.
pub(crate) fn following(server: &FakeApi) -> Api {
    Api::new(client(server), "op", "op-0", watch::channel(Leadership::Following).1, vec![])
}

/// Returns a `ConfigMap` as the API server answers.
pub(crate) fn object(name: &str, uid: &str, version: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "namespace": "ns", "name": name, "uid": uid, "resourceVersion": version },
    })
}

/// Returns an Event as the API server answers.
fn event() -> Value {
    json!({ "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {}, "eventTime": null })
}

fn target(uid: Option<&str>) -> Target {
    let kind = Kind::of::<ConfigMap>();
    Target { kind, namespace: "ns".into(), name: "a".into(), uid: uid.map(str::to_owned) }
}

fn status(notices: Vec<EventDraft>) -> Step {
    let write = Write::Status { status: json!({ "x": 1 }), resource_version: None, notices };
    Step { target: target(Some("1")), write, reason: "of the test".into() }
}

fn notice() -> EventDraft {
    EventDraft { warning: true, reason: "Because".into(), note: "so it is".into() }
}

fn create(identity: &str) -> Step {
    let metadata = json!({ "ownerReferences": [{ "uid": "o", "controller": true }] });
    let object = json!({ "metadata": metadata, "data": { "identity": identity } });
    Step::create(target(None), object, "/data/identity", "of the test")
}

fn apply() -> Step {
    Step::apply(target(None), json!({ "data": { "x": "1" } }), "of the test")
}

fn delete() -> Step {
    Step::delete(target(Some("1")), "of the test")
}

fn plan(steps: Vec<Step>) -> Plan {
    Plan { steps, ..Plan::default() }
}

/// Executes steps; returns the cached versions afterwards and the reason of the failure.
async fn outcome(server: &FakeApi, steps: Vec<Step>) -> (Vec<String>, Option<&'static str>) {
    let cache: Arc<Cache<ConfigMap>> = Cache::new(vec![]);
    let api = leading(server, vec![Arc::<Cache<ConfigMap>>::clone(&cache)]);
    let outcome = api.carry_out(&plan(steps)).await;
    let cached = cache.all();
    let versions = cached.iter().filter_map(|it| it.metadata.resource_version.clone());
    (versions.collect(), outcome.err().map(|it| it.error.reason()))
}

const PATH: &str = "/api/v1/namespaces/ns/configmaps";

#[tokio::test]
async fn each_write_is_one_request_whose_answer_is_taken_in() {
    type Case = (Step, Response, String, Vec<&'static str>);
    let cases: [Case; 4] = [
        (apply(), (200, object("a", "1", "5")), format!("PATCH {PATH}/a"), vec!["5"]),
        (create("x"), (201, object("a", "1", "6")), format!("POST {PATH}"), vec!["6"]),
        (status(vec![]), (200, object("a", "1", "7")), format!("PATCH {PATH}/a/status"), vec!["7"]),
        (delete(), (200, json!({ "kind": "Status" })), format!("DELETE {PATH}/a"), vec![]),
    ];
    for (step, answer, asked, cached) in cases {
        let server = FakeApi::answering([answer]);
        let (versions, error) = outcome(&server, vec![step]).await;
        assert_eq!((versions, error), (cached.into_iter().map(str::to_owned).collect(), None));
        assert_eq!(server.asked(), [asked]);
    }
}

#[tokio::test]
async fn an_apply_names_its_manager_and_takes_over_only_where_it_is_forced() {
    let mut yielding = apply();
    if let Write::Apply { force, manager, .. } = &mut yielding.write {
        (*force, *manager) = (false, Some("other".into()));
    }
    let answers = [(200, object("a", "1", "5")), (200, object("a", "1", "6"))];
    let server = FakeApi::answering(answers);
    outcome(&server, vec![apply(), yielding]).await;
    let requests = server.requests();
    let has = |at: usize, option: &str| requests[at].query.contains(option);
    assert!(has(0, "fieldManager=op") && has(0, "force=true"));
    assert!(has(1, "fieldManager=other") && !has(1, "force=true"));
    assert_eq!(requests[0].body["apiVersion"], "v1");
}

#[tokio::test]
async fn the_first_failure_ends_a_plan_and_is_known_by_its_place() {
    let server = FakeApi::answering([(200, object("a", "1", "5")), failure(403, "Forbidden")]);
    let api = leading(&server, vec![]);
    let steps = vec![apply(), create("x"), delete()];
    let stopped = api.carry_out(&plan(steps)).await.unwrap_err();
    assert_eq!((stopped.at, stopped.error.reason()), (1, "Forbidden"));
    assert_eq!(stopped.error.rejection(), Some((&FORBIDDEN, "fake API: Forbidden")));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn writes_that_stand_apart_are_all_tried_and_the_first_refused_one_is_told() {
    let answers = [
        failure(409, "Conflict"),
        failure(403, "Forbidden"),
        failure(422, "Invalid"),
        (200, object("a", "1", "5")),
        (200, object("a", "1", "6")),
    ];
    let server = FakeApi::answering(answers);
    let apart = vec![apply(), apply(), apply(), apply()];
    let steps = vec![apply(), status(vec![])];
    let plan: Plan = Plan { independent: apart, steps, ..Plan::default() };
    let stopped = leading(&server, vec![]).carry_out(&plan).await.unwrap_err();
    assert_eq!((stopped.at, stopped.error.reason()), (1, "Forbidden"));
    // All four and the step after them; the status is reserved for reporting the rejection.
    assert_eq!(server.requests().len(), 5);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_asked_for_no_more_writes_than_go_out_at_once() {
    let server = FakeApi::answering([(); WRITES_AT_ONCE].map(|()| failure(503, "Unavailable")));
    let plan: Plan = Plan { independent: row(2 * WRITES_AT_ONCE), ..Plan::default() };
    let stopped = leading(&server, vec![]).carry_out(&plan).await.unwrap_err();
    assert_eq!((stopped.at, stopped.error.reason()), (0, "ServerBusy"));
    assert_eq!(server.requests().len(), WRITES_AT_ONCE);
}

/// Returns steps of one row.
fn row(length: usize) -> Vec<Step> {
    let step = |it| Step { target: Target { name: format!("a{it}"), ..target(None) }, ..apply() };
    (0..length).map(step).collect()
}

/// Returns the API of a server on which each write takes a second.
fn slow() -> Api {
    let server = FakeApi::default().with_latency(Duration::from_secs(1));
    server.intercept(|_| Some((200, object("a", "1", "5"))));
    leading(&server, vec![])
}

#[tokio::test(start_paused = true)]
async fn a_row_is_written_together_and_what_follows_it_afterwards() {
    let (api, start) = (slow(), Instant::now());
    api.carry_out(&plan(row(2 * WRITES_AT_ONCE))).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 2);
    let mut steps = row(WRITES_AT_ONCE);
    steps.extend([delete(), apply(), apply()]);
    api.carry_out(&plan(steps)).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 2 + 1 + 3);
    let one_by_one = Plan { one_by_one: true, ..plan(row(5)) };
    api.carry_out(&one_by_one).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 2 + 1 + 3 + 5);
}

#[tokio::test(start_paused = true)]
async fn a_short_plan_has_its_place_beside_a_long_one() {
    let (api, start) = (slow(), Instant::now());
    let (long, short) = (plan(row(10 * WRITES_AT_ONCE)), plan(vec![apply()]));
    let timed = async |plan: &Plan| {
        api.carry_out(plan).await.unwrap();
        start.elapsed().as_secs()
    };
    assert_eq!(tokio::join!(timed(&long), timed(&short)), (11, 2));
}

#[tokio::test]
async fn of_a_row_the_first_failure_counts_and_what_follows_is_not_written() {
    let answers =
        [(200, object("a", "1", "5")), failure(403, "Forbidden"), failure(409, "Conflict")];
    let server = FakeApi::answering(answers);
    let mut steps = row(3);
    steps.push(delete());
    let stopped = leading(&server, vec![]).carry_out(&plan(steps)).await.unwrap_err();
    assert_eq!((stopped.at, stopped.error.reason()), (1, "Forbidden"));
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn nothing_is_written_without_leading() {
    let server = FakeApi::answering([]);
    let stopped = following(&server).carry_out(&plan(vec![apply()])).await.unwrap_err();
    assert_eq!((stopped.at, stopped.error.reason()), (0, "NotLeading"));
    assert_eq!(server.asked(), [""; 0]);
}

#[tokio::test]
async fn an_object_that_exists_counts_as_created_only_if_it_is_the_same_of_the_same_owner() {
    let found = |identity: &str, owner: &str| {
        let mut found = object("a", "1", "5");
        found["data"] = json!({ "identity": identity });
        found["metadata"]["ownerReferences"] = json!([
            { "apiVersion": "v1", "kind": "X", "name": "x", "uid": owner, "controller": true },
        ]);
        found
    };
    let cases = [
        (found("x", "o"), None, 1),
        (found("y", "o"), Some("AlreadyExists"), 0),
        (found("x", "other"), Some("AlreadyExists"), 0),
    ];
    for (found, error, n_cached) in cases {
        let server = FakeApi::answering([failure(409, "AlreadyExists"), (200, found)]);
        let (cached, failed) = outcome(&server, vec![create("x")]).await;
        assert_eq!((cached.len(), failed), (n_cached, error));
        assert_eq!(server.asked(), [format!("POST {PATH}"), format!("GET {PATH}/a")]);
    }
}

#[tokio::test]
async fn an_object_that_vanished_between_create_and_read_is_tried_again() {
    let server = FakeApi::answering([failure(409, "AlreadyExists"), failure(404, "NotFound")]);
    assert_eq!(outcome(&server, vec![create("x")]).await, (vec![], Some("AlreadyExists")));
}

#[tokio::test]
async fn a_deletion_names_the_instance_and_an_absent_object_counts_as_deleted() {
    let mut at_version = delete();
    at_version.write = Write::Delete { resource_version: Some("7".into()) };
    let server = FakeApi::answering([failure(404, "NotFound"), failure(409, "Conflict")]);
    let (_, error) = outcome(&server, vec![delete(), at_version]).await;
    assert_eq!(error, Some("Conflict"));
    let requests = server.requests();
    assert_eq!(requests[0].body["preconditions"], json!({ "uid": "1" }));
    assert_eq!(requests[1].body["preconditions"], json!({ "uid": "1", "resourceVersion": "7" }));
}

fn hold() -> Step {
    let write = Write::AddFinalizer { finalizer: "x/a".into() };
    Step { target: target(Some("1")), write, reason: "of the test".into() }
}

fn release() -> Step {
    let write =
        Write::RemoveFinalizer { rest: vec!["y/b".into()], resource_version: Some("7".into()) };
    Step { target: target(Some("1")), write, reason: "of the test".into() }
}

#[tokio::test]
async fn a_finalizer_is_added_beside_those_of_others_and_makes_no_object_anew() {
    let server = FakeApi::answering([(200, object("a", "1", "5"))]);
    assert_eq!(outcome(&server, vec![hold()]).await, (vec!["5".into()], None));
    let Request { query, body, .. } = server.requests().remove(0);
    assert!(query.contains("fieldManager=op-hold") && query.contains("force=true"), "{query}");
    let metadata = json!({ "name": "a", "uid": "1", "finalizers": ["x/a"] });
    assert_eq!(body, json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata }));

    let mut deleting = failure(422, "Invalid");
    deleting.1["details"] = json!({ "causes": [{ "field": "metadata.finalizers" }] });
    let cases = [
        (deleting, "Gone"),
        (failure(404, "NotFound"), "Gone"),
        (failure(409, "Conflict"), "Conflict"),
        (failure(422, "Invalid"), "Invalid"),
    ];
    for (answer, expected) in cases {
        let server = FakeApi::answering([answer]);
        assert_eq!(outcome(&server, vec![hold(), apply()]).await.1, Some(expected));
        assert_eq!(server.asked(), [format!("PATCH {PATH}/a")]);
    }
}

#[tokio::test]
async fn a_finalizer_is_taken_off_only_as_the_list_was_read() {
    let server = FakeApi::answering([(200, object("a", "1", "8"))]);
    assert_eq!(outcome(&server, vec![release()]).await, (vec!["8".into()], None));
    assert_eq!(server.asked(), [format!("PATCH {PATH}/a")]);
    let Request { query, body, .. } = server.requests().remove(0);
    assert!(!query.contains("force"), "{query}");
    let metadata = json!({ "resourceVersion": "7", "finalizers": ["y/b"] });
    assert_eq!(body, json!({ "metadata": metadata }));

    for (answer, expected) in
        [(failure(409, "Conflict"), Some("Conflict")), (failure(404, "NotFound"), None)]
    {
        let server = FakeApi::answering([answer]);
        assert_eq!(outcome(&server, vec![release()]).await.1, expected);
    }
}

#[tokio::test]
async fn a_namespace_that_goes_or_is_gone_is_known() {
    let namespace =
        |metadata| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata });
    let going = json!({ "name": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z" });
    let cases = [
        ((200, namespace(json!({ "name": "ns" }))), false),
        ((200, namespace(going)), true),
        (failure(404, "NotFound"), true),
    ];
    for (answer, expected) in cases {
        let server = FakeApi::answering([answer]);
        let api = following(&server);
        assert_eq!(api.is_namespace_terminating("ns").await.unwrap(), expected);
        assert_eq!(server.asked(), ["GET /api/v1/namespaces/ns"]);
    }
}

#[tokio::test]
async fn a_status_that_was_written_is_followed_by_its_events() {
    let server = FakeApi::answering([(200, object("a", "1", "5")), (201, event())]);
    assert_eq!(outcome(&server, vec![status(vec![notice()])]).await, (vec!["5".into()], None));
    let requests = server.requests();
    assert!(server.asked()[1].starts_with("POST /apis/events.k8s.io/v1/namespaces/ns/events"));
    assert_eq!(
        (&requests[1].body["reason"], &requests[1].body["regarding"]["uid"]),
        (&json!("Because"), &json!("1"))
    );
}

#[tokio::test]
async fn events_on_objects_of_others_follow_the_steps_while_the_process_leads() {
    let events = || vec![(target(Some("2")), notice())];
    let answers = [(200, object("a", "1", "5")), failure(500, "InternalError")];
    let server = FakeApi::answering(answers);
    let plan: Plan = Plan { events: events(), ..plan(vec![apply()]) };
    assert!(leading(&server, vec![]).carry_out(&plan).await.is_ok(), "a lost one stops nothing");
    let requests = server.requests();
    assert_eq!(requests.len(), 2, "an Event follows the step");
    assert_eq!(requests[1].body["regarding"]["uid"], json!("2"));
    let server = FakeApi::answering([]);
    let plan: Plan = Plan { events: events(), ..Plan::default() };
    assert!(following(&server).carry_out(&plan).await.is_ok());
    assert_eq!(server.asked(), [""; 0]);
}

#[tokio::test]
async fn a_second_failure_with_the_same_reason_is_an_event_of_its_own_and_a_repeated_one_is_counted()
 {
    let server = FakeApi::answering([(201, event()), (201, event()), (200, event())]);
    let about = |note: &str| {
        let draft = EventDraft { note: note.into(), ..notice() };
        (target(Some("1")), draft)
    };
    let events = vec![about("disk is full"), about("host is down"), about("disk is full")];
    let plan: Plan = Plan { events, ..Plan::default() };
    assert!(leading(&server, vec![]).carry_out(&plan).await.is_ok());
    let requests = server.requests();
    let verbs: Vec<&str> = requests.iter().map(|it| it.verb.as_str()).collect();
    assert_eq!(verbs, ["POST", "POST", "PATCH"]);
    assert_eq!(requests[1].body["note"], json!("host is down"));
    let again = &requests[2].body;
    assert_eq!((&again["note"], &again["series"]["count"]), (&json!("disk is full"), &json!(2)));
}

#[tokio::test]
async fn an_event_that_is_lost_stops_nothing() {
    let answers =
        [(200, object("a", "1", "5")), failure(500, "InternalError"), (200, object("a", "1", "6"))];
    let server = FakeApi::answering(answers);
    let steps = vec![status(vec![notice()]), apply()];
    assert_eq!(outcome(&server, steps).await, (vec!["6".into()], None));
}

#[tokio::test]
async fn a_status_of_an_object_that_is_gone_ends_the_plan_without_event_or_ghost() {
    let server = FakeApi::answering([failure(404, "NotFound")]);
    let steps = vec![status(vec![notice()]), create("x")];
    assert_eq!(outcome(&server, steps).await, (vec![], Some("Gone")));
    assert_eq!(server.asked(), [format!("PATCH {PATH}/a/status")]);
}

#[tokio::test]
async fn a_status_that_met_another_object_of_the_name_is_taken_back() {
    let answers = [(200, object("a", "2", "8")), (200, object("a", "2", "9"))];
    let server = FakeApi::answering(answers);
    let steps = vec![status(vec![notice()]), create("x")];
    assert_eq!(outcome(&server, steps).await, (vec![], Some("Gone")));
    let requests = server.requests();
    assert_eq!(requests[1].body["status"], json!({}));
    assert_eq!(requests[1].body["metadata"], json!({ "name": "a", "resourceVersion": "8" }));
    // Another writer was faster: the key is reconciled again after the usual backoff.
    let server = FakeApi::answering([(200, object("a", "2", "8")), failure(409, "Conflict")]);
    assert_eq!(outcome(&server, vec![status(vec![])]).await, (vec![], Some("Conflict")));
}

#[tokio::test]
async fn a_status_with_a_version_is_an_optimistic_lock() {
    let mut step = status(vec![]);
    if let Write::Status { resource_version, .. } = &mut step.write {
        *resource_version = Some("4".into());
    }
    let server = FakeApi::answering([failure(409, "Conflict")]);
    assert_eq!(outcome(&server, vec![step]).await, (vec![], Some("Conflict")));
    assert_eq!(server.requests()[0].body["metadata"]["resourceVersion"], "4");
}

#[tokio::test]
async fn a_read_tells_an_absent_object_from_one_that_cannot_be_read() {
    let server = FakeApi::answering([
        (200, object("a", "1", "5")),
        failure(404, "NotFound"),
        failure(403, "Forbidden"),
        (
            200,
            json!({ "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {},
            "items": [object("a", "1", "5")] }),
        ),
    ]);
    let api = following(&server);
    let key = Key::new("ns", "a");
    assert!(api.get::<ConfigMap>(&key).await.unwrap().is_some());
    assert!(api.get::<ConfigMap>(&key).await.unwrap().is_none());
    assert_eq!(api.get::<ConfigMap>(&key).await.unwrap_err().reason(), "Forbidden");
    assert_eq!(api.list::<ConfigMap>("ns", "x=y").await.unwrap().len(), 1);
    assert!(server.requests()[3].query.contains("labelSelector=x%3Dy"));
}

#[tokio::test]
async fn an_answer_goes_only_into_the_cache_of_its_kind() {
    let config_maps: Arc<Cache<ConfigMap>> = Cache::new(vec![]);
    let secrets = Cache::<k8s_openapi::api::core::v1::Secret>::new(vec![]);
    let server = FakeApi::answering([(200, object("a", "1", "5"))]);
    let caches: Vec<Arc<dyn WriteThrough>> = vec![
        Arc::<Cache<ConfigMap>>::clone(&config_maps),
        Arc::<Cache<k8s_openapi::api::core::v1::Secret>>::clone(&secrets),
    ];
    leading(&server, caches).carry_out(&plan(vec![apply()])).await.unwrap();
    assert_eq!((config_maps.all().len(), secrets.all().len()), (1, 0));
}
