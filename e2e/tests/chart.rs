//! The chart, installed a second time beside the one that serves the other tests, and taken away.

use anyhow::Result;
use common::api::nova::{Cell, ExternalCompute};
use e2e::{Namespace, run};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

const RELEASE: &str = "edpm-e2e";
const RELEASE_NAMESPACE: &str = "e2e-chart-release";

/// How many webhook configurations belong to the release.
async fn webhooks(ns: &Namespace) -> Result<usize> {
    let of_release = ListParams::default().labels(&format!("app.kubernetes.io/instance={RELEASE}"));
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(ns.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(ns.client.clone());
    let n_mutating = mutating.list(&of_release).await?.items.len();
    Ok(n_mutating + validating.list(&of_release).await?.items.len())
}

/// Installs the release with the images of the one that is there, for one namespace.
async fn install(ns: &Namespace) -> Result<()> {
    let values =
        run("helm", &["get", "values", "edpm-operators", "-n", "edpm-system", "-o", "yaml"]);
    let file = std::env::temp_dir().join("e2e-chart-values.yaml");
    std::fs::write(&file, values.await?)?;
    let file = file.display().to_string();
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/edpm-operators");
    let watch = format!("watchNamespaces={{{}}}", ns.name);
    let kinds = [
        "OpenStackAnsibleEE",
        "OpenStackDataPlane",
        "OpenStackDataPlaneNode",
        "OpenStackDataPlaneRole",
        "OpenStackDataPlaneService",
        "NovaCell",
        "NovaExternalCompute",
    ];
    let others_own = kinds.map(|it| format!("crds.{it}=false")).join(",");
    let options = ["--create-namespace", "--wait", "--timeout", "2m", "--values", &file];
    let set = ["--set", &watch, "--set", &others_own];
    let release = ["upgrade", "--install", RELEASE, chart, "-n", RELEASE_NAMESPACE];
    run("helm", &[&release[..], &options, &set].concat()).await.map(drop)
}

#[tokio::test]
async fn uninstalling_keeps_every_object_and_blocks_no_later_write() -> Result<()> {
    let ns = Namespace::new("chart").await?;
    install(&ns).await?;
    assert_eq!(webhooks(&ns).await?, 2);
    let spec = json!({ "dataplaneNodeName": "n0", "cellName": "nova-cell1" });
    ns.create::<ExternalCompute>("n0", spec).await?;
    let bad = json!({ "spec": { "customServiceConfig": "no section = x\n[" } });
    let refused = ns.merge::<ExternalCompute>("n0", bad).await;
    let refusal = format!("{:#}", refused.expect_err("the webhook refuses what cannot be parsed"));
    assert!(refusal.contains("spec.customServiceConfig"), "{refusal}");

    run("helm", &["uninstall", RELEASE, "-n", RELEASE_NAMESPACE, "--wait"]).await?;
    assert_eq!(webhooks(&ns).await?, 0);
    assert_eq!(ns.list::<ExternalCompute>().await?.len(), 1);
    let good = json!({ "spec": { "customServiceConfig": "[DEFAULT]\ndebug = True\n" } });
    ns.merge::<ExternalCompute>("n0", good).await?;
    assert_eq!(ns.list::<Cell>().await?.len(), 0);
    run("kubectl", &["delete", "namespace", RELEASE_NAMESPACE, "--wait=false"]).await?;
    ns.done().await
}
