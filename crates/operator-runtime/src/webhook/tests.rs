//! Webhook tests from the API server's side: reviews, connection limits, and TLS across a
//! certificate change.

use axum::body::Body;
use futures::future::join_all;
use http::StatusCode;
use http_body_util::BodyExt as _;
use rcgen::ExtendedKeyUsagePurpose;
use rustls::{ClientConfig, RootCertStore, pki_types::pem::PemObject as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::JoinHandle,
    time::timeout,
};
use tokio_rustls::client::TlsStream;
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
    let handler = |request: &Request| {
        let before = request.object.as_ref().map(|it| it.data.clone()).unwrap_or_default();
        if before["spec"]["cell"] == "cell0" {
            return AdmissionDecision::deny("spec.cell: cell0 runs no computes").warn("w");
        }
        if before["spec"]["cell"] == "unseen" {
            return AdmissionDecision::ask_again("nothing was read yet");
        }
        let mut after = before.clone();
        after["spec"]["image"] = json!("default");
        AdmissionDecision::replace(&before, &after)
    };
    Webhook::new().mutate("/mutate-x", handler).validate("/validate-x", handler)
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

/// Returns a review of an update whose objects have these specs.
fn update(old: &str, new: &str) -> String {
    let object = |spec: &str| {
        format!(r#"{{"apiVersion":"x.org/v1","kind":"X","metadata":{{"name":"a"}},"spec":{spec}}}"#)
    };
    let review = review(&json!({})).replace("CREATE", "UPDATE");
    let at = review.find(r#""object":"#).unwrap();
    let end = review.find(r#","operation""#).unwrap();
    let objects = format!(r#""object":{},"oldObject":{}"#, object(new), object(old));
    format!("{}{objects}{}", &review[..at], &review[end..])
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_refused_in_words_and_hinders_nobody_once_it_is_there() {
    let deep = format!("{}1{}", r#"{"a":["#.repeat(200), "]}".repeat(200));
    let dense = format!(r#"{{"a":[{}0]}}"#, r#"{"":0},"#.repeat(100_000));
    for (bad, why) in [(&deep, "nests deeper than 100 levels"), (&dense, "takes more than 24 MiB")]
    {
        let (status, answer) = ask("/validate-x", update("{}", bad)).await;
        let response = &answer["response"];
        assert_eq!((status, &response["allowed"]), (StatusCode::OK, &json!(false)), "{why}");
        assert_eq!((&response["uid"], &response["status"]["code"]), (&json!("u1"), &json!(422)));
        assert!(response["status"]["message"].as_str().unwrap().contains(why), "{response}");

        let (status, answer) = ask("/validate-x", update(bad, bad)).await;
        let response = &answer["response"];
        assert_eq!((status, &response["allowed"]), (StatusCode::OK, &json!(true)), "{why}");
        assert!(response["warnings"][0].as_str().unwrap().contains(why), "{response}");

        let (_, answer) = ask("/validate-x", update(bad, "{}")).await;
        assert_eq!(answer["response"]["allowed"], json!(true), "{why}: it is mended");
    }
    let (_, answer) = ask("/validate-x", update("{}", r#"{"cell":"cell0"}"#)).await;
    assert_eq!(answer["response"]["allowed"], json!(false), "what can be read is judged");
}

#[tokio::test]
async fn a_body_of_more_than_two_objects_is_refused_whether_it_says_its_length_or_not() {
    let long = " ".repeat(review::LARGEST_BODY + 1);
    assert_eq!(ask("/validate-x", long.clone()).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let chunk = long.into_bytes();
    let chunks = futures::stream::iter([Ok::<_, std::io::Error>(chunk)]);
    let request = http::Request::post("/validate-x").body(Body::from_stream(chunks)).unwrap();
    let answer = webhook().router().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn who_fills_the_room_of_bodies_keeps_no_usual_review_out_and_takes_one_address_s_part_alone()
{
    let bounds = Bounds { free: 500, all: 2_000, of_one_peer: 1_000 };
    let router = webhook().router_at(ReviewLimits::of(bounds));
    let ask = |from: [u8; 4], body: Body| {
        let request = http::Request::post("/validate-x").extension(PeerAddress(from.into()));
        router.clone().oneshot(request.body(body).unwrap())
    };
    let (busy, other) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    // One body of 1,400 bytes that has not ended yet.
    let (sender, chunks) = tokio::sync::mpsc::unbounded_channel::<Result<String, std::io::Error>>();
    let chunks = futures::stream::unfold(chunks, async |mut it| Some((it.recv().await?, it)));
    sender.send(Ok(" ".repeat(1_400))).unwrap();
    let slow = tokio::spawn(ask(busy, Body::from_stream(chunks)));
    let put_off = || async {
        let answer = ask(busy, Body::from(" ".repeat(700))).await.unwrap();
        (answer.status() == StatusCode::SERVICE_UNAVAILABLE).then_some(answer)
    };
    let refused = until(put_off).await;
    assert_eq!(refused.headers()["retry-after"], "1");
    let large = |from| ask(from, Body::from(" ".repeat(700)));
    assert_eq!(large(other).await.unwrap().status(), StatusCode::BAD_REQUEST, "it was read");
    let usual = review(&json!({})).replace(' ', "");
    assert!(usual.len() <= bounds.free, "{}", usual.len());
    for from in [busy, other] {
        let answer = ask(from, Body::from(usual.clone())).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "a usual one needs no room");
    }
    drop(sender);
    assert_eq!(slow.await.unwrap().unwrap().status(), StatusCode::BAD_REQUEST);
    assert_eq!(large(busy).await.unwrap().status(), StatusCode::BAD_REQUEST);
}

/// Sends a request until it is answered; other tasks run in between.
async fn until<T, F: Future<Output = Option<T>>>(question: impl Fn() -> F) -> T {
    let asking = async {
        loop {
            if let Some(answer) = question().await {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_mins(1), asking).await.unwrap()
}

/// Connects to a webhook, with a client certificate if there is one, trusting only the CAs of `trusted`.
async fn connect(
    client: Option<&Bundle>,
    address: SocketAddr,
    from: [u8; 4],
    trusted: &Bundle,
) -> Result<TlsStream<TcpStream>, BoxError> {
    let mut roots = RootCertStore::empty();
    let pem = trusted.authorities.as_bytes();
    for certificate in rustls::pki_types::CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let config = match client {
        None => config.with_no_client_auth(),
        Some(client) => {
            let own =
                rustls::pki_types::CertificateDer::from_pem_slice(client.certificate.as_bytes())?;
            let key = rustls::pki_types::PrivateKeyDer::from_pem_slice(client.key.as_bytes())?;
            config.with_client_auth_cert(vec![own], key)?
        }
    };
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    Ok(connector.connect(HOST.try_into()?, socket.connect(address).await?).await?)
}

/// The address that most clients have.
const ME: [u8; 4] = [127, 0, 0, 1];

/// Sends a request over TLS, trusting only the CAs of `trusted`; returns the whole response.
async fn ask_from(
    address: SocketAddr,
    from: [u8; 4],
    trusted: &Bundle,
) -> Result<String, BoxError> {
    ask_over(connect(None, address, from, trusted).await?).await
}

async fn ask_over(mut stream: TlsStream<TcpStream>) -> Result<String, BoxError> {
    let body = review(&json!({}));
    // Without `connection: close`: the server closes by itself.
    let head = format!(
        "POST /mutate-x HTTP/1.1\r\nhost: {HOST}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Starts a server for so many connections of the clients with a certificate of these CAs; returns its
/// address and its certificate.
async fn serving(connections: usize, clients: &str) -> (SocketAddr, Bundle, JoinHandle<()>) {
    let bundle = Bundle::issue(HOST, clock::now(), None).unwrap();
    let config = bundle.server_config_for(client_verifier(clients).unwrap()).unwrap();
    // The usual times: a busy machine takes a while for a handshake of a client that is not slow.
    let limits = Limits { connections, ..Limits::default() };
    let presented = watch::channel(Some(config)).1;
    let (address, server) = serving_until(std::future::pending(), presented, limits).await;
    (address, bundle, server)
}

async fn serving_until(
    stopped: impl Future<Output = ()> + Send + 'static,
    presented: Presented,
    limits: Limits,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = webhook().router();
    (address, tokio::spawn(serve(listener, presented, router, limits, stopped)))
}

/// Waits until the server has closed a connection.
async fn closed(mut stream: impl AsyncRead + Unpin) {
    let mut rest = Vec::new();
    // A connection reset also counts as closed.
    let _ = timeout(Duration::from_mins(1), stream.read_to_end(&mut rest)).await.unwrap();
}

#[tokio::test]
async fn connections_that_are_slow_are_closed_and_others_are_answered_meanwhile() {
    let (address, bundle, server) = serving(3, "").await;
    // One never completes the handshake, one never its request head, one never its body: all
    // connections are in use.
    let silent = TcpStream::connect(address).await.unwrap();
    let mut in_head = connect(None, address, ME, &bundle).await.unwrap();
    in_head.write_all(b"POST /mutate-x HTTP/1.1\r\nhost: a\r\n").await.unwrap();
    let mut in_body = connect(None, address, ME, &bundle).await.unwrap();
    let head = b"POST /mutate-x HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{";
    in_body.write_all(head).await.unwrap();
    let other = ask_from(address, [127, 0, 0, 2], &bundle);
    let answer = timeout(Duration::from_mins(1), other).await.unwrap();
    assert!(answer.unwrap().contains("200 OK"), "nobody else was answered");
    closed(silent).await;
    closed(in_head).await;
    closed(in_body).await;
    server.abort();
}

#[tokio::test]
async fn one_address_cannot_take_the_connections_of_others() {
    let (address, bundle, server) = serving(4, "").await;
    let held = join_all((0..4).map(|_| connect(None, address, ME, &bundle))).await;
    assert!(held.iter().all(Result::is_ok), "{held:?}");
    assert!(connect(None, address, ME, &bundle).await.is_err(), "a fifth was let in");
    let answer = ask_from(address, [127, 0, 0, 2], &bundle).await.unwrap();
    assert!(answer.contains("200 OK"), "{answer}");
    drop(held);
    let again = || async { ask_from(address, ME, &bundle).await.ok() };
    assert!(until(again).await.contains("200 OK"), "its places are free again");
    server.abort();
}

#[tokio::test]
async fn where_clients_are_known_by_their_certificates_nobody_else_is_answered() {
    let of = |usage| Bundle::issue_for("api-server", clock::now(), None, usage).unwrap();
    let (api_server, other) =
        (of(ExtendedKeyUsagePurpose::ClientAuth), of(ExtendedKeyUsagePurpose::ClientAuth));
    let (address, bundle, server) = serving(1, &api_server.authorities).await;
    let ask = async |client: Option<&Bundle>| {
        ask_over(connect(client, address, ME, &bundle).await?).await
    };
    // Whoever is known needs none of the places.
    let known = connect(Some(&api_server), address, ME, &bundle).await.unwrap();
    let again = || async { ask(Some(&api_server)).await.ok() };
    assert!(until(again).await.contains("200 OK"));
    assert!(ask_over(known).await.unwrap().contains("200 OK"), "it held a place");
    assert!(ask(None).await.is_err(), "somebody without a certificate was answered");
    assert!(ask(Some(&other)).await.is_err(), "somebody else's certificate was accepted");
    assert!(client_verifier("no certificate").is_err());
    assert!(!client_verifier(" ").unwrap().offer_client_auth());
    server.abort();
}

#[tokio::test]
async fn the_certificate_is_swapped_without_a_restart() {
    let (presented, config) = watch::channel(None);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopped = async { drop(stopped.await) };
    let (address, server) = serving_until(stopped, config, Limits::default()).await;
    let now = clock::now();
    let old = Bundle::issue(HOST, now, None).unwrap();
    let new = Bundle::issue(HOST, now, Some(&old)).unwrap();

    assert!(ask_from(address, ME, &old).await.is_err(), "nothing is served without a certificate");
    presented.send_replace(Some(old.server_config().unwrap()));
    assert!(ask_from(address, ME, &old).await.unwrap().contains("200 OK"));
    assert!(ask_from(address, ME, &new).await.unwrap().contains(r#""allowed":true"#));
    presented.send_replace(Some(new.server_config().unwrap()));
    assert!(ask_from(address, ME, &new).await.unwrap().contains("200 OK"));
    assert!(ask_from(address, ME, &old).await.is_err(), "the old authority signed another");
    stop.send(()).unwrap();
    server.await.unwrap();
}
