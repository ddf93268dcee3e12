//! The Secret with the ssh key of hosts: its keys, what runs need of it, and what ssh cannot use.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Key of the private key in an ssh Secret.
pub const PRIVATE_KEY: &str = "ssh-privatekey";
/// Key of the known host keys in an ssh Secret.
pub const KNOWN_HOSTS: &str = "known_hosts";

/// The first and the last line of a key in OpenSSH's own format.
const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";
/// The beginning of all these in base64.
const BEGIN_ENCODED: &str = "LS0tLS1CRUdJTi";
/// What such a key begins with, before the name of its cipher.
const MAGIC: &[u8] = b"openssh-key-v1\0";
/// The cipher of a key without a passphrase.
const NO_CIPHER: &[u8] = b"none";
/// The kinds of keys in PEM that OpenSSL reads for ssh.
const PEM: [&str; 4] = ["RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY", "PRIVATE KEY"];

/// What a run needs of the Secret with the ssh key of its hosts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SshSecret<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its resource version; empty when it does not exist.
    pub version: &'a str,
    /// Whether it has known hosts.
    pub has_known_hosts: bool,
}

/// Why ssh cannot use a private key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyFault {
    /// There is nothing.
    Empty,
    /// It has a passphrase, for which no one can be asked.
    Passphrase,
    /// It is the public key.
    PublicKey,
    /// It is a key of `PuTTY`.
    Putty,
    /// Its lines end as on Windows.
    WindowsLines,
    /// Its first line is not at its very beginning, or not a line of its own.
    FirstLine,
    /// Nothing ends its last line.
    LastLine,
    /// It is cut off or damaged.
    Damaged,
    /// It is encoded in base64 once more than the Secret does it.
    Encoded,
    /// It is no text.
    Binary,
}

impl KeyFault {
    /// Returns the fault of a private key, as ssh would meet it in a file; `None` if ssh can use it, and
    /// for a text that is nothing of all these: upstream's tests, and hosts that are reached without a
    /// key, have placeholders.
    pub fn of(key: &[u8]) -> Option<Self> {
        let Ok(text) = std::str::from_utf8(key) else { return Some(Self::Binary) };
        if text.trim().is_empty() {
            return Some(Self::Empty);
        }
        if text.contains(BEGIN) {
            return Self::of_openssh(text);
        }
        if text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") {
            return Some(Self::Passphrase);
        }
        let line = |edge: &str, kind: &str| format!("-----{edge} {kind}-----");
        if let Some(kind) = PEM.into_iter().find(|it| text.contains(&line("BEGIN", it))) {
            return Self::of_pem(text, &line("BEGIN", kind), &line("END", kind));
        }
        let is_public =
            ["ssh-", "ecdsa-", "sk-"].iter().any(|it| text.trim_start().starts_with(it));
        let recognized = [
            (is_public || text.contains("PUBLIC KEY"), Self::PublicKey),
            (text.contains("PuTTY-User-Key-File"), Self::Putty),
            (text.trim_start().starts_with(BEGIN_ENCODED), Self::Encoded),
        ];
        recognized.into_iter().find(|(is_it, _)| *is_it).map(|(_, fault)| fault)
    }

    /// Returns the fault of a key in PEM, of which OpenSSL reads whatever has both lines as they are.
    fn of_pem(text: &str, begin: &str, end: &str) -> Option<Self> {
        let has = |line: &str| {
            text.trim_start_matches('\u{feff}').lines().any(|it| it.trim_end() == line)
        };
        if !has(begin) {
            return Some(Self::FirstLine);
        }
        (!has(end)).then_some(Self::Damaged)
    }

    /// Returns the fault of a key in OpenSSH's own format, of which ssh reads nothing that is not
    /// exactly as `ssh-keygen` writes it.
    fn of_openssh(text: &str) -> Option<Self> {
        if text.contains('\r') {
            return Some(Self::WindowsLines);
        }
        let Some(rest) = text.strip_prefix(BEGIN).and_then(|it| it.strip_prefix('\n')) else {
            return Some(Self::FirstLine);
        };
        let Some((body, after)) = rest.split_once(END) else { return Some(Self::Damaged) };
        if after.is_empty() {
            return Some(Self::LastLine);
        }
        let Some(body) = body.strip_suffix('\n').filter(|_| after.starts_with('\n')) else {
            return Some(Self::Damaged);
        };
        // Blanks within the lines are passed over, as ssh does.
        let body: String = body.split_whitespace().collect();
        let Ok(read) = STANDARD.decode(body) else { return Some(Self::Damaged) };
        let Some(cipher) = read.strip_prefix(MAGIC).and_then(first_text) else {
            return Some(Self::Damaged);
        };
        (cipher != NO_CIPHER).then_some(Self::Passphrase)
    }

    /// Returns what is wrong with the key, and what is to be done; it contains nothing of the key.
    pub fn text(self) -> &'static str {
        match self {
            Self::Empty => "is empty: put the private key there",
            Self::Passphrase => {
                "has a passphrase, and nothing can enter one: put a key without a passphrase there, \
                 or take it off a copy with ssh-keygen -p -N ''"
            }
            Self::PublicKey => "is a public key: put the private key there, the file without .pub",
            Self::Putty => "is a key of PuTTY: convert it with puttygen -O private-openssh-new",
            Self::WindowsLines => {
                "has the line ends of Windows, with which ssh does not read it: convert it with \
                 dos2unix"
            }
            Self::FirstLine => {
                "does not begin with the first line of a key and a line break, without which ssh does \
                 not read it: put the file there as it is, with --from-file"
            }
            Self::LastLine => {
                "has no line break behind its last line, without which ssh does not read it: put the \
                 file there as it is, with --from-file and not with --from-literal"
            }
            Self::Damaged => "is cut off or damaged: put the whole file there, with --from-file",
            Self::Encoded => {
                "is encoded in base64 twice: put the key itself into stringData, or its base64 into data"
            }
            Self::Binary => {
                "is no text: put the file there that ssh-keygen has written, with --from-file"
            }
        }
    }
}

