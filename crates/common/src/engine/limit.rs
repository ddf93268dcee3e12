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
///
/// It goes back to the last `*` only: never more steps than the product of both lengths.
fn is_glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut seen) = (0, 0);
    let mut last_star = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                last_star = Some((at, seen));
                at += 1;
            }
            Some(it) if *it == b'?' || *it == text[seen] => (at, seen) = (at + 1, seen + 1),
            _ => {
                let Some((star, from)) = last_star else { return false };
                last_star = Some((star, from + 1));
                (at, seen) = (star + 1, from + 1);
            }
        }
    }
    pattern[at..].iter().all(|it| *it == b'*')
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
            ("*1", false),
            ("*n*1*", false),
            ("n**", false),
            ("*2", true),
        ];
        for (limit, expected) in cases {
            assert_eq!(leaves_out(limit, "n1", &["compute"]), expected, "{limit}");
        }
    }

    #[test]
    fn a_pattern_with_many_stars_costs_little() {
        let pattern = format!("{}b", "*a".repeat(60));
        assert!(leaves_out(&pattern, &"a".repeat(250), &[]));
    }

    #[test]
    fn what_only_ansible_can_tell_leaves_nobody_out() {
        for limit in ["~n[0-9]+", "n[2:5]", "compute[7]", "@hosts.retry", "n2,~x", "!~n.*"] {
            assert!(!leaves_out(limit, "n1", &["compute"]), "{limit}");
        }
    }
}
