//! One admission review: read within memory bounds, decided, answered.
//!
//! Anyone who can reach the port may send a request. So the memory cost of a review is known before
//! it is parsed, and bodies in flight share a bound, of which one address gets a part.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use api::conditions::truncated;
use axum::body::{Body, HttpBody as _};
use http::{HeaderValue, Response, StatusCode, header::RETRY_AFTER};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::core::{
    DynamicObject,
    admission::{AdmissionResponse, AdmissionReview},
    response::StatusDetails,
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use super::decision::AdmissionDecision;
use super::handler::{Handler, Request};
use crate::object_size;

/// Maximum body size: two objects of at most 1.5 MiB, etcd's limit, and their envelope. The API
/// server sends more only for an object that it could not store.
pub(super) const LARGEST_BODY: usize = 4 << 20;
/// Memory bounds of request bodies in flight, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Bytes of each body that are not counted: a typical review has 20 KiB and is always answered,
    /// whatever others send. The number of connections is bounded separately.
    pub free: usize,
    /// Counted bytes of all bodies together.
    pub all: usize,
    /// Counted bytes of all bodies from one address.
    pub of_one_peer: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { free: 64 << 10, all: 24 << 20, of_one_peer: 6 << 20 }
    }
}

/// Number of reviews that are parsed and decided concurrently.
const MAX_CONCURRENT: usize = 2;

/// The address that a request comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerAddress(pub IpAddr);

impl Default for PeerAddress {
    fn default() -> Self {
        Self(Ipv6Addr::UNSPECIFIED.into())
    }
}

/// State shared by all reviews.
#[derive(Debug)]
pub(super) struct ReviewLimits {
    bounds: Bounds,
    /// Counted body bytes in flight, by address.
    taken: Mutex<BTreeMap<IpAddr, usize>>,
    turns: Semaphore,
}

/// The counted bytes of one body; released on drop.
struct BodyPermit<'a> {
    reviews: &'a ReviewLimits,
    peer: IpAddr,
    n_bytes: usize,
}

impl BodyPermit<'_> {
    /// Reserves bytes up to a total of `n_bytes`. Returns whether they were granted.
    fn grow_to(&mut self, n_bytes: usize) -> bool {
        let more = n_bytes.saturating_sub(self.n_bytes);
        if more == 0 {
            return true;
        }
        let mut taken = self.reviews.taken.lock();
        let all = taken.values().sum::<usize>() + more;
        let of_peer = taken.get(&self.peer).copied().unwrap_or_default() + more;
        if all > self.reviews.bounds.all || of_peer > self.reviews.bounds.of_one_peer {
            return false;
        }
        taken.insert(self.peer, of_peer);
        self.n_bytes += more;
        true
    }
}

impl Drop for BodyPermit<'_> {
    fn drop(&mut self) {
        let mut taken = self.reviews.taken.lock();
        let Some(of_peer) = taken.get_mut(&self.peer) else { return };
        *of_peer = of_peer.saturating_sub(self.n_bytes);
        if *of_peer == 0 {
            taken.remove(&self.peer);
        }
    }
}

impl ReviewLimits {
    /// Creates the shared state with these bounds.
    pub(super) fn of(bounds: Bounds) -> Self {
        Self { bounds, taken: Mutex::default(), turns: Semaphore::new(MAX_CONCURRENT) }
    }

    /// Answers one request. Neither the body nor any part of it is logged or kept.
    pub(super) async fn answer(
        &self,
        (body, peer): (Body, PeerAddress),
        handler: &Handler,
        may_patch: bool,
    ) -> Response<String> {
        let (body, _room) = match self.read(body, peer.0).await {
            Ok(read) => read,
            Err(status) => return rejected(status),
        };
        let Ok(_turn) = self.turns.acquire().await else {
            return rejected(StatusCode::SERVICE_UNAVAILABLE);
        };
        let (status, text) = answered(&body, handler, may_patch);
        response_of(status, text)
    }

