//! Classifies a request by its method and path: for metrics, never for decisions.

use http::{Method, Request, header::CONTENT_TYPE};

/// A request in terms of the Kubernetes API.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Call {
    /// `get`, `list`, `watch`, `create`, `apply`, `patch`, …
    pub verb: &'static str,
    /// Plural, group and subresource, as in `jobs.batch/status`; empty for other paths.
    pub resource: String,
    /// Whether the response is a stream that lasts as long as the caller reads it.
    pub streams: bool,
}

impl Call {
    /// Classifies a request by its method, path and content type.
    pub fn of<B>(request: &Request<B>) -> Self {
        let uri = request.uri();
        let asks = |option: &str| uri.query().is_some_and(|it| it.split('&').any(|p| p == option));
        let Some((resource, is_item)) = resource(uri.path()) else {
            return Self {
                verb: method(request.method()),
                resource: String::new(),
                streams: false,
            };
        };
        let is_watch = asks("watch=true") || asks("watch=1");
        let kind = request.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let verb = match *request.method() {
            Method::GET if is_watch => "watch",
            Method::GET if is_item => "get",
            Method::GET => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH if kind.is_some_and(|it| it.contains("apply-patch")) => "apply",
            Method::PATCH => "patch",
            Method::DELETE if is_item => "delete",
            Method::DELETE => "deletecollection",
            _ => "other",
        };
        Self { verb, resource, streams: is_watch || asks("follow=true") }
    }
}

fn method(method: &Method) -> &'static str {
    if *method == Method::GET { "get" } else { "other" }
}

/// Returns the resource that a path addresses, and whether it is a single object.
fn resource(path: &str) -> Option<(String, bool)> {
    let parts: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _version, rest @ ..] => ("", rest),
        ["apis", group, _version, rest @ ..] => (*group, rest),
        _ => return None,
    };
    let rest = match rest {
        // A namespace's own subresources look like the resources within it.
        ["namespaces", _, "status" | "finalize"] => rest,
        ["namespaces", _, within @ ..] if !within.is_empty() => within,
        _ => rest,
    };
    let plural = rest.first()?;
    let mut text = (*plural).to_owned();
    if !group.is_empty() {
        text = format!("{text}.{group}");
    }
    if let Some(subresource) = rest.get(2) {
        text = format!("{text}/{subresource}");
    }
    Some((text, rest.len() > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, uri: &str, verb: &str, resource: &str) {
        let call = Call::of(&Request::builder().method(method).uri(uri).body(()).unwrap());
        assert_eq!((call.verb, call.resource.as_str()), (verb, resource), "{method} {uri}");
        assert_eq!(call.streams, verb == "watch" || uri.contains("follow"), "{uri}");
    }

    #[test]
    fn requests_are_named_as_in_permissions() {
        check("GET", "/api/v1/namespaces/a/secrets/b", "get", "secrets");
        check("GET", "/api/v1/secrets?limit=500", "list", "secrets");
        check("GET", "/api/v1/secrets?watch=true&allowWatchBookmarks=true", "watch", "secrets");
        check("GET", "/apis/batch/v1/namespaces/a/jobs?", "list", "jobs.batch");
        check("PATCH", "/apis/batch/v1/namespaces/a/jobs/b/status", "patch", "jobs.batch/status");
        check("POST", "/apis/batch/v1/namespaces/a/jobs", "create", "jobs.batch");
        check("DELETE", "/apis/batch/v1/namespaces/a/jobs", "deletecollection", "jobs.batch");
        check("GET", "/api/v1/namespaces/a", "get", "namespaces");
        check("GET", "/api/v1/namespaces", "list", "namespaces");
        check("PUT", "/api/v1/namespaces/a/finalize", "update", "namespaces/finalize");
        check("GET", "/api/v1/namespaces/a/pods/b/log?follow=true", "get", "pods/log");
        check("GET", "/version", "get", "");
    }

    #[test]
    fn a_server_side_apply_is_told_from_other_patches() {
        let request = Request::patch("/api/v1/namespaces/a/secrets/b")
            .header(CONTENT_TYPE, "application/apply-patch+yaml")
            .body(())
            .unwrap();
        assert_eq!(Call::of(&request).verb, "apply");
    }
}
