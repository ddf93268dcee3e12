//! What a compute needs from its cell, read from the `NovaCell` and its two Secrets.
//!
//! The upstream `NovaCell` has no field for region, domains, project, certificate authorities or
//! the console proxy. They are read from optional keys of the Secret `spec.secret`, next to the
//! password that they belong to, so that the operator fixes none of them:
//!
//! | key | without it |
//! | --- | --- |
//! | `ServicePassword` | required: the password of `spec.serviceUser` in Keystone |
//! | `ACID`, `ACSecret` (upstream's names) | the password is used; with both, the application credential |
//! | `RegionName` | `regionOne` |
//! | `ProjectDomainName` | `Default` |
//! | `UserDomainName` | `Default` |
//! | `ProjectName` | `service` |
//! | `CABundle` (PEM) | the certificate authorities of nova-compute's image |
//! | `NoVNCProxyURL` | no VNC console (`[vnc] enabled = False`) |
//! | `quorum_queues` (upstream's name) | `false` |
//! | `notification_transport_url` (upstream's name) | nova-compute sends no notifications |
//!
//! `transport_url` in the Secret `spec.cellMessageBusSecretName` is required too. One line break at
//! the end of a value is ignored: `echo … | base64` adds one by mistake, and no option of
//! oslo.config could contain it.

use std::collections::BTreeMap;
use std::{fmt, str};

use crate::oslo::{Unwritable, Value, boolean};
use crate::transport_url::TransportUrl;

/// Key of nova's password in Keystone.
pub const SERVICE_PASSWORD: &str = "ServicePassword";
/// Key of the id of nova's application credential in Keystone.
pub const AC_ID: &str = "ACID";
/// Key of the secret of nova's application credential in Keystone.
pub const AC_SECRET: &str = "ACSecret";
/// Key of the region.
pub const REGION_NAME: &str = "RegionName";
/// Maximum length of the certificate authorities in bytes.
const BUNDLE_LIMIT: usize = 256 * 1024;
/// Maximum length of a value or field in bytes; the URL of the message bus has a limit of its own.
const VALUE_LIMIT: usize = 4 * 1024;
/// Maximum length of the name of a region in bytes: Keystone's own limit.
const REGION_LIMIT: usize = 255;
/// Key of the project's domain.
pub const PROJECT_DOMAIN: &str = "ProjectDomainName";
/// Key of the user's domain.
pub const USER_DOMAIN: &str = "UserDomainName";
/// Key of the services' project.
pub const PROJECT_NAME: &str = "ProjectName";
/// Key of the certificate authorities.
pub const CA_BUNDLE: &str = "CABundle";
/// Key of the console proxy's public URL.
pub const NO_VNC_PROXY_URL: &str = "NoVNCProxyURL";
/// Key of the flag for quorum queues on the message bus.
pub const QUORUM_QUEUES: &str = "quorum_queues";
/// Key of the URL of the message bus of notifications.
pub const NOTIFICATION_TRANSPORT_URL: &str = "notification_transport_url";
/// Key of the URL of the message bus.
pub const TRANSPORT_URL: &str = "transport_url";

/// The fault of a value that is not a bundle of certificates.
const BUNDLE_UNREADABLE: &str = "holds no readable certificate; it must be PEM";

/// The page that noVNC serves below the proxy's URL.
const CONSOLE_PAGE: &str = "/vnc_lite.html";

/// The content of a Secret.
#[derive(Clone)]
pub struct SecretView<'a> {
    /// The namespace of the Secret.
    pub namespace: &'a str,
    /// The name of the Secret.
    pub name: &'a str,
    /// Its `data`, decoded.
    pub data: BTreeMap<&'a str, &'a [u8]>,
}

/// The inputs of a cell.
#[derive(Clone)]
pub struct CellInput<'a> {
    /// `spec.keystoneAuthURL`.
    pub keystone_auth_url: &'a str,
    /// `spec.serviceUser`.
    pub service_user: &'a str,
    /// The Secret `spec.secret`.
    pub secret: SecretView<'a>,
    /// The Secret `spec.cellMessageBusSecretName`.
    pub message_bus: SecretView<'a>,
    /// Whether a text is a bundle of certificates; a parameter, because this crate links no TLS
    /// library.
    pub is_ca_bundle: fn(&str) -> bool,
}

/// An application credential of nova in Keystone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationCredential {
    /// Its id.
    pub id: Value,
    /// Its secret.
    pub secret: Value,
}

