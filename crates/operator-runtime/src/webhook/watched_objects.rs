//! The Secret and the webhook configurations that hold a webhook's certificate, each watched by
//! name.

use std::{collections::BTreeMap, fmt};

use futures::{
    StreamExt as _,
    stream::{BoxStream, select_all},
};
use k8s_openapi::{
    ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Resource,
    core::{DynamicObject, Status},
    runtime::{WatchStreamExt as _, watcher::watch_object},
};
use serde::de::DeserializeOwned;

use super::certificate_location::CertificateLocation;
use crate::{
    error::{Error, Refusal, Result},
    tls::Bundle,
};

/// An object as last reported by its watch.
#[derive(Clone, Debug)]
pub(super) enum Known<K> {
    /// The watch has delivered nothing yet.
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
    /// Of the configuration at that place.
    Configuration(usize, Option<DynamicObject>),
    Failed(Error),
}

/// Everything that the watches have reported, updated with own writes.
pub(super) struct Seen {
    pub(super) secret: Known<Secret>,
    /// In the order of [`CertificateLocation::configurations`].
    pub(super) configurations: Vec<Known<DynamicObject>>,
}

impl Seen {
    /// Creates what is known before any watch has reported.
    pub(super) fn nothing(place: &CertificateLocation) -> Self {
        let n_configurations = place.configurations().len();
        Self { secret: Known::NotYet, configurations: vec![Known::NotYet; n_configurations] }
    }

    /// Applies an event; returns the error of a failed watch.
    pub(super) fn take(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Secret(it) => self.secret = it.into(),
            Change::Configuration(at, it) => self.configurations[at] = it.into(),
            Change::Failed(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns whether each watch of [`changes`] has reported at least once.
    pub(super) fn is_complete(&self) -> bool {
        self.secret.is_reported() && self.configurations.iter().all(Known::is_reported)
    }
}

/// Watches the Secret and the configurations, each by its name: RBAC permits no more.
pub(super) fn changes(client: &Client, place: &CertificateLocation) -> BoxStream<'static, Change> {
    let secrets = Api::namespaced(client.clone(), &place.namespace);
    let mut informers = vec![watched(secrets, "secrets", &place.secret, Change::Secret)];
    for (at, (kind, name)) in place.configurations().into_iter().enumerate() {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        let change = move |it| Change::Configuration(at, it);
        informers.push(watched(api, &kind.plural, &name, change));
    }
    select_all(informers).boxed()
}

fn watched<K>(
    api: Api<K>,
    plural: &str,
    name: &str,
    change: impl Fn(Option<K>) -> Change + Send + 'static,
) -> BoxStream<'static, Change>
where
    K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + 'static,
{
    let what = format!("watch {plural}/{name}");
    let reported = watch_object(api, name).default_backoff();
    let reported = reported.map(move |it| match it {
        Ok(object) => change(object),
        Err(error) => Change::Failed(Error::process(what.clone(), error)),
    });
    reported.boxed()
}

/// Creates the error for a configuration that does not exist.
pub(super) fn missing(plural: &str, name: &str) -> Error {
    let status = Status::failure("the webhook configuration does not exist", "NotFound");
    let status = status.with_code(404).boxed();
    let what = format!("watch {plural}/{name}");
    Error::Refused { what, refusal: Refusal::NotFound, status }
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
