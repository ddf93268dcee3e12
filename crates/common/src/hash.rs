//! Stable digests of inputs: they name runs and say whether to run again.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use k8s_openapi::ByteString;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// SHA-256 of a value's canonical JSON, in hexadecimal.
///
/// # Guarantees
/// The order of keys does not matter, neither in maps nor among a struct's fields.
///
/// # Assumptions
/// The keys of all maps are strings or numbers.
pub fn digest<T: Serialize + ?Sized>(value: &T) -> String {
    let value = serde_json::to_value(value).expect("inputs are structs, maps, lists and scalars");
    let mut canonical = String::new();
    write_canonical(&value, &mut canonical);
    of_bytes(canonical)
}

/// The first ten characters of [`digest`]: enough for a name that a human reads.
pub fn short<T: Serialize + ?Sized>(value: &T) -> String {
    let mut text = digest(value);
    text.truncate(10);
    text
}

/// SHA-256 of raw bytes, in hexadecimal.
pub fn of_bytes(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

/// The hash of a Secret's content as upstream's operators publish it in statuses: humans compare the
/// one of an object with that of a deployment to see whether the deployment is out of date.
///
/// SHA-256 of the JSON that Go writes, each byte in decimal as Go prints an array, each character
/// replaced by one of 27 that cannot spell a word.
pub fn of_secret(data: &BTreeMap<String, ByteString>, type_: &str) -> String {
    /// What Go writes, in the order in which it writes it.
    #[derive(Serialize)]
    struct Content<'a> {
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        data: &'a BTreeMap<String, ByteString>,
        #[serde(rename = "type")]
        type_: &'a str,
    }
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let json = serde_json::to_string(&Content { data, type_ });
    let json = json.expect("texts and bytes can be written");
    let bytes: Vec<String> = Sha256::digest(json).iter().map(u8::to_string).collect();
    let printed = format!("[{}]", bytes.join(" "));
    printed.bytes().map(|it| char::from(LETTERS[usize::from(it) % LETTERS.len()])).collect()
}

/// Bytes in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Writes JSON without spaces and with sorted keys, whatever order the map type keeps.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_bytes());
            out.push('{');
            for (idx, (key, value)) in entries.into_iter().enumerate() {
                if idx > 0 {
                    out.push(',');
                }
                let _ = write!(out, "{}:", Value::from(key.as_str()));
                write_canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (idx, item) in items.iter().enumerate() {
                if idx > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = write!(out, "{value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    struct Inputs {
        zebra: u8,
        ape: Option<&'static str>,
    }

    #[test]
    fn golden_vectors_stay_as_they_are() {
        // A changed digest runs every deployment again: these may never change.
        let cases = [
            (json!(null), "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"),
            (json!({}), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
            (
                json!({"b": [1, "two", 3.5, true, null], "a": {"ä\n": "\u{1f600}"}}),
                "daf2e88052da6369aa7a4894f7327a7d7c948466e90c4233adac20fe8b26281a",
            ),
        ];
        for (value, expected) in cases {
            assert_eq!(digest(&value), expected, "{value}");
        }
    }

    #[test]
    fn the_hash_of_a_secret_is_the_one_that_the_go_operators_publish() {
        let cases = [
            (
                vec![("secret_var", "original-secret-value")],
                "n5d8h67h5b8hc9h5cfh54bh76h544h66chf7h8bh5fbh59chdch76h96h54bh74h9bh5bh5cdh94h566h\
                 699h99hdch65fh5d6h5fbh5bfh586hfcq",
            ),
            (
                vec![("01-nova.conf", "foo\n"), ("nova-blank.conf", "foo\n")],
                "n89hd6h5h545h644h58h556hd9h5c5h598hd4h7bh5f9h5bdh649hb5h99h686h677h8ch575h665h574h\
                 587h5b6h5ddh8fh687h9bh657h675h97q",
            ),
        ];
        for (data, expected) in cases {
            let value = |it: &str| ByteString(it.as_bytes().to_vec());
            let data = data.into_iter().map(|(key, it)| (key.to_owned(), value(it))).collect();
            assert_eq!(of_secret(&data, "Opaque"), expected);
        }
    }

    #[test]
    fn the_order_of_fields_and_keys_does_not_matter() {
        let map = BTreeMap::from([("ape", json!(null)), ("zebra", json!(7))]);
        assert_eq!(digest(&Inputs { zebra: 7, ape: None }), digest(&map));
        assert_ne!(
            digest(&Inputs { zebra: 7, ape: None }),
            digest(&Inputs { zebra: 7, ape: Some("") })
        );
    }

    #[test]
    fn the_short_form_is_the_start_of_the_long_one() {
        assert_eq!(short(&json!({})), "44136fa355");
        assert_eq!(
            of_bytes(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
