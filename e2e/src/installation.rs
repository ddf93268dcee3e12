//! The operators' Helm release, and whether its operators reconcile.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, Role};
use api::nova::{Cell, ExternalCompute};
use api::yaml;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use crate::guests::until;
use crate::{Kind, run};

const RELEASE: &str = "edpm-operators";
/// The namespace of the release that all tests use.
const NAMESPACE: &str = "edpm-system";
/// The environment variable with the path of the chart's values for the current images.
const VALUES: &str = "EDPM_UPGRADE_VALUES";
/// The timeout from the start of the operators' pods until every object is reconciled.
const AT_WORK: Duration = Duration::from_mins(10);

/// Each operator with its controllers that reconcile every object of a kind.
const OPERATORS: [(&str, &[&str]); 3] = [
    ("dataplane-operator", &["group"]),
    ("nova-operator", &["cell", "compute", "compute-creation"]),
    ("ansibleee-operator", &["OpenStackAnsibleEE"]),
];

/// The release that all tests use.
pub struct Installation {
    client: Client,
    values: String,
}

impl Installation {
    /// Returns the existing release with the values for its upgrade, or an error when the variable
    /// is unset.
    pub fn existing(client: &Client) -> Result<Self> {
        let values = std::env::var_os(VALUES).and_then(|it| it.into_string().ok());
        let values = values.with_context(|| {
            format!("{VALUES} is not set: cargo xtask test e2e installs the release before first")
        })?;
        Ok(Self { client: client.clone(), values })
    }

    /// Upgrades the release to the chart of this working tree, with further values in the format of
    /// `--set`.
    pub async fn upgrade(&self, further: &[&str]) -> Result<()> {
        let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/edpm-operators");
        let values = ["--values", &self.values, "--set", "dnsPolicy=Default"];
        let further: Vec<&str> = further.iter().flat_map(|it| ["--set", *it]).collect();
        self.helm(&[&["upgrade", RELEASE, chart], &values[..], &further[..]].concat()).await
    }

    /// Rolls the last upgrade back.
    pub async fn roll_back(&self) -> Result<()> {
        self.helm(&["rollback", RELEASE]).await
    }

    async fn helm(&self, arguments: &[&str]) -> Result<()> {
        let all = ["--namespace", NAMESPACE, "--wait", "--timeout", "15m"];
        run("helm", &[arguments, &all].concat()).await.map(drop)
    }

    /// Returns the names of the CRDs in the current release.
    pub async fn definitions(&self) -> Result<BTreeSet<String>> {
        let manifest = run("helm", &["get", "manifest", RELEASE, "--namespace", NAMESPACE]).await?;
        let is_definition = |it: &&str| it.contains("\nkind: CustomResourceDefinition\n");
        let name = |text: &str| -> Result<String> {
            Ok(yaml::from_str::<CustomResourceDefinition>(text)?.name_any())
        };
        manifest.split("\n---\n").filter(is_definition).map(name).collect()
    }

    /// Returns the schema of each of these CRDs in the API server.
    pub async fn schemas(
        &self,
        of: &[CustomResourceDefinition],
    ) -> Result<BTreeMap<String, Value>> {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let mut found = BTreeMap::new();
        for name in of.iter().map(ResourceExt::name_any) {
            if let Some(definition) = api.get_opt(&name).await? {
                found.insert(name, schema(&definition)?);
            }
        }
        Ok(found)
    }

    /// Waits until each operator runs from its current Deployment only, is the leader, and has
    /// reconciled every object of its kinds.
    pub async fn at_work(&self) -> Result<()> {
        for (operator, controllers) in OPERATORS {
            let what = format!("{operator} is at work");
            until(&what, AT_WORK, async || self.is_at_work(operator, controllers).await).await?;
        }
        Ok(())
    }

    async fn is_at_work(&self, operator: &str, controllers: &[&str]) -> Result<()> {
        let pod = self.only_pod(operator).await?;
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), NAMESPACE);
        let lease = leases.get(&format!("edpm-{operator}")).await?;
        let holder = lease.spec.and_then(|it| it.holder_identity).unwrap_or_default();
        ensure!(holder.starts_with(&pod), "the Lease is held by {holder:?}, not by {pod}");
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/metrics");
        let metrics = run("kubectl", &["get", "--raw", &path]).await?;
        ensure!(value(&metrics, "edpm_leader") == Some(1), "{pod} does not lead");
        for controller in controllers {
            let n_objects = self.n_objects(controller).await?;
            let name = format!("edpm_reconcile_seconds_count{{kind=\"{controller}\"}}");
            let n_passes = value(&metrics, &name).unwrap_or(0);
            ensure!(
                n_passes >= n_objects,
                "{controller} has looked {n_passes} times at {n_objects} objects"
            );
        }
        Ok(())
    }

    /// Returns the name of the operator's only pod, or an error unless it belongs to the current
    /// Deployment.
    async fn only_pod(&self, operator: &str) -> Result<String> {
        let image = |it: Option<&PodSpec>| it.and_then(|it| it.containers[0].image.clone());
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), NAMESPACE);
        let deployment = deployments.get(operator).await?;
        let wanted = deployment.spec.as_ref().and_then(|it| image(it.template.spec.as_ref()));
        let labels =
            format!("app.kubernetes.io/name={operator},app.kubernetes.io/instance={RELEASE}");
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let pods = pods.list(&ListParams::default().labels(&labels)).await?.items;
        let [pod] = &pods[..] else { anyhow::bail!("it has {} pods", pods.len()) };
        ensure!(pod.metadata.deletion_timestamp.is_none(), "its pod is going");
        ensure!(image(pod.spec.as_ref()) == wanted, "its pod is of another image");
        Ok(pod.name_any())
    }

    /// Counts the objects of a controller in all namespaces.
    async fn n_objects(&self, controller: &str) -> Result<u64> {
        match controller {
            "group" => self.count::<Role>().await,
            "cell" => self.count::<Cell>().await,
            "compute" => self.count::<ExternalCompute>().await,
            "compute-creation" => self.count::<Node>().await,
            _ => self.count::<AnsibleEe>().await,
        }
    }

    async fn count<K: Kind>(&self) -> Result<u64> {
        let all: Api<K> = Api::all(self.client.clone());
        Ok(u64::try_from(all.list_metadata(&ListParams::default()).await?.items.len())?)
    }
}

/// Returns the schema of the first version of a CRD.
pub fn schema(definition: &CustomResourceDefinition) -> Result<Value> {
    let version = definition.spec.versions.first().context("a definition without a version")?;
    Ok(serde_json::to_value(&version.schema)?)
}

/// Returns the value of a metric, by its name with labels.
fn value(metrics: &str, name: &str) -> Option<u64> {
    let line = metrics.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_whole_name() {
        let text = "edpm_leader_since 7\nedpm_leader 1\nedpm_n{kind=\"a\"} 12\n# EOF\n";
        assert_eq!(value(text, "edpm_leader"), Some(1));
        assert_eq!(value(text, "edpm_n{kind=\"a\"}"), Some(12));
        assert_eq!(value(text, "edpm_n"), None);
    }
}
