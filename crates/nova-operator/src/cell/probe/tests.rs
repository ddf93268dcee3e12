//! The probes against servers of this process: silent, closed, foreign, and with TLS.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use nova_config::transport_url::TransportUrl;
use operator_runtime::http_client::HttpClients;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Barrier,
};

use super::{
    CaTrust, DEADLINE, HostOutcome, KeystoneFault, Login, TrustFault, amqp_login, keystone_answers,
};

/// Serves each connection to a port of its own with `serve`.
async fn server<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// Sends one response to any request.
async fn answering(answer: &'static [u8]) -> SocketAddr {
    server(move |mut stream| async move {
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(answer).await;
    })
    .await
}

/// Reads until the client disconnects, and sends nothing.
async fn silent() -> SocketAddr {
    server(|mut stream| async move { while matches!(stream.read(&mut [0; 64]).await, Ok(1..)) {} })
        .await
}

/// A port where no server listens, while the socket is held: a free one would soon be another test's.
fn closed() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

fn trust() -> CaTrust {
    CaTrust::new(None).unwrap()
}

/// Probes a local Keystone.
async fn probed(url: &str, trust: &CaTrust) -> Result<(), KeystoneFault> {
    keystone_answers(url, &HttpClients::with_loopback().of("ns", trust.clone())).await
}

async fn login(hosts: &[SocketAddr], query: &str) -> Vec<HostOutcome> {
    let hosts: Vec<_> = hosts.iter().map(|it| format!("nova:hunter2@{it}")).collect();
    let url = format!("rabbit://{}/cell1{query}", hosts.join(","));
    let clients = HttpClients::with_loopback();
    amqp_login(&TransportUrl::parse(&url).unwrap(), &trust(), &clients).await
}

async fn login_to(host: SocketAddr) -> Login {
    login(&[host], "").await.remove(0).login
}

#[tokio::test]
async fn a_broker_at_an_address_that_is_not_allowed_gets_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("rabbit://nova:hunter2@{}/cell1", listener.local_addr().unwrap());
    let url = TransportUrl::parse(&url).unwrap();
    let login = amqp_login(&url, &trust(), &HttpClients::default()).await.remove(0).login;
    let Login::Unreachable(cause) = login else { panic!("{login:?}") };
    assert!(cause.contains("allowedEndpointNetworks"), "{cause}");
}

#[tokio::test]
async fn brokers_that_accept_and_say_nothing_are_unreachable_in_time() {
    let mut brokers = Vec::new();
    for _ in 0..8 {
        brokers.push(silent().await);
    }
    let started = Instant::now();
    let outcome = login(&brokers, "").await;
    assert!(started.elapsed() >= DEADLINE);
    // One after the other they take twice as long.
    assert!(started.elapsed() < 6 * DEADLINE, "asked one after the other");
    let late = Login::Unreachable("no answer within 5 s".to_owned());
    assert_eq!(outcome.iter().map(|it| &it.login).collect::<Vec<_>>(), [&late; 8]);
}

#[tokio::test]
async fn eight_brokers_are_asked_at_a_time() {
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let together = Arc::new(Barrier::new(8));
    let (counted, all) = (Arc::clone(&most), Arc::clone(&together));
    let broker = server(move |stream| {
        let (open, most, together) = (Arc::clone(&open), Arc::clone(&counted), Arc::clone(&all));
        async move {
            most.fetch_max(open.fetch_add(1, Relaxed) + 1, Relaxed);
            together.wait().await;
            open.fetch_sub(1, Relaxed);
            drop(stream);
        }
    })
    .await;
    assert_eq!(login(&[broker; 32], "").await.len(), 32);
    assert_eq!(most.load(Relaxed), 8);
}

#[tokio::test]
async fn a_tls_broker_that_says_nothing_is_unreachable_in_time() {
    let outcome = login(&[silent().await], "?ssl=1").await;
    assert_eq!(outcome[0].login, Login::Unreachable("no answer within 5 s".to_owned()));
}

