//! The cluster that tests use: the one in `KUBECONFIG`, or one that the test program started.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{Context as _, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::process::Command;

/// A cluster that a test program started.
#[derive(Debug)]
struct Own {
    kubeconfig: PathBuf,
    bin: PathBuf,
    aliases: Vec<(String, String)>,
}

/// The cluster of the whole test program.
static OWN: OnceLock<Own> = OnceLock::new();
/// Aliases added after the start.
static LATER: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// Makes all helpers use this cluster and the kubectl and helm in `bin`; only the first call has an
/// effect. Each alias maps an address in the cluster to the one shown in transcripts.
pub fn choose(kubeconfig: PathBuf, bin: PathBuf, aliases: Vec<(String, String)>) {
    // All calls in a program name the same cluster, so a second one may fail.
    let _ = OWN.set(Own { kubeconfig, bin, aliases });
}

/// Adds an alias: an address in the cluster, and the one shown in descriptions and transcripts.
pub fn alias(from: String, to: &str) {
    LATER.lock().unwrap_or_else(PoisonError::into_inner).push((from, to.to_owned()));
}

/// Replaces addresses by their aliases.
pub(crate) fn with_aliases(text: &str) -> String {
    let aliases = OWN.get().map(|it| it.aliases.as_slice()).unwrap_or_default();
    let later = LATER.lock().unwrap_or_else(PoisonError::into_inner);
    let all = aliases.iter().chain(later.iter());
    all.fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Returns a client of the cluster.
pub async fn client() -> Result<Client> {
    // It fails only if a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Some(own) = OWN.get() else {
        return Client::try_default().await.context("no cluster: set KUBECONFIG");
    };
    let file = Kubeconfig::read_from(&own.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Sets the environment of a command so that it uses the cluster.
pub fn prepare(command: &mut Command) {
    if let Some(own) = OWN.get() {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(own.bin.clone()).chain(std::env::split_paths(&others));
        // A directory with a colon in its name cannot be in PATH; the programs are then found
        // elsewhere.
        command.env("PATH", std::env::join_paths(folders).unwrap_or_else(|_| others.clone()));
        command.env("KUBECONFIG", &own.kubeconfig);
        // kubectl's discovery cache is per cluster.
        command.env("KUBECACHEDIR", own.kubeconfig.with_extension("cache"));
    }
}
