//! Limits of runs: which hosts a user's `ansibleLimit` excludes, and what of it is given to Ansible.

use std::net::IpAddr;

use super::inventory::RUN_GROUP;

/// The names that plays give to the runner itself; none of them is in an inventory of ours.
const LOCALHOST: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Returns whether a limit certainly excludes a host; `groups` are the host's inventory groups.
///
/// A term names a host or a group, with `*` and `?` as wildcards; `!` excludes, `&` intersects.
/// See [`terms`] for how a limit is split into terms.
/// Source: Ansible's user guide, "Patterns: targeting hosts and groups".
///
/// # Caveats
/// Regular expressions (`~`), files (`@`), ranges and subscripts (`[`) are left to Ansible: a host
/// that only they decide about counts as not excluded.
pub fn leaves_out(limit: &str, host: &str, groups: &[&str]) -> bool {
    let terms = terms(limit);
    let is_match = |term: &str| matches(term, host, groups);
    let mut plain = terms.iter().filter(|it| !it.starts_with(['!', '&'])).peekable();
    let named = |sign: char| terms.iter().filter_map(move |it| it.strip_prefix(sign));
    // Without a plain term, Ansible starts from all hosts.
    let misses_all = plain.peek().is_some() && plain.all(|it| is_match(it) == Some(false));
    misses_all
        || named('&').any(|it| is_match(it) == Some(false))
        || named('!').any(|it| is_match(it) == Some(true))
}

/// Returns the names in a limit that are certainly of none of these hosts, each with its group;
/// Ansible passes them over, and deploys a host that such a name was to exclude.
pub fn unmatched<'a>(limit: &'a str, hosts: &[(String, &str)]) -> Vec<&'a str> {
    let names = terms(limit).into_iter().map(|it| it.trim_start_matches(['!', '&']));
    let is_none = |name: &&str| {
        let is_other =
            |(host, group): &(String, &str)| matches(name, host, &[*group]) == Some(false);
        !is_localhost(name) && hosts.iter().all(is_other)
    };
    names.filter(is_none).collect()
}

/// Returns whether a play or a failure of that host is one of the runner itself.
pub fn is_localhost(host: &str) -> bool {
    LOCALHOST.contains(&host)
}

/// Returns the limit of a run of [`RUN_GROUP`], whose hosts [`leaves_out`] has not excluded.
///
/// A play for localhost runs beside those for hosts. Where there is a limit of the user's, it runs
/// if that names localhost, as Ansible has it; no limit of Ansible's can say so beside a regular
/// expression, a file, a range or an intersection.
pub fn of_run(limit: Option<&str>) -> String {
    let terms = limit.map(terms).unwrap_or_default();
    let is_decided = |it: &&str| !it.starts_with(['~', '@', '&']) && !it.contains('[');
    let names_localhost = terms.iter().any(|it| is_localhost(it));
    if terms.is_empty() || names_localhost && terms.iter().all(is_decided) {
        return format!("{RUN_GROUP},{}", LOCALHOST[0]);
    }
    format!("{},&{RUN_GROUP}", terms.join(","))
}

/// Splits a limit into terms as Ansible does.
///
/// It is split at commas if it has any, otherwise at colons and spaces outside of brackets; an IP
/// address is one term. To add a term, join all of them by commas: with a comma present, Ansible no
/// longer splits at colons.
pub fn terms(limit: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let is_end = |it: char| {
        match it {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (it == ':' || it.is_whitespace())
    };
    let terms: Vec<&str> = if limit.contains(',') {
        limit.split(',').collect()
    } else if limit.trim().parse::<IpAddr>().is_ok() {
        vec![limit]
    } else {
        limit.split(is_end).collect()
    };
    terms.into_iter().map(str::trim).filter(|it| !it.is_empty()).collect()
}

/// Returns whether a term matches; `None` when only Ansible can decide.
fn matches(term: &str, host: &str, groups: &[&str]) -> Option<bool> {
    if term.starts_with(['~', '@']) || term.contains('[') {
        return None;
    }
    Some(term == "all" || groups.iter().chain([&host]).any(|it| is_glob(term, it)))
}

/// Returns whether `text` matches a pattern with `*` (any text) and `?` (one character).
///
/// It backtracks only to the last `*`, so the number of steps is at most the product of the
/// lengths.
pub(super) fn is_glob(pattern: &str, text: &str) -> bool {
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
    fn a_name_that_no_host_has_is_found_whatever_sign_it_has() {
        let hosts = [("n1".to_owned(), "compute"), ("n2".to_owned(), "other")];
        for (limit, expected) in [
            ("n1,n2", &[][..]),
            ("compute:!n1", &[]),
            ("all:&n?:localhost", &[]),
            ("~n9,n[7:9],@file", &[]),
            ("n1,n3", &["n3"]),
            ("all:!n3", &["n3"]),
            ("compute:&x*,n9", &["compute:&x*", "n9"]),
        ] {
            assert_eq!(unmatched(limit, &hosts), expected, "{limit}");
        }
    }

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
    fn a_limit_is_split_as_ansible_splits_it() {
        for (limit, expected) in [
            ("compute:!n2", &["compute", "!n2"][..]),
            ("a:b,c", &["a:b", "c"]),
            (" a , !b ", &["a", "!b"]),
            ("n[2:5]:!n3", &["n[2:5]", "!n3"]),
            ("a b", &["a", "b"]),
            ("2001:db8::7", &["2001:db8::7"]),
            ("", &[]),
        ] {
            assert_eq!(terms(limit), expected, "{limit}");
        }
    }

    #[test]
    fn a_run_has_plays_for_localhost_unless_a_limit_of_the_users_does_without() {
        for (limit, expected) in [
            (None, "edpm_run,localhost"),
            (Some("compute:!n2"), "compute,!n2,&edpm_run"),
            (Some("n1,localhost"), "edpm_run,localhost"),
            (Some("n*:!n2:127.0.0.1"), "edpm_run,localhost"),
            (Some("::1"), "edpm_run,localhost"),
            (Some("localhost,&compute"), "localhost,&compute,&edpm_run"),
            (Some("localhost,n[2:5]"), "localhost,n[2:5],&edpm_run"),
            (Some("localhost,~n.*"), "localhost,~n.*,&edpm_run"),
            (Some("all,!localhost"), "all,!localhost,&edpm_run"),
        ] {
            assert_eq!(of_run(limit), expected, "{limit:?}");
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