#[tokio::test]
async fn each_host_has_an_outcome_of_its_own_in_the_order_of_the_url() {
    let (_held, closed) = closed();
    let foreign = answering(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let outcome = login(&[closed, foreign], "").await;
    assert_eq!(outcome[0].address, closed.to_string());
    assert!(matches!(outcome[0].login, Login::Unreachable(_)));
    assert_eq!(outcome[0].login.reason().word, "Unreachable");
    assert!(outcome[0].to_string().contains(&closed.to_string()));
    assert_eq!(outcome[1].login, Login::NotAmqp);
}

#[tokio::test]
async fn what_speaks_another_version_or_nonsense_is_no_broker() {
    assert_eq!(login_to(answering(b"AMQP\x00\x01\x00\x00").await).await, Login::NotAmqp);
    assert_eq!(login_to(answering(b"\x01\x00\x00\xff\xff\xff\xff").await).await, Login::NotAmqp);
    assert_eq!(
        login_to(answering(b"\x01\x00\x00\x00\x00\x00\x02\x00\x0a\xce").await).await,
        Login::NotAmqp
    );
}

#[tokio::test]
async fn a_broker_that_hangs_up_is_unreachable() {
    let cut = login_to(answering(b"\x01\x00").await).await;
    assert_eq!(cut, Login::Unreachable("the connection was closed during the login".to_owned()));
}

/// One method of class 10 as a frame.
fn frame(method: u8, arguments: &[u8]) -> Vec<u8> {
    let size = u32::try_from(arguments.len() + 4).unwrap().to_be_bytes();
    [&[1, 0, 0][..], &size, &[0, 10, 0, method], arguments, &[0xce]].concat()
}

/// A broker's close method with a reply code and text, in response to the first bytes.
fn close(code: u16, text: &str) -> &'static [u8] {
    let length = u8::try_from(text.len()).unwrap();
    frame(50, &[&code.to_be_bytes()[..], &[length], text.as_bytes(), &[0; 4]].concat()).leak()
}

#[tokio::test]
async fn a_broker_that_lets_the_user_in_and_then_says_nothing_is_fine() {
    let start = frame(10, b"\x00\x09\0\0\0\0\0\0\0\x0eAMQPLAIN PLAIN\0\0\0\x05en_US");
    let heartbeat = b"\x08\0\0\0\0\0\0\xce".to_vec();
    let tune = frame(30, &[0; 8]);
    let all: &[u8] = [start, heartbeat, tune, frame(41, &[0])].concat().leak();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let broker = server(move |mut stream| {
        let tell = tell.clone();
        async move {
            let _ = stream.write_all(all).await;
            let mut heard = Vec::new();
            let _ = stream.read_to_end(&mut heard).await;
            let _ = tell.send(String::from_utf8_lossy(&heard).into_owned());
        }
    })
    .await;
    assert_eq!(login_to(broker).await, Login::Ok);
    let heard = told.recv().await.unwrap();
    assert!(heard.contains("PLAIN") && heard.contains("\0nova\0hunter2"));
    assert!(heard.contains("cell1") && heard.contains("bye"));
}

#[tokio::test]
async fn a_broker_without_passwords_is_not_sent_one() {
    let start = frame(10, b"\x00\x09\0\0\0\0\0\0\0\x08EXTERNAL\0\0\0\x05en_US");
    assert_eq!(login_to(answering(start.leak()).await).await, Login::NotAmqp);
}

