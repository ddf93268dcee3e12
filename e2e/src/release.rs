//! The chart, installed a second time for the namespace of one test.

use anyhow::Result;
use common::api::definitions;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::{Namespace, run};

/// A release of a test's own, with operators of its own beside those that serve all tests.
pub struct Release {
    name: String,
    namespace: String,
}

impl Release {
    /// Installs it with the images of the one that is there, for the test's namespace alone.
    pub async fn install(name: &str, namespace: &str, watched: &Namespace) -> Result<Self> {
        let values =
            run("helm", &["get", "values", "edpm-operators", "-n", "edpm-system", "-o", "yaml"]);
        let file = std::env::temp_dir().join(format!("{name}-values.yaml"));
        std::fs::write(&file, values.await?)?;
        let file = file.display().to_string();
        let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/edpm-operators");
        let watch = format!("watchNamespaces={{{}}}", watched.name);
        let off = |it: &CustomResourceDefinition| format!("crds.{}=false", it.spec.names.kind);
        let others_own = definitions::all().iter().map(off).collect::<Vec<_>>().join(",");
        let options = ["--create-namespace", "--wait", "--timeout", "2m", "--values", &file];
        let set = ["--set", &watch, "--set", &others_own];
        let release = ["upgrade", "--install", name, chart, "-n", namespace];
        run("helm", &[&release[..], &options, &set].concat()).await?;
        Ok(Self { name: name.to_owned(), namespace: namespace.to_owned() })
    }

    /// Stops all of its operators, and waits until they are gone; its configurations stay.
    pub async fn stop(&self) -> Result<()> {
        let of_it = format!("app.kubernetes.io/instance={}", self.name);
        let scale = ["scale", "deployment", "-n", &self.namespace, "-l", &of_it, "--replicas=0"];
        run("kubectl", &scale).await?;
        let gone = ["wait", "pod", "-n", &self.namespace, "-l", &of_it, "--for=delete"];
        run("kubectl", &[&gone[..], &["--timeout=90s"]].concat()).await.map(drop)
    }

    /// Takes it away, as a human does.
    pub async fn uninstall(self) -> Result<()> {
        run("helm", &["uninstall", &self.name, "-n", &self.namespace, "--wait"]).await.map(drop)
    }
}
