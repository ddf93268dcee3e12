//! Keeps the webhook's certificate in a Secret, and its authority in the webhook configurations.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::{
            MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
        },
        core::v1::Secret,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use rustls::ServerConfig;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{sync::watch, time::sleep};
use tracing::{debug, info, warn};

use crate::{
    admin::{Check, Pulse},
    backoff::Backoff,
    clock,
    error::{During as _, Result},
    runtime::Shutdown,
    tls::Bundle,
};

/// How often everything is compared anew: an overwritten caBundle is mended within this time.
const ROUND: Duration = Duration::from_secs(30);
/// How long API servers may take to notice a new caBundle before its certificate is presented.
const NOTICE: Duration = Duration::from_secs(2);

/// Where the certificate and its authority live.
#[derive(Clone, Debug)]
pub struct Place {
    /// The operator's own namespace.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// The name that the certificate is for.
    pub host: String,
    /// Name of the mutating configuration, where there is one.
    pub mutating: Option<String>,
    /// Name of the validating configuration, where there is one.
    pub validating: Option<String>,
}

/// The keeper of one webhook's certificate.
pub struct Certificates {
    client: Client,
    place: Place,
    presented: watch::Sender<Option<Arc<ServerConfig>>>,
    /// The bundle that is presented now.
    current: Option<Bundle>,
    reports: Option<(Check, Pulse)>,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Certificates").field(&self.place).finish()
    }
}

impl Certificates {
    /// A keeper that presents nothing yet.
    pub fn new(client: Client, place: Place) -> Self {
        Self { client, place, presented: watch::Sender::new(None), current: None, reports: None }
    }

    /// Presents the certificate through this channel.
    #[must_use]
    pub fn served_by(mut self, presented: watch::Sender<Option<Arc<ServerConfig>>>) -> Self {
        self.presented = presented;
        self
    }

    /// Reports readiness and liveness.
    #[must_use]
    pub fn reported_to(mut self, ready: Check, alive: Pulse) -> Self {
        self.reports = Some((ready, alive));
        self
    }

