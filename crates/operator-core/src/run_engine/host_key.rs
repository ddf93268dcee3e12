//! A host's own ssh key: whether it is known, when a run scans it, and what the user accepts.

use std::fmt;

use api::ansibleee::HostKeyScan;
use api::dataplane::Node;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use kube::ResourceExt;
use sha2::{Digest, Sha256};

use crate::hash;

/// Annotation on a node with the fingerprint of the host key that the user accepts.
pub const ACCEPT: &str = "dataplane.openstack.org/accept-host-key";
/// How many hosts' keys a run may scan: that many keys fit into a termination message.
pub const SCAN_LIMIT: usize = 80;
/// The only type of key that is learned.
pub const KEY_TYPE: &str = "ssh-ed25519";
/// The base64 prefix that all such keys share.
pub const COMMON_PREFIX: &str = "AAAAC3NzaC1lZDI1NTE5AAAAI";

/// What precedes the 32 bytes of the key itself: two lengths, and the type between them.
const HEADER: &[u8] = b"\0\0\0\x0bssh-ed25519\0\0\0 ";
/// Maximum length of a user's fingerprint; a real one has 50 characters.
const FINGERPRINT_LIMIT: usize = 100;

/// A public key of type ed25519, in ssh's binary encoding.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct HostKey([u8; 51]);

impl HostKey {
    /// Parses `ssh-ed25519 AAAA…`, with an optional comment; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        (words.next() == Some(KEY_TYPE)).then_some(())?;
        Self::of_body(words.next()?)
    }

    /// Parses a key's base64 without [`COMMON_PREFIX`].
    pub fn of_tail(tail: &str) -> Option<Self> {
        Self::of_body(&format!("{COMMON_PREFIX}{tail}"))
    }

    fn of_body(body: &str) -> Option<Self> {
        let bytes: [u8; 51] = STANDARD.decode(body).ok()?.try_into().ok()?;
        bytes.starts_with(HEADER).then_some(Self(bytes))
    }

    /// Returns the fingerprint as `ssh-keygen -l` prints it: `SHA256:…`.
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(self.0)))
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KEY_TYPE} {}", STANDARD.encode(self.0))
    }
}

/// Returns the fingerprint in the value of [`ACCEPT`].
///
/// The value may be a whole line of `ssh-keygen -l`. A word that is not a fingerprint is kept,
/// because then no key may be trusted. Returns `None` when the annotation is absent or blank.
pub fn accepted(annotation: Option<&String>) -> Option<String> {
    let mut words = annotation?.split_whitespace().peekable();
    let first = *words.peek()?;
    let word = words.find(|it| it.starts_with("SHA256:")).unwrap_or(first);
    Some(word.chars().take(FINGERPRINT_LIMIT).collect())
}

/// Returns the command that accepts a key, up to its fingerprint.
pub fn accept_command(namespace: &str, node: &str) -> String {
    format!("kubectl annotate --overwrite -n {namespace} openstackdataplanenode/{node} {ACCEPT}=")
}

/// Which key of a host is trusted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostKeyTrust {
    /// Whether its key is learned; otherwise the user's known hosts or ssh options decide.
    pub is_learned: bool,
    /// The learned key, if there is one.
    pub key: Option<HostKey>,
    /// The fingerprint that the user accepts.
    pub accepted: Option<String>,
}

/// Returns the trust in the key of a node's host, as its status records it; nothing is learned.
pub fn recorded_trust(node: &Node) -> HostKeyTrust {
    let recorded = node.status.as_ref().and_then(|it| it.host_key.as_deref());
    let Some(key) = recorded.and_then(HostKey::parse) else { return HostKeyTrust::default() };
    HostKeyTrust::learned(Some(key), accepted(node.annotations().get(ACCEPT)), &[])
}

impl HostKeyTrust {
    /// Returns the trust of a host whose key is learned.
    ///
    /// `offered` are the keys that runs saw at its address, the oldest first. A recorded key is
    /// replaced only by one with the accepted fingerprint. Without a recorded key the accepted
    /// fingerprint selects the offered key, and without that the oldest one is taken.
    pub fn learned(
        recorded: Option<HostKey>,
        accepted: Option<String>,
        offered: &[HostKey],
    ) -> Self {
        let desired = accepted.as_deref();
        let pinned = || offered.iter().find(|it| Some(it.fingerprint().as_str()) == desired);
        let key = match (recorded, desired) {
            (None, None) => offered.first().cloned(),
            (None, Some(_)) => pinned().cloned(),
            (Some(key), None) => Some(key),
            (Some(key), Some(_)) => Some(pinned().cloned().unwrap_or(key)),
        };
        Self { is_learned: true, key, accepted }
    }

    /// Returns whether and how a run scans the key; `None` means that it does not.
    ///
    /// `is_refused` says whether the last attempt failed because of the key. A known key is scanned
    /// only to report the fingerprint of a different one.
    pub fn scan(&self, is_refused: bool) -> Option<HostKeyScan> {
        if !self.is_learned {
            return None;
        }
        let known = self.key.as_ref().map(HostKey::fingerprint);
        let asks = |fingerprint: Option<String>| Some(HostKeyScan { fingerprint });
        match (known, &self.accepted) {
            (None, accepted) => asks(accepted.clone()),
            (Some(known), Some(accepted)) if known != *accepted => asks(Some(accepted.clone())),
            (Some(known), _) if is_refused => asks(Some(known)),
            (Some(_), _) => None,
        }
    }

    /// Returns a token of what is trusted; a refused host is retried at once when it changes.
    ///
    /// It is empty when no key is learned or accepted.
    pub fn token(&self) -> String {
        if !self.is_learned || self.key.is_none() && self.accepted.is_none() {
            return String::new();
        }
        hash::short(&(self.key.as_ref().map(HostKey::fingerprint), &self.accepted))
    }
}

#[cfg(test)]
#[path = "host_key_tests.rs"]
mod tests;