/// Returns the first text of a key's fields, each of which has its length before it.
fn first_text(fields: &[u8]) -> Option<&[u8]> {
    let (length, rest) = fields.split_first_chunk::<4>()?;
    rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key as ssh-keygen writes it, up to the keys themselves.
    fn openssh(cipher: &str) -> String {
        let mut fields = MAGIC.to_vec();
        fields.extend(u32::try_from(cipher.len()).unwrap().to_be_bytes());
        fields.extend(cipher.as_bytes());
        fields.extend([0; 60]);
        let body = STANDARD.encode(fields);
        let (first, second) = body.split_at(70);
        format!("{BEGIN}\n{first}\n{second}\n{END}\n")
    }

    #[test]
    fn keys_that_ssh_reads_without_asking_have_no_fault() {
        let key = openssh("none");
        assert_eq!(KeyFault::of(key.as_bytes()), None);
        assert_eq!(KeyFault::of(format!("{key}# mine\n").as_bytes()), None);
        let (begin, body) = key.split_once('\n').unwrap();
        assert_eq!(
            KeyFault::of(format!("{begin}\n \t{body}").as_bytes()),
            None,
            "an indented line"
        );
        for kind in PEM {
            let pem = format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----");
            assert_eq!(KeyFault::of(pem.as_bytes()), None, "{kind}");
            let marked = format!("\u{feff}{pem}");
            assert_eq!(KeyFault::of(marked.as_bytes()), None, "OpenSSL passes over the mark");
            let lines = pem.replace('\n', "\r\n");
            assert_eq!(KeyFault::of(lines.as_bytes()), None, "OpenSSL reads these");
        }
    }

    #[test]
    fn each_slip_with_a_key_is_named_as_what_it_is() {
        let key = openssh("none");
        let pem = |kind: &str, text: &str| {
            format!("-----BEGIN {kind}-----\n{text}AAAA\n-----END {kind}-----\n")
        };
        let old = pem("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\n\n");
        for (text, expected) in [
            (String::new(), KeyFault::Empty),
            (" \n".into(), KeyFault::Empty),
            ("ssh-ed25519 AAAA me@there".into(), KeyFault::PublicKey),
            ("-----BEGIN PUBLIC KEY-----\n".into(), KeyFault::PublicKey),
            ("PuTTY-User-Key-File-3: ssh-ed25519\n".into(), KeyFault::Putty),
            (STANDARD.encode(&key), KeyFault::Encoded),
            (openssh("aes256-ctr"), KeyFault::Passphrase),
            (pem("ENCRYPTED PRIVATE KEY", ""), KeyFault::Passphrase),
            (old, KeyFault::Passphrase),
            (key.replace('\n', "\r\n"), KeyFault::WindowsLines),
            (key.trim_end().into(), KeyFault::LastLine),
            (format!("\n{key}"), KeyFault::FirstLine),
            (key.replace('\n', " "), KeyFault::FirstLine),
            (key[..100].into(), KeyFault::Damaged),
            (key.replacen("b3Bl", "b3B", 1), KeyFault::Damaged),
            ("-----BEGIN EC PRIVATE KEY-----\nAAAA\n".into(), KeyFault::Damaged),
            (pem("RSA PRIVATE KEY", "").replace('\n', " "), KeyFault::FirstLine),
            (pem("RSA PRIVATE KEY", "").replace("-----BEGIN", "  -----BEGIN"), KeyFault::FirstLine),
            (pem("RSA PRIVATE KEY", "").replace("-----END", "  -----END"), KeyFault::Damaged),
        ] {
            assert_eq!(KeyFault::of(text.as_bytes()), Some(expected), "{text}");
        }
        assert_eq!(KeyFault::of(&[0xff, 0xfe]), Some(KeyFault::Binary));
        assert_eq!(KeyFault::of(b"fake\n"), None, "a placeholder");
    }
}
