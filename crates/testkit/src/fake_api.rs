//! A fake API server: objects in memory or scripted responses, and a record of the requests.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::client::Body as RequestBody;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::Service;

/// Status code and body of a response; a body that is a string is sent as plain text.
pub type Response = (u16, Value);

/// A request as it was received, and the status code of its response.
#[derive(Clone, Debug)]
pub struct Request {
    /// The HTTP method, or `WATCH`.
    pub verb: String,
    /// The path without the query.
    pub path: String,
    /// The query without its question mark, escaped.
    pub query: String,
    /// The body; null when there is none.
    pub body: Value,
    /// The status code of the response; 0 until the request was answered.
    pub code: u16,
}

impl Request {
    fn option(&self, name: &str) -> Option<&str> {
        let mut options = self.query.split('&').filter_map(|it| it.split_once('='));
        options.find(|it| it.0 == name).map(|it| it.1)
    }

    /// Returns whether a list or a watch selects the object at a path.
    fn selects(&self, path: &str) -> bool {
        let Some((kind, name)) = path.rsplit_once('/') else { return false };
        // An equals sign within a value is escaped.
        let selected = self.option("fieldSelector").map(|it| it.strip_prefix("metadata.name%3D"));
        (kind == self.path || of_all_namespaces(kind) == self.path)
            && selected.is_none_or(|it| it == Some(name))
    }
}

type Interceptor = Arc<dyn Fn(&mut Request) -> Option<Response> + Send + Sync>;

/// An API server in memory; its clones share everything. A [`kube::Client`] is made over it.
///
/// Nothing is validated. A kind without objects is not known: its list is `NotFound`, unless one
/// name is selected. Other selectors are ignored, and watches do not see deletions.
#[derive(Clone, Default)]
pub struct FakeApi {
    state: Arc<Mutex<State>>,
    /// Notified after each request and each change of an object.
    changed: watch::Sender<()>,
}

impl FakeApi {
    /// Creates a server that gives these responses in order, whatever is asked; it panics when
    /// there are more requests.
    pub fn answering<const N: usize>(responses: [Response; N]) -> Self {
        let server = Self::default();
        server.state.lock().script = Some(responses.into());
        server
    }

    /// Sets the time that each response takes.
    #[must_use]
    pub fn with_latency(self, latency: Duration) -> Self {
        self.state.lock().latency = latency;
        self
    }

    /// Sets a function that sees each request first, in place of the one before. It may change the
    /// request; the request is handled as usual where it returns `None`.
    pub fn intercept(&self, f: impl Fn(&mut Request) -> Option<Response> + Send + Sync + 'static) {
        self.state.lock().interceptor = Some(Arc::new(f));
    }

    /// Returns the object at a path, or `None` when there is none.
    pub fn get(&self, path: &str) -> Option<Value> {
        self.state.lock().objects.get(path).cloned()
    }

    /// Creates or replaces the object at a path, with a new resource version; watches see it.
    pub fn put(&self, path: &str, object: Value) {
        self.state.lock().put(path.to_owned(), object);
        self.changed.send_replace(());
    }

    /// Removes all objects of a kind, which watches do not see.
    pub fn forget(&self, plural: &str) {
        self.state.lock().objects.retain(|path, _| path.rsplit('/').nth(1) != Some(plural));
    }

    /// Returns the requests so far.
    ///
    /// # Panics
    ///
    /// When scripted responses are left.
    pub fn requests(&self) -> Vec<Request> {
        let state = self.state.lock();
        let is_done = state.script.as_ref().is_none_or(VecDeque::is_empty);
        assert!(is_done, "requests are missing: {:?}", state.requests);
        state.requests.clone()
    }

    /// Returns the requests so far as `PATCH /path`; panics as [`Self::requests`] does.
    pub fn asked(&self) -> Vec<String> {
        self.requests().iter().map(|it| format!("{} {}", it.verb, it.path)).collect()
    }

    /// Waits until `holds` returns true; panics after ten minutes.
    pub async fn until(&self, mut holds: impl FnMut(&Self) -> bool) {
        let mut changed = self.changed.subscribe();
        let wait = async {
            while !holds(self) {
                let _ = changed.changed().await;
            }
        };
        tokio::time::timeout(Duration::from_mins(10), wait).await.expect("it comes to hold");
    }

    async fn answer(self, request: http::Request<RequestBody>) -> http::Response<Body> {
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.expect("the body of a request is in memory");
        let mut request = Request {
            verb: head.method.to_string(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            body: serde_json::from_slice(&body).unwrap_or_default(),
            code: 0,
        };
        if request.option("watch") == Some("true") {
            request.verb = "WATCH".into();
        }
        let latency = self.state.lock().latency;
        tokio::time::sleep(latency).await;
        let body = self.handle(&mut request);
        let response = http::Response::builder().status(request.code).body(body);
        response.expect("the status code is valid")
    }

    /// Handles a request, and records it with its status code.
    fn handle(&self, request: &mut Request) -> Body {
        let interceptor = self.state.lock().interceptor.clone();
        let intercepted = interceptor.and_then(|it| it(request));
        let mut state = self.state.lock();
        let scripted =
            state.script.as_mut().map(|it| it.pop_front().expect("the request is expected"));
        let prepared = intercepted.or(scripted);
        let is_prepared = prepared.is_some();
        let (code, body) = prepared.unwrap_or_else(|| state.respond(request));
        request.code = code;
        state.requests.push(request.clone());
        drop(state);
        self.changed.send_replace(());
        if request.verb == "WATCH" && code == 200 && !is_prepared {
            return self.events(request.clone());
        }
        Body::from(body.as_str().map_or_else(|| body.to_string(), str::to_owned))
    }

    /// Streams the events that a watch asks for, as long as the client listens.
    fn events(&self, watch: Request) -> Body {
        let since = watch.option("resourceVersion").and_then(|it| it.parse().ok());
        let start = (self.clone(), since.unwrap_or_default(), self.changed.subscribe());
        let events = futures::stream::unfold(start, move |(server, since, mut changed)| {
            let watch = watch.clone();
            async move {
                loop {
                    let event = server.state.lock().event_after(since, &watch);
                    if let Some((version, line)) = event {
                        return Some((Ok::<_, Infallible>(line), (server, version, changed)));
                    }
                    changed.changed().await.ok()?;
                }
            }
        });
        Body::from_stream(events)
    }
}

impl Service<http::Request<RequestBody>> for FakeApi {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<RequestBody>) -> Self::Future {
        self.clone().answer(request).map(Ok).boxed()
    }
}

