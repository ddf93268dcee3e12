//! Estimates from the text alone what parsing a JSON text costs: few bytes may take much memory.
//!
//! `{"":0},` is 7 bytes, and the object in a parsed tree takes some 600, besides what the parser
//! holds while building it. The estimate is deliberately too high.

/// Maximum nesting depth of an object: `serde_json` accepts 128 levels, and the enclosing document
/// needs some of them.
const DEEPEST: usize = 100;
/// Cost of a JSON object with its first entry, in bytes.
const OBJECT: usize = 1024;
/// Cost of an array with its first element.
const LIST: usize = 256;
/// Cost of each further entry.
const ENTRY: usize = 256;
/// Cost of a string besides its characters.
const TEXT: usize = 32;

/// Limits for parsing one text.
#[derive(Clone, Copy, Debug)]
pub struct SizeLimit {
    /// Maximum nesting depth.
    pub depth: usize,
    /// Maximum memory in bytes.
    pub bytes: usize,
}

/// Limit for one object: the cost of the densest 1 MiB of keys and values, or far more plain text.
pub(crate) const OF_OBJECT: SizeLimit = SizeLimit { depth: DEEPEST, bytes: 24 << 20 };
/// Limit for an admission review: two objects and the request's own fields.
pub(crate) const OF_REVIEW: SizeLimit = SizeLimit { depth: DEEPEST + 8, bytes: 50 << 20 };

/// Returns why a text must not be parsed, as a predicate that follows its subject; `None` when it
/// may be.
pub fn fault(text: &[u8], bound: SizeLimit) -> Option<String> {
    let (mut depth, mut bytes) = (0_usize, text.len());
    let (mut in_string, mut is_escaped, mut is_open) = (false, false, false);
    for byte in text {
        if in_string {
            in_string = *byte != b'"' || is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            continue;
        }
        match byte {
            b'"' => {
                in_string = true;
                bytes += TEXT;
            }
            b'{' => {
                depth += 1;
                bytes += OBJECT;
            }
            b'[' => {
                depth += 1;
                bytes += LIST;
            }
            // An empty object costs nothing, and managed fields consist of them.
            b'}' if is_open => {
                depth = depth.saturating_sub(1);
                bytes = bytes.saturating_sub(OBJECT);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => bytes += ENTRY,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            is_open = *byte == b'{';
        }
        if depth > bound.depth {
            return Some(format!("nests deeper than {} levels", bound.depth));
        }
        if bytes > bound.bytes.saturating_add(OBJECT) {
            return Some(format!("takes more than {} MiB in memory", bound.bytes >> 20));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_of_texts() {
        let nested = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(fault(nested(DEEPEST).as_bytes(), OF_OBJECT), None);
        let text = fault(nested(DEEPEST + 1).as_bytes(), OF_OBJECT).unwrap();
        assert_eq!(text, "nests deeper than 100 levels");
        let quoted = serde_json::to_string(&format!("\\\"{}", nested(1_000))).unwrap();
        assert_eq!(fault(quoted.as_bytes(), OF_OBJECT), None);
    }

    #[test]
    fn what_is_short_and_costs_much_is_told_from_what_is_long_and_costs_little() {
        let text = serde_json::to_string(&"a\"b\n".repeat(300_000)).unwrap();
        assert_eq!(fault(text.as_bytes(), OF_OBJECT), None);
        // 700 KiB, of which each 7 bytes are a tree of their own.
        let bomb = format!("[{}{{}}]", "{\"\":0},".repeat(100_000));
        let reported = fault(bomb.as_bytes(), OF_OBJECT).unwrap();
        assert_eq!(reported, "takes more than 24 MiB in memory");
        let fields = format!("{{{}\"f:z\":{{}}}}", "\"f:name\":{ },".repeat(50_000));
        assert_eq!(fault(fields.as_bytes(), OF_OBJECT), None);
    }
}
