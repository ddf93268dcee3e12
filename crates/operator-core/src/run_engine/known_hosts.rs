//! Lines of known hosts as ssh reads them: which hosts the user's lines cover, and how ours look.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use crate::run_engine::host_key::HostKey;
use crate::run_engine::limit::is_glob;

/// The port that ssh omits from a host's name.
const SSH_PORT: i32 = 22;
/// Prefix of a hashed host name.
const HASHED: &str = "|1|";
/// Block size of the HMAC.
const BLOCK: usize = 64;

/// Returns whether any line covers the host, with a key of any type.
///
/// Such a line decides alone: a learned key never joins a user's key. A line without a port covers
/// every port, as in ssh. Revoked keys cover no host.
pub fn covers(text: &str, host: &str, port: i32) -> bool {
    let host = host.to_ascii_lowercase();
    let names = [name(&host, port), host];
    text.lines().filter_map(patterns).any(|it| names.iter().any(|name| matches(it, name)))
}

/// Returns the known-hosts line of a host; `None` when ssh would read its name as a pattern.
pub fn line(host: &str, port: i32, key: &HostKey) -> Option<String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || ".:%_-".contains(it);
    let is_name = host.starts_with(|it: char| it.is_ascii_alphanumeric() || it == ':');
    let is_good = is_name && host.chars().all(is_plain);
    is_good.then(|| format!("{} {key}\n", name(&host.to_ascii_lowercase(), port)))
}

/// Returns the name under which ssh looks a host up.
fn name(host: &str, port: i32) -> String {
    if port == SSH_PORT { host.to_owned() } else { format!("[{host}]:{port}") }
}

/// Returns the host patterns of a line with a key or a certificate authority; `None` for others.
fn patterns(line: &str) -> Option<&str> {
    let mut words = line.split_ascii_whitespace();
    let mut first = words.next()?;
    if first == "@cert-authority" {
        first = words.next()?;
    }
    let (key_type, key) = (words.next()?, words.next()?);
    let is_line = !first.starts_with(['#', '@']) && !key_type.is_empty();
    (is_line && STANDARD.decode(key).is_ok()).then_some(first)
}

/// Returns whether a list of patterns matches the name and does not negate it.
fn matches(list: &str, name: &str) -> bool {
    if let Some(hashed) = list.strip_prefix(HASHED) {
        return is_hashed(hashed, name).unwrap_or(false);
    }
    let mut found = false;
    for pattern in list.split(',') {
        let (is_negated, pattern) =
            pattern.strip_prefix('!').map_or((false, pattern), |it| (true, it));
        if is_glob(&pattern.to_ascii_lowercase(), name) {
            if is_negated {
                return false;
            }
            found = true;
        }
    }
    found
}

/// Returns whether `salt|digest` is the hash of the name; `None` when it is malformed.
fn is_hashed(hashed: &str, name: &str) -> Option<bool> {
    let (salt, digest) = hashed.split_once('|')?;
    let (salt, digest) = (STANDARD.decode(salt).ok()?, STANDARD.decode(digest).ok()?);
    Some(hmac(&salt, name.as_bytes()) == digest)
}

