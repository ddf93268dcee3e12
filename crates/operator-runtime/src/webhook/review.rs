//! One admission review: read within bounds, judged, answered.
//!
//! Anybody who reaches the port may ask. So what a review may cost in memory is known before it is
//! read, and bodies that are under way have a bound together, of which one address gets a part.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use api::conditions::truncated;
use axum::body::{Body, HttpBody as _};
use http::{HeaderValue, Response, StatusCode, header::RETRY_AFTER};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::core::{
    DynamicObject,
    admission::{AdmissionResponse, AdmissionReview},
    response::StatusDetails,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use super::decision::AdmissionDecision;
use super::handler::{Judge, Request};
use crate::object_size;

/// The largest body: two objects of the 1.5 MiB that etcd takes, and their envelope. The API server
/// sends more only of an object that it could not store.
pub(super) const LARGEST_BODY: usize = 4 << 20;
/// What the bodies may take that are under way, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Of each body, beside what follows: a review has some 20 KiB, and gets its answer whatever others
    /// send. Connections have a bound of their own.
    pub free: usize,
    /// All bodies together.
    pub all: usize,
    /// All bodies from one address.
    pub of_one_peer: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { free: 64 << 10, all: 24 << 20, of_one_peer: 6 << 20 }
    }
}

/// How many reviews are read into memory and judged at a time.
const AT_ONCE: usize = 2;

/// The address from which a request comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerAddress(pub IpAddr);

impl Default for PeerAddress {
    fn default() -> Self {
        Self(Ipv6Addr::UNSPECIFIED.into())
    }
}

/// What all reviews share.
#[derive(Debug)]
pub(super) struct Desk {
    bounds: Bounds,
    /// Bytes that bodies take, by address.
    taken: Mutex<BTreeMap<IpAddr, usize>>,
    turns: Semaphore,
}

/// The bytes that one body may take beyond the free ones, until it is dropped.
struct BodyPermit<'a> {
    desk: &'a Desk,
    peer: IpAddr,
    n_bytes: usize,
}

impl BodyPermit<'_> {
    /// Asks for as many as that; whether they are granted.
    fn grow_to(&mut self, n_bytes: usize) -> bool {
        let more = n_bytes.saturating_sub(self.n_bytes);
        if more == 0 {
            return true;
        }
        let mut taken = self.desk.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let all = taken.values().sum::<usize>() + more;
        let of_peer = taken.get(&self.peer).copied().unwrap_or_default() + more;
        if all > self.desk.bounds.all || of_peer > self.desk.bounds.of_one_peer {
            return false;
        }
        taken.insert(self.peer, of_peer);
        self.n_bytes += more;
        true
    }
}

impl Drop for BodyPermit<'_> {
    fn drop(&mut self) {
        let mut taken = self.desk.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(of_peer) = taken.get_mut(&self.peer) else { return };
        *of_peer = of_peer.saturating_sub(self.n_bytes);
        if *of_peer == 0 {
            taken.remove(&self.peer);
        }
    }
}

impl Desk {
    /// A desk whose bodies have these bounds.
    pub(super) fn of(bounds: Bounds) -> Self {
        Self { bounds, taken: Mutex::default(), turns: Semaphore::new(AT_ONCE) }
    }

    /// The answer to one request; neither the body nor anything of it is logged or kept.
    pub(super) async fn answer(
        &self,
        (body, peer): (Body, PeerAddress),
        judge: &Judge,
        may_patch: bool,
    ) -> Response<String> {
        let (body, _room) = match self.read(body, peer.0).await {
            Ok(read) => read,
            Err(status) => return rejected(status),
        };
        let Ok(_turn) = self.turns.acquire().await else {
            return rejected(StatusCode::SERVICE_UNAVAILABLE);
        };
        let (status, text) = answered(&body, judge, may_patch);
        response_of(status, text)
    }

    /// A whole body, and its permit.
    async fn read(
        &self,
        body: Body,
        peer: IpAddr,
    ) -> Result<(Vec<u8>, BodyPermit<'_>), StatusCode> {
        if body.size_hint().lower() > LARGEST_BODY as u64 {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let mut body = Limited::new(body, LARGEST_BODY);
        let mut bytes = Vec::new();
        let mut permit = BodyPermit { desk: self, peer, n_bytes: 0 };
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                let is_too_long = error.is::<LengthLimitError>();
                let broken = StatusCode::BAD_REQUEST;
                if is_too_long { StatusCode::PAYLOAD_TOO_LARGE } else { broken }
            })?;
            let Ok(data) = frame.into_data() else { continue };
            let n_bytes = bytes.len() + data.len();
            if !permit.grow_to(n_bytes.saturating_sub(self.bounds.free)) {
                return Err(StatusCode::SERVICE_UNAVAILABLE);
            }
            bytes.extend_from_slice(&data);
        }
        Ok((bytes, permit))
    }
}

