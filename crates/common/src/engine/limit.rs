//! Which hosts a human's `ansibleLimit` leaves out, as far as that can be told without Ansible.

/// Whether a limit certainly leaves a host out; `groups` are the inventory groups that it is in.
///
/// Terms are joined by commas, or by colons where there is no comma.
/// A term names a host or a group, with `*` and `?` as wildcards; `!` excludes, `&` narrows.
/// Source: Ansible's user guide, "Patterns: targeting hosts and groups".
///
/// # Caveats
/// Regular expressions (`~`), files (`@`), ranges and subscripts (`[`) are left to Ansible: a host
/// that only they decide about counts as not left out.
pub fn leaves_out(limit: &str, host: &str, groups: &[&str]) -> bool {
    let separator = if limit.contains(',') { ',' } else { ':' };
    let terms: Vec<&str> =
        limit.split(separator).map(str::trim).filter(|it| !it.is_empty()).collect();
    let is_match = |term: &str| matches(term, host, groups);
    let mut plain = terms.iter().filter(|it| !it.starts_with(['!', '&'])).peekable();
    let named = |sign: char| terms.iter().filter_map(move |it| it.strip_prefix(sign));
    // Without a plain term, Ansible starts from all hosts.
    let misses_all = plain.peek().is_some() && plain.all(|it| is_match(it) == Some(false));
    misses_all
        || named('&').any(|it| is_match(it) == Some(false))
        || named('!').any(|it| is_match(it) == Some(true))
}

/// Whether a term matches; `None` where only Ansible can tell.
fn matches(term: &str, host: &str, groups: &[&str]) -> Option<bool> {
    if term.starts_with(['~', '@']) || term.contains('[') {
        return None;
    }
    Some(term == "all" || groups.iter().chain([&host]).any(|it| is_glob(term, it)))
}

/// Whether `text` matches a pattern with `*` (any text) and `?` (one character).
fn is_glob(pattern: &str, text: &str) -> bool {
    let Some(first) = pattern.chars().next() else { return text.is_empty() };
    let rest = &pattern[first.len_utf8()..];
    let tails = || text.char_indices().map(|(idx, _)| &text[idx..]).chain([""]);
    match (first, text.chars().next()) {
        ('*', _) => tails().any(|it| is_glob(rest, it)),
        (_, None) => false,
        (expected, Some(found)) => {
            (expected == '?' || expected == found) && is_glob(rest, &text[found.len_utf8()..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_leaves_out_what_ansible_would() {
        let cases = [
            ("n1", false),
            ("n2", true),
            ("n2,n1", false),
            ("n2:n1", false),
            ("n*", false),
            ("m*", true),
            ("n?", false),
            ("n??", true),
            ("all", false),
            ("compute", false),
            ("storage", true),
            ("!n1", true),
            ("!n2", false),
            ("all,!n1", true),
            ("compute:!n2", false),
            ("all,&n2", true),
            ("all,&n*", false),
            ("&compute", false),
        ];
        for (limit, expected) in cases {
            assert_eq!(leaves_out(limit, "n1", &["compute"]), expected, "{limit}");
        }
    }

    #[test]
    fn what_only_ansible_can_tell_leaves_nobody_out() {
        for limit in ["~n[0-9]+", "n[2:5]", "compute[7]", "@hosts.retry", "n2,~x", "!~n.*"] {
            assert!(!leaves_out(limit, "n1", &["compute"]), "{limit}");
        }
    }
}
