//! Maintains the webhook's certificate in a Secret and its CA in the webhook configurations.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::{
    ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject},
};
use rustls::ServerConfig;
use rustls::server::{WebPkiClientVerifier, danger::ClientCertVerifier};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tracing::{debug, info, warn};

use super::certificate_location::CertificateLocation;
use super::watched_objects::{Known, Seen, bundle_of, changes, missing, secret_of};
use crate::{
    admin::{Check, Heartbeat},
    args::CertificateMaker,
    backoff::Backoff,
    clock,
    error::{During as _, Error, Result},
    shutdown::Shutdown,
    tls::Bundle,
};

/// Interval of checking the clock for a due renewal; the check makes no request.
const LOOK: Duration = Duration::from_mins(1);
/// Minimum delay between rounds, so that another writer that keeps overwriting cannot cause a busy
/// loop.
const GAP: Duration = Duration::from_secs(1);
/// Time for API servers to notice a new caBundle before its certificate is presented.
const NOTICE: Duration = Duration::from_secs(2);
/// Maximum backoff after a failed round.
const REST: Duration = Duration::from_secs(30);

/// Source of the current time.
type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Maintains the certificate of one webhook.
pub struct Certificates {
    client: Client,
    place: CertificateLocation,
    now: Clock,
    clients: Arc<dyn ClientCertVerifier>,
    presented: watch::Sender<Option<Arc<ServerConfig>>>,
    seen: Seen,
    /// The bundle that is currently presented.
    current: Option<Bundle>,
    /// The bundle whose CA is published, and since when that is known.
    published: Option<(Bundle, Instant)>,
    reports: Option<(Check, Heartbeat)>,
}

impl Certificates {
    /// Creates an instance that presents nothing yet.
    pub fn new(client: Client, place: CertificateLocation) -> Self {
        Self {
            seen: Seen::nothing(&place),
            client,
            place,
            now: Arc::new(clock::now),
            clients: WebPkiClientVerifier::no_client_auth(),
            presented: watch::Sender::new(None),
            current: None,
            published: None,
            reports: None,
        }
    }

    /// Restricts the server to the clients that a verifier accepts.
    #[must_use]
    pub fn for_clients(mut self, clients: Arc<dyn ClientCertVerifier>) -> Self {
        self.clients = clients;
        self
    }

    /// Publishes the TLS configuration through this channel.
    #[must_use]
    pub fn served_by(mut self, presented: watch::Sender<Option<Arc<ServerConfig>>>) -> Self {
        self.presented = presented;
        self
    }

    /// Reports readiness and liveness to these checks.
    #[must_use]
    pub fn reported_to(mut self, ready: Check, alive: Heartbeat) -> Self {
        self.reports = Some((ready, alive));
        self
    }

    /// Replaces the clock.
    #[cfg(test)]
    pub(super) fn by(mut self, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.now = Arc::new(now);
        self
    }

    /// Keeps certificate and caBundle in sync until shutdown.
    ///
    /// # Guarantees
    /// All replicas present the same certificate: the first write wins and the others pick it up. A
    /// renewed certificate is presented only after its CA was published. At rest it makes no
    /// requests: watches report changes, and the renewal date is computed.
    pub async fn keep(mut self, mut stop: Shutdown) -> Result<()> {
        let mut changes = changes(&self.client, &self.place);
        let backoff = Backoff::new(Duration::from_secs(2), REST);
        let mut earliest = Instant::now();
        let mut due = earliest + LOOK;
        loop {
            tokio::select! {
                Some(change) = changes.next() => {
                    if let Err(error) = self.seen.take(change) {
                        self.watch_failed(&error);
                    } else if self.seen.is_complete() {
                        due = due.min(earliest);
                    }
                    continue;
                }
                () = sleep_until(due) => {}
                () = stop.requested() => return Ok(()),
            }
            let pause = tokio::select! {
                outcome = self.round() => self.next_attempt(outcome, &backoff),
                () = stop.requested() => return Ok(()),
            };
            earliest = Instant::now() + GAP;
            due = Instant::now() + pause;
        }
    }

    /// Reports the outcome of a round and returns the delay until the next one.
    fn next_attempt(&self, outcome: Result<Duration>, backoff: &Backoff) -> Duration {
        match outcome {
            Ok(pause) => {
                backoff.reset("");
                pause
            }
            Err(error) => {
                // Replicas that make the same correction concurrently run into a conflict.
                if error.is_conflict() {
                    debug!(secret = self.place.secret, "{}", error.chain());
                } else {
                    warn!(secret = self.place.secret, "{}", error.chain());
                }
                self.report(Some(error.chain()));
                backoff.failed("")
            }
        }
    }

    /// Reports a failed watch. It is reopened, and until then its last report stays valid.
    fn watch_failed(&self, error: &Error) {
        warn!(secret = self.place.secret, "{}", error.chain());
        if !self.seen.is_complete() {
            self.report(Some(error.chain()));
        }
    }