#[derive(Default)]
struct State {
    /// Objects by path.
    objects: BTreeMap<String, Value>,
    /// Changes, oldest first: path, type, object. The version of the first one is 1.
    events: Vec<(String, &'static str, Value)>,
    /// Responses in place of the objects', in order.
    script: Option<VecDeque<Response>>,
    interceptor: Option<Interceptor>,
    latency: Duration,
    requests: Vec<Request>,
}

impl State {
    /// Stores an object with a new resource version, and returns it.
    fn put(&mut self, path: String, mut object: Value) -> Value {
        object["metadata"]["resourceVersion"] = json!((self.events.len() + 1).to_string());
        let before = self.objects.insert(path.clone(), object.clone());
        let kind = if before.is_some() { "MODIFIED" } else { "ADDED" };
        self.events.push((path, kind, object.clone()));
        object
    }

    /// Returns the version and the line of the first event after a version that a watch sees.
    fn event_after(&self, version: usize, watch: &Request) -> Option<(usize, String)> {
        let mut later = self.events.iter().enumerate().skip(version);
        let (at, (_, kind, object)) = later.find(|it| watch.selects(&it.1.0))?;
        // In the API server's field order, because an object is parsed from its text as soon as it
        // is reached.
        Some((at + 1, format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")))
    }

    fn respond(&mut self, request: &Request) -> Response {
        let is_list = is_collection(&request.path);
        match (request.verb.as_str(), self.objects.get(&request.path)) {
            ("GET" | "WATCH", _) if is_list => self.list(request),
            ("POST", _) => self.create(request),
            (_, None) => failure(404, "NotFound"),
            ("GET", Some(found)) => (200, found.clone()),
            ("DELETE", Some(_)) => (200, self.objects.remove(&request.path).unwrap_or_default()),
            (_, Some(found)) => self.write(request, found.clone()),
        }
    }

    fn list(&self, request: &Request) -> Response {
        let selected = self.objects.iter().filter(|it| request.selects(it.0));
        let items: Vec<&Value> = selected.map(|it| it.1).collect();
        if items.is_empty() && request.option("fieldSelector").is_none() {
            return failure(404, "NotFound");
        }
        let metadata = json!({ "resourceVersion": self.events.len().to_string() });
        (200, json!({ "metadata": metadata, "items": items }))
    }

    fn create(&mut self, request: &Request) -> Response {
        let mut object = request.body.clone();
        let metadata = &mut object["metadata"];
        if let Some(prefix) = metadata["generateName"].as_str() {
            metadata["name"] = json!(format!("{prefix}x7"));
        }
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        metadata["uid"] = json!(name);
        let path = format!("{}/{name}", request.path);
        if self.objects.contains_key(&path) {
            return failure(409, "AlreadyExists");
        }
        (201, self.put(path, object))
    }

    /// Replaces or patches an object that exists.
    fn write(&mut self, request: &Request, mut object: Value) -> Response {
        let (version, is_put) =
            (&request.body["metadata"]["resourceVersion"], request.verb == "PUT");
        if *version != object["metadata"]["resourceVersion"] && (is_put || !version.is_null()) {
            return failure(409, "Conflict");
        }
        if is_put {
            object = request.body.clone();
        } else {
            merge(&mut object, &request.body);
        }
        (200, self.put(request.path.clone(), object))
    }
}

/// Returns a failure as the API server responds with it.
pub fn failure(code: u16, reason: &str) -> Response {
    let message = format!("fake API: {reason}");
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": message });
    (code, status)
}

/// Merges what a patch has: objects by field, and lists of named entries by name.
fn merge(target: &mut Value, patch: &Value) {
    if let Value::Object(fields) = patch {
        for (name, value) in fields {
            merge(&mut target[name.as_str()], value);
        }
    } else if let Value::Array(entries) = patch
        && entries.iter().all(|it| it["name"].is_string())
    {
        for found in target.as_array_mut().into_iter().flatten() {
            if let Some(entry) = entries.iter().find(|it| it["name"] == found["name"]) {
                merge(found, entry);
            }
        }
    } else {
        *target = patch.clone();
    }
}

/// Returns the path without its namespace.
fn of_all_namespaces(path: &str) -> String {
    let parts = path.split_once("/namespaces/");
    let parts = parts.and_then(|(group, it)| Some((group, it.split_once('/')?.1)));
    parts.map_or_else(|| path.to_owned(), |(group, rest)| format!("{group}/{rest}"))
}

/// Returns whether a path is that of a kind's objects, and of no single one.
fn is_collection(path: &str) -> bool {
    let n_parts = if path.starts_with("/api/") { 4 } else { 5 };
    of_all_namespaces(path).split('/').count() == n_parts
}
