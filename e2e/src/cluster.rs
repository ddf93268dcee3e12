//! The cluster that tests talk to: the one of `KUBECONFIG`, or one that a test program started itself.

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

/// One for the whole test program.
static OWN: OnceLock<Own> = OnceLock::new();
/// Aliases of what was started since.
static LATER: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// From now on all helpers talk to this cluster, and find kubectl and helm in `bin`; the first call
/// counts. Each alias is an address there with the one that stands for it in transcripts.
pub fn choose(kubeconfig: PathBuf, bin: PathBuf, aliases: Vec<(String, String)>) {
    // A second call names the same cluster.
    let _ = OWN.set(Own { kubeconfig, bin, aliases });
}

/// From now on an address there stands for another one in descriptions and transcripts, too.
pub fn alias(from: String, to: &str) {
    LATER.lock().unwrap_or_else(PoisonError::into_inner).push((from, to.to_owned()));
}

/// A text with the addresses that transcripts have.
pub(crate) fn with_aliases(text: &str) -> String {
    let aliases = OWN.get().map(|it| it.aliases.as_slice()).unwrap_or_default();
    let later = LATER.lock().unwrap_or_else(PoisonError::into_inner);
    let all = aliases.iter().chain(later.iter());
    all.fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// A client of the cluster.
pub async fn client() -> Result<Client> {
    // An error means that it is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Some(own) = OWN.get() else {
        return Client::try_default().await.context("no cluster: set KUBECONFIG");
    };
    let file = Kubeconfig::read_from(&own.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Lets a program talk to the cluster.
pub fn prepare(command: &mut Command) {
    if let Some(own) = OWN.get() {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(own.bin.clone()).chain(std::env::split_paths(&others));
        // A folder whose name has a colon cannot be in PATH; the programs are then found elsewhere.
        command.env("PATH", std::env::join_paths(folders).unwrap_or_else(|_| others.clone()));
        command.env("KUBECONFIG", &own.kubeconfig);
        // What kubectl remembers of the cluster goes with it.
        command.env("KUBECACHEDIR", own.kubeconfig.with_extension("cache"));
    }
}