/// An answer that is no review.
fn rejected(status: StatusCode) -> Response<String> {
    let mut response = response_of(status, status.canonical_reason().unwrap_or_default().into());
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn response_of(status: StatusCode, text: String) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response
}

fn answered(body: &[u8], judge: &Judge, may_patch: bool) -> (StatusCode, String) {
    let envelope: Envelope<'_> = match serde_json::from_slice(body) {
        Ok(envelope) => envelope,
        Err(_) => return (StatusCode::BAD_REQUEST, "not an AdmissionReview".into()),
    };
    let Some(asked) = &envelope.request else {
        return (StatusCode::BAD_REQUEST, "an AdmissionReview without a request".into());
    };
    let review = match asked.unjudged() {
        Some(verdict) => response(unread(&asked.uid), verdict, false).into_review(),
        None if object_size::fault(body, object_size::OF_REVIEW).is_some() => {
            return (StatusCode::BAD_REQUEST, "an AdmissionReview with a huge envelope".into());
        }
        None => match judged(body, judge, may_patch) {
            Ok(response) => response.into_review(),
            Err(text) => return (StatusCode::BAD_REQUEST, text),
        },
    };
    match serde_json::to_string(&review) {
        Ok(text) => (StatusCode::OK, text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

fn judged(body: &[u8], judge: &Judge, may_patch: bool) -> Result<AdmissionResponse, String> {
    let review: AdmissionReview<DynamicObject> = serde_json::from_slice(body).map_err(|error| {
        format!("not an AdmissionReview: {}", truncated(&error.to_string(), 200))
    })?;
    let request: Request = review.try_into().map_err(|error| format!("{error}"))?;
    let verdict = judge(&request);
    let (name, namespace) = (&request.name, request.namespace.as_deref().unwrap_or_default());
    let kind = &request.kind.kind;
    debug!(kind, namespace, name, allowed = verdict.allowed, "reviewed");
    Ok(response(AdmissionResponse::from(&request), verdict, may_patch))
}

/// A review of which only this is read: the rest stays text, however much it holds.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    request: Option<Asked<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a> {
    uid: String,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    old_object: Option<&'a RawValue>,
}

impl Asked<'_> {
    /// The verdict where an object is too much to be read at all.
    ///
    /// Whoever brings such an object is refused. Who only changes one that is there is not: others
    /// must be able to write what is theirs, and whoever mends it as well.
    fn unjudged(&self) -> Option<AdmissionDecision> {
        let fault = |it: Option<&RawValue>| {
            object_size::fault(it?.get().as_bytes(), object_size::OF_OBJECT)
        };
        match (fault(self.object), fault(self.old_object)) {
            (None, None) => None,
            (Some(fault), None) => Some(AdmissionDecision::deny(format!(
                "the object {fault}, and the operators cannot read it: nest less, or leave values out"
            ))),
            (Some(fault), Some(_)) => Some(AdmissionDecision::allow().warn(format!(
                "the object {fault}, and the operators cannot read it: it was not judged"
            ))),
            (None, Some(_)) => Some(AdmissionDecision::allow()),
        }
    }
}

/// The frame of an answer to a review whose objects were not read.
fn unread(uid: &str) -> AdmissionResponse {
    let mut response = AdmissionResponse::invalid("");
    uid.clone_into(&mut response.uid);
    (response.allowed, response.result) = (true, kube::core::Status::default());
    response
}

/// Details by which a client comes back after a second.
fn soon() -> StatusDetails {
    StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: vec![],
        retry_after_seconds: 1,
    }
}

fn response(
    mut response: AdmissionResponse,
    verdict: AdmissionDecision,
    may_patch: bool,
) -> AdmissionResponse {
    response.warnings = Some(verdict.warnings).filter(|it| !it.is_empty());
    if !verdict.allowed {
        let mut refused = response.deny(verdict.message);
        (refused.result.code, refused.result.reason) = (422, "Invalid".into());
        if verdict.is_untold {
            // The API server passes code and pause on, and kubectl then tries again by itself.
            (refused.result.code, refused.result.reason) = (503, "ServiceUnavailable".into());
            refused.result.details = Some(soon());
        }
        return refused;
    }
    if !may_patch || verdict.patches.is_empty() {
        return response;
    }
    let unpatched = response.clone();
    let patch = serde_json::from_value(serde_json::Value::Array(verdict.patches));
    if let Ok(Ok(patched)) = patch.map(|it| response.with_patch(it)) {
        return patched;
    }
    warn!("a patch is not in JSON Patch's form, left out");
    unpatched
}
