//! Tests of certificate maintenance in a cluster: replicas, overwrites, renewal, and no requests at
//! rest.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use testkit::fake_api::{FakeApi, failure};
use tokio::{sync::watch, time::Instant};

use super::*;
use crate::{
    admin::Health,
    api::tests::client,
    args::CertificateMaker,
    clock,
    shutdown::{Trigger, shutdown},
    tls::Bundle,
};

const HOST: &str = "op.edpm-system.svc";
const SECRETS: &str = "/api/v1/namespaces/edpm-system/secrets";
const SECRET: &str = "/api/v1/namespaces/edpm-system/secrets/op-tls";
const CONFIGURATION: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/op";

/// Returns a server that permits what the chart's RBAC permits: objects are read only by a watch of
/// their name.
fn cluster() -> FakeApi {
    let cluster = FakeApi::default();
    cluster.intercept(|it| {
        let is_by_name = it.query.contains("fieldSelector=metadata.name%3D");
        (it.verb == "GET" && !is_by_name).then(|| failure(403, "Forbidden"))
    });
    cluster
}

/// Returns the requests so far as `PUT /path 200`, of those that contain a text.
fn requests(cluster: &FakeApi, text: &str) -> Vec<String> {
    let all = cluster.requests().into_iter();
    let lines = all.map(|it| format!("{} {} {}", it.verb, it.path, it.code));
    lines.filter(|it| it.contains(text)).collect()
}

