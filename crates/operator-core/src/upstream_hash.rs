//! Hashes of content as upstream's operators publish them in statuses.
//!
//! Users compare the hash of a ConfigMap with the one that a deployment recorded, to see whether
//! the deployment is out of date. Ours are the same, so that either side may belong to either
//! project.
//! Neighbours in the cluster compare the hashes of Secrets too; see [`Published`] for where.
//! No hash here decides whether anything runs; see [`crate::hash`] for those.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::keyed::{Digest, Keys};

/// The characters of a hash: 27 that cannot spell a word.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// What Go's JSON encoder escapes beyond the JSON standard, for embedding in HTML and JavaScript.
const ESCAPED: [(char, &str); 5] = [
    ('<', r"\u003c"),
    ('>', r"\u003e"),
    ('&', r"\u0026"),
    ('\u{2028}', r"\u2028"),
    ('\u{2029}', r"\u2029"),
];

/// Returns upstream's hash of any value.
///
/// It is the SHA-256 of the JSON that Go writes, printed as Go prints a byte array (in decimal),
/// with each character replaced by a letter.
///
/// # Assumptions
/// Struct fields are in Go's order, and those that Go omits when empty are omitted. Map keys are
/// strings.
pub fn upstream_hash<T: Serialize + ?Sized>(value: &T) -> String {
    let bytes: Vec<String> = Sha256::digest(go_json(value)).iter().map(u8::to_string).collect();
    let printed = format!("[{}]", bytes.join(" "));
    printed.bytes().map(|it| char::from(LETTERS[usize::from(it) % LETTERS.len()])).collect()
}

#[derive(Serialize)]
struct SecretContent<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    data: &'a BTreeMap<String, ByteString>,
    #[serde(rename = "type", skip_serializing_if = "str::is_empty")]
    type_: &'a str,
}

/// The hash of a source's content, where neighbours compare it with the one that they compute.
///
/// They release credentials when each hash in the status of a node set is that of the Secret as it
/// is now, so it has no key.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Published(Digest);

impl Published {
    /// Returns the hash.
    pub fn text(&self) -> String {
        self.0.unkeyed().to_owned()
    }

    /// Returns whether a text was recorded of the same content: the hash, or the keyed digest that
    /// releases before wrote in its place. One by a lost key shows nothing.
    pub fn is(&self, text: &str) -> bool {
        self.0.is_certainly(text)
    }
}

impl<T: Into<Digest>> From<T> for Published {
    fn from(digest: T) -> Self {
        Self(digest.into())
    }
}

/// Returns the unkeyed hash of a Secret's content, as upstream's operators publish it.
pub fn of_secret(data: &BTreeMap<String, ByteString>, type_: &str) -> String {
    upstream_hash(&SecretContent { data, type_ })
}

/// Returns the digest of a Secret's content with the installation's keys.
pub fn of_secret_by(keys: &Keys, data: &BTreeMap<String, ByteString>, type_: &str) -> Digest {
    let content = SecretContent { data, type_ };
    keys.digest(go_json(&content).as_bytes(), upstream_hash(&content))
}

/// Returns the hash of a ConfigMap's content.
pub fn of_config_map(
    data: &BTreeMap<String, String>,
    binary_data: &BTreeMap<String, ByteString>,
) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Content<'a> {
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        data: &'a BTreeMap<String, String>,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        binary_data: &'a BTreeMap<String, ByteString>,
    }
    upstream_hash(&Content { data, binary_data })
}

