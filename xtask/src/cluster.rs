//! Selects the cluster of a command: the lab, or an existing one.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::{lab, paths};

/// Where a checkout's output has the lab's kubeconfig.
const SHOWN: &str = "lab/kubeconfig";

/// A cluster to use instead of the lab.
#[derive(clap::Args, Default)]
pub(crate) struct Choice {
    /// Use this existing cluster instead of the lab. Without it KUBECONFIG counts, unless it is the
    /// lab's own.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The registry of an existing cluster, for example `registry.example.org/team`.
    #[arg(long, value_name = "REGISTRY")]
    registry: Option<String>,
    /// The registry speaks plain HTTP, as the lab's does.
    #[arg(long, requires = "registry")]
    plain_http: bool,
}

impl Choice {
    /// Returns the access data of the cluster, whether it runs or not.
    pub(crate) fn env(&self) -> Result<lab::Env> {
        match self.existing(std::env::var_os("KUBECONFIG")) {
            None => Ok(lab::env()),
            Some(kubeconfig) => {
                let registry = self.registry.as_deref().with_context(|| {
                    let file = kubeconfig.display();
                    format!(
                        "{file} is not the lab's: --registry must say where its images go; to use the \
                         lab, unset KUBECONFIG"
                    )
                })?;
                Ok(lab::Env::existing(kubeconfig, registry, self.plain_http))
            }
        }
    }

    /// Returns the cluster with its namespaces; starts the lab if it does not run.
    pub(crate) fn up(&self) -> Result<lab::Env> {
        let env = self.env()?;
        if env.is_lab() {
            return lab::up();
        }
        lab::namespaces(&env)?;
        Ok(env)
    }

    /// Returns the kubeconfig of a cluster that is not the lab, or `None` for the lab.
    fn existing(&self, from_environment: Option<OsString>) -> Option<PathBuf> {
        // The path is absolute, because programs are also started in other directories.
        let absolute = |it: PathBuf| if it.exists() { std::path::absolute(&it) } else { Ok(it) };
        if let Some(chosen) = &self.kubeconfig {
            return absolute(chosen.clone()).ok();
        }
        let exported = PathBuf::from(from_environment.filter(|it| !it.is_empty())?);
        if is_labs(&exported) { None } else { absolute(exported).ok() }
    }
}

/// Whether the file is the lab's kubeconfig, a copy of it, or its path in any checkout while the lab
/// is down: the tests run from a checkout of their own.
fn is_labs(file: &Path) -> bool {
    let own = [lab::env().kubeconfig, paths::target().join(SHOWN)];
    let content = fs::read(file).ok();
    let is_left = content.is_none() && file.ends_with(Path::new("target").join(SHOWN));
    is_left
        || own.iter().any(|it| it == file || (content.is_some() && fs::read(it).ok() == content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_clusters_kubeconfig_leads_away_from_the_lab() {
        let choice = Choice::default();
        let own = paths::target().join("lab/kubeconfig").into_os_string();
        let elsewhere = OsString::from("/another/checkout/target/lab/kubeconfig");
        for labs in [None, Some(OsString::new()), Some(own.clone()), Some(elsewhere)] {
            assert_eq!(choice.existing(labs), None);
        }
        let other = OsString::from("/home/me/.kube/config");
        assert_eq!(choice.existing(Some(other.clone())), Some(other.clone().into()));
        let chosen = Choice { kubeconfig: Some("/chosen".into()), ..Choice::default() };
        assert_eq!(chosen.existing(Some(own)), Some("/chosen".into()));
    }

    #[test]
    fn an_existing_cluster_needs_a_registry() {
        let mut choice = Choice { kubeconfig: Some("/chosen".into()), ..Choice::default() };
        let error = choice.env().err().map(|it| it.to_string()).unwrap_or_default();
        assert!(error.contains("--registry"), "{error}");
        choice.registry = Some("registry.example.org/team".into());
        let env = choice.env().unwrap();
        assert!(!env.is_lab() && !env.plain_http);
        assert_eq!(env.kubectl().get_program(), "kubectl", "it comes from PATH");
    }
}
