//! Lines of authorized keys in sshd's format: options, type, key, comment.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Key types that current sshd accepts. DSA is not among them.
const TYPES: [&str; 12] = [
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp384-cert-v01@openssh.com",
    "ecdsa-sha2-nistp521",
    "ecdsa-sha2-nistp521-cert-v01@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "sk-ssh-ed25519@openssh.com",
    "ssh-ed25519",
    "ssh-ed25519-cert-v01@openssh.com",
    "ssh-rsa",
    "ssh-rsa-cert-v01@openssh.com",
];

const WAY: &str = "copy the line of the key's .pub file: type, key in base64, comment";

/// Returns why a line is invalid, with a valid alternative; `None` for a valid one.
///
/// Faults must not repeat the line, which may be a private key by mistake.
pub(crate) fn fault(line: &str) -> Option<(&'static str, &'static str)> {
    if line.contains("PRIVATE KEY") {
        return Some((
            "is a private key",
            "use the public key from the .pub file, and generate a new key pair",
        ));
    }
    if line.contains('\n') {
        return Some(("has several lines", "give each key its own entry"));
    }
    // cloud-init reads the text as YAML, which allows no other control characters.
    if line.contains(char::is_control) {
        return Some(("has control characters", WAY));
    }
    let Some((type_, rest)) = typed(line) else {
        return Some(("names no key type that sshd accepts", WAY));
    };
    let key = rest.split_ascii_whitespace().next().unwrap_or_default();
    match STANDARD.decode(key) {
        Ok(blob) if says(&blob, type_) => None,
        Ok(_) => Some(("has a key of a different type than stated, or a truncated key", WAY)),
        Err(_) => Some(("has no key in base64", WAY)),
    }
}

/// Returns the type of the key and what follows it, skipping options.
fn typed(line: &str) -> Option<(&'static str, &str)> {
    let split = |text| {
        let (word, rest) = split_outside_quotes(text)?;
        TYPES.into_iter().find(|it| *it == word).map(|it| (it, rest))
    };
    split(line).or_else(|| split(split_outside_quotes(line)?.1))
}

/// Splits off the first word; blanks in quotes, as in options, do not separate words.
fn split_outside_quotes(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (idx, it) in text.char_indices() {
        match it {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => return Some((&text[..idx], text[idx..].trim_start())),
            _ => {}
        }
    }
    None
}

/// Returns whether a key begins with its type, as all keys do (RFC 4253, 6.6), and continues.
fn says(blob: &[u8], type_: &str) -> bool {
    let Some((length, rest)) = blob.split_at_checked(4) else { return false };
    let is_length = u32::try_from(type_.len()).is_ok_and(|it| length == it.to_be_bytes());
    is_length && rest.len() > type_.len() && rest.starts_with(type_.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzp0V5eeyEtRfB9K6gGXv6ooeyTVhGqvHLVIWNQ5vJv";

    fn cause(line: &str) -> Option<&'static str> {
        fault(line).map(|it| it.0)
    }

    #[test]
    fn lines_that_sshd_reads_are_taken() {
        for start in ["", " ", "restrict ", "from=\"10.0.0.0/8, *.a\",command=\"echo \\\" x\" "] {
            for end in ["", " me@example.org", " a comment of words"] {
                assert_eq!(cause(&format!("{start}{KEY}{end}")), None, "{start}{end}");
            }
        }
    }

    #[test]
    fn lines_that_sshd_would_skip_are_refused_with_the_cause() {
        let (type_, key) = KEY.split_once(' ').unwrap();
        let other = format!("ssh-rsa {key}");
        let cut = format!("{type_} {}", &key[..20]);
        let old = format!("ssh-dss {key}");
        let open = format!("from=\"a {KEY}");
        let cases = [
            ("", "names no key type"),
            (key, "names no key type"),
            (&old, "names no key type"),
            (&open, "names no key type"),
            ("ssh-ed25519 !", "no key in base64"),
            ("ssh-ed25519  ", "a different type"),
            (&cut, "a different type"),
            (&other, "a different type"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nabc", "private key"),
            ("a\nb", "several lines"),
            ("a\tb", "control characters"),
        ];
        for (line, expected) in cases {
            let found = cause(line).unwrap_or_default();
            assert!(found.contains(expected), "{line}: {found}");
        }
    }
}