/// A cell as its computes use it: complete, and every value can be written to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellView {
    /// The URL of the message bus as one value.
    pub transport_url: Value,
    /// The parsed URL of the message bus, for a login.
    pub message_bus: TransportUrl,
    /// The URL of Keystone.
    pub keystone_auth_url: Value,
    /// Nova's user in Keystone.
    pub service_user: Value,
    /// Nova's password in Keystone.
    pub service_password: Value,
    /// What logs in to Keystone in place of the user with its password, or `None`.
    pub application_credential: Option<ApplicationCredential>,
    /// The region whose endpoints are used.
    pub region: Value,
    /// The domain of the project.
    pub project_domain: Value,
    /// The domain of the user.
    pub user_domain: Value,
    /// The services' project.
    pub project: Value,
    /// The certificate authorities as PEM, or `None` to use those of the image.
    pub ca_bundle: Option<String>,
    /// The page that shows a guest's VNC console, or `None` without a console.
    pub console_url: Option<Value>,
    /// Whether the message bus has quorum queues.
    pub quorum_queues: bool,
    /// The URL of the message bus of notifications, or `None` without notifications.
    pub notification_url: Option<Value>,
}

/// One reason why computes cannot be configured from a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellFault {
    /// The Secret as `namespace/name`, or `None` for a field of the `NovaCell`.
    pub secret: Option<String>,
    /// The key in the Secret, or the field's path.
    pub key: String,
    /// What is wrong.
    pub reason: CellFaultReason,
    /// Object, cause and next step, without any value.
    pub message: String,
}

/// What can be wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellFaultReason {
    /// The key is missing or empty.
    KeyMissing,
    /// The value cannot be used.
    ValueInvalid,
}

impl CellView {
    /// Reads a cell; reports all of its faults at once, so that the user can correct them together.
    pub fn read(input: &CellInput<'_>) -> Result<Self, Vec<CellFault>> {
        let mut faults = Faults::default();
        let view = Self::assemble(input, &mut faults);
        view.filter(|_| faults.0.is_empty()).ok_or(faults.0)
    }

    fn assemble(input: &CellInput<'_>, faults: &mut Faults) -> Option<Self> {
        let CellInput { secret, message_bus, is_ca_bundle, .. } = input;
        // All keys are read before any `?`, so that no fault hides another.
        let transport_url = faults.required(message_bus, TRANSPORT_URL);
        let parsed = transport_url.as_ref().and_then(|it| {
            let parsed = TransportUrl::parse(it.text());
            faults.accept(message_bus, TRANSPORT_URL, parsed)
        });
        let keystone_auth_url = faults.field("spec.keystoneAuthURL", input.keystone_auth_url);
        let service_user = faults.field("spec.serviceUser", input.service_user);
        let password = faults.required(secret, SERVICE_PASSWORD);
        let application_credential = faults.application_credential(secret);
        let region = faults.region(secret);
        let project_domain = faults.or_default(secret, PROJECT_DOMAIN, "Default");
        let user_domain = faults.or_default(secret, USER_DOMAIN, "Default");
        let project = faults.or_default(secret, PROJECT_NAME, "service");
        let ca_bundle = faults.ca_bundle(secret, *is_ca_bundle);
        let console_url = faults.console_url(secret);
        let quorum_queues = faults.boolean(secret, QUORUM_QUEUES);
        let notification_url = faults.notification_url(secret);
        Some(Self {
            transport_url: transport_url?,
            message_bus: parsed?,
            keystone_auth_url: keystone_auth_url?,
            service_user: service_user?,
            service_password: password?,
            application_credential,
            region: region?,
            project_domain: project_domain?,
            user_domain: user_domain?,
            project: project?,
            ca_bundle,
            console_url,
            quorum_queues,
            notification_url,
        })
    }
}

/// Whether a value of a Secret is more than the line break that is ignored.
pub fn is_set(value: &[u8]) -> bool {
    !matches!(value, b"" | b"\n" | b"\r\n")
}

/// Returns the fault of what is longer than its limit.
fn too_long(limit: usize) -> String {
    format!("is longer than {} KiB", limit >> 10)
}

/// The faults found so far, with the methods that read values and add faults.
#[derive(Default)]
struct Faults(Vec<CellFault>);

impl Faults {
    fn required(&mut self, secret: &SecretView<'_>, key: &str) -> Option<Value> {
        let value = self.optional(secret, key);
        // A value that cannot be used is already a fault.
        if value.is_none() && !self.0.iter().any(|it| it.key == key) {
            self.missing(secret, key);
        }
        value
    }

    fn optional(&mut self, secret: &SecretView<'_>, key: &str) -> Option<Value> {
        let text = self.text(secret, key)?;
        self.accept(secret, key, Value::new(text))
    }

    /// Returns the application credential, if a part of it is there; the other part is then
    /// required.
    fn application_credential(&mut self, secret: &SecretView<'_>) -> Option<ApplicationCredential> {
        let is_set = |key| is_set(secret.data.get(key).copied().unwrap_or_default());
        if !is_set(AC_ID) && !is_set(AC_SECRET) {
            return None;
        }
        let (id, value) = (self.required(secret, AC_ID), self.required(secret, AC_SECRET));
        Some(ApplicationCredential { id: id?, secret: value? })
    }

