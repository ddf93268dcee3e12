//! Where things are kept: nothing but the repository and the three folders named here.

use std::path::{Path, PathBuf};

/// What the lab keeps while it runs; `lab down` removes it.
pub(crate) const STATE: &str = "/var/lib/edpm-lab";

/// The crates that do no I/O: no client, no clock, no environment.
pub(crate) const PURE: [&str; 5] =
    ["api", "config-drive", "ironic", "nova-config", "operator-core"];

/// The root of the working tree.
pub(crate) fn repo() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// What may be lost at the cost of time: binaries, images, downloads.
///
/// It lies outside the working tree, so that a fresh clone on the same machine is warm.
pub(crate) fn cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/root".into())).join(".cache"),
        PathBuf::from,
    );
    base.join("edpm-operators")
}

/// What the commands leave for humans; git ignores it.
pub(crate) fn target() -> PathBuf {
    repo().join("target")
}

/// Where cargo puts what it compiles.
pub(crate) fn compiled() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(target, PathBuf::from)
}

/// The state folder of the lab.
pub(crate) fn state() -> PathBuf {
    PathBuf::from(STATE)
}
