//! The keys of an ssh Secret.

/// Key of the private key in an ssh Secret.
pub const PRIVATE_KEY: &str = "ssh-privatekey";
/// Key of the known host keys in an ssh Secret.
pub const KNOWN_HOSTS: &str = "known_hosts";