    fn or_default(&mut self, secret: &SecretView<'_>, key: &str, default: &str) -> Option<Value> {
        let text = self.text(secret, key).unwrap_or(default);
        self.accept(secret, key, Value::new(text))
    }

    /// Returns the region, whose name each compute records.
    fn region(&mut self, secret: &SecretView<'_>) -> Option<Value> {
        let region = self.or_default(secret, REGION_NAME, "regionOne")?;
        let is_too_long = region.text().len() > REGION_LIMIT;
        let checked = if is_too_long { Err("is longer than Keystone takes") } else { Ok(region) };
        self.accept(secret, REGION_NAME, checked)
    }

    fn ca_bundle(
        &mut self,
        secret: &SecretView<'_>,
        is_bundle: fn(&str) -> bool,
    ) -> Option<String> {
        let bundle = self.text(secret, CA_BUNDLE)?;
        let read = if is_bundle(bundle) { Ok(()) } else { Err(BUNDLE_UNREADABLE) };
        self.accept(secret, CA_BUNDLE, read)?;
        Some(format!("{bundle}\n"))
    }

    fn console_url(&mut self, secret: &SecretView<'_>) -> Option<Value> {
        let url = self.text(secret, NO_VNC_PROXY_URL)?.trim_end_matches('/');
        let page = if url.ends_with(CONSOLE_PAGE) { "" } else { CONSOLE_PAGE };
        self.accept(secret, NO_VNC_PROXY_URL, Value::new(&format!("{url}{page}")))
    }

    fn notification_url(&mut self, secret: &SecretView<'_>) -> Option<Value> {
        let url = self.optional(secret, NOTIFICATION_TRANSPORT_URL)?;
        self.accept(secret, NOTIFICATION_TRANSPORT_URL, TransportUrl::parse(url.text()))?;
        Some(url)
    }

    fn boolean(&mut self, secret: &SecretView<'_>, key: &str) -> bool {
        let Some(text) = self.text(secret, key) else { return false };
        let parsed = boolean(text).ok_or("is neither true nor false");
        self.accept(secret, key, parsed).unwrap_or_default()
    }

    fn field(&mut self, path: &str, text: &str) -> Option<Value> {
        let report = |it: Unwritable| {
            self.add(None, path, CellFaultReason::ValueInvalid, format!("{path} {it}"));
        };
        if text.len() > VALUE_LIMIT {
            let message = format!("{path} {}", too_long(VALUE_LIMIT));
            self.add(None, path, CellFaultReason::ValueInvalid, message);
            return None;
        }
        Value::new(text).map_err(report).ok()
    }

    /// Returns the text of a key without one trailing line break; `None` when it is missing or
    /// empty.
    fn text<'a>(&mut self, secret: &SecretView<'a>, key: &str) -> Option<&'a str> {
        let bytes = secret.data.get(key)?;
        let limit = match key {
            // Its own limit has words of its own.
            TRANSPORT_URL | NOTIFICATION_TRANSPORT_URL => usize::MAX,
            CA_BUNDLE => BUNDLE_LIMIT,
            _ => VALUE_LIMIT,
        };
        let bounded = if bytes.len() > limit { Err(too_long(limit)) } else { Ok(bytes) };
        let bytes = self.accept(secret, key, bounded)?;
        let text = self.accept(secret, key, str::from_utf8(bytes).map_err(|_| "is not UTF-8"))?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        (!text.is_empty()).then_some(text)
    }

    fn accept<T, E: fmt::Display>(
        &mut self,
        secret: &SecretView<'_>,
        key: &str,
        result: Result<T, E>,
    ) -> Option<T> {
        let SecretView { namespace, name, .. } = secret;
        let report = |it: E| {
            let message = format!("Secret {namespace}/{name}: the value of key {key} {it}");
            self.add(Some(secret), key, CellFaultReason::ValueInvalid, message);
        };
        result.map_err(report).ok()
    }

    fn missing(&mut self, secret: &SecretView<'_>, key: &str) {
        let SecretView { namespace, name, .. } = secret;
        let message = format!(
            "Secret {namespace}/{name} lacks the key {key}; add it: kubectl -n {namespace} patch \
             secret {name} --type merge -p '{{\"stringData\":{{\"{key}\":\"…\"}}}}'"
        );
        self.add(Some(secret), key, CellFaultReason::KeyMissing, message);
    }

    fn add(
        &mut self,
        secret: Option<&SecretView<'_>>,
        key: &str,
        reason: CellFaultReason,
        message: String,
    ) {
        let secret = secret.map(|it| format!("{}/{}", it.namespace, it.name));
        self.0.push(CellFault { secret, key: key.to_owned(), reason, message });
    }
}
