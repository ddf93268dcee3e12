//! The Secret and the webhook configurations that hold a webhook's certificate, each watched by
//! name.

use std::{collections::BTreeMap, fmt};

use futures::{
    StreamExt as _,
    stream::{BoxStream, select_all},
};
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
    Api, Client, Resource,
    core::Status,
    runtime::{WatchStreamExt as _, watcher::watch_object},
};
use serde::de::DeserializeOwned;

use super::certificate_location::CertificateLocation;
use crate::{
    error::{Error, Refusal, Result},
    tls::Bundle,
};

/// An object as last reported by its watch.
#[derive(Clone, Debug, Default)]
pub(super) enum Known<K> {
    /// The watch has delivered nothing yet.
    #[default]
    NotYet,
    /// The object does not exist.
    Absent,
    /// The object exists.
    Present(K),
}

impl<K> Known<K> {
    /// Returns the object, or `None` when it is absent or not reported yet.
    pub(super) fn get(&self) -> Option<&K> {
        if let Self::Present(it) = self { Some(it) } else { None }
    }

    fn is_reported(&self) -> bool {
        !matches!(self, Self::NotYet)
    }
}

impl<K> From<Option<K>> for Known<K> {
    fn from(object: Option<K>) -> Self {
        object.map_or(Self::Absent, Self::Present)
    }
}

/// An event of one of the watches.
pub(super) enum Change {
    Secret(Option<Secret>),
    Mutating(Option<MutatingWebhookConfiguration>),
    Validating(Option<ValidatingWebhookConfiguration>),
    Failed(Error),
}

/// Everything that the watches have reported, updated with own writes.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) secret: Known<Secret>,
    pub(super) mutating: Known<MutatingWebhookConfiguration>,
    pub(super) validating: Known<ValidatingWebhookConfiguration>,
}

impl Seen {
    /// Applies an event; returns the error of a failed watch.
    pub(super) fn take(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Secret(it) => self.secret = it.into(),
            Change::Mutating(it) => self.mutating = it.into(),
            Change::Validating(it) => self.validating = it.into(),
            Change::Failed(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns whether each watch of [`changes`] has reported at least once.
    pub(super) fn is_complete(&self, place: &CertificateLocation) -> bool {
        self.secret.is_reported()
            && (place.mutating.is_none() || self.mutating.is_reported())
            && (place.validating.is_none() || self.validating.is_reported())
    }
}

/// Watches the Secret and the configurations, each by its name: RBAC permits no more.
pub(super) fn changes(client: &Client, place: &CertificateLocation) -> BoxStream<'static, Change> {
    let secrets = Api::namespaced(client.clone(), &place.namespace);
    let mut informers = vec![watched(secrets, &place.secret, Change::Secret)];
    if let Some(name) = &place.mutating {
        informers.push(watched(Api::all(client.clone()), name, Change::Mutating));
    }
    if let Some(name) = &place.validating {
        informers.push(watched(Api::all(client.clone()), name, Change::Validating));
    }
    select_all(informers).boxed()
}

fn watched<K>(
    api: Api<K>,
    name: &str,
    change: fn(Option<K>) -> Change,
) -> BoxStream<'static, Change>
where
    K: Resource<DynamicType = ()> + Clone + fmt::Debug + DeserializeOwned + Send + 'static,
{
    let what = format!("watch {}/{name}", K::plural(&()));
    let reported = watch_object(api, name).default_backoff();
    let reported = reported.map(move |it| match it {
        Ok(object) => change(object),
        Err(error) => Change::Failed(Error::process(what.clone(), error)),
    });
    reported.boxed()
}

/// The two kinds of webhook configuration.
pub(super) trait Configuration:
    Resource<DynamicType = ()> + Clone + fmt::Debug + DeserializeOwned
{
    /// Returns what is known of this configuration.
    fn seen(all: &mut Seen) -> &mut Known<Self>;

    /// Returns the names of its webhooks and their client configurations.
    fn client_configs(&self) -> Vec<(&str, &WebhookClientConfig)>;

    /// Creates the error for a configuration that does not exist.
    fn missing(name: &str) -> Error {
        let status = Status::failure("the webhook configuration does not exist", "NotFound");
        let what = format!("watch {}/{name}", Self::plural(&()));
        let status = status.with_code(404).boxed();
        Error::Refused { what, refusal: Refusal::NotFound, status }
    }
}

impl Configuration for MutatingWebhookConfiguration {
    fn seen(all: &mut Seen) -> &mut Known<Self> {
        &mut all.mutating
    }

    fn client_configs(&self) -> Vec<(&str, &WebhookClientConfig)> {
        let webhooks = self.webhooks.iter().flatten();
        webhooks.map(|it| (it.name.as_str(), &it.client_config)).collect()
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    fn seen(all: &mut Seen) -> &mut Known<Self> {
        &mut all.validating
    }

    fn client_configs(&self) -> Vec<(&str, &WebhookClientConfig)> {
        let webhooks = self.webhooks.iter().flatten();
        webhooks.map(|it| (it.name.as_str(), &it.client_config)).collect()
    }
}

/// Returns the bundle that the Secret holds, or `None` when a part is missing or not UTF-8.
pub(super) fn bundle_of(secret: &Secret) -> Option<Bundle> {
    let data = secret.data.as_ref()?;
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    Some(Bundle {
        authorities: text("ca.crt")?,
        certificate: text("tls.crt")?,
        key: text("tls.key")?,
    })
}

/// Creates a Secret that holds the bundle.
pub(super) fn secret_of(bundle: &Bundle, metadata: ObjectMeta, type_: Option<String>) -> Secret {
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
