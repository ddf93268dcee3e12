//! Limits the nesting of API server responses, so that no object makes a whole list unreadable.
//!
//! `serde_json` rejects text that nests deeper than 128 levels, and the error concerns the whole
//! response. No schema limits the depth of free-form fields. So everything deeper than
//! [`MAX_DEPTH`] is removed while the response streams in. The object is still too deep for a
//! cache, which then reports the object and the field.

use axum::body::Bytes;

/// Number of levels of a response that are kept; a list adds three to those of its objects.
pub(super) const MAX_DEPTH: usize = 100;

/// Removes what nests too deep from a stream of JSON texts, however it is split into chunks.
#[derive(Debug, Default)]
pub(crate) struct Pruner {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Pruner {
    /// Returns the chunk without what nests too deep; unchanged and not copied when nothing does.
    pub(crate) fn prune(&mut self, chunk: Bytes) -> Bytes {
        let Some(first) = chunk.iter().position(|byte| !self.keeps(*byte)) else { return chunk };
        let mut kept = Vec::with_capacity(chunk.len());
        kept.extend_from_slice(&chunk[..first]);
        kept.extend(chunk[first + 1..].iter().copied().filter(|byte| self.keeps(*byte)));
        kept.into()
    }

    /// Processes the next byte and returns whether it is kept.
    ///
    /// A container at the limit keeps its brackets and loses its content.
    fn keeps(&mut self, byte: u8) -> bool {
        let before = self.depth;
        if self.in_string {
            self.in_string = byte != b'"' || self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
        } else {
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        before.min(self.depth) <= MAX_DEPTH
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Returns what is kept of a text that arrives in chunks of that size.
    fn pruned(text: &str, chunk: usize) -> String {
        let mut pruner = Pruner::default();
        let chunks = text.as_bytes().chunks(chunk.max(1));
        let kept = chunks.flat_map(|it| pruner.prune(Bytes::copy_from_slice(it)));
        String::from_utf8(kept.collect()).unwrap()
    }

    fn nested(depth: usize) -> String {
        format!("{}\"]}}\\\"\"{}", "{\"a\":[".repeat(depth / 2), "]}".repeat(depth / 2))
    }

    #[test]
    fn what_is_not_deep_is_not_touched() {
        let text = nested(MAX_DEPTH);
        assert_eq!(pruned(&text, 7), text);
        let chunk = Bytes::from(text);
        let kept = Pruner::default().prune(chunk.clone());
        assert_eq!(kept.as_ptr(), chunk.as_ptr(), "it was copied");
    }

    #[test]
    fn a_text_that_is_too_deep_can_be_read_and_so_can_the_one_behind_it() {
        let text = format!("{}\n{{\"b\":1}}", nested(1000));
        assert!(serde_json::from_str::<Value>(&nested(1000)).is_err(), "it is no test");
        let kept = pruned(&text, 16);
        let (deep, next) = kept.split_once('\n').unwrap();
        assert!(serde_json::from_str::<Value>(deep).is_ok(), "{deep}");
        assert_eq!(next, "{\"b\":1}");
    }

    proptest! {
        #[test]
        fn any_text_is_left_readable(parts in prop::collection::vec("[\"{}\\[\\]]|\\\\|a|,", 0..400),
                                     depth in 0_usize..300, chunk in 1_usize..64) {
            let string = serde_json::to_string(&parts.concat()).unwrap();
            let text = format!("{}{string}{}", "[".repeat(depth), "]".repeat(depth));
            let kept = pruned(&text, chunk);
            prop_assert!(serde_json::from_str::<Value>(&kept).is_ok(), "{kept}");
            prop_assert_eq!(depth <= MAX_DEPTH, kept == text);
        }
    }
}
