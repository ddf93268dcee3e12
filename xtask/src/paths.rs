//! Paths: everything is in the repository or the three directories named here.

use std::ffi::OsString;
use std::path::PathBuf;

/// The state of the running lab; `lab down` removes it.
pub(crate) const STATE: &str = "/var/lib/edpm-lab";

/// The crates that do no I/O: no client, no clock, no environment.
pub(crate) const PURE: [&str; 5] =
    ["api", "config-drive", "ironic", "nova-config", "operator-core"];

/// Returns the root of the working tree.
pub(crate) fn repo() -> PathBuf {
    root_of(std::env::var_os("CARGO_MANIFEST_DIR"))
}

/// Returns the parent of the package's directory that `cargo run` gives; without cargo, of that
/// which the program was compiled in.
///
/// What was compiled in another checkout counts as fresh to cargo if it has the same sources and
/// the same target directory, so the path in the program may be that of the other checkout.
fn root_of(manifest: Option<OsString>) -> PathBuf {
    let manifest = manifest.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    manifest.parent().unwrap_or(&manifest).to_path_buf()
}

/// Returns the cache, which can be rebuilt: binaries, images, downloads.
///
/// It is outside the working tree, so that a fresh clone on the same machine can use it.
pub(crate) fn cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/root".into())).join(".cache"),
        PathBuf::from,
    );
    base.join("edpm-operators")
}

/// Returns the directory for output for the user; git ignores it.
pub(crate) fn target() -> PathBuf {
    repo().join("target")
}

/// Returns cargo's target directory.
pub(crate) fn compiled() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(target, PathBuf::from)
}

/// Returns the state directory of the lab.
pub(crate) fn state() -> PathBuf {
    PathBuf::from(STATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_that_of_the_checkout_that_cargo_runs_and_not_where_it_was_compiled() {
        assert_eq!(
            root_of(Some("/another/checkout/xtask".into())),
            PathBuf::from("/another/checkout")
        );
        let compiled_in = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        assert!(compiled_in.starts_with(root_of(None)));
    }
}
