//! A fake API server with the few paths that the certificate code may use, for its tests.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::body::Body as AxumBody;
use http::{Method, Response, Uri};
use kube::{Client, client::Body};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::service_fn;

use crate::{client::client_over, error::BoxError, metrics::Metrics};

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    /// Events, oldest first: version, path, type, object.
    events: Vec<(u64, String, &'static str, Value)>,
    /// `METHOD path code` of each request; a watch's method is `WATCH`.
    requests: Vec<String>,
}

/// A fake cluster that permits what the chart's RBAC permits: objects are read only by a watch of
/// their name.
#[derive(Clone, Default)]
pub(super) struct Cluster {
    state: Arc<Mutex<State>>,
    version: watch::Sender<u64>,
}

impl Cluster {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn get(&self, path: &str) -> Option<Value> {
        self.lock().objects.get(path).cloned()
    }

    pub(super) fn put(&self, path: &str, mut object: Value) -> Value {
        let version = *self.version.borrow() + 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        let mut state = self.lock();
        let before = state.objects.insert(path.to_owned(), object.clone());
        let kind = if before.is_some() { "MODIFIED" } else { "ADDED" };
        state.events.push((version, path.to_owned(), kind, object.clone()));
        drop(state);
        self.version.send_replace(version);
        object
    }

    /// Returns the requests so far whose line contains `text`.
    pub(super) fn requests(&self, text: &str) -> Vec<String> {
        self.lock().requests.iter().filter(|it| it.contains(text)).cloned().collect()
    }

    /// Waits until `holds` returns true; panics after a minute.
    pub(super) async fn until(&self, mut holds: impl FnMut(&Self) -> bool) {
        let mut version = self.version.subscribe();
        let wait = async {
            while !holds(self) {
                version.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_mins(1), wait).await.expect("it does not come to hold");
    }

    pub(super) fn client(&self) -> Client {
        let cluster = self.clone();
        let service = service_fn(move |request: http::Request<Body>| {
            let cluster = cluster.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let body = serde_json::from_slice(&body).unwrap_or_default();
                cluster.answer(&head.method, &head.uri, body)
            }
        });
        client_over(service, "edpm-system", &Metrics::new("test"))
    }

    fn answer(
        &self,
        method: &Method,
        uri: &Uri,
        body: Value,
    ) -> Result<Response<AxumBody>, BoxError> {
        let options: BTreeMap<&str, &str> = uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|it| it.split_once('='))
            .collect();
        let is_watch = options.get("watch") == Some(&"true");
        // An equals sign within a value is escaped.
        let selected =
            options.get("fieldSelector").and_then(|it| it.strip_prefix("metadata.name%3D"));
        let path = match selected.or_else(|| body["metadata"]["name"].as_str()) {
            Some(name) if *method == Method::POST || *method == Method::GET => {
                format!("{}/{name}", uri.path())
            }
            _ => uri.path().to_owned(),
        };
        let since = options.get("resourceVersion").and_then(|it| it.parse().ok());
        let (code, answer) = match (method, selected) {
            (&Method::GET, None) => failure(403, "Forbidden"),
            (&Method::GET, Some(_)) => self.list(&path),
            _ => self.write(method, &path, body),
        };
        let verb = if is_watch { "WATCH" } else { method.as_str() };
        self.lock().requests.push(format!("{verb} {path} {code}"));
        let body = if is_watch && code == 200 {
            self.watch(path, since.unwrap_or_default())
        } else {
            AxumBody::from(answer.to_string())
        };
        Ok(Response::builder().status(code).body(body)?)
    }

    fn list(&self, path: &str) -> (u16, Value) {
        let version = self.version.borrow().to_string();
        let items: Vec<Value> = self.get(path).into_iter().collect();
        (200, json!({ "metadata": { "resourceVersion": version }, "items": items }))
    }

    /// Streams the events of one object after a version, as long as the client listens.
    fn watch(&self, path: String, since: u64) -> AxumBody {
        let versions = self.version.subscribe();
        let events = futures::stream::unfold(
            (self.clone(), path, since, versions),
            |(cluster, path, since, mut versions)| async move {
                loop {
                    let next = cluster.event_after(&path, since);
                    if let Some((version, line)) = next {
                        let next = (cluster, path, version, versions);
                        return Some((Ok::<_, BoxError>(line), next));
                    }
                    versions.changed().await.ok()?;
                }
            },
        );
        AxumBody::from_stream(events)
    }

    fn event_after(&self, path: &str, since: u64) -> Option<(u64, String)> {
        let state = self.lock();
        let (version, _, kind, object) =
            state.events.iter().find(|(version, of, ..)| of == path && *version > since)?;
        Some((*version, format!("{}\n", json!({ "type": kind, "object": object }))))
    }

    fn write(&self, method: &Method, path: &str, body: Value) -> (u16, Value) {
        let version = &body["metadata"]["resourceVersion"];
        match (method.as_str(), self.get(path)) {
            ("POST", Some(_)) => failure(409, "AlreadyExists"),
            ("POST", None) => (201, self.put(path, body)),
            (_, None) => failure(404, "NotFound"),
            (_, Some(seen)) if *version != seen["metadata"]["resourceVersion"] => {
                failure(409, "Conflict")
            }
            ("PUT", Some(_)) => (200, self.put(path, body)),
            (_, Some(mut seen)) => {
                for entry in body["webhooks"].as_array().unwrap() {
                    let webhooks = seen["webhooks"].as_array_mut().unwrap();
                    let webhook = webhooks.iter_mut().find(|it| it["name"] == entry["name"]);
                    webhook.unwrap()["clientConfig"]["caBundle"] =
                        entry["clientConfig"]["caBundle"].clone();
                }
                (200, self.put(path, seen))
            }
        }
    }
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({ "kind": "Status", "status": "Failure", "code": code,
        "reason": reason, "message": reason });
    (code, status)
}
