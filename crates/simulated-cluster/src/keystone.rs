//! A fake Keystone limited to its version document, password tokens, and the catalog in these.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::ports;

/// A fake Keystone on a port of the loopback address.
#[derive(Clone, Debug)]
pub struct Keystone {
    port: u16,
    people: Arc<Mutex<People>>,
    logins: watch::Sender<Logins>,
}

/// The logins that have arrived.
#[derive(Debug, Default)]
struct Logins {
    n_arrived: usize,
    /// Whether their answers are held back.
    are_held: bool,
}

/// The known users and tokens.
#[derive(Debug, Default)]
struct People {
    /// User → password.
    passwords: BTreeMap<String, String>,
    /// The issued tokens, each with whether it is of a project, and so has roles.
    tokens: BTreeMap<String, bool>,
    /// Type of a service → its endpoints, as a catalog has them.
    catalog: BTreeMap<String, Vec<Value>>,
}

impl Keystone {
    /// Starts a Keystone without users.
    pub async fn start() -> Result<Self> {
        let (address, listener) = ports::listener().await?;
        let keystone =
            Self { port: address.port(), people: Arc::default(), logins: watch::Sender::default() };
        let server = keystone.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                // A client that disconnects early is not an error of the server.
                tokio::spawn(async move { drop(server.serve(stream).await) });
            }
        });
        Ok(keystone)
    }

    /// Returns the URL that cells refer to.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Adds a user with a password, or changes the password.
    pub fn admit(&self, user: &str, password: &str) {
        self.people().passwords.insert(user.to_owned(), password.to_owned());
    }

    /// Sets whether logins get no answer; those that wait get theirs when this ends.
    pub fn hold_logins(&self, are_held: bool) {
        self.logins.send_modify(|it| it.are_held = are_held);
    }

    /// Returns how many logins have arrived.
    pub fn n_logins(&self) -> usize {
        self.logins.borrow().n_arrived
    }

    /// Waits until `total` logins have arrived in all.
    pub async fn wait_for_logins(&self, total: usize, within: Duration) -> Result<()> {
        let mut logins = self.logins.subscribe();
        let reached = logins.wait_for(|it| it.n_arrived >= total);
        let waited = tokio::time::timeout(within, reached).await;
        waited.with_context(|| format!("fewer than {total} logins"))??;
        Ok(())
    }

    /// Adds the endpoint of a service in a region to the catalog of each token from now on.
    pub(crate) fn publish(&self, type_: &str, region: &str, url: &str) {
        let endpoint = json!({
            "id": format!("{type_}-{region}"), "interface": "internal", "region": region,
            "region_id": region, "url": url,
        });
        self.people().catalog.entry(type_.to_owned()).or_default().push(endpoint);
    }

    /// Returns whether a token was issued by this Keystone.
    pub(crate) fn has_given(&self, token: &str) -> bool {
        self.people().tokens.contains_key(token)
    }

    /// Returns whether a token was issued with the roles of its user.
    pub(crate) fn has_roles(&self, token: &str) -> bool {
        self.people().tokens.get(token).copied().unwrap_or_default()
    }

    fn people(&self) -> MutexGuard<'_, People> {
        self.people.lock()
    }

    /// Answers one request and closes the connection.
    async fn serve(&self, mut stream: TcpStream) -> Result<()> {
        let (head, body) = request(&mut stream).await?;
        let is_of = |line: &str| head.starts_with(line);
        let (status, header, body) = if is_of("GET /v3 ") || is_of("GET /v3/ ") {
            ("200 OK", String::new(), self.version())
        } else if is_of("POST /v3/auth/tokens ") {
            self.logins.send_modify(|it| it.n_arrived += 1);
            drop(self.logins.subscribe().wait_for(|it| !it.are_held).await?);
            self.token(&body["auth"])
        } else {
            let message = "Could not find the requested resource.";
            ("404 NOT FOUND", String::new(), rejection(404, message, "Not Found"))
        };
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{header}Content-Length: \
             {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        Ok(stream.write_all(format!("{head}{body}").as_bytes()).await?)
    }

    fn version(&self) -> Value {
        let link = json!({ "rel": "self", "href": format!("{}/v3/", self.url()) });
        let version = json!({
            "id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z", "links": [link],
            "media-types": [{
                "base": "application/json", "type": "application/vnd.openstack.identity-v3+json",
            }],
        });
        json!({ "version": version })
    }

    /// Issues a token when user and password match, else rejects the request.
    fn token(&self, asked: &Value) -> (&'static str, String, Value) {
        let (user, mut people) = (&asked["identity"]["password"]["user"], self.people());
        let (name, password) = (user["name"].as_str(), user["password"].as_str());
        let known = name.and_then(|it| people.passwords.get(it)).map(String::as_str);
        if known.is_none() || known != password {
            let message = "The request you have made requires authentication.";
            return ("401 UNAUTHORIZED", String::new(), rejection(401, message, "Unauthorized"));
        }
        let token = format!("token-{}-of-{}", people.tokens.len(), name.unwrap_or_default());
        people.tokens.insert(token.clone(), asked["scope"] != "unscoped");
        let service = |(type_, endpoints): (&String, &Vec<Value>)| json!({ "type": type_, "name": type_, "endpoints": endpoints });
        let catalog: Vec<Value> = people.catalog.iter().map(service).collect();
        let response = json!({ "token": {
            "expires_at": "2999-01-01T00:00:00.000000Z", "catalog": catalog,
        } });
        ("201 CREATED", format!("X-Subject-Token: {token}\r\n"), response)
    }
}

fn rejection(code: u16, message: &str, title: &str) -> Value {
    json!({ "error": { "code": code, "message": message, "title": title } })
}

/// Reads a request; returns its head and its parsed body.
async fn request(stream: &mut TcpStream) -> Result<(String, Value)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < 8192 {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head.lines().find_map(|it| {
        let (name, value) = it.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0).min(64 * 1024)];
    stream.read_exact(&mut body).await?;
    Ok((head, serde_json::from_slice(&body).unwrap_or_default()))
}
