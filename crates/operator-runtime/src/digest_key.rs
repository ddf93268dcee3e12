//! The installation's key for digests of Secret content, stored in a Secret in the operators'
//! namespace that the first operator creates.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use operator_core::keyed::{Keys, SECRET};
use tracing::info;

use crate::error::{During as _, Error, Result};

/// Data key of the Secret whose value digests are written with. All other data keys hold former
/// keys that digests in statuses may still use.
pub const PRESENT: &str = "current";

/// Length of a key in bytes.
const SIZE: usize = 32;

/// Returns the keys; creates the first one when there is no Secret.
///
/// # Guarantees
/// When several operators create it concurrently, all use the one that was created first.
pub async fn keys(client: &Client, namespace: &str) -> Result<Keys> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let get = || async { api.get_opt(SECRET).await.during(format!("get secrets/{SECRET}")) };
    if let Some(found) = get().await? {
        return read(&found, namespace);
    }
    match api
        .create(&PostParams::default(), &made()?)
        .await
        .during(format!("create secrets/{SECRET}"))
    {
        Ok(made) => {
            info!(secret = SECRET, "made the key for digests of what Secrets hold");
            read(&made, namespace)
        }
        Err(error) if error.already_exists() => {
            let what = format!("create secrets/{SECRET}: it is gone again");
            let gone = || Error::Process { what, source: None };
            read(&get().await?.ok_or_else(gone)?, namespace)
        }
        Err(error) => Err(error),
    }
}

fn made() -> Result<Secret> {
    let mut key = vec![0; SIZE];
    let random = rustls::crypto::ring::default_provider().secure_random;
    let none = |_| Error::Process { what: "the system has no randomness".into(), source: None };
    random.fill(&mut key).map_err(none)?;
    Ok(Secret {
        metadata: ObjectMeta { name: Some(SECRET.to_owned()), ..ObjectMeta::default() },
        data: Some([(PRESENT.to_owned(), ByteString(key))].into()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    })
}

fn read(secret: &Secret, namespace: &str) -> Result<Keys> {
    let all = || secret.data.iter().flatten().map(|(name, it)| (name.as_str(), it.0.as_slice()));
    let weak = all().find(|(_, it)| it.len() < SIZE).map(|(name, _)| name);
    let present = all().find(|(name, _)| *name == PRESENT);
    let (Some((_, present)), None) = (present, weak) else {
        let name = weak.unwrap_or(PRESENT);
        let what = format!(
            "Secret {namespace}/{SECRET} lacks {name}, or that has less than {SIZE} bytes: put back what \
             it held, or delete the Secret, and another key is made"
        );
        return Err(Error::Process { what, source: None });
    };
    let former = all().filter(|(name, _)| *name != PRESENT).map(|(_, it)| it);
    Ok(Keys::new(present, former))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use testkit::fake_api::{FakeApi, failure};

    use super::*;
    use crate::api::tests::client;

    fn secret(data: &[(&str, &[u8])]) -> Value {
        let data: serde_json::Map<String, Value> = data
            .iter()
            .map(|(name, it)| ((*name).to_owned(), json!(ByteString(it.to_vec()))))
            .collect();
        json!({ "kind": "Secret", "apiVersion": "v1", "metadata": { "name": SECRET }, "data": data })
    }

    fn text(keys: &Keys) -> String {
        keys.of_bytes(b"x").text()
    }

    #[tokio::test]
    async fn the_first_operator_makes_the_key_and_the_others_read_it() {
        const KEY: &[u8] = &[7; SIZE];
        let expected = text(&Keys::new(KEY, []));
        let found = FakeApi::answering([(200, secret(&[(PRESENT, KEY)]))]);
        assert_eq!(text(&keys(&client(&found), "ns").await.unwrap()), expected);
        assert_eq!(found.asked(), ["GET /api/v1/namespaces/ns/secrets/edpm-digest-key"]);
        // Two operators at once: the second one uses the key of the first.
        let late = FakeApi::answering([
            failure(404, "NotFound"),
            failure(409, "AlreadyExists"),
            (200, secret(&[(PRESENT, KEY)])),
        ]);
        assert_eq!(text(&keys(&client(&late), "ns").await.unwrap()), expected);
        let made = FakeApi::answering([failure(404, "NotFound"), (201, secret(&[(PRESENT, KEY)]))]);
        assert_eq!(text(&keys(&client(&made), "ns").await.unwrap()), expected);
        let requests = made.requests();
        assert_eq!(requests[1].path, "/api/v1/namespaces/ns/secrets");
        let key: ByteString =
            serde_json::from_value(requests[1].body["data"][PRESENT].clone()).unwrap();
        assert_eq!(key.0.len(), SIZE);
        assert!(key.0.iter().any(|it| *it != 0), "no random key");
    }

    #[tokio::test]
    async fn former_keys_stand_beside_the_present_one() {
        let (old, new): (&[u8], &[u8]) = (&[1; SIZE], &[2; SIZE]);
        let server = FakeApi::answering([(200, secret(&[("before", old), (PRESENT, new)]))]);
        let keys = keys(&client(&server), "ns").await.unwrap();
        assert_eq!(text(&keys), text(&Keys::new(new, [])));
        assert!(keys.of_bytes(b"x").is(&text(&Keys::new(old, []))));
        assert!(!keys.of_bytes(b"y").is(&text(&Keys::new(old, []))));
    }

    #[tokio::test]
    async fn without_a_usable_key_nothing_is_done() {
        let short: (&str, &[u8]) = ("before", b"short");
        let good: (&str, &[u8]) = (PRESENT, &[1; SIZE]);
        for data in [vec![], vec![short], vec![short, good], vec![(PRESENT, b"short")]] {
            let server = FakeApi::answering([(200, secret(&data))]);
            let error = keys(&client(&server), "ns").await.unwrap_err();
            assert!(error.to_string().contains("Secret ns/edpm-digest-key lacks"), "{error}");
        }
        let server = FakeApi::answering([failure(403, "Forbidden")]);
        assert_eq!(keys(&client(&server), "ns").await.unwrap_err().reason(), "Forbidden");
    }
}