    /// Compares and corrects everything once. Returns the delay until the next round.
    async fn round(&mut self) -> Result<Duration> {
        if !self.seen.is_complete() {
            self.report(Some("the watches have not delivered everything yet".into()));
            return Ok(LOOK);
        }
        let bundle = self.stored().await?;
        self.publish(&bundle).await?;
        if self.current.as_ref() != Some(&bundle) {
            let left = NOTICE.saturating_sub(self.published_for(&bundle));
            if self.current.is_some() && !left.is_zero() {
                self.report(Some("the caBundle was renewed a moment ago".into()));
                return Ok(left);
            }
            self.presented.send_replace(Some(bundle.server_config_for(Arc::clone(&self.clients))?));
            self.current = Some(bundle);
            info!(secret = self.place.secret, "presenting the webhook's certificate");
        }
        self.report(None);
        Ok(LOOK)
    }

    /// Returns for how long the bundle's CA is known to be published; starts counting for a new
    /// bundle.
    fn published_for(&mut self, bundle: &Bundle) -> Duration {
        match &self.published {
            Some((published, since)) if published == bundle => since.elapsed(),
            _ => {
                self.published = Some((bundle.clone(), Instant::now()));
                Duration::ZERO
            }
        }
    }

    fn report(&self, failure: Option<String>) {
        let Some((ready, alive)) = &self.reports else { return };
        alive.beat();
        match failure {
            None => ready.pass(),
            Some(why) => ready.fail(why),
        }
    }

    /// Returns the bundle of the Secret, after creating or renewing it where due.
    async fn stored(&mut self) -> Result<Bundle> {
        let (name, host, now) = (&self.place.secret, &self.place.host, (self.now)());
        let seen = self.seen.secret.get();
        let bundle = seen.and_then(bundle_of);
        if self.place.maker == CertificateMaker::CertManager {
            let usable = bundle.filter(|it| it.serves(host, now));
            return usable.ok_or_else(|| waits_for(&format!("filled Secret {name} for {host}")));
        }
        if let Some(usable) = bundle.clone().filter(|it| !it.is_due(host, now)) {
            return Ok(usable);
        }
        let fresh = Bundle::issue(host, now, bundle.as_ref())?;
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.place.namespace);
        let params = PostParams::default();
        let written = match seen.cloned() {
            None => {
                let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
                let secret = secret_of(&fresh, metadata, Some("kubernetes.io/tls".into()));
                api.create(&params, &secret).await.during(format!("create secrets/{name}"))
            }
            Some(seen) => {
                // The resourceVersion in the metadata makes the first replica win; the watch then
                // delivers its bundle to the others. A Secret's type is immutable.
                let secret = secret_of(&fresh, seen.metadata, seen.type_);
                api.replace(name, &params, &secret).await.during(format!("update secrets/{name}"))
            }
        };
        self.seen.secret = Known::Present(written?);
        Ok(fresh)
    }

    /// Updates both configurations, the second even if the first fails.
    async fn publish(&mut self, bundle: &Bundle) -> Result<()> {
        let mut outcome = Ok(());
        for (at, (kind, name)) in self.place.configurations().iter().enumerate() {
            outcome = outcome.and(self.patch(at, kind, name, bundle).await);
        }
        outcome
    }

    async fn patch(
        &mut self,
        at: usize,
        kind: &ApiResource,
        name: &str,
        bundle: &Bundle,
    ) -> Result<()> {
        let plural = &kind.plural;
        let Some(seen) = self.seen.configurations[at].get() else {
            return Err(missing(plural, name));
        };
        let Some(webhooks) = foreign(&seen.data, bundle) else { return Ok(()) };
        if self.place.maker == CertificateMaker::CertManager {
            return Err(waits_for(&format!("published the authority in {plural}/{name}")));
        }
        // With the resourceVersion, so that an entry removed meanwhile does not reappear.
        let metadata = json!({ "resourceVersion": seen.metadata.resource_version });
        let patch = Patch::Strategic(json!({ "metadata": metadata, "webhooks": webhooks }));
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), kind);
        let patched = api.patch(name, &PatchParams::default(), &patch).await;
        // API servers must notice the change anew, whatever was published before.
        self.published = None;
        let patched = patched.during(format!("patch {plural}/{name}"))?;
        self.seen.configurations[at] = Known::Present(patched);
        info!("published the webhook's authority in {plural}/{name}");
        Ok(())
    }
}

/// Creates the error for a step that cert-manager has not done yet; a watch reports when it has.
fn waits_for(what: &str) -> Error {
    Error::Process { what: format!("cert-manager has not {what} yet"), source: None }
}

/// Returns a patch of the entries of a configuration whose caBundle differs from ours, or `None` when
/// all match.
fn foreign(configuration: &Value, bundle: &Bundle) -> Option<Vec<Value>> {
    let ours = json!(ByteString(bundle.authorities.clone().into_bytes()));
    let all = configuration["webhooks"].as_array().into_iter().flatten();
    let foreign = all.filter(|it| it["clientConfig"]["caBundle"] != ours);
    let entries: Vec<Value> = foreign
        .map(|it| json!({ "name": it["name"], "clientConfig": { "caBundle": ours } }))
        .collect();
    (!entries.is_empty()).then_some(entries)
}