/// Returns JSON as Go writes it. The escaped characters occur only inside JSON strings.
fn go_json<T: Serialize + ?Sized>(value: &T) -> String {
    let json = serde_json::to_string(value).expect("content is structs, maps, lists and scalars");
    ESCAPED.iter().fold(json, |text, (found, escape)| text.replace(*found, escape))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn secret(data: &[(&str, &str)]) -> String {
        let value = |it: &str| ByteString(it.as_bytes().to_vec());
        let data = data.iter().map(|(key, it)| ((*key).to_owned(), value(it))).collect();
        of_secret(&data, "Opaque")
    }

    fn config_map(data: &[(&str, &str)], binary: &[(&str, &[u8])]) -> String {
        let data = data.iter().map(|(key, it)| ((*key).to_owned(), (*it).to_owned())).collect();
        let binary = binary.iter().map(|(key, it)| ((*key).to_owned(), ByteString(it.to_vec())));
        of_config_map(&data, &binary.collect())
    }

    #[test]
    fn the_hash_of_a_secret_is_the_one_that_the_go_operators_publish() {
        assert_eq!(
            secret(&[("secret_var", "original-secret-value")]),
            "n5d8h67h5b8hc9h5cfh54bh76h544h66chf7h8bh5fbh59chdch76h96h54bh74h9bh5bh5cdh94h566h\
             699h99hdch65fh5d6h5fbh5bfh586hfcq"
        );
        assert_eq!(
            secret(&[("01-nova.conf", "foo\n"), ("nova-blank.conf", "foo\n")]),
            "n89hd6h5h545h644h58h556hd9h5c5h598hd4h7bh5f9h5bdh649hb5h99h686h677h8ch575h665h574h\
             587h5b6h5ddh8fh687h9bh657h675h97q"
        );
    }

    /// The values of lib-common's own `secret.Hash`.
    #[test]
    fn the_hash_of_a_secret_is_the_one_that_lib_common_compares() {
        let of = |type_: &str, data: &[(&str, &str)]| {
            let value = |it: &str| ByteString(it.as_bytes().to_vec());
            let data = data.iter().map(|(key, it)| ((*key).to_owned(), value(it))).collect();
            Published::from(of_secret_by(&Keys::new(b"key", []), &data, type_)).text()
        };
        let url = "rabbit://nova:secret@rabbitmq-cell1.openstack.svc:5671/?ssl=1";
        let credential = [("AC_ID", "0123456789abcdef0123456789abcdef"), ("AC_SECRET", "s3cret")];
        assert_eq!(
            of("Opaque", &[("transport_url", url)]),
            "nffh5fbhdch556h567h5c4h96h55bh546h64bh644h64h695h5bh5d6h558h694h57fh655hc4hfdh67bhc\
             fh578h67h89h566h7fh7chdfh5bdh5bq"
        );
        assert_eq!(
            of("Opaque", &credential),
            "n8bh59ch78h58fh95hbbh678h58ch76h66ch88h78h66dhb7h559h8h64bh66bh576h694h64dh85h556h5\
             d8h5f6hd9h5b6h5dch67dh58fh65dh659q"
        );
        assert_eq!(
            of("kubernetes.io/tls", &[("tls.crt", ""), ("tls.key", "")]),
            "n57h696hcdh548h656h7dh57fh5dfh548h66ch598h577h56bh59bh659h54h59dh6bh87h4h55dhch555h\
             64bh595h66chb6h68bhdch584h5d5h67bq"
        );
        assert_eq!(
            of("Opaque", &[]),
            "n656hcfh568h589h69h596h65dh55dh54h578h657h56dh5d8hd4h5b8h5b7h58dh59dh68h84h595h644h\
             676h54ch95hf6h8chf9h676h64dh679h5d9q"
        );
    }

    #[test]
    fn a_keyed_digest_of_a_release_before_is_the_same_content_while_its_key_is_known() {
        let data = [("password".to_owned(), ByteString("hunter2".into()))].into();
        let digest = |key: &[u8]| of_secret_by(&Keys::new(key, []), &data, "Opaque");
        let published = Published::from(digest(b"key"));
        assert!(published.is(&published.text()) && published.is(&digest(b"key").text()));
        assert!(!published.is(&digest(b"lost").text()) && !published.is("mixed"));
    }

    #[test]
    fn the_hash_of_a_config_map_is_the_one_that_the_go_operators_publish() {
        for (key, value, expected) in [
            (
                "test_var",
                "original-value",
                "n5bbhc6h5fdhf8h57bh665h5b9h576h598h7dh5fdh667hch5b5h89h9dh668hc4hc6h669h74h575hf4h\
                 596h66dhd5h5f7hb7h689hf9hddh64q",
            ),
            (
                "test_var",
                "updated-value",
                "nd7h5fdh54bh8chb7h5hc8h654hf8h5d5h66bh54dh56fh7bhf5h98h66fh59ch87h9ch5d6h664h668hb7h\
                 66fh7fh598h9fh57dhfh5fch655q",
            ),
            (
                "ovsdb-config",
                "test-ovn-config",
                "n647h6fh674h55fh56ch5bh68bh5fdh8dh59ch58dhdch59ch646h568h675h99h66bh59bhcch5b4h589h\
                 674h568hbch84h554h95h6dhc4hbh699q",
            ),
        ] {
            assert_eq!(config_map(&[(key, value)], &[]), expected, "{value}");
        }
    }

    /// Computed independently with Python's hashlib over the JSON that Go's encoder is documented
    /// to write.
    #[test]
    fn texts_are_escaped_as_go_does_it() {
        let text = "a < b > c & d \u{2028} \u{2029} \u{8}\u{c}\u{1}\u{7f} ä \"\\\n";
        let json = go_json(text);
        let expected = r#""a \u003c b \u003e c \u0026 d \u2028 \u2029 \b\f\u0001"#.to_owned()
            + "\u{7f} ä "
            + r#"\"\\\n""#;
        assert_eq!(json, expected);
        assert_eq!(
            config_map(&[("k", text)], &[("b", &[0, 255])]),
            "n667h5d9h54h88h689h657h94h59dh6h589hd8h5b7h5fdh9fh5b5h5fch5d5h566hd4h87h5cbh7dh5d\
             ch5dch599h54fh668hcbhc4h5c9h576h56fq"
        );
    }

    #[test]
    fn what_is_empty_is_left_out() {
        assert_eq!(config_map(&[], &[]), upstream_hash(&serde_json::json!({})));
        assert_eq!(of_secret(&BTreeMap::new(), ""), upstream_hash(&serde_json::json!({})));
        assert_ne!(config_map(&[("a", "")], &[]), config_map(&[], &[("a", b"")]));
    }

    proptest! {
        #[test]
        fn what_is_escaped_reads_as_what_was_written(text in "\\PC*|[<>&\u{2028}\u{2029}\\\\\"u0-9]*") {
            let json = go_json(&text);
            prop_assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), Value::from(text));
        }
    }
}
