//! The webhook as the API server meets it: reviews, TLS across a swap, certificates in a cluster.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use axum::body::Body as AxumBody;
use http::{Method, Response};
use http_body_util::{BodyExt as _, Full};
use jiff::{SignedDuration, Timestamp};
use kube::{Client, client::Body};
use rustls::{ClientConfig, RootCertStore, pki_types::pem::PemObject as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tower::{ServiceExt as _, service_fn};

use super::*;
use crate::{
    admin::Health, client::client_over, clock, error::BoxError, metrics::Metrics, tls::Bundle,
};

const HOST: &str = "op.edpm-system.svc";
const SECRET: &str = "/api/v1/namespaces/edpm-system/secrets";
const CONFIGURATION: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/op";

fn review(spec: &Value) -> String {
    let kind = json!({ "group": "x.org", "version": "v1", "kind": "X" });
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u1", "kind": kind, "name": "a", "operation": "CREATE", "userInfo": {},
            "resource": { "group": "x.org", "version": "v1", "resource": "xs" },
            "object": { "apiVersion": "x.org/v1", "kind": "X", "metadata": { "name": "a" },
                "spec": spec },
        },
    })
    .to_string()
}

fn webhook() -> Webhook {
    let judge = |request: &Request| {
        let before = request.object.as_ref().map(|it| it.data.clone()).unwrap_or_default();
        if before["spec"]["cell"] == "cell0" {
            return Verdict::deny("spec.cell: cell0 runs no computes").warn("w");
        }
        let mut after = before.clone();
        after["spec"]["image"] = json!("default");
        Verdict::replace(&before, &after)
    };
    Webhook::new().mutate("/mutate-x", judge).validate("/validate-x", judge)
}

