//! Tests of the way to a cluster: through a proxy that listens, and past it.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// A name that only the proxy can resolve.
const CLUSTER: &str = "https://api.cluster.example:6443";

/// What a proxy was asked for.
type Asked = Arc<Mutex<Vec<String>>>;

#[tokio::test]
async fn a_cluster_is_reached_through_the_http_proxy_of_the_environment() {
    let api = Server::start().await;
    let (proxy, asked) = http_proxy(api.address).await;
    let cluster = api.cluster(CLUSTER, &format!("http://me:secret@{proxy}"), "10.0.0.0/8,");
    assert!(matches!(cluster.read::<Node>("n0").await.unwrap(), Read::Missing));
    let asked = asked.lock().clone();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].starts_with("connect api.cluster.example:6443 http/1.1\r\n"), "{asked:?}");
    assert!(asked[0].contains("proxy-authorization: basic bwu6c2vjcmv0\r\n"), "{asked:?}");
}

#[tokio::test]
async fn a_cluster_is_reached_through_a_socks_proxy() {
    let api = Server::start().await;
    let (proxy, asked) = socks_proxy(api.address).await;
    let cluster = api.cluster(CLUSTER, &format!("socks5://me:secret@{proxy}"), "");
    assert!(matches!(cluster.read::<Node>("n0").await.unwrap(), Read::Missing));
    assert_eq!(*asked.lock(), ["me", "secret", "api.cluster.example:6443"]);
}

#[tokio::test]
async fn a_cluster_on_this_machine_is_reached_without_the_proxy() {
    let api = Server::start().await;
    let (proxy, asked) = http_proxy(api.address).await;
    let server = format!("https://127.0.0.1:{}", api.address.port());
    let cluster = api.cluster(&server, &format!("http://{proxy}"), "");
    assert!(matches!(cluster.read::<Node>("n0").await.unwrap(), Read::Missing));
    assert!(asked.lock().is_empty(), "{asked:?}");
}

#[tokio::test]
async fn a_proxy_that_does_not_let_through_is_named() {
    let api = Server::start().await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let cluster = api.cluster(CLUSTER, &format!("http://me:secret@{closed}"), "");
    let text = cluster.read::<Node>("n0").await.unwrap_err().to_string();
    let start = format!("Unable to connect to the server: proxy {closed}: ");
    assert!(text.starts_with(&start) && text.contains("refused"), "{text}");
}

#[test]
fn the_proxy_of_a_kubeconfig_is_that_of_the_context() {
    let text = "
        current-context: one
        clusters:
        - {name: a, cluster: {server: 'https://a', proxy-url: 'http://pa:1'}}
        - {name: b, cluster: {server: 'https://b'}}
        contexts:
        - {name: one, context: {cluster: a}}
        - {name: two, context: {cluster: b}}
    ";
    let kubeconfig = Kubeconfig::from_yaml(text).unwrap();
    assert_eq!(configured_proxy(&kubeconfig, None).as_deref(), Some("http://pa:1"));
    assert_eq!(configured_proxy(&kubeconfig, Some("two")), None);
}

/// An API server that has no objects.
struct Server {
    address: SocketAddr,
    certificate: Vec<u8>,
}

impl Server {
    async fn start() -> Self {
        let names = ["127.0.0.1".to_owned(), "api.cluster.example".to_owned()];
        let own = rcgen::generate_simple_self_signed(names).unwrap();
        let key = own.signing_key.serialize_der();
        let key = rustls::pki_types::PrivateKeyDer::try_from(key).unwrap();
        let certificate = own.cert.der().clone();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let address = listen(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let mut stream = acceptor.accept(stream).await.unwrap();
                let _ = stream.read(&mut [0; 4096]).await;
                let body = r#"{"kind":"Status","apiVersion":"v1","status":"Failure",
                               "reason":"NotFound","code":404,"message":"no n0"}"#;
                let length = body.len();
                let answer = format!("HTTP/1.1 404 x\r\ncontent-length: {length}\r\n\r\n{body}");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        })
        .await;
        Self { address, certificate: certificate.to_vec() }
    }

    /// The cluster at a URL, as the plugin connects to it in such an environment.
    fn cluster(&self, url: &str, https: &str, none: &str) -> Cluster {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = Config::new(url.parse().unwrap());
        config.root_cert = Some(vec![self.certificate.clone()]);
        let variables =
            Variables { https: Some(https.into()), http: None, none: Some(none.into()) };
        let access = Access { namespace: None, context: None, kubeconfig: None };
        Cluster::reach(config, None, &access, &variables).unwrap()
    }
}

/// Starts a proxy that takes `CONNECT`, and leads each request to `target`.
async fn http_proxy(target: SocketAddr) -> (SocketAddr, Asked) {
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    let address = listen(move |mut stream| {
        let seen = Arc::clone(&seen);
        async move {
            let text = testkit::http_server::request(&mut stream).await;
            seen.lock().push(text);
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            lead(stream, target).await;
        }
    })
    .await;
    (address, asked)
}

/// Starts a SOCKS proxy (RFC 1928, 1929), and leads each request to `target`.
async fn socks_proxy(target: SocketAddr) -> (SocketAddr, Asked) {
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    let address = listen(move |mut stream| {
        let seen = Arc::clone(&seen);
        async move {
            assert_eq!(stream.read_u8().await.unwrap(), 5);
            text(&mut stream).await;
            stream.write_all(&[5, 2]).await.unwrap();
            assert_eq!(stream.read_u8().await.unwrap(), 1);
            let login = [text(&mut stream).await, text(&mut stream).await];
            seen.lock().extend(login);
            stream.write_all(&[1, 0]).await.unwrap();
            let mut head = [0; 4];
            stream.read_exact(&mut head).await.unwrap();
            assert_eq!(head, [5, 1, 0, 3], "a connection to a name");
            let host = text(&mut stream).await;
            let port = stream.read_u16().await.unwrap();
            seen.lock().push(format!("{host}:{port}"));
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
            lead(stream, target).await;
        }
    })
    .await;
    (address, asked)
}

/// Reads bytes after their length.
async fn text(stream: &mut TcpStream) -> String {
    let mut bytes = vec![0; stream.read_u8().await.unwrap().into()];
    stream.read_exact(&mut bytes).await.unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn lead(mut stream: TcpStream, target: SocketAddr) {
    let mut behind = TcpStream::connect(target).await.unwrap();
    // Ends with the client's connection, in whichever way that is closed.
    let _ = copy_bidirectional(&mut stream, &mut behind).await;
}

/// Serves each connection to a port of this machine.
async fn listen<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(stream));
        }
    });
    address
}
