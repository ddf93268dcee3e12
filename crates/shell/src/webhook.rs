//! Admission over HTTPS: pure judgements by path, a certificate of its own, no other dependency.

use std::{collections::BTreeMap, fmt, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Bytes, extract::DefaultBodyLimit, http::StatusCode, routing::post};
use kube::core::{
    DynamicObject,
    admission::{AdmissionRequest, AdmissionResponse, AdmissionReview},
    response::StatusDetails,
};
use tokio::{net::TcpListener, sync::watch};
use tracing::{debug, warn};

use crate::{
    args::WebhookArgs,
    error::{Error, Result},
    runtime::Runtime,
    tls::service_name,
};

mod certificate;
#[cfg(test)]
mod certificate_tests;
#[cfg(test)]
mod cluster;
mod listener;
mod seen;
#[cfg(test)]
mod tests;
mod verdict;

pub use certificate::{Certificates, Place};
pub use listener::{Presented, TlsListener};
pub use verdict::{Verdict, difference};

/// What is asked: an object before and after, who asks, and what for.
pub type Request = AdmissionRequest<DynamicObject>;

/// A pure judgement.
type Judge = Arc<dyn Fn(&Request) -> Verdict + Send + Sync>;

/// Two objects of the largest size that the API server stores, and their envelope.
const BODY_LIMIT: usize = 8 << 20;

/// The admission webhooks of an operator.
#[derive(Clone, Default)]
pub struct Webhook {
    mutating: BTreeMap<String, Judge>,
    validating: BTreeMap<String, Judge>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.mutating.keys()).entries(self.validating.keys()).finish()
    }
}

impl Webhook {
    /// No webhooks yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a judgement that may patch.
    #[must_use]
    pub fn mutate<F>(mut self, path: &str, judge: F) -> Self
    where
        F: Fn(&Request) -> Verdict + Send + Sync + 'static,
    {
        self.mutating.insert(path.to_owned(), Arc::new(judge));
        self
    }

    /// Adds a judgement that only accepts or refuses.
    #[must_use]
    pub fn validate<F>(mut self, path: &str, judge: F) -> Self
    where
        F: Fn(&Request) -> Verdict + Send + Sync + 'static,
    {
        self.validating.insert(path.to_owned(), Arc::new(judge));
        self
    }

    /// The HTTP side alone.
    pub fn router(&self) -> Router {
        let mutating = self.mutating.iter().map(|it| (it, true));
        let validating = self.validating.iter().map(|it| (it, false));
        let mut router = Router::new();
        for ((path, judge), may_patch) in mutating.chain(validating) {
            let judge = Arc::clone(judge);
            let answer = move |body: Bytes| {
                let answer = answered(&body, &judge, may_patch);
                std::future::ready(answer)
            };
            router = router.route(path, post(answer));
        }
        router.layer(DefaultBodyLimit::max(BODY_LIMIT))
    }

    /// Serves until shutdown, unless the options say otherwise; adds the readiness check `webhook`.
    pub async fn serve(self, args: &WebhookArgs, runtime: &mut Runtime) -> Result<()> {
        if !args.enable_webhooks {
            return Ok(());
        }
        if args.webhook_service.is_empty() {
            let what = "the webhooks need --webhook-service, or --enable-webhooks=false".into();
            return Err(Error::Process { what, source: None });
        }
        let address = SocketAddr::from((args.webhook_address, args.webhook_port));
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| Error::process(format!("cannot listen on {address}"), error))?;
        let (sender, config) = watch::channel(None);
        let router = self.router();
        let mut stop = runtime.shutdown();
        let stopped = async move { stop.requested().await };
        runtime.spawn("webhook server", async move {
            let listener = TlsListener::new(listener, config)?;
            let server = axum::serve(listener, router).with_graceful_shutdown(stopped);
            server.await.map_err(|error| Error::process("the webhook server ended", error))
        });

        let health = runtime.health();
        let keeper = Certificates::new(runtime.client(), self.place(args, runtime.namespace()))
            .served_by(sender)
            .reported_to(
                health.readiness("webhook"),
                health.liveness("webhook certificate", Duration::from_mins(5)),
            );
        runtime.spawn("webhook certificate", keeper.keep(runtime.shutdown()));
        Ok(())
    }

    fn place(&self, args: &WebhookArgs, namespace: &str) -> Place {
        let service = &args.webhook_service;
        let configuration = args.webhook_configuration.as_ref().unwrap_or(service);
        let named = |wanted: bool| wanted.then(|| configuration.clone());
        Place {
            namespace: namespace.to_owned(),
            secret: args.webhook_secret.clone().unwrap_or_else(|| format!("{service}-tls")),
            host: args.webhook_host.clone().unwrap_or_else(|| service_name(service, namespace)),
            mutating: named(!self.mutating.is_empty()),
            validating: named(!self.validating.is_empty()),
            maker: args.webhook_certificates,
        }
    }
}

/// The answer to one review; the body is neither logged nor kept.
fn answered(body: &[u8], judge: &Judge, may_patch: bool) -> (StatusCode, String) {
    let review: AdmissionReview<DynamicObject> = match serde_json::from_slice(body) {
        Ok(review) => review,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("not an AdmissionReview: {error}")),
    };
    let request: Request = match review.try_into() {
        Ok(request) => request,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}")),
    };
    let verdict = judge(&request);
    let (name, namespace) = (&request.name, request.namespace.as_deref().unwrap_or_default());
    let kind = &request.kind.kind;
    debug!(kind, namespace, name, allowed = verdict.allowed, "reviewed");
    let review = response(&request, verdict, may_patch).into_review();
    match serde_json::to_string(&review) {
        Ok(text) => (StatusCode::OK, text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
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

fn response(request: &Request, verdict: Verdict, may_patch: bool) -> AdmissionResponse {
    let mut response = AdmissionResponse::from(request);
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
    warn!(kind = request.kind.kind, "a patch is not in JSON Patch's form, left out");
    unpatched
}
