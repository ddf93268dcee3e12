//! Texts of others: ids that go into paths, values in queries, and words that are shown.

use api::conditions::{one_line, printable};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::error::Error;

/// How many bytes of a name or a word of a server are kept.
pub(crate) const WORD_LIMIT: usize = 255;
/// How long an id can be.
const ID_LIMIT: usize = 64;
/// How long a name in a path can be.
const SEGMENT_LIMIT: usize = 255;
/// Memory of a text besides its characters and its place, in bytes.
const ALLOCATION: usize = 32;
/// What is encoded in the value of a query: all but the characters that RFC 3986 leaves unreserved.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns whether a text can be an id in a path: those of nova and placement are UUIDs.
pub fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= ID_LIMIT
        && text.chars().all(|it| it.is_ascii_hexdigit() || it == '-')
}

/// Returns whether a text can be a segment of a path: letters, digits, `-`, `_`, and dots that are
/// not all of it.
pub(crate) fn is_segment(text: &str) -> bool {
    text.len() <= SEGMENT_LIMIT
        && text.chars().all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it))
        && text.chars().any(|it| it != '.')
}

/// Checks an id before a path is made of it, for a request that is not sent with another one.
pub(crate) fn checked_id(id: &str) -> Result<&str, Error> {
    if is_id(id) { Ok(id) } else { Err(not_an_id(id)) }
}

/// Returns the error of a request whose id cannot be in a path.
pub(crate) fn not_an_id(id: &str) -> Error {
    Error::Refused(format!("{} is not an id", shown(id)))
}

/// Returns a text as the value of a query.
pub(crate) fn query_value(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Returns a name or a word of others in one line of at most 255 bytes, without marks that a
/// terminal would execute.
pub(crate) fn shown(text: &str) -> String {
    one_line(&printable(text), WORD_LIMIT)
}

/// Returns the memory of a text besides its place, in bytes.
pub(crate) const fn footprint(text: &str) -> usize {
    if text.is_empty() { 0 } else { text.len() + ALLOCATION }
}

/// Deserializes an id, see [`is_id`].
pub(crate) fn id<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    checked(from, is_id)
}

/// Deserializes a segment of a path, see [`is_segment`].
pub(crate) fn segment<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    checked(from, is_segment)
}

/// Deserializes the name of a host, which has at most 255 bytes.
pub(crate) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    checked(from, |it| it.len() <= WORD_LIMIT)
}

fn checked<'de, D: Deserializer<'de>>(
    from: D,
    is_good: fn(&str) -> bool,
) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    if is_good(&text) { Ok(text) } else { Err(D::Error::custom("another text was expected")) }
}

/// Deserializes a name or a word of others as it is shown, see [`shown`].
pub(crate) fn word<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(shown(&String::deserialize(from)?))
}

/// Deserializes the same of a field that may be null.
pub(crate) fn word_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.map(|it| shown(&it)))
}

/// Deserializes the same, with an empty word for null.
pub(crate) fn word_or_empty<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    word_or_none(from).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uuids_are_ids() {
        for id in ["0b6b3f2c-8a9d-4f51-8f62-d7d2a1c0de01", "a0"] {
            assert!(is_id(id), "{id}");
            assert_eq!(checked_id(id), Ok(id));
        }
        for id in ["", "..", "a/b", "x0", "a?b", "a%2f", &"a".repeat(65)] {
            assert!(matches!(checked_id(id), Err(Error::Refused(_))), "{id}");
        }
    }

    #[test]
    fn a_segment_leads_nowhere_else() {
        for text in ["chassis-1.example", "a0-b1", "..x"] {
            assert!(is_segment(text), "{text}");
        }
        for text in ["", ".", "..", "a/b", "a?b", "a#b", "a b", "%2e", &"a".repeat(256)] {
            assert!(!is_segment(text), "{text}");
        }
    }

    #[test]
    fn a_query_has_one_value() {
        assert_eq!(query_value("c-0.example_a~"), "c-0.example_a~");
        assert_eq!(query_value("a&b=c d/ü"), "a%26b%3Dc%20d%2F%C3%BC");
    }

    #[test]
    fn words_of_others_are_short_and_in_one_line() {
        assert_eq!(shown("a\r\n b\u{1b}[2Jc"), "a b[2Jc");
        assert!(shown(&"ü".repeat(300)).len() <= WORD_LIMIT);
    }
}