/// HMAC with SHA-1, which ssh uses to hash host names.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0; BLOCK];
    let digest = Sha1::digest(key);
    let key = if key.len() > BLOCK { digest.as_slice() } else { key };
    block[..key.len()].copy_from_slice(key);
    let keyed = |pad: u8, text: &[u8]| {
        Sha1::new().chain_update(block.map(|it| it ^ pad)).chain_update(text).finalize()
    };
    keyed(0x5c, &keyed(0x36, text)).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIWOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8+";
    /// `known.example.org`, and its port 2022, as `ssh-keygen -H` hides them.
    const HIDDEN: &str = "|1|MupdixEvHreIpFwfhnfSnwgnE+c=|P32dCRmAo4psaB4Am3Eeg3QDuok=";
    const HIDDEN_PORT: &str = "|1|SsLDhkwhLeh56o++usV7kr6gUs0=|c5JhgmP3bMzE95rSLU+XlbfcL98=";

    #[test]
    fn a_line_covers_the_hosts_that_ssh_reads_in_it() {
        let cases = [
            ("192.0.2.7", "192.0.2.7", 22, true),
            ("192.0.2.7", "192.0.2.70", 22, false),
            ("192.0.2.7", "192.0.2.7", 2022, true),
            ("[192.0.2.7]:2022", "192.0.2.7", 2022, true),
            ("[192.0.2.7]:2022", "192.0.2.7", 22, false),
            ("[192.0.2.7]:2022", "192.0.2.7", 2023, false),
            ("a,b.example.org", "b.example.org", 22, true),
            ("B.Example.ORG", "b.example.org", 22, true),
            ("b.example.org", "B.EXAMPLE.org", 22, true),
            ("*.example.org", "b.example.org", 22, true),
            ("*.example.org", "example.org", 22, false),
            ("*", "192.0.2.7", 2022, true),
            ("192.0.2.?", "192.0.2.7", 22, true),
            ("192.0.2.?", "192.0.2.70", 22, false),
            ("*,!b.example.org", "b.example.org", 22, false),
            ("*,!b.example.org", "a.example.org", 22, true),
            ("!b.example.org", "a.example.org", 22, false),
            ("2001:db8::7", "2001:db8::7", 22, true),
            ("[2001:db8::7]:2022", "2001:db8::7", 2022, true),
            (HIDDEN, "known.example.org", 22, true),
            (HIDDEN, "Known.example.org", 22, true),
            (HIDDEN, "other.example.org", 22, false),
            (HIDDEN_PORT, "known.example.org", 2022, true),
            (HIDDEN_PORT, "known.example.org", 22, false),
        ];
        for (names, host, port, expected) in cases {
            let text = format!("# hosts\n\n{names} {KEY} comment\n");
            assert_eq!(covers(&text, host, port), expected, "{names}: {host} {port}");
        }
    }

    #[test]
    fn what_is_no_line_covers_nobody() {
        let body = KEY.split_once(' ').unwrap().1;
        let cases = [
            (String::new(), false),
            ("x".into(), false),
            ("*".into(), false),
            ("h ssh-ed25519".into(), false),
            ("h ssh-ed25519 no-base64!".into(), false),
            (format!("# h {KEY}"), false),
            (format!("#h {KEY}"), false),
            (format!("@revoked h {KEY}"), false),
            (format!("@unknown h {KEY}"), false),
            (format!("@cert-authority h {KEY}"), true),
            (format!("@cert-authority *.h,h {KEY}"), true),
            (format!("|1|| {KEY}"), false),
            (format!("|1|no {KEY}"), false),
            (format!("|2|MupdixEvHreIpFwfhnfSnwgnE+c=|x {KEY}"), false),
            (format!("  h\tssh-rsa\t{body}"), true),
            (format!("other {KEY}\r\nh {KEY}\r\n"), true),
        ];
        for (text, expected) in cases {
            assert_eq!(covers(&text, "h", 22), expected, "{text}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_is_answered_at_once() {
        let text = format!("{}b {KEY}", "*a".repeat(2000));
        assert!(!covers(&text, &"a".repeat(250), 22));
    }

    #[test]
    fn hidden_names_agree_with_the_digests_of_the_standard() {
        // RFC 2202, cases 1, 2 and 6.
        let cases = [
            (vec![0x0b; 20], "Hi There", "b617318655057264e28bc0b6fb378c8ef146be00"),
            (
                b"Jefe".to_vec(),
                "what do ya want for nothing?",
                "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
            ),
            (
                vec![0xaa; 80],
                "Test Using Larger Than Block-Size Key - Hash Key First",
                "aa4ae5e15272d00e95705637ce8a3b55ed402112",
            ),
        ];
        for (key, text, expected) in cases {
            assert_eq!(crate::hash::hex(&hmac(&key, text.as_bytes())), expected, "{text}");
        }
    }

    #[test]
    fn our_lines_are_read_back_and_name_one_host_only() {
        let key = HostKey::parse(KEY).unwrap();
        let cases = [
            ("192.0.2.7", 22, Some("192.0.2.7")),
            ("192.0.2.7", 2022, Some("[192.0.2.7]:2022")),
            ("B.example.org", 22, Some("b.example.org")),
            ("2001:db8::7", 22, Some("2001:db8::7")),
            ("fe80::1%eth0", 2022, Some("[fe80::1%eth0]:2022")),
            ("::1", 22, Some("::1")),
            ("*", 22, None),
            ("a?", 22, None),
            ("a,b", 22, None),
            ("!a", 22, None),
            ("#a", 22, None),
            ("@cert-authority", 22, None),
            ("|1|a|b", 22, None),
            ("a b", 22, None),
            ("a\nb", 22, None),
            ("-oProxyCommand=x", 22, None),
            ("", 22, None),
        ];
        for (host, port, expected) in cases {
            let line = line(host, port, &key);
            assert_eq!(line, expected.map(|it| format!("{it} {KEY}\n")), "{host:?}");
            if let Some(line) = line {
                assert!(covers(&line, host, port), "{line}");
            }
        }
    }
}
