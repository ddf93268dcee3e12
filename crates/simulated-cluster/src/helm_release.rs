//! The chart as rendered by Helm, installed without pods: CRDs, RBAC and webhooks unchanged except
//! for the address of the webhooks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::operator::Operator;
use crate::programs::BUILD;

/// The release's name.
pub(crate) const RELEASE: &str = "edpm-operators";
/// The release's namespace.
pub(crate) const NAMESPACE: &str = "edpm-system";
const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/edpm-operators");

/// Values that the chart requires for its images, which are never pulled.
const IMAGES: [&str; 4] = [
    "image.repository=simulated/operators",
    "relatedImages.ansibleEERunner=simulated/runner:1",
    "relatedImages.novaCompute=simulated/nova-compute:1",
    "relatedImages.novaLibvirt=simulated/nova-libvirt:1",
];
/// Kinds that are not applied: Deployments would create pods.
const LEFT_OUT: [&str; 1] = ["Deployment"];

/// The rendered chart.
#[derive(Debug)]
pub(crate) struct Rendered {
    objects: Vec<Value>,
}

impl Rendered {
    /// Renders the chart of this working tree with the given values.
    pub(crate) async fn new(bin: &Path, values: &[String]) -> Result<Self> {
        let mut helm = Command::new(bin.join("helm"));
        helm.args(["template", RELEASE, CHART, "--namespace", NAMESPACE, "--include-crds"]);
        let text = said(helm.args(set(values))).await?;
        let objects: Vec<Value> = api::yaml::documents(&text).context("what Helm rendered")?;
        Ok(Self { objects: objects.into_iter().filter(|it| !it.is_null()).collect() })
    }

    /// Returns the objects to apply, with webhooks that point to their operator's loopback port.
    pub(crate) fn applied(&self, ports: &BTreeMap<Operator, u16>) -> Vec<Value> {
        let is_applied = |it: &&Value| LEFT_OUT.iter().all(|kind| it["kind"] != **kind);
        self.objects.iter().filter(is_applied).map(|it| redirected(it, ports)).collect()
    }

    /// Returns the release's namespace and all other namespaces that its objects name.
    pub(crate) fn namespaces(&self) -> BTreeSet<&str> {
        let named = self.objects.iter().filter_map(|it| it["metadata"]["namespace"].as_str());
        named.chain([NAMESPACE]).collect()
    }

    /// Returns the objects of a kind as they were rendered.
    pub(crate) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |it| it["kind"] == kind)
    }

    /// Returns the environment variables of an operator's Deployment, without those taken from the
    /// pod.
    pub(crate) fn environment(&self, operator: &str) -> Result<Vec<(String, String)>> {
        let mut deployments = self.of_kind("Deployment");
        let deployment = deployments.find(|it| it["metadata"]["name"] == operator);
        let deployment = deployment.with_context(|| format!("no Deployment {operator}"))?;
        let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
        let variable = |it: &Value| {
            let (name, value) = (it["name"].as_str()?, it["value"].as_str()?);
            Some((name.to_owned(), value.to_owned()))
        };
        Ok(env.as_array().into_iter().flatten().filter_map(variable).collect())
    }
}

/// Installs the release with Helm over the applied objects, which Helm owns from then on. Its
/// Deployments get no running pods, and its webhooks point to a Service without endpoints.
pub(crate) async fn install(bin: &Path, kubeconfig: &Path, values: &[String]) -> Result<()> {
    // CRDs are handed over to Helm as the chart's instructions say.
    let release = format!("meta.helm.sh/release-name={RELEASE}");
    let namespace = format!("meta.helm.sh/release-namespace={NAMESPACE}");
    let (label, annotate) = (["app.kubernetes.io/managed-by=Helm"], [&*release, &*namespace]);
    for (verb, values) in [("label", &label[..]), ("annotate", &annotate[..])] {
        let mut kubectl = Command::new(bin.join("kubectl"));
        kubectl.env("KUBECONFIG", kubeconfig).args([verb, "crd", "--overwrite"]).args(values);
        said(kubectl.args(["-l", "edpm.openstack.org/managed-by=edpm-operators"])).await?;
    }
    let mut helm = Command::new(bin.join("helm"));
    helm.env("KUBECONFIG", kubeconfig).args(["install", RELEASE, CHART, "--namespace", NAMESPACE]);
    said(helm.arg("--take-ownership").args(set(values))).await.map(drop)
}

