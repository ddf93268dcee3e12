//! Lists Ironic's nodes, over the session that all sets of one Ironic share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::baremetal::{BaremetalSet, Ironic};
use api::secret::Secret;
use ironic::Error;
use ironic_client::pool::{FRESH, Purpose};
use ironic_client::{Credentials, Pool, Session};
use operator_core::hash;
use operator_core::keyed::Digest;
use operator_core::object_key::Key;
use operator_runtime::source_cache::Content;
use operator_runtime::tls_stream::CaTrust;
use tokio::time::timeout;

use crate::ironic::failure_causes;
use crate::observe::{Machines, Secrets, Unseen, texts};

/// Timeout of a list. A pass has a minute in total, and the pool treats an Ironic that takes this
/// long as slow.
const DEADLINE: Duration = Duration::from_secs(25);
/// The Secret key with the trusted CA certificates.
const CA: &str = "ca.crt";

/// Returns the Secrets that requests to a set's Ironic need.
pub fn secrets(set: &BaremetalSet) -> impl Iterator<Item = &str> {
    let ironic = set.spec.ironic.iter();
    ironic.flat_map(|it| [&it.secret, &it.ca_secret]).flatten().map(String::as_str)
}

/// Lists the machines of a set's Ironic, and reads why those of the set failed.
pub async fn list_nodes(
    pool: &Pool,
    set: &BaremetalSet,
    ironic: &Ironic,
    secrets: &Secrets,
) -> Result<Machines, Unseen> {
    let user = &Key::of(set);
    let session = session(pool, user, ironic, secrets)?;
    let _leave = pool.leave_for(&session, &user.namespace, Purpose::List).ok_or(Unseen::NotYet)?;
    let asked = async {
        let version = session.version().await?;
        Ok(Machines { version, nodes: session.nodes(FRESH).await?, causes: BTreeMap::new() })
    };
    let late = || Error::Unreachable(format!("no list within {} s", DEADLINE.as_secs()));
    let listed = timeout(DEADLINE, asked).await.unwrap_or_else(|_| Err(late()));
    let mut machines = listed.map_err(Unseen::Error)?;
    failure_causes::read(&session, set, &mut machines).await;
    Ok(machines)
}

fn session(
    pool: &Pool,
    user: &Key,
    ironic: &Ironic,
    secrets: &Secrets,
) -> Result<Arc<Session>, Unseen> {
    let secret =
        found(secrets, "spec.ironic.secret", ironic.secret.as_ref(), "username and password")?;
    let authorities = found(secrets, "spec.ironic.caSecret", ironic.ca_secret.as_ref(), CA)?;
    let Ironic { endpoint, authentication, .. } = ironic;
    let contents = [digests(secret), digests(authorities)];
    // A list counts to the memory of its namespace.
    let made_from = hash::digest(&(&user.namespace, endpoint, authentication, contents));
    let make = || {
        let name = ironic.secret.as_deref().unwrap_or_default();
        let data = secret.map(texts).unwrap_or_default();
        let credentials = Credentials::of(*authentication, name, &data)?;
        let bundle = authorities.map(|it| bundle(ironic, it)).transpose()?;
        let trust = CaTrust::new(bundle.as_ref().map(|it| it.expose().as_str()));
        let trust = trust.map_err(|it| Error::Credentials(lack(ironic, &it.to_string())))?;
        Ok(Session::new(endpoint, credentials, pool.http(&user.namespace, trust)))
    };
    pool.session(&user.to_string(), made_from, make).map_err(Unseen::Error)
}

/// Returns the content of a Secret, `Ok(None)` if none is named.
fn found<'a>(
    secrets: &'a Secrets,
    path: &'static str,
    name: Option<&String>,
    keys: &'static str,
) -> Result<Option<&'a Content>, Unseen> {
    let Some(name) = name else { return Ok(None) };
    let missing = || Unseen::NoSecret { path, name: name.clone(), keys };
    secrets.get(name).map(Some).ok_or_else(missing)
}

fn bundle(ironic: &Ironic, content: &Content) -> Result<Secret<String>, Error> {
    let text = content.text(CA).map(|it| Secret::new(it.to_owned()));
    text.ok_or_else(|| Error::Credentials(lack(ironic, "is missing or not text")))
}

fn lack(ironic: &Ironic, what: &str) -> String {
    format!("key {CA} of Secret {} {what}", ironic.ca_secret.as_deref().unwrap_or_default())
}

/// Returns the digest of each key of a Secret.
fn digests(content: Option<&Content>) -> Vec<(&str, Option<String>)> {
    let text = |it: &'_ Content, key| it.digest(key).map(Digest::text);
    content.iter().flat_map(|it| it.keys().map(|key| (key, text(it, key)))).collect()
}

#[cfg(test)]
mod tests {
    use operator_runtime::http_client::HttpClients;
    use operator_runtime::source_cache::Values;
    use serde_json::{Value, json};

    use super::*;

    async fn unseen(ironic: &Value, secrets: &[(&str, &str, &str)]) -> Unseen {
        let mut all = json!({"endpoint": "http://127.0.0.1:9", "authentication": "none"});
        for (key, value) in ironic.as_object().unwrap() {
            all[key] = value.clone();
        }
        let set: BaremetalSet = serde_json::from_value(json!({
            "apiVersion": "baremetal.openstack.org/v1beta1", "kind": "OpenStackBaremetalSet",
            "metadata": {"name": "set", "namespace": "ns"},
            "spec": {"ctlplaneInterface": "eno1", "deploymentSSHSecret": "keys", "ironic": all},
        }))
        .unwrap();
        let content = |(name, key, text): &(&str, &str, &str)| {
            let values = Values::new("1", [((*key).to_owned(), text.as_bytes().to_vec())].into());
            ((*name).to_owned(), values.into())
        };
        let secrets = secrets.iter().map(content).collect();
        let pool = Pool::new(HttpClients::with_loopback());
        let ironic = set.spec.ironic.as_ref().unwrap();
        list_nodes(&pool, &set, ironic, &secrets).await.unwrap_err()
    }

    #[tokio::test]
    async fn a_secret_that_is_missing_is_named_and_one_that_lacks_a_key_too() {
        let basic = json!({"authentication": "http_basic", "secret": "ironic"});
        let expected = Unseen::NoSecret {
            path: "spec.ironic.secret",
            name: "ironic".into(),
            keys: "username and password",
        };
        assert_eq!(unseen(&basic, &[]).await, expected);
        let lacks = |it: &str| Unseen::Error(Error::Credentials(it.to_owned()));
        let expected = lacks("key password of Secret ironic is missing or empty");
        assert_eq!(unseen(&basic, &[("ironic", "username", "u")]).await, expected);
        let ca = json!({"caSecret": "ca"});
        let expected =
            Unseen::NoSecret { path: "spec.ironic.caSecret", name: "ca".into(), keys: "ca.crt" };
        assert_eq!(unseen(&ca, &[]).await, expected);
        let expected = lacks("key ca.crt of Secret ca is missing or not text");
        assert_eq!(unseen(&ca, &[("ca", "tls.crt", "x")]).await, expected);
        let expected =
            lacks("key ca.crt of Secret ca holds no readable certificate; it must be PEM");
        assert_eq!(unseen(&ca, &[("ca", "ca.crt", "x")]).await, expected);
    }

    #[tokio::test]
    async fn an_ironic_that_is_away_is_told() {
        let Unseen::Error(error) = unseen(&json!({}), &[]).await else { panic!() };
        assert_eq!(error.reason().word, "Unreachable");
    }
}
