//! The Secret with the ssh key of hosts: its keys, and what runs need of it.

/// Key of the private key in an ssh Secret.
pub const PRIVATE_KEY: &str = "ssh-privatekey";
/// Key of the known host keys in an ssh Secret.
pub const KNOWN_HOSTS: &str = "known_hosts";

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
