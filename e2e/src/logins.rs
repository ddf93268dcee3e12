//! Simulates infra-operator and keystone-operator as far as they make logins and revoke them.
//!
//! infra-operator deletes a former `RabbitMQUser` as soon as node sets do not need it, and removes the
//! user from the broker when no finalizer of others is on it. keystone-operator revokes an application
//! credential when its Secret has no finalizer `openstack.org/…-ac-consumer`.

use anyhow::Result;
use api::dataplane::NodeSet;
use api::rabbitmq::RabbitMqUser;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Client, ResourceExt as _};
use operator_core::upstream_hash;
use serde_json::json;

use crate::{Namespace, neighbours};

const DEFINITION: &str = include_str!("../crds/rabbitmq.openstack.org.yaml");
/// Prefix and suffix of the finalizers that keep an application credential.
const CONSUMER: (&str, &str) = ("openstack.org/", "-ac-consumer");

/// Creates the CRD. It stays, because the operator continues to watch the kind.
pub async fn serve(client: &Client) -> Result<()> {
    neighbours::define(client, DEFINITION).await
}

/// Creates a user of a message bus.
pub async fn user(ns: &Namespace, name: &str, username: &str) -> Result<()> {
    let spec = json!({ "rabbitmqClusterName": "rabbitmq-cell1", "username": username });
    ns.create::<RabbitMqUser>(name, spec).await.map(drop)
}

/// Creates the Secret of an application credential, and returns its name.
pub async fn credential(ns: &Namespace, id: &str) -> Result<String> {
    let name = format!("ac-nova-{}-secret", id.chars().take(5).collect::<String>());
    let secret: Secret = serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "labels": { "application-credentials": "true", "application-credential-service": "nova" },
        },
        "immutable": true,
        "stringData": { "AC_ID": id, "AC_SECRET": format!("secret of {id}") },
    }))?;
    ns.api::<Secret>().create(&PostParams::default(), &secret).await?;
    Ok(name)
}

/// Deletes a user that is not the present one any more, as a rotation does at once.
pub async fn revoke_user(ns: &Namespace, name: &str) -> Result<()> {
    ns.remove::<RabbitMqUser>(name).await?;
    Ok(())
}

/// Returns whether a user is still in the broker.
pub async fn has_user(ns: &Namespace, name: &str) -> Result<bool> {
    Ok(ns.api::<RabbitMqUser>().get_opt(name).await?.is_some())
}

/// Returns whether somebody keeps an application credential from being revoked.
pub fn is_consumed(secret: &Secret) -> bool {
    let (prefix, suffix) = CONSUMER;
    secret.finalizers().iter().any(|it| it.starts_with(prefix) && it.ends_with(suffix))
}

/// Returns what infra-operator and keystone-operator wait for before they revoke a former login: every
/// Secret that a node set has a hash of exists, and has it now (`AreSecretHashesInSync` of lib-common).
pub async fn are_hashes_in_sync(ns: &Namespace) -> Result<bool> {
    for set in ns.list::<NodeSet>().await? {
        for (name, hash) in set.status.unwrap_or_default().secret_hashes {
            let Some(secret) = ns.api::<Secret>().get_opt(&name).await? else { return Ok(false) };
            let (data, type_) = (secret.data.unwrap_or_default(), secret.type_.unwrap_or_default());
            if upstream_hash::of_secret(&data, &type_) != hash {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
