//! Admission webhooks over HTTPS: pure handlers by path, with a self-managed certificate.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Extension, Router, body::Body, routing::post};
use handler::Handler;
use review::{Bounds, PeerAddress, ReviewLimits};
use tokio::{net::TcpListener, sync::watch};

use crate::{
    args::WebhookArgs,
    error::{Error, Result},
    runtime::Runtime,
    tls::{client_verifier, service_name},
};

mod admission_cache;
mod certificate;
mod certificate_location;
#[cfg(test)]
mod certificate_tests;
mod decision;
mod handler;
mod review;
mod server;
#[cfg(test)]
mod tests;
mod watched_objects;

pub use admission_cache::{AdmissionCache, stand_by};
pub use certificate::Certificates;
pub use certificate_location::CertificateLocation;
pub use decision::{AdmissionDecision, difference};
pub use handler::Request;
pub use server::{Limits, Presented, serve};

/// The admission webhooks of an operator.
#[derive(Clone, Default)]
pub struct Webhook {
    mutating: BTreeMap<String, Handler>,
    validating: BTreeMap<String, Handler>,
}

impl Webhook {
    /// Creates a webhook server without handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a mutating handler at `path`.
    #[must_use]
    pub fn mutate<F>(mut self, path: &str, handler: F) -> Self
    where
        F: Fn(&Request) -> AdmissionDecision + Send + Sync + 'static,
    {
        self.mutating.insert(path.to_owned(), Arc::new(handler));
        self
    }

    /// Adds a validating handler at `path`; patches in its decision are ignored.
    #[must_use]
    pub fn validate<F>(mut self, path: &str, handler: F) -> Self
    where
        F: Fn(&Request) -> AdmissionDecision + Send + Sync + 'static,
    {
        self.validating.insert(path.to_owned(), Arc::new(handler));
        self
    }

    /// Returns the HTTP router alone, without TLS.
    pub fn router(&self) -> Router {
        self.router_at(ReviewLimits::of(Bounds::default()))
    }

    fn router_at(&self, reviews: ReviewLimits) -> Router {
        let reviews = Arc::new(reviews);
        let mutating = self.mutating.iter().map(|it| (it, true));
        let validating = self.validating.iter().map(|it| (it, false));
        let mut router = Router::new();
        for ((path, handler), may_patch) in mutating.chain(validating) {
            let (handler, reviews) = (Arc::clone(handler), Arc::clone(&reviews));
            let answer = move |peer: Option<Extension<PeerAddress>>, body: Body| {
                let (handler, reviews) = (Arc::clone(&handler), Arc::clone(&reviews));
                let peer = peer.map(|it| it.0).unwrap_or_default();
                async move { reviews.answer((body, peer), &handler, may_patch).await }
            };
            router = router.route(path, post(answer));
        }
        router
    }

    /// Serves until shutdown, unless the options disable webhooks; adds the readiness check
    /// `webhook`.
    pub async fn serve(self, args: &WebhookArgs, runtime: &mut Runtime) -> Result<()> {
        if !args.enable_webhooks {
            return Ok(());
        }
        if args.webhook_service.is_empty() {
            let what = "the webhooks need --webhook-service, or --enable-webhooks=false".into();
            return Err(Error::Process { what, source: None });
        }
        let clients = client_verifier(&args.webhook_client_authorities)?;
        let address = SocketAddr::from((args.webhook_address, args.webhook_port));
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| Error::process(format!("cannot listen on {address}"), error))?;
        let (sender, config) = watch::channel(None);
        let router = self.router();
        let mut stop = runtime.shutdown();
        let stopped = async move { stop.requested().await };
        runtime.spawn("webhook server", async move {
            serve(listener, config, router, Limits::default(), stopped).await;
            Ok(())
        });

        let health = runtime.health();
        let keeper = Certificates::new(runtime.client(), self.place(args, runtime.namespace()))
            .for_clients(clients)
            .served_by(sender)
            .reported_to(
                health.readiness("webhook"),
                health.liveness("webhook certificate", Duration::from_mins(5)),
            );
        runtime.spawn("webhook certificate", keeper.keep(runtime.shutdown()));
        Ok(())
    }

    fn place(&self, args: &WebhookArgs, namespace: &str) -> CertificateLocation {
        let service = &args.webhook_service;
        let configuration = args.webhook_configuration.as_ref().unwrap_or(service);
        let named = |desired: bool| desired.then(|| configuration.clone());
        CertificateLocation {
            namespace: namespace.to_owned(),
            secret: args.webhook_secret.clone().unwrap_or_else(|| format!("{service}-tls")),
            host: args.webhook_host.clone().unwrap_or_else(|| service_name(service, namespace)),
            mutating: named(!self.mutating.is_empty()),
            validating: named(!self.validating.is_empty()),
            maker: args.webhook_certificates,
        }
    }
}
