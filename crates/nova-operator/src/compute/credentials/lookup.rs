//! Which objects hold what a cell's Secret lets computes log in with.
//!
//! The author of that Secret chooses what stands in it: it is only compared with the objects of its
//! own namespace.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::nova::{Cell, Credential, CredentialKind, ExternalCompute};
use api::rabbitmq::RabbitMqUser;
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::{Resource, ResourceExt};
use nova_config::conf::{AC_ID, TRANSPORT_URL};
use nova_config::transport_url::TransportUrl;
use operator_core::data_sources::SourceRef;
use operator_core::object_key::Key;
use operator_runtime::error::Result;
use operator_runtime::source_cache::Content;

use crate::caches::Caches;
use crate::cell_inputs::line;
use crate::compute::credentials::observed::{Held, HeldObject};
use crate::shared_caches::indexes::BY_APPLICATION_CREDENTIAL;

/// Key in a cell's Secret: the `RabbitMQUser` that its `transport_url` logs in as.
const RABBITMQ_USER_NAME: &str = "rabbitmq_user_name";
/// Key in such a Secret: the id of the credential.
const ID: &str = "AC_ID";
/// How many users of one name are held at most.
const USERS: usize = 4;
/// How many of these Secrets are read at most.
const READ: usize = 64;
/// How many characters of the id keystone-operator puts into their names.
const OF_ID: usize = 5;

/// Returns the credentials that computes of a cell are deployed with now.
pub async fn present(
    caches: &Caches,
    cell: &Cell,
    (secret, message_bus): (Option<&Content>, Option<&Content>),
) -> Result<Vec<Credential>> {
    let (Some(secret), Some(message_bus)) = (secret, message_bus) else { return Ok(Vec::new()) };
    let namespace = cell.namespace().unwrap_or_default();
    let mut found = of_message_bus(caches, &namespace, cell, (secret, message_bus)).await?;
    if let Some(id) = line(secret, AC_ID) {
        found.extend(application_credential(caches, &namespace, id).await?);
    }
    Ok(found)
}

/// Returns what a compute logs in with.
pub async fn held(
    caches: &Caches,
    compute: &ExternalCompute,
    cell: Option<&Cell>,
    contents: (Option<&Content>, Option<&Content>),
) -> Result<Held> {
    let present = match cell {
        Some(cell) => present(caches, cell, contents).await?,
        None => Vec::new(),
    };
    let namespace = compute.namespace().unwrap_or_default();
    let recorded = compute.status.iter().flat_map(|it| &it.credentials);
    let all: BTreeSet<&Credential> = recorded.chain(&present).collect();
    let objects = all.into_iter().filter_map(|it| object(caches, &namespace, it)).collect();
    Ok(Held { present, objects })
}

/// Returns the object of a credential with its metadata, or `None` when it does not exist.
pub fn object(caches: &Caches, namespace: &str, credential: &Credential) -> Option<HeldObject> {
    let at = Key::new(namespace, &credential.name);
    let metadata = match credential.kind {
        CredentialKind::RabbitMqUser => caches.rabbitmq_users.cache().get(&at)?.metadata.clone(),
        CredentialKind::TransportSecret | CredentialKind::ApplicationCredential => {
            caches.secrets.get(&at)?.meta().clone()
        }
    };
    Some(HeldObject { credential: credential.clone(), metadata })
}

/// Returns the users that the URL logs in as, else its Secret if infra-operator made that.
async fn of_message_bus(
    caches: &Caches,
    namespace: &str,
    cell: &Cell,
    (secret, message_bus): (&Content, &Content),
) -> Result<Vec<Credential>> {
    let name = &cell.spec.cell_message_bus_secret_name;
    let found = caches.secrets.get(&Key::new(namespace, name));
    let is_of_infra = found.is_some_and(|it| is_of_transport_url(&it));
    let named = line(secret, RABBITMQ_USER_NAME);
    // Where nothing speaks of infra-operator, its kinds are not looked for.
    if !is_of_infra && named.is_none() {
        return Ok(Vec::new());
    }
    let url = line(message_bus, TRANSPORT_URL).and_then(|it| TransportUrl::parse(it).ok());
    if let Some(url) = url
        && let Some(users) = caches.rabbitmq_users.seen(&caches.api, namespace).await?
    {
        let users = users_of(&users, &url, named);
        if !users.is_empty() {
            return Ok(users);
        }
    }
    let secret = Credential { kind: CredentialKind::TransportSecret, name: name.clone() };
    Ok(is_of_infra.then_some(secret).into_iter().collect())
}

/// Returns the users that a URL logs in as: the one that is named, if it is one of them, else all. The
/// name alone is not enough, because it may change before the URL does.
pub fn users_of(
    users: &[Arc<RabbitMqUser>],
    url: &TransportUrl,
    named: Option<&str>,
) -> Vec<Credential> {
    let is_it = |user: &&Arc<RabbitMqUser>| {
        let status = user.status.as_ref();
        let vhost = status.map(|it| it.vhost.as_str()).filter(|it| !it.is_empty());
        let known = [status.map(|it| &it.username), Some(&user.spec.username)];
        let name = known.into_iter().flatten().find(|it| !it.is_empty()).cloned();
        let name = name.unwrap_or_else(|| user.name_any());
        url.brokers.iter().any(|it| it.user == name)
            && vhost.is_none_or(|it| it == url.virtual_host)
    };
    let all: Vec<String> = users.iter().filter(is_it).map(|it| it.name_any()).collect();
    let only = all.iter().find(|it| Some(it.as_str()) == named).cloned();
    let chosen = only.map_or(all, |it| vec![it]).into_iter().take(USERS);
    let credential = |name| Credential { kind: CredentialKind::RabbitMqUser, name };
    chosen.map(credential).collect()
}

/// Whether a Secret is a `TransportURL`'s: no operator waits for a finalizer on any other.
fn is_of_transport_url(secret: &PartialObjectMeta<Secret>) -> bool {
    let group = format!("{}/", RabbitMqUser::group(&()));
    let is_owner =
        |kind: &str, version: &str| kind == "TransportURL" && version.starts_with(&group);
    secret.owner_references().iter().any(|it| is_owner(&it.kind, &it.api_version))
}

/// Returns the Secret of the application credential with that id.
async fn application_credential(
    caches: &Caches,
    namespace: &str,
    id: &str,
) -> Result<Option<Credential>> {
    let labelled = caches.secrets.indexed(BY_APPLICATION_CREDENTIAL, &Key::new(namespace, ""));
    let names = labelled.into_iter().map(|it| it.name_any()).collect();
    let wanted = caches.sources.keys().of_bytes(id.as_bytes());
    for name in candidates(names, id) {
        let source = SourceRef::secret(namespace, &name);
        let digests = caches.sources.digests(&caches.api, &source).await?;
        if digests.is_some_and(|it| it.keys.get(ID) == Some(&wanted)) {
            return Ok(Some(Credential { kind: CredentialKind::ApplicationCredential, name }));
        }
    }
    Ok(None)
}

/// Returns the Secrets that are worth reading: first those whose names have the begin of the id, as
/// keystone-operator names them.
pub fn candidates(mut names: Vec<String>, id: &str) -> Vec<String> {
    let begin: String = id.chars().take(OF_ID).collect();
    names.sort_by_cached_key(|it| (!it.contains(&begin), it.clone()));
    names.truncate(READ);
    names
}
