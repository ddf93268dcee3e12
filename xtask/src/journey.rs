//! `cargo xtask journey`: follows a snippet of nova's configuration from a file to the running
//! nova-compute.

pub(crate) mod places;
mod prepare;
mod snippet;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::cluster::Choice;
use crate::{demo, lab, paths, sh};
pub(crate) use prepare::{HOST, up};
use snippet::Snippet;

/// A namespace of its own, so that it leaves nothing in others.
pub(crate) const NAMESPACE: &str = "edpm-journey";
/// The ConfigMap with the snippet; its key is the name of the file on the host.
const CONFIG_MAP: &str = "nova-extra-config";
pub(crate) const KEY: &str = "25-nova-extra.conf";
/// The user's service in place of the default one.
pub(crate) const SERVICE: &str = "nova-custom";
const NODE_SET: &str = "openstack-edpm";
/// The environment variable with the path of the snippet.
const VARIABLE: &str = "DATAPLANE_EXTRA_NOVA_CONFIG_FILE";
/// The condition of a finished deployment, and its reason after the last failed attempt.
const DEPLOYMENT_READY: &str = "DeploymentReady";
const BACKOFF_LIMIT_EXCEEDED: &str = "BackoffLimitExceeded";
/// The timeout for a deployment of everything.
const DEPLOYMENT: Duration = Duration::from_mins(14);

/// Show how a snippet of nova's configuration reaches a running nova-compute, step by step.
///
/// The snippet is the file that `DATAPLANE_EXTRA_NOVA_CONFIG_FILE` names, else
/// `examples/journey/my.conf`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: Choice,
}

/// Starts the example, and prints each step as it happens.
pub(crate) fn main(args: &Args) -> Result<()> {
    let file = std::env::var_os(VARIABLE).filter(|it| !it.is_empty()).map(PathBuf::from);
    let file = file.unwrap_or_else(|| paths::repo().join("examples/journey/my.conf"));
    let env = up(&args.cluster)?;
    let walk = Walk::of(&env, &file, &[])?;
    for place in places::ALL {
        println!("{}", walk.shown(place)?);
    }
    println!("The snippet has arrived.");
    Ok(())
}

/// One journey: a snippet, and the Deployment that copies it to the host.
pub(crate) struct Walk<'a> {
    env: &'a lab::Env,
    snippet: Snippet,
    /// The name of the Deployment.
    deployment: String,
}

impl<'a> Walk<'a> {
    /// Applies everything up to the Deployment, and creates that. `only` are the services that it
    /// runs; if empty, all of the node set.
    pub(crate) fn of(env: &'a lab::Env, file: &Path, only: &[&str]) -> Result<Self> {
        let snippet = Snippet::read(file)?;
        let folder = prepare::overlay(env, &snippet)?;
        sh::step("apply the ConfigMap, the service and the node set", || {
            let mut apply = env.kubectl();
            sh::run(apply.args(["apply", "-k"]).arg(folder)).map(drop)
        })?;
        let deployment = deploy(env, only)?;
        Ok(Self { env, snippet, deployment })
    }

    /// Waits until a place has the snippet, and returns what it found there.
    ///
    /// # Errors
    ///
    /// The place has something else when the time is over, or when the Deployment has failed.
    pub(crate) fn shown(&self, place: &places::Place) -> Result<String> {
        let what = format!("step {} of {}: {}", place.number, places::ALL.len(), place.name);
        let seen = sh::wait_for(&what, DEPLOYMENT, || match (place.look)(self) {
            Ok(seen) => Ok(Ok(seen)),
            // The Deployment has failed, so waiting is of no use.
            Err(reason) if self.has_failed()? => Ok(Err(reason)),
            Err(reason) => Err(reason),
        })?;
        let seen = seen.with_context(|| format!("{what}: the Deployment {}", self.ready_text()))?;
        Ok(format!("{what}\n    {seen}"))
    }

    /// Whether the Deployment has ended without success.
    fn has_failed(&self) -> Result<bool> {
        let object = self.object()?;
        Ok(demo::facts::condition(&object, DEPLOYMENT_READY)["reason"] == BACKOFF_LIMIT_EXCEEDED)
    }

    /// Returns the `Ready` condition of the Deployment as text.
    fn ready_text(&self) -> String {
        let object = self.object().unwrap_or_default();
        let ready = demo::facts::condition(&object, "Ready");
        format!("{} says {}: {}", self.deployment, ready["reason"], ready["message"])
    }

    fn object(&self) -> Result<Value> {
        demo::get(self.env, NAMESPACE, "openstackdataplanedeployment", &self.deployment)
    }

    /// Waits until the Deployment has succeeded.
    pub(crate) fn deployed(&self) -> Result<()> {
        sh::step(&format!("wait for the Deployment {}", self.deployment), || {
            deployed(self.env, &self.deployment)
        })
    }
}

/// Creates a Deployment of the example's node set; returns its name.
pub(crate) fn deploy(env: &lab::Env, only: &[&str]) -> Result<String> {
    let file = paths::repo().join("examples/journey/deployment.yaml");
    let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let text = if only.is_empty() {
        text
    } else {
        format!("{text}  servicesOverride: [{}]\n", only.join(", "))
    };
    let mut create = env.kubectl();
    create.args(["-n", NAMESPACE, "create", "-f", "-", "-o", "jsonpath={.metadata.name}"]);
    let name = sh::run_with_input(&mut create, text.as_bytes())?;
    ensure!(!name.is_empty(), "the API server names no Deployment");
    Ok(name)
}

/// Waits until a Deployment has succeeded; returns an error at once when it has failed.
pub(crate) fn deployed(env: &lab::Env, name: &str) -> Result<()> {
    let what = format!("Deployment {name} Ready");
    let ended = sh::wait_for(&what, DEPLOYMENT, || {
        let object = demo::get(env, NAMESPACE, "openstackdataplanedeployment", name)?;
        let ready = demo::facts::condition(&object, "Ready").clone();
        let failed = &demo::facts::condition(&object, DEPLOYMENT_READY)["reason"];
        match (ready["status"].as_str(), failed.as_str()) {
            (Some("True"), _) => Ok(Ok(())),
            (_, Some(BACKOFF_LIMIT_EXCEEDED)) => Ok(Err(ready)),
            _ => bail!("{}: {}", ready["reason"], ready["message"]),
        }
    })?;
    ended.map_err(|ready| anyhow::anyhow!("{what}: {}: {}", ready["reason"], ready["message"]))
}

/// Deletes the snippet; with the next Deployment the generated values apply.
pub(crate) fn forget_snippet(env: &lab::Env) -> Result<()> {
    let mut delete = env.kubectl();
    sh::run(delete.args(["-n", NAMESPACE, "delete", "configmap", CONFIG_MAP])).map(drop)
}

#[cfg(test)]
mod tests {
    use api::dataplane::deployment;

    #[test]
    fn a_deployment_is_asked_in_its_own_words() {
        assert_eq!(super::DEPLOYMENT_READY, deployment::DEPLOYMENT_READY);
        assert_eq!(super::BACKOFF_LIMIT_EXCEEDED, deployment::BACKOFF_LIMIT_EXCEEDED);
    }
}