fn configure(cluster: &FakeApi) {
    let webhooks = ["a", "b"].map(|name| {
        json!({ "name": name, "clientConfig": {}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"] })
    });
    cluster.put(CONFIGURATION, json!({ "metadata": { "name": "op" }, "webhooks": webhooks }));
}

fn configured() -> FakeApi {
    let cluster = cluster();
    configure(&cluster);
    cluster
}

/// Returns the CAs that the API server would trust, per webhook.
fn trusted(cluster: &FakeApi) -> Vec<Value> {
    let configuration = cluster.get(CONFIGURATION).unwrap();
    let webhooks = configuration["webhooks"].as_array().unwrap().iter();
    webhooks.map(|it| it["clientConfig"]["caBundle"].clone()).collect()
}

fn keeper(cluster: &FakeApi) -> (Certificates, Presented) {
    keeper_of(cluster, CertificateMaker::Operator)
}

fn keeper_of(cluster: &FakeApi, maker: CertificateMaker) -> (Certificates, Presented) {
    let (sender, presented) = watch::channel(None);
    let place = CertificateLocation {
        namespace: "edpm-system".into(),
        secret: "op-tls".into(),
        host: HOST.into(),
        mutating: None,
        validating: Some("op".into()),
        maker,
    };
    (Certificates::new(client(cluster), place).served_by(sender), presented)
}

/// Has the checks of an operator report the task.
fn reported(keeper: Certificates, health: &Health) -> Certificates {
    let alive = health.liveness("webhook certificate", Duration::from_mins(5));
    keeper.reported_to(health.readiness("webhook"), alive)
}

/// Runs the certificate task until the trigger is dropped.
fn started(keeper: Certificates) -> Trigger {
    let (trigger, stop) = shutdown();
    tokio::spawn(keeper.keep(stop));
    trigger
}

/// Waits for the next certificate.
async fn next(presented: &mut Presented) {
    let wait = presented.changed();
    tokio::time::timeout(Duration::from_mins(1), wait).await.expect("a certificate").unwrap();
}

fn store(cluster: &FakeApi, made: Timestamp) {
    let bundle = Bundle::issue(HOST, made, None).unwrap();
    let bytes = |text: &str| k8s_openapi::ByteString(text.to_owned().into_bytes());
    let data = json!({ "ca.crt": bytes(&bundle.authorities), "tls.crt": bytes(&bundle.certificate),
        "tls.key": bytes(&bundle.key) });
    let metadata = json!({ "name": "op-tls" });
    let secret = json!({ "metadata": metadata, "data": data, "type": "kubernetes.io/tls" });
    cluster.put(SECRET, secret);
}

fn days(n: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * n)
}

#[tokio::test(start_paused = true)]
async fn replicas_that_start_together_agree_on_one_certificate() {
    let cluster = configured();
    let ((one, mut first), (other, mut second)) = (keeper(&cluster), keeper(&cluster));
    let _running = [started(one), started(other)];
    next(&mut first).await;
    next(&mut second).await;
    let writes = |code: &str| requests(&cluster, &format!("POST {SECRETS} {code}")).len();
    assert_eq!((writes("201"), writes("409")), (1, 1), "one wins, the other follows");
    let stored = cluster.get(SECRET).unwrap();
    assert_eq!(trusted(&cluster), vec![stored["data"]["ca.crt"].clone(); 2]);
}

#[tokio::test(start_paused = true)]
async fn an_overwritten_ca_bundle_is_mended_and_the_webhook_is_ready() {
    let cluster = configured();
    let health = Health::default();
    let (keeper, mut presented) = keeper(&cluster);
    let keeper = reported(keeper, &health);
    assert_eq!(health.unready(), ["webhook: not started"]);
    let _running = started(keeper);
    next(&mut presented).await;
    assert_eq!(health.unready(), Vec::<String>::new());
    let ours = trusted(&cluster);
    let mut configuration = cluster.get(CONFIGURATION).unwrap();
    configuration["webhooks"][1]["clientConfig"]["caBundle"] = json!("bm90IG91cnM=");
    cluster.put(CONFIGURATION, configuration);
    assert_ne!(trusted(&cluster), ours);
    let overwritten = Instant::now();
    cluster.until(|it| trusted(it) == ours).await;
    assert!(overwritten.elapsed() <= Duration::from_secs(1), "{:?}", overwritten.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_renewed_certificate_is_presented_only_after_its_authority_was_published() {
    let cluster = configured();
    store(&cluster, clock::now());
    let (keeper, mut presented) = keeper(&cluster);
    let _running = started(keeper);
    next(&mut presented).await;
    let before = trusted(&cluster);
    store(&cluster, clock::now() - days(330));
    cluster.until(|it| trusted(it) != before).await;
    let published = Instant::now();
    assert!(!presented.has_changed().unwrap());
    next(&mut presented).await;
    assert!(published.elapsed() >= Duration::from_secs(2), "{:?}", published.elapsed());
    let stored = cluster.get(SECRET).unwrap();
    assert_eq!(trusted(&cluster), vec![stored["data"]["ca.crt"].clone(); 2]);
}

#[tokio::test(start_paused = true)]
async fn without_its_configuration_the_webhook_is_not_ready() {
    let cluster = cluster();
    let health = Health::default();
    let (keeper, mut presented) = keeper(&cluster);
    let _running = started(reported(keeper, &health));
    // A missing Secret is created all the same.
    cluster.until(|it| it.get(SECRET).is_some()).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    let unready = health.unready().concat();
    assert!(unready.contains("validatingwebhookconfigurations/op: not found"), "{unready}");
    assert!(presented.borrow().is_none());
    assert_eq!(health.stale(), Vec::<String>::new());
    configure(&cluster);
    next(&mut presented).await;
    assert_eq!(health.unready(), Vec::<String>::new());
}

/// Does what cert-manager's injector does.
fn inject(cluster: &FakeApi) {
    let authorities = cluster.get(SECRET).unwrap()["data"]["ca.crt"].clone();
    let mut configuration = cluster.get(CONFIGURATION).unwrap();
    for webhook in configuration["webhooks"].as_array_mut().unwrap() {
        webhook["clientConfig"]["caBundle"] = authorities.clone();
    }
    cluster.put(CONFIGURATION, configuration);
}

#[tokio::test(start_paused = true)]
async fn what_cert_manager_makes_is_presented_once_it_is_published_and_never_written() {
    let cluster = configured();
    let health = Health::default();
    let (keeper, mut presented) = keeper_of(&cluster, CertificateMaker::CertManager);
    let _running = started(reported(keeper, &health));
    for (words, is_stored) in [
        ("not filled Secret op-tls for op.edpm-system.svc", false),
        ("not published the authority", true),
    ] {
        if is_stored {
            store(&cluster, clock::now());
        }
        tokio::time::sleep(Duration::from_mins(2)).await;
        let unready = health.unready().concat();
        assert!(unready.contains(words), "{unready}");
        assert!(presented.borrow().is_none());
    }
    inject(&cluster);
    next(&mut presented).await;
    assert_eq!(health.unready(), Vec::<String>::new());
    // Renewed by cert-manager, presented without a restart.
    store(&cluster, clock::now() - days(1));
    inject(&cluster);
    next(&mut presented).await;
    let writes = |it: &String| !it.starts_with("GET ") && !it.starts_with("WATCH ");
    assert_eq!(requests(&cluster, "").into_iter().find(writes), None);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_requested_at_rest_until_the_renewal_is_due() {
    let cluster = configured();
    let base = clock::now();
    // Valid for a year and renewed ninety days before its end, at midnight after this day.
    store(&cluster, base - days(273));
    let (keeper, mut presented) = keeper(&cluster);
    let start = Instant::now();
    let now = move || base + SignedDuration::try_from(start.elapsed()).unwrap();
    let _running = started(keeper.by(now));
    next(&mut presented).await;
    let (before, ours) = (requests(&cluster, "").len(), trusted(&cluster));
    tokio::time::sleep(Duration::from_hours(12)).await;
    let later = requests(&cluster, "").split_off(before);
    let others: Vec<_> = later.iter().filter(|it| !it.starts_with("WATCH ")).collect();
    assert!(others.is_empty(), "only a watch that ended is opened again: {others:?}");
    assert_eq!(trusted(&cluster), ours);
    tokio::time::sleep(Duration::from_hours(48)).await;
    assert_ne!(trusted(&cluster), ours, "the renewal was due");
    assert!(presented.has_changed().unwrap());
    assert_eq!(requests(&cluster, &format!("PUT {SECRET} 200")).len(), 1);
    assert_eq!(requests(&cluster, "GET ").len(), 2, "one list for each watch, at the start");
}
