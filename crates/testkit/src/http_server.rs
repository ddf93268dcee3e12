//! An HTTP server on a local port, for tests of clients.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The requests: first lines and headers, in lower case.
pub type Asked = Arc<Mutex<Vec<String>>>;

/// Starts a server that answers each request by what `answer` returns for its text: status, headers and
/// body; returns its address and the requests that it receives.
pub async fn server(
    answer: impl Fn(&str) -> (u16, String, String) + Send + 'static,
) -> (SocketAddr, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let (address, asked) = (listener.local_addr().expect("it has an address"), Asked::default());
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a client connects");
            let text = request(&mut stream).await;
            let (status, headers, body) = answer(&text);
            seen.lock().push(text);
            let length = body.len();
            let answer =
                format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
            // The client may have closed the connection.
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (address, asked)
}

/// Reads a whole request, in lower case; text that does not begin like one is returned as it is.
pub async fn request(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    loop {
        let mut part = vec![0; 64 * 1024];
        let n = stream.read(&mut part).await.expect("the client sends");
        text += &String::from_utf8_lossy(&part[..n]).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            // A TLS handshake is not a request, and does not end like one.
            if n == 0 || !text.starts_with(|it: char| it.is_ascii_lowercase()) {
                return text;
            }
            continue;
        };
        let length = head.lines().find_map(|it| it.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |it| it.parse().expect("a length")) {
            return text;
        }
    }
}

/// Returns Keystone's response to a login: a token, and a catalog in which the server that received
/// `request` has these services, by type and path, in a region.
pub fn token(request: &str, region: &str, services: &[(&str, &str)]) -> (u16, String, String) {
    let host = request.lines().find_map(|it| it.strip_prefix("host: ")).unwrap_or_default();
    let entry = |(type_, path): &(&str, &str)| {
        json!({ "type": type_, "endpoints": [{
            "interface": "internal", "region_id": region, "url": format!("http://{host}{path}"),
        }] })
    };
    let catalog: Vec<Value> = services.iter().map(entry).collect();
    let token =
        json!({ "token": { "expires_at": "2999-01-01T00:00:00.000000Z", "catalog": catalog } });
    (201, "x-subject-token: secret-token\r\n".to_owned(), token.to_string())
}

/// Returns a response of status 200 with this body and no further headers.
pub fn ok(body: &str) -> (u16, String, String) {
    (200, String::new(), body.to_owned())
}
