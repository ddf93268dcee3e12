//! What a JSON text costs to read, told from the text alone: a few bytes may stand for many.
//!
//! `{"":0}` are 7 bytes, and an object of a tree in memory is some 600, beside what a reader holds
//! until it is built. The estimate is meant to be too high.

/// How deep an object may nest: `serde_json` reads 128 levels, and what it stands in has some more.
const DEEPEST: usize = 100;
/// What an object in braces costs with its first entry, in bytes.
const OBJECT: usize = 1024;
/// What a list costs with its first entry.
const LIST: usize = 256;
/// What each further entry costs.
const ENTRY: usize = 256;
/// What a text costs beside its characters.
const TEXT: usize = 32;

/// What may be spent on one text.
#[derive(Clone, Copy, Debug)]
pub struct SizeLimit {
    /// How many levels it may nest.
    pub depth: usize,
    /// How many bytes it may take in memory.
    pub bytes: usize,
}

/// For one object: as much as the densest 1 MiB of options and values costs, and far more text.
pub(crate) const OF_OBJECT: SizeLimit = SizeLimit { depth: DEEPEST, bytes: 24 << 20 };
/// For two objects in an admission review, and who asks for what.
pub(crate) const OF_REVIEW: SizeLimit = SizeLimit { depth: DEEPEST + 8, bytes: 50 << 20 };

/// Why a text must not be read, in words that go on from what it is; `None` where it may.
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
            // What is empty takes no room, and managed fields consist of it.
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
