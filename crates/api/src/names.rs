//! Names of derived objects, and the syntax rules of names.

use sha2::{Digest, Sha256};

/// Maximum length of a label's value and of the names of some kinds.
pub const LABEL_LIMIT: usize = 63;
/// Maximum length of the names of most kinds.
pub const SUBDOMAIN_LIMIT: usize = 253;

/// Length of the digest at the end of a name: 40 bits.
const SUFFIX: usize = 10;

/// Joins the parts by dashes.
///
/// A longer name than `limit` is cut and ends with a hash of all parts, so that two long names
/// never collide.
///
/// # Assumptions
/// `limit` is at least 16. At most one of the parts is free text: `["a-b", "c"]` and `["a", "b-c"]`
/// give the same name. If two are free text, use [`hashed`].
pub fn derived(parts: &[&str], limit: usize) -> String {
    let whole = parts.join("-");
    if whole.len() <= limit { whole } else { ended_by_hash(&whole, parts, limit) }
}

/// Joins the parts by dashes and appends a hash of all parts: different parts, different names.
///
/// # Assumptions
/// `limit` is at least 16.
pub fn hashed(parts: &[&str], limit: usize) -> String {
    ended_by_hash(&parts.join("-"), parts, limit)
}

/// Returns whether a text is a valid name of most objects and of hosts (RFC 1123).
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_LIMIT && text.split('.').all(is_dns_label_of_any_length)
}

/// Returns whether a text is a valid label of such a name, and a valid label value.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= LABEL_LIMIT && is_dns_label_of_any_length(text)
}

fn is_dns_label_of_any_length(text: &str) -> bool {
    let inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn ended_by_hash(whole: &str, parts: &[&str], limit: usize) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        // The length separates the parts.
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    let suffix = &format!("{:x}", digest.finalize())[..SUFFIX];
    let mut end = whole.len().min(limit.saturating_sub(SUFFIX + 1));
    while !whole.is_char_boundary(end) {
        end -= 1;
    }
    let start = whole[..end].trim_end_matches(['-', '.']);
    if start.is_empty() { suffix.to_owned() } else { format!("{start}-{suffix}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_name_stays_readable() {
        let name = derived(&["dataplanenode", "edpm-compute-0"], SUBDOMAIN_LIMIT);
        assert_eq!(name, "dataplanenode-edpm-compute-0");
    }

    #[test]
    fn a_long_name_keeps_its_start_and_ends_with_a_hash() {
        let long = "a".repeat(70);
        let name = derived(&["run", &long], LABEL_LIMIT);
        assert_eq!(name, format!("run-{}-87688db6dd", "a".repeat(48)));
    }

    #[test]
    fn a_hashed_name_keeps_its_parts_apart() {
        assert_ne!(hashed(&["a-b", "c"], LABEL_LIMIT), hashed(&["a", "b-c"], LABEL_LIMIT));
        assert_eq!(hashed(&["nova", "edpm-compute-0"], 63), "nova-edpm-compute-0-49abe5b126");
    }

    #[test]
    fn names_follow_rfc_1123() {
        for good in ["a", "edpm-compute-0", "0.example.org", "192.168.122.100"] {
            assert!(is_dns_subdomain(good), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a..b", "a_b", "a b", "{{ x }}", ".a", "ä"] {
            assert!(!is_dns_subdomain(bad), "{bad}");
        }
        assert!(is_dns_label("a-b") && !is_dns_label("a.b") && !is_dns_label(&"a".repeat(64)));
    }

    proptest! {
        #[test]
        fn derived_names_are_valid_and_within_the_limit(
            parts in prop::collection::vec("[a-z0-9]([-a-z0-9]{0,90}[a-z0-9])?", 1..5),
            limit in 16_usize..254,
        ) {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            for name in [derived(&parts, limit), hashed(&parts, limit)] {
                prop_assert!(name.len() <= limit, "{name}");
                prop_assert!(is_dns_subdomain(&name), "{name}");
            }
        }

        #[test]
        fn other_parts_give_another_name(
            a in prop::collection::vec("[a-b-]{0,3}", 1..4),
            b in prop::collection::vec("[a-b-]{0,3}", 1..4),
        ) {
            let of = |parts: &[String]| {
                hashed(&parts.iter().map(String::as_str).collect::<Vec<_>>(), LABEL_LIMIT)
            };
            prop_assert_eq!(a == b, of(&a) == of(&b));
        }
    }
}
