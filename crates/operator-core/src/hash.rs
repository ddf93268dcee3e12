//! Stable digests of inputs: they name runs and decide whether to run again.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of a value's canonical JSON, in hexadecimal.
///
/// # Guarantees
/// The order of keys does not matter, neither in maps nor among a struct's fields.
///
/// # Assumptions
/// The keys of all maps are strings or numbers.
pub fn digest<T: Serialize + ?Sized>(value: &T) -> String {
    of_bytes(canonical(value))
}

/// Returns a value's canonical JSON, from which [`digest`] is computed.
pub fn canonical<T: Serialize + ?Sized>(value: &T) -> String {
    let value = serde_json::to_value(value).expect("inputs are structs, maps, lists and scalars");
    let mut canonical = Vec::new();
    write_canonical(&value, &mut canonical);
    String::from_utf8(canonical).expect("JSON is text")
}

/// A digest that has begun: several values that begin with the same text are hashed from there.
#[derive(Clone, Debug)]
pub struct Begun(Sha256);

impl Begun {
    /// Begins with a text.
    pub fn with(text: &str) -> Self {
        Self(Sha256::new_with_prefix(text))
    }

    /// Returns the SHA-256 of the text together with the rest of it, in hexadecimal.
    pub fn digest(&self, rest: &str) -> String {
        hex(&self.0.clone().chain_update(rest).finalize())
    }
}

/// Returns the first ten characters of [`digest`], enough for readable names.
pub fn short<T: Serialize + ?Sized>(value: &T) -> String {
    let mut text = digest(value);
    text.truncate(10);
    text
}

/// Returns the SHA-256 of raw bytes, in hexadecimal.
pub fn of_bytes(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns bytes in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |it: u8| char::from(DIGITS[usize::from(it)]);
    let mut text = String::with_capacity(bytes.len() * 2);
    text.extend(bytes.iter().flat_map(|it| [digit(it >> 4), digit(it & 15)]));
    text
}

/// Writes JSON without spaces and with sorted keys, independent of the map type's order.
fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_bytes());
            out.push(b'{');
            for (idx, (key, value)) in entries.into_iter().enumerate() {
                if idx > 0 {
                    out.push(b',');
                }
                write_json(key, out);
                out.push(b':');
                write_canonical(value, out);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (idx, item) in items.iter().enumerate() {
                if idx > 0 {
                    out.push(b',');
                }
                write_canonical(item, out);
            }
            out.push(b']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            write_json(value, out);
        }
    }
}

/// Writes a scalar as JSON.
fn write_json<T: Serialize + ?Sized>(scalar: &T, out: &mut Vec<u8>) {
    serde_json::to_writer(out, scalar).expect("a scalar is JSON, and memory takes all of it");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    struct Inputs {
        zebra: u8,
        ape: Option<&'static str>,
    }

    #[test]
    fn golden_vectors_stay_as_they_are() {
        // A changed digest would run every deployment again, so these must never change.
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
    fn the_order_of_fields_and_keys_does_not_matter() {
        let map = BTreeMap::from([("ape", json!(null)), ("zebra", json!(7))]);
        assert_eq!(digest(&Inputs { zebra: 7, ape: None }), digest(&map));
        assert_ne!(
            digest(&Inputs { zebra: 7, ape: None }),
            digest(&Inputs { zebra: 7, ape: Some("") })
        );
    }

    #[test]
    fn what_has_begun_with_a_text_is_the_digest_of_the_whole() {
        let begun = Begun::with("[1,");
        assert_eq!(
            [begun.digest("2]"), begun.digest("3]")],
            [[1, 2], [1, 3]].map(|it| digest(&it))
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
