//! Locations of the programs of a simulated cluster.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Hint for the user when a program is missing.
pub(crate) const BUILD: &str = "`cargo xtask sim up` builds it";
/// Environment variable with the folder of etcd, kube-apiserver, kube-controller-manager, kubectl
/// and helm.
const BIN: &str = "EDPM_SIM_BIN";

/// Returns the folder of the programs that the lab builds.
pub(crate) fn of_cluster() -> Result<PathBuf> {
    if let Some(bin) = std::env::var_os(BIN) {
        return Ok(bin.into());
    }
    let home = || Some(Path::new(&std::env::var_os("HOME")?).join(".cache").into_os_string());
    let cache: OsString = std::env::var_os("XDG_CACHE_HOME").or_else(home).context("no HOME")?;
    Ok(PathBuf::from(cache).join("edpm-operators/sim/bin"))
}

/// Returns cargo's output folder: the parent of `deps` for tests, the program's own folder
/// otherwise.
pub(crate) fn of_operators() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().context("a program is in a folder")?;
    let folder = if folder.ends_with("deps") { folder.parent() } else { Some(folder) };
    Ok(folder.unwrap_or_else(|| Path::new("/")).to_owned())
}
