//! The chart, installed a second time beside the one that serves the other tests, and taken away.

use anyhow::Result;
use common::api::nova::{Cell, ExternalCompute};
use e2e::{Namespace, Release, run};
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

#[tokio::test]
async fn uninstalling_keeps_every_object_and_blocks_no_later_write() -> Result<()> {
    let ns = Namespace::new("chart").await?;
    let release = Release::install(RELEASE, RELEASE_NAMESPACE, &ns).await?;
    assert_eq!(webhooks(&ns).await?, 2);
    let spec = json!({ "dataplaneNodeName": "n0", "cellName": "nova-cell1" });
    ns.create::<ExternalCompute>("n0", spec).await?;
    let bad = json!({ "spec": { "customServiceConfig": "no section = x\n[" } });
    let refused = ns.merge::<ExternalCompute>("n0", bad).await;
    let refusal = format!("{:#}", refused.expect_err("the webhook refuses what cannot be parsed"));
    assert!(refusal.contains("spec.customServiceConfig"), "{refusal}");

    release.uninstall().await?;
    assert_eq!(webhooks(&ns).await?, 0);
    assert_eq!(ns.list::<ExternalCompute>().await?.len(), 1);
    let good = json!({ "spec": { "customServiceConfig": "[DEFAULT]\ndebug = True\n" } });
    ns.merge::<ExternalCompute>("n0", good).await?;
    assert_eq!(ns.list::<Cell>().await?.len(), 0);
    run("kubectl", &["delete", "namespace", RELEASE_NAMESPACE, "--wait=false"]).await?;
    ns.done().await
}
