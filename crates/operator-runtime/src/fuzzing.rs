//! The fuzz targets of this crate; see `fuzz/` and docs/development.md.
//!
//! They are compiled only for the fuzzer and for tests, which run them on the committed corpus.

use api::ansibleee::AnsibleEe;
use api::baremetal::BaremetalSet;
use api::conditions::printable;
use api::dataplane::{DataPlane, Deployment, Node, NodeSet, Role, Service};
use api::nova::{Cell, ExternalCompute};
use axum::body::{Body, Bytes};
use futures::FutureExt as _;
use http::{Request as HttpRequest, StatusCode};
use http_body_util::{BodyExt as _, Collected};
use k8s_openapi::api::core::v1::Pod;
use kube::core::ObjectList;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::cache::Item;
use crate::client::depth::Pruner;
use crate::webhook::{AdmissionDecision, Request, Webhook};
use crate::{object_size, unreadable};

/// Name and function of a fuzz target.
pub type Target = (&'static str, fn(&[u8]));

/// The targets of this crate.
pub const TARGETS: &[Target] = &[("objects", objects), ("review", review)];

/// Parses an object as the API server may send it, in a list between two others, as each kind.
pub fn objects(data: &[u8]) {
    let kept = pruned(data, data.len());
    assert_eq!(pruned(data, 7), kept, "the cut into chunks counts");
    let is_json = serde_json::from_slice::<IgnoredAny>(data).is_ok();
    if is_json && object_size::fault(data, object_size::OF_OBJECT).is_none() {
        let error = serde_json::from_slice::<Value>(data).err();
        let is_deep = error.is_some_and(|it| it.to_string().contains("recursion"));
        assert!(!is_deep, "what has little weight cannot be read");
    }
    let Ok(object) = serde_json::from_slice::<Value>(&kept) else { return };
    as_kind::<Pod>(data, &object);
    as_kind::<AnsibleEe>(data, &object);
    as_kind::<BaremetalSet>(data, &object);
    as_kind::<Cell>(data, &object);
    as_kind::<DataPlane>(data, &object);
    as_kind::<Deployment>(data, &object);
    as_kind::<ExternalCompute>(data, &object);
    as_kind::<Node>(data, &object);
    as_kind::<NodeSet>(data, &object);
    as_kind::<Role>(data, &object);
    as_kind::<Service>(data, &object);
}

fn pruned(data: &[u8], chunk: usize) -> Vec<u8> {
    let mut pruner = Pruner::default();
    let chunks = data.chunks(chunk.max(1));
    chunks.flat_map(|it| pruner.prune(Bytes::copy_from_slice(it))).collect()
}

fn as_kind<K: DeserializeOwned + Serialize + Clone>(data: &[u8], object: &Value) {
    let list = [&br#"{"metadata":{"resourceVersion":"9"},"items":["#[..], data, b",7]}"].concat();
    let list = serde_json::from_slice::<ObjectList<Item<K>>>(&pruned(&list, list.len()));
    let n_read = list.as_ref().map_or(0, |it| it.items.len());
    assert_eq!(n_read, 2, "one object hides the others: {:?}", list.err());
    match Item::<K>::read(object) {
        Item::Readable(read) => {
            let written = serde_json::to_value(&read).unwrap_or_default();
            let again = Item::<K>::read(&written).readable();
            let again = again.and_then(|it| serde_json::to_value(it).ok());
            assert_eq!(again, Some(written), "what is written cannot be read");
        }
        Item::Unreadable(it) => {
            let message = unreadable::message("x", &it);
            assert!(message.len() <= 1000, "{} bytes", message.len());
            assert_eq!(printable(&message), message, "a terminal would obey it");
        }
    }
}

/// Sends a webhook the body of a request, which anyone who can reach the port may do.
pub fn review(data: &[u8]) {
    let uid = serde_json::from_slice::<Value>(data).ok();
    let uid = uid.as_ref().and_then(|it| it.pointer("/request/uid")?.as_str());
    for path in ["/mutate", "/validate"] {
        let (status, text) = asked(path, data);
        assert_eq!(asked(path, data), (status, text.clone()), "two answers to one question");
        if status == StatusCode::OK {
            answered(&text, uid, path == "/mutate");
        } else {
            assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
            assert!(text.len() <= 512, "{} bytes", text.len());
        }
    }
}

fn answered(text: &str, uid: Option<&str>, may_patch: bool) {
    let answer = serde_json::from_str::<Value>(text).unwrap_or_default();
    let response = &answer["response"];
    assert!(uid.is_none() || response["uid"].as_str() == uid, "an answer to another question");
    assert!(response["allowed"].is_boolean(), "no answer: {text}");
    assert!(may_patch || response.get("patch").is_none_or(Value::is_null), "a patch");
}

fn asked(path: &str, body: &[u8]) -> (StatusCode, String) {
    let request = HttpRequest::post(path).body(Body::from(body.to_vec())).unwrap_or_default();
    let exchange = async {
        let Ok(response) = webhook().router().oneshot(request).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
        (head.status, String::from_utf8_lossy(&body).into_owned())
    };
    // The response is ready at once: the body is complete, and there are no concurrent requests.
    exchange.now_or_never().unwrap_or_default()
}

/// A webhook whose decision depends on the object and repeats parts of it.
fn webhook() -> Webhook {
    let handler = |request: &Request| {
        let before = request.object.as_ref().map(|it| it.data.clone()).unwrap_or_default();
        let reported = before["spec"]["cell"].as_str().unwrap_or_default();
        if reported.starts_with('c') {
            return AdmissionDecision::deny(format!("spec.cell: {reported} runs no computes"))
                .warn(reported);
        }
        let mut after = before.clone();
        if let Some(spec) = after.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("image".into(), json!("default"));
        }
        AdmissionDecision::replace(&before, &after)
    };
    Webhook::new().mutate("/mutate", handler).validate("/validate", handler)
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;