    /// Reads a whole body and returns it with its permit.
    ///
    /// # Errors
    /// The HTTP status to answer with.
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
        let mut permit = BodyPermit { reviews: self, peer, n_bytes: 0 };
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

/// Returns an HTTP error response without a review.
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

fn answered(body: &[u8], handler: &Handler, may_patch: bool) -> (StatusCode, String) {
    let envelope: Envelope<'_> = match serde_json::from_slice(body) {
        Ok(envelope) => envelope,
        Err(_) => return (StatusCode::BAD_REQUEST, "not an AdmissionReview".into()),
    };
    let Some(asked) = &envelope.request else {
        return (StatusCode::BAD_REQUEST, "an AdmissionReview without a request".into());
    };
    let review = match asked.refusal() {
        Some(decision) => response(unread(&asked.uid), decision, false).into_review(),
        None if object_size::fault(body, object_size::OF_REVIEW).is_some() => {
            return (StatusCode::BAD_REQUEST, "an AdmissionReview with a huge envelope".into());
        }
        None => match reviewed(body, handler, may_patch) {
            Ok(response) => response.into_review(),
            Err(text) => return (StatusCode::BAD_REQUEST, text),
        },
    };
    match serde_json::to_string(&review) {
        Ok(text) => (StatusCode::OK, text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

fn reviewed(body: &[u8], handler: &Handler, may_patch: bool) -> Result<AdmissionResponse, String> {
    let review: AdmissionReview<DynamicObject> = serde_json::from_slice(body).map_err(|error| {
        format!("not an AdmissionReview: {}", truncated(&error.to_string(), 200))
    })?;
    let request: Request = review.try_into().map_err(|error| format!("{error}"))?;
    let decision = handler(&request);
    let (name, namespace) = (&request.name, request.namespace.as_deref().unwrap_or_default());
    let kind = &request.kind.kind;
    debug!(kind, namespace, name, allowed = decision.allowed, "reviewed");
    Ok(response(AdmissionResponse::from(&request), decision, may_patch))
}

/// The envelope of a review: only these fields are parsed, everything else stays text.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    request: Option<RequestIdentity<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestIdentity<'a> {
    uid: String,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    old_object: Option<&'a RawValue>,
}

impl RequestIdentity<'_> {
    /// Returns the decision for an object that is too large to be parsed, or `None` when it is not.
    ///
    /// Creating such an object is denied. Changing one that already exists is allowed: other
    /// writers must be able to write their fields, and the user must be able to correct it.
    fn refusal(&self) -> Option<AdmissionDecision> {
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

/// Creates the response to a review whose objects were not parsed.
fn unread(uid: &str) -> AdmissionResponse {
    let mut response = AdmissionResponse::invalid("");
    uid.clone_into(&mut response.uid);
    (response.allowed, response.result) = (true, kube::core::Status::default());
    response
}

/// Returns status details that make the client retry after a second.
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
    decision: AdmissionDecision,
    may_patch: bool,
) -> AdmissionResponse {
    response.warnings = Some(decision.warnings).filter(|it| !it.is_empty());
    if !decision.allowed {
        let mut refused = response.deny(decision.message);
        (refused.result.code, refused.result.reason) = (422, "Invalid".into());
        if decision.is_temporary {
            // The API server passes code and delay on, and kubectl then retries by itself.
            (refused.result.code, refused.result.reason) = (503, "ServiceUnavailable".into());
            refused.result.details = Some(soon());
        }
        return refused;
    }
    if !may_patch || decision.patches.is_empty() {
        return response;
    }
    let unpatched = response.clone();
    let patch = serde_json::from_value(serde_json::Value::Array(decision.patches));
    if let Ok(Ok(patched)) = patch.map(|it| response.with_patch(it)) {
        return patched;
    }
    warn!("a patch is not in JSON Patch's form, left out");
    unpatched
}