#[tokio::test]
async fn a_refusal_is_told_by_its_code_and_never_with_the_password() {
    for (code, text, expected) in [
        (403, "ACCESS_REFUSED - Login was refused", Login::AccessRefused),
        (530, "NOT_ALLOWED - vhost cell1 not found", Login::VhostMissing),
        (530, "NOT_ALLOWED - access to vhost 'cell1' refused", Login::VhostRefused),
        (541, "INTERNAL_ERROR", Login::Refused(541, "INTERNAL_ERROR".to_owned())),
    ] {
        assert_eq!(login_to(answering(close(code, text)).await).await, expected);
    }
    let echoing = login_to(answering(close(541, "hunter2 is odd")).await).await;
    assert!(!format!("{echoing:?}").contains("hunter2"));
}

#[tokio::test]
async fn keystone_answers_with_its_version() {
    let body = r#"{"version": {"id": "v3.14"}}"#;
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let keystone = answering(answer.leak().as_bytes()).await;
    for path in ["", "/", "/v3"] {
        assert_eq!(probed(&format!("http://{keystone}{path}"), &trust()).await, Ok(()));
    }
}

#[tokio::test]
async fn what_answers_otherwise_is_no_keystone() {
    let unavailable = answering(b"HTTP/1.1 503 no\r\ncontent-length: 0\r\n\r\n").await;
    let result = probed(&format!("http://{unavailable}"), &trust()).await;
    assert_eq!(result, Err(KeystoneFault::NotKeystone(503)));
    let page = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await;
    let result = probed(&format!("http://{page}"), &trust()).await;
    assert_eq!(result, Err(KeystoneFault::NotKeystone(200)));
    // It announces more than it sends, and disconnects.
    let cut = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\nhello").await;
    let result = probed(&format!("http://{cut}"), &trust()).await;
    assert_eq!(result, Err(KeystoneFault::NotKeystone(200)));
}

#[tokio::test]
async fn a_keystone_that_says_nothing_is_unreachable_in_time() {
    let started = Instant::now();
    let result = probed(&format!("http://{}", silent().await), &trust()).await;
    // The words below prove the limit; a busy machine only gets there later.
    assert!(started.elapsed() < Duration::from_mins(1));
    assert_eq!(result, Err(KeystoneFault::Unreachable("no answer within 5 s".to_owned())));
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let (_held, closed) = closed();
    let result = probed(&format!("http://{closed}"), &trust()).await;
    assert!(matches!(result, Err(KeystoneFault::Unreachable(_))));
    let http = HttpClients::default().of("ns", trust());
    let result = keystone_answers(&format!("http://{closed}"), &http).await;
    let Err(KeystoneFault::Unreachable(cause)) = result else { panic!("{result:?}") };
    assert!(cause.contains("loopback"), "{cause}");
    let result = probed("keystone", &trust()).await;
    assert_eq!(result, Err(KeystoneFault::NotUrl));
}

#[tokio::test]
async fn a_certificate_is_believed_only_by_its_own_bundle() {
    let (keystone, bundle) = tls_keystone().await;
    let url = format!("https://{keystone}");
    assert_eq!(probed(&url, &CaTrust::new(Some(&bundle)).unwrap()).await, Ok(()));
    let (_, other) = tls_keystone().await;
    let result = probed(&url, &CaTrust::new(Some(&other)).unwrap()).await;
    assert!(matches!(result, Err(KeystoneFault::Untrusted(_))), "{result:?}");
}

#[test]
fn a_bundle_without_a_certificate_is_a_fault() {
    for bundle in ["", "hello", "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"] {
        assert_eq!(CaTrust::new(Some(bundle)).err(), Some(TrustFault::Bundle), "{bundle}");
    }
}

/// A Keystone with a certificate of its own, and the bundle that trusts it.
async fn tls_keystone() -> (SocketAddr, String) {
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let address = server(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let _ = stream.read(&mut [0; 1024]).await;
            let answer = b"HTTP/1.1 200 OK\r\n\r\n{\"version\": {\"id\": \"v3.14\"}}";
            let _ = stream.write_all(answer).await;
            let _ = stream.shutdown().await;
        }
    })
    .await;
    (address, own.cert.pem())
}