    /// Keeps certificate and caBundle in step until shutdown.
    ///
    /// # Guarantees
    /// All replicas present the same certificate: the first create wins, the others read it.
    /// A renewed certificate is presented only after its authority was published.
    pub async fn keep(mut self, mut stop: Shutdown) -> Result<()> {
        let backoff = Backoff::new(Duration::from_secs(2), ROUND);
        loop {
            let outcome = tokio::select! {
                outcome = self.round() => outcome,
                () = stop.requested() => return Ok(()),
            };
            let pause = match outcome {
                Ok(pause) => {
                    backoff.reset("");
                    pause
                }
                Err(error) => {
                    // Replicas that mend the same thing at once meet in a conflict.
                    if error.is_conflict() {
                        debug!(secret = self.place.secret, "{}", error.chain());
                    } else {
                        warn!(secret = self.place.secret, "{}", error.chain());
                    }
                    self.report(Some(error.chain()));
                    backoff.failed("")
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = stop.requested() => return Ok(()),
            }
        }
    }

    /// Compares and mends everything once; when to look again.
    pub async fn round(&mut self) -> Result<Duration> {
        let bundle = self.stored().await?;
        let was_published = self.published(&bundle).await?;
        let is_presented = self.current.as_ref() == Some(&bundle);
        if !is_presented && !was_published && self.current.is_some() {
            self.report(Some("the caBundle was renewed a moment ago".into()));
            return Ok(NOTICE);
        }
        if !is_presented {
            self.presented.send_replace(Some(bundle.server_config()?));
            self.current = Some(bundle);
            info!(secret = self.place.secret, "presenting the webhook's certificate");
        }
        self.report(None);
        Ok(ROUND)
    }

    fn report(&self, failure: Option<String>) {
        let Some((ready, alive)) = &self.reports else { return };
        alive.beat();
        match failure {
            None => ready.pass(),
            Some(why) => ready.fail(why),
        }
    }

    /// The bundle of the Secret; made or renewed first where that is due.
    async fn stored(&self) -> Result<Bundle> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.place.namespace);
        let (name, host, now) = (&self.place.secret, &self.place.host, clock::now());
        let seen = api.get_opt(name).await.during(format!("get secrets/{name}"))?;
        let bundle = seen.as_ref().and_then(bundle_of);
        if let Some(usable) = bundle.clone().filter(|it| !it.is_due(host, now)) {
            return Ok(usable);
        }
        let fresh = Bundle::issue(host, now, bundle.as_ref())?;
        let params = PostParams::default();
        let written = match seen {
            None => {
                let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
                let secret = secret_of(&fresh, metadata, Some("kubernetes.io/tls".into()));
                api.create(&params, &secret).await.during(format!("create secrets/{name}"))
            }
            Some(seen) => {
                // The resourceVersion in the metadata makes the first replica win; a Secret's type
                // cannot be changed.
                let secret = secret_of(&fresh, seen.metadata, seen.type_);
                api.replace(name, &params, &secret).await.during(format!("update secrets/{name}"))
            }
        };
        match written {
            Ok(_) => Ok(fresh),
            Err(error) if error.is_conflict() => {
                let theirs = api.get(name).await.during(format!("get secrets/{name}"))?;
                bundle_of(&theirs).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Brings the configurations in step; whether they were so already.
    async fn published(&self, bundle: &Bundle) -> Result<bool> {
        let mutating = async {
            match &self.place.mutating {
                Some(name) => self.patched::<MutatingWebhookConfiguration>(name, bundle).await,
                None => Ok(true),
            }
        };
        let validating = async {
            match &self.place.validating {
                Some(name) => self.patched::<ValidatingWebhookConfiguration>(name, bundle).await,
                None => Ok(true),
            }
        };
        let (mutating, validating) = (mutating.await, validating.await);
        Ok(mutating? && validating?)
    }

    async fn patched<K: Configuration>(&self, name: &str, bundle: &Bundle) -> Result<bool> {
        let api: Api<K> = Api::all(self.client.clone());
        let plural = K::plural(&());
        let seen = api.get(name).await.during(format!("get {plural}/{name}"))?;
        let Some(webhooks) = foreign(&seen.client_configs(), bundle) else { return Ok(true) };
        // With the version, so that an entry that was removed meanwhile does not come back.
        let metadata = json!({ "resourceVersion": seen.resource_version() });
        let patch = Patch::Strategic(json!({ "metadata": metadata, "webhooks": webhooks }));
        let patched = api.patch(name, &PatchParams::default(), &patch).await;
        patched.during(format!("patch {plural}/{name}"))?;
        info!("published the webhook's authority in {plural}/{name}");
        Ok(false)
    }
}

/// The two kinds of webhook configuration.
trait Configuration: Resource<DynamicType = ()> + Clone + fmt::Debug + DeserializeOwned {
    /// Its webhooks' names and how they are reached.
    fn client_configs(&self) -> Vec<(&str, &WebhookClientConfig)>;
}

impl Configuration for MutatingWebhookConfiguration {
    fn client_configs(&self) -> Vec<(&str, &WebhookClientConfig)> {
        let webhooks = self.webhooks.iter().flatten();
        webhooks.map(|it| (it.name.as_str(), &it.client_config)).collect()
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    fn client_configs(&self) -> Vec<(&str, &WebhookClientConfig)> {
        let webhooks = self.webhooks.iter().flatten();
        webhooks.map(|it| (it.name.as_str(), &it.client_config)).collect()
    }
}

/// The entries whose caBundle is not ours, as a patch; `None` where there are none.
fn foreign(configs: &[(&str, &WebhookClientConfig)], bundle: &Bundle) -> Option<Vec<Value>> {
    let ours = ByteString(bundle.authorities.clone().into_bytes());
    let foreign = configs.iter().filter(|(_, it)| it.ca_bundle.as_ref() != Some(&ours));
    let entries: Vec<Value> = foreign
        .map(|(name, _)| json!({ "name": name, "clientConfig": { "caBundle": ours } }))
        .collect();
    (!entries.is_empty()).then_some(entries)
}

fn bundle_of(secret: &Secret) -> Option<Bundle> {
    let data = secret.data.as_ref()?;
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    Some(Bundle {
        authorities: text("ca.crt")?,
        certificate: text("tls.crt")?,
        key: text("tls.key")?,
    })
}

fn secret_of(bundle: &Bundle, metadata: ObjectMeta, type_: Option<String>) -> Secret {
    let entries = [
        ("ca.crt", &bundle.authorities),
        ("tls.crt", &bundle.certificate),
        ("tls.key", &bundle.key),
    ];
    let data: BTreeMap<String, ByteString> = entries
        .map(|(key, text)| (key.to_owned(), ByteString(text.clone().into_bytes())))
        .into_iter()
        .collect();
    Secret { metadata, data: Some(data), type_, ..Secret::default() }
}
