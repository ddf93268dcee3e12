//! The webhook as the API server meets it: reviews, and TLS across a swap.

use axum::body::Body;
use http_body_util::BodyExt as _;
use rustls::{ClientConfig, RootCertStore, pki_types::pem::PemObject as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tower::ServiceExt as _;

use super::*;
use crate::{clock, error::BoxError, tls::Bundle};

const HOST: &str = "op.edpm-system.svc";

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
        if before["spec"]["cell"] == "unseen" {
            return Verdict::ask_again("nothing was read yet");
        }
        let mut after = before.clone();
        after["spec"]["image"] = json!("default");
        Verdict::replace(&before, &after)
    };
    Webhook::new().mutate("/mutate-x", judge).validate("/validate-x", judge)
}

async fn ask(path: &str, body: String) -> (StatusCode, Value) {
    let request = http::Request::post(path).body(Body::from(body)).unwrap();
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
async fn who_cannot_tell_yet_refuses_with_a_pause_after_which_clients_ask_again() {
    let (status, answer) = ask("/validate-x", review(&json!({ "cell": "unseen" }))).await;
    let refused = &answer["response"]["status"];
    assert_eq!((status, &answer["response"]["allowed"]), (StatusCode::OK, &json!(false)));
    assert_eq!((&refused["code"], &refused["reason"]), (&json!(503), &json!("ServiceUnavailable")));
    assert_eq!(refused["details"], json!({ "retryAfterSeconds": 1 }));
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