async fn ask(path: &str, body: String) -> (StatusCode, Value) {
    let request = http::Request::post(path).body(AxumBody::from(body)).unwrap();
    let response = webhook().router().oneshot(request).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

#[tokio::test]
async fn a_refusal_carries_its_message_its_code_and_its_warnings() {
    let (_, answer) = ask("/validate-x", review(&json!({ "cell": "cell0" }))).await;
    let response = &answer["response"];
    assert_eq!((&response["allowed"], &response["uid"]), (&json!(false), &json!("u1")));
    assert_eq!(response["status"]["message"], "spec.cell: cell0 runs no computes");
    assert_eq!((&response["status"]["code"], &response["warnings"]), (&json!(422), &json!(["w"])));
}

#[tokio::test]
async fn only_a_mutating_webhook_patches() {
    let body = review(&json!({ "cell": "cell1" }));
    let (_, mutated) = ask("/mutate-x", body.clone()).await;
    assert_eq!(mutated["response"]["patchType"], "JSONPatch");
    let bytes: Vec<u8> = serde_json::from_value(mutated["response"]["patch"].clone()).unwrap();
    let patch: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(patch, json!([{ "op": "add", "path": "/spec/image", "value": "default" }]));
    let (_, validated) = ask("/validate-x", body).await;
    assert_eq!(validated["response"]["allowed"], json!(true));
    assert_eq!(validated["response"]["patch"], Value::Null);
}

#[tokio::test]
async fn what_is_no_review_is_a_bad_request() {
    assert_eq!(ask("/mutate-x", "{}".into()).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(ask("/mutate-x", "not json".into()).await.0, StatusCode::BAD_REQUEST);
}

/// Asks over TLS, trusting only the authorities of `trusted`; the whole answer.
async fn ask_securely(address: SocketAddr, trusted: &Bundle) -> Result<String, BoxError> {
    let mut roots = RootCertStore::empty();
    let pem = trusted.authorities.as_bytes();
    for certificate in rustls::pki_types::CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(address).await?;
    let mut stream = connector.connect(HOST.try_into()?, stream).await?;
    let body = review(&json!({}));
    let head = format!(
        "POST /mutate-x HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test]
async fn the_certificate_is_swapped_without_a_restart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (presented, config) = watch::channel(None);
    let listener = TlsListener::new(listener, config).unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, webhook().router()).await });
    let now = clock::now();
    let old = Bundle::issue(HOST, now, None).unwrap();
    let new = Bundle::issue(HOST, now, Some(&old)).unwrap();

    assert!(ask_securely(address, &old).await.is_err(), "nothing is served without a certificate");
    presented.send_replace(Some(old.server_config().unwrap()));
    assert!(ask_securely(address, &old).await.unwrap().contains("200 OK"));
    assert!(ask_securely(address, &new).await.unwrap().contains(r#""allowed":true"#));
    presented.send_replace(Some(new.server_config().unwrap()));
    assert!(ask_securely(address, &new).await.unwrap().contains("200 OK"));
    assert!(ask_securely(address, &old).await.is_err(), "the old authority signed another");
    server.abort();
}

/// The few paths of an API server that the keeper of certificates uses.
#[derive(Clone, Default)]
struct Cluster(Arc<Mutex<BTreeMap<String, Value>>>);

impl Cluster {
    fn with_configuration() -> Self {
        let cluster = Self::default();
        let webhooks = ["a", "b"].map(|name| {
            json!({ "name": name, "clientConfig": {}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"] })
        });
        let metadata = json!({ "name": "op", "resourceVersion": "1" });
        cluster.put(CONFIGURATION, json!({ "metadata": metadata, "webhooks": webhooks }));
        cluster
    }

    fn get(&self, path: &str) -> Option<Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    fn put(&self, path: &str, mut object: Value) -> Value {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = objects.get(path).and_then(|it| it["metadata"]["resourceVersion"].as_str());
        let version = before.and_then(|it| it.parse::<u64>().ok()).unwrap_or_default() + 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        objects.insert(path.to_owned(), object.clone());
        object
    }

    /// The authorities that the API server would trust, per webhook.
    fn trusted(&self) -> Vec<Value> {
        let configuration = self.get(CONFIGURATION).unwrap();
        let webhooks = configuration["webhooks"].as_array().unwrap().iter();
        webhooks.map(|it| it["clientConfig"]["caBundle"].clone()).collect()
    }

    fn client(&self) -> Client {
        let cluster = self.clone();
        let service = service_fn(move |request: http::Request<Body>| {
            let cluster = cluster.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let (code, answer) = cluster.answer(&head.method, head.uri.path(), body);
                let bytes = Bytes::from(answer.to_string());
                Ok::<_, BoxError>(Response::builder().status(code).body(Full::new(bytes))?)
            }
        });
        client_over(service, "edpm-system", &Metrics::new("test"))
    }

    fn answer(&self, method: &Method, path: &str, body: Value) -> (u16, Value) {
        let failure = |code: u16, reason: &str| {
            let status = json!({ "kind": "Status", "status": "Failure", "code": code,
                "reason": reason, "message": reason });
            (code, status)
        };
        let path = match body["metadata"]["name"].as_str() {
            Some(name) if *method == Method::POST => format!("{path}/{name}"),
            _ => path.to_owned(),
        };
        let version = &body["metadata"]["resourceVersion"];
        match (method.as_str(), self.get(&path)) {
            ("POST", Some(_)) => failure(409, "AlreadyExists"),
            ("POST", None) => (201, self.put(&path, body)),
            (_, None) => failure(404, "NotFound"),
            ("GET", Some(seen)) => (200, seen),
            (_, Some(seen)) if *version != seen["metadata"]["resourceVersion"] => {
                failure(409, "Conflict")
            }
            ("PUT", Some(_)) => (200, self.put(&path, body)),
            (_, Some(mut seen)) => {
                for entry in body["webhooks"].as_array().unwrap() {
                    let webhooks = seen["webhooks"].as_array_mut().unwrap();
                    let webhook = webhooks.iter_mut().find(|it| it["name"] == entry["name"]);
                    webhook.unwrap()["clientConfig"]["caBundle"] =
                        entry["clientConfig"]["caBundle"].clone();
                }
                (200, self.put(&path, seen))
            }
        }
    }
}

fn keeper(cluster: &Cluster) -> (Certificates, Presented) {
    let (sender, presented) = watch::channel(None);
    let place = Place {
        namespace: "edpm-system".into(),
        secret: "op-tls".into(),
        host: HOST.into(),
        mutating: None,
        validating: Some("op".into()),
    };
    (Certificates::new(cluster.client(), place).served_by(sender), presented)
}

fn data_of(bundle: &Bundle) -> Value {
    let bytes = |text: &str| k8s_openapi::ByteString(text.to_owned().into_bytes());
    json!({ "ca.crt": bytes(&bundle.authorities), "tls.crt": bytes(&bundle.certificate),
        "tls.key": bytes(&bundle.key) })
}

fn store(cluster: &Cluster, made: Timestamp) {
    let bundle = Bundle::issue(HOST, made, None).unwrap();
    let metadata = json!({ "name": "op-tls" });
    cluster.put(
        &format!("{SECRET}/op-tls"),
        json!({ "metadata": metadata, "data": data_of(&bundle), "type": "kubernetes.io/tls" }),
    );
}

#[tokio::test]
async fn replicas_that_start_together_agree_on_one_certificate() {
    let cluster = Cluster::with_configuration();
    let ((mut one, _), (mut other, _)) = (keeper(&cluster), keeper(&cluster));
    let (first, second) = tokio::join!(one.round(), other.round());
    // Whoever lost the race for the caBundle comes to the same end in its next round.
    drop((first, second));
    one.round().await.unwrap();
    other.round().await.unwrap();
    let stored = cluster.get(&format!("{SECRET}/op-tls")).unwrap();
    assert_eq!(stored["metadata"]["resourceVersion"], "1", "it was written once");
    assert_eq!(cluster.trusted(), vec![stored["data"]["ca.crt"].clone(); 2]);
}

#[tokio::test]
async fn an_overwritten_ca_bundle_is_mended_and_the_webhook_is_ready() {
    let cluster = Cluster::with_configuration();
    let health = Health::default();
    let (keeper, presented) = keeper(&cluster);
    let day = Duration::from_hours(24);
    let reports = (health.readiness("webhook"), health.liveness("webhook certificate", day));
    let mut keeper = keeper.reported_to(reports.0, reports.1);
    assert_eq!(health.unready(), ["webhook: not started"]);
    keeper.round().await.unwrap();
    assert_eq!(health.unready(), Vec::<String>::new());
    assert!(presented.borrow().is_some());
    let ours = cluster.trusted();
    let mut configuration = cluster.get(CONFIGURATION).unwrap();
    configuration["webhooks"][1]["clientConfig"]["caBundle"] = json!("bm90IG91cnM=");
    cluster.put(CONFIGURATION, configuration);
    keeper.round().await.unwrap();
    assert_eq!(cluster.trusted(), ours);
}

#[tokio::test]
async fn a_renewed_certificate_is_presented_only_after_its_authority_was_published() {
    let cluster = Cluster::with_configuration();
    store(&cluster, clock::now());
    let (mut keeper, mut presented) = keeper(&cluster);
    keeper.round().await.unwrap();
    presented.mark_unchanged();
    let before = cluster.trusted();
    store(&cluster, clock::now() - SignedDuration::from_hours(24 * 330));
    keeper.round().await.unwrap();
    assert_ne!(cluster.trusted(), before, "the certificate was due and its authority published");
    assert!(!presented.has_changed().unwrap());
    keeper.round().await.unwrap();
    assert!(presented.has_changed().unwrap());
}

#[tokio::test]
async fn without_its_configuration_the_webhook_is_not_ready() {
    let cluster = Cluster::default();
    let (mut keeper, presented) = keeper(&cluster);
    assert!(keeper.round().await.unwrap_err().is_not_found());
    assert!(presented.borrow().is_none());
}