/// Uninstalls the release with Helm.
pub(crate) async fn uninstall(bin: &Path, kubeconfig: &Path) -> Result<()> {
    let mut helm = Command::new(bin.join("helm"));
    helm.env("KUBECONFIG", kubeconfig).args(["uninstall", RELEASE, "--namespace", NAMESPACE]);
    said(&mut helm).await.map(drop)
}

/// Returns Helm's arguments for values of the chart.
fn set(values: &[String]) -> Vec<String> {
    let all = IMAGES.iter().copied().chain(values.iter().map(String::as_str));
    all.flat_map(|it| ["--set".to_owned(), it.to_owned()]).collect()
}

/// Runs a program and returns its standard output; fails when the program fails.
async fn said(program: &mut Command) -> Result<String> {
    let output = program.output().await;
    let output = output.with_context(|| format!("start {program:?}: {BUILD}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program:?}: {error}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the object with each webhook's `clientConfig` replaced by a URL with the same path.
fn redirected(object: &Value, ports: &BTreeMap<Operator, u16>) -> Value {
    let mut object = object.clone();
    let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten() {
        let service = &webhook["clientConfig"]["service"];
        let path = service["path"].as_str().unwrap_or("/");
        let name = service["name"].as_str().unwrap_or_default();
        let port = ports.iter().find(|(it, _)| name.starts_with(it.name())).map_or(0, |it| *it.1);
        webhook["clientConfig"] = json!({ "url": format!("https://127.0.0.1:{port}{path}") });
    }
    object
}

/// Applies objects with kubectl under Helm's field manager; objects without a namespace go to the
/// release's.
pub(crate) async fn apply(bin: &Path, kubeconfig: &Path, objects: &[Value]) -> Result<()> {
    let names_one = |it: &&Value| it["metadata"]["namespace"].is_string();
    let (elsewhere, here): (Vec<&Value>, Vec<&Value>) = objects.iter().partition(names_one);
    apply_with(&["--namespace", NAMESPACE], bin, kubeconfig, &here).await?;
    if elsewhere.is_empty() {
        return Ok(());
    }
    apply_with(&[], bin, kubeconfig, &elsewhere).await
}

async fn apply_with(
    options: &[&str],
    bin: &Path,
    kubeconfig: &Path,
    objects: &[&Value],
) -> Result<()> {
    let mut kubectl = Command::new(bin.join("kubectl"));
    kubectl.env("KUBECONFIG", kubeconfig).args(["apply", "--server-side", "--validate=false"]);
    kubectl.args(["--field-manager=helm", "--filename=-"]).args(options);
    kubectl.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = kubectl.spawn().with_context(|| format!("start kubectl: {BUILD}"))?;
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string();
    let mut stdin = child.stdin.take().context("no stdin")?;
    stdin.write_all(list.as_bytes()).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl apply: {said}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_of_a_webhook_is_another() {
        let hook =
            |config: Value| json!({ "name": "a", "failurePolicy": "Fail", "clientConfig": config });
        let service =
            json!({ "name": "nova-operator-webhook", "namespace": "n", "path": "/validate" });
        let service = json!({ "service": service });
        let ports = BTreeMap::from([(Operator::DataPlane, 8), (Operator::Nova, 7)]);
        let url = json!({ "url": "https://127.0.0.1:7/validate" });
        let configuration = |it: Value| json!({ "kind": "X", "webhooks": [hook(it)] });
        assert_eq!(redirected(&configuration(service), &ports), configuration(url));
        let other = json!({ "kind": "Role", "rules": [{ "verbs": ["get"] }] });
        assert_eq!(redirected(&other, &ports), other);
    }
}
