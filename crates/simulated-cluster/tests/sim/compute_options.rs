//! Options that nova does not know: reported by kubectl at once, and in a condition; and those that go
//! with a compute.
//!
//! There is no node, so nothing is deployed.

use anyhow::Result;
use api::nova::{Cell, ExternalCompute};
use e2e::cells::{self, CELL};
use e2e::{Namespace, SOON, run};
use serde_json::{Value, json};

use crate::world::World;

const RELEASE: &str = "nova.openstack.org/release";

/// Returns what kubectl prints when the compute gets these options.
async fn configure(ns: &Namespace, options: &str) -> Result<String> {
    let change = json!({ "spec": { "customServiceConfig": options } }).to_string();
    let patch = "kubectl -n \"$0\" patch novaexternalcompute n0 --type merge -p \"$1\" 2>&1";
    run("sh", &["-c", patch, &ns.name, &change]).await
}

/// Waits until the compute reports its options this way.
async fn told(ns: &Namespace, reason: &str, words: &[&str]) -> Result<()> {
    ns.reports::<ExternalCompute>("n0", "ConfigWarnings", reason, words, SOON).await.map(drop)
}

/// The release that the cell names.
async fn name_release(ns: &Namespace, release: &str) -> Result<()> {
    ns.annotate::<Cell>(CELL, RELEASE, release).await.map(drop)
}

#[tokio::test]
async fn options_are_judged_by_the_cells_release_and_told_by_kubectl_and_in_a_condition()
-> Result<()> {
    let ns = World::new("options").await?;
    cells::create_unusable(&ns).await?;
    let spec: Value = json!({ "dataplaneNodeName": "n0", "cellName": CELL });
    ns.create::<ExternalCompute>("n0", spec).await?;
    told(&ns, "NoWarnings", &[]).await?;

    let printed =
        configure(&ns, "[libvirt]\ncpu_modls = a\n[quota]\nunified_limits_resource_strategy = x\n");
    let printed = printed.await?;
    let unknown = "line 2, column 1: [libvirt] cpu_modls is not known to nova 34.0.0";
    let refused =
        "line 4, column 1: [quota] unified_limits_resource_strategy has a value that nova 34.0.0";
    for words in
        ["Warning: spec.customServiceConfig, ", unknown, "did you mean cpu_models?", refused]
    {
        assert!(printed.contains(words), "{words} is not in: {printed}");
    }
    told(&ns, "Surprising", &[unknown, "did you mean cpu_models?", refused]).await?;

    name_release(&ns, "2023.1").await?;
    let unknown = "[quota] unified_limits_resource_strategy is not known to nova 27.5.1";
    told(&ns, "Surprising", &["cpu_modls is not known to nova 27.5.1", unknown]).await?;

    name_release(&ns, "zed").await?;
    told(&ns, "ReleaseUnknown", &["NovaCell nova-cell1 names zed", "2026.2"]).await?;
    let printed = configure(&ns, "[libvirt]\ncpu_modls = b\n").await?;
    assert!(printed.contains("names zed") && !printed.contains("cpu_modls"), "{printed}");

    let delete = "kubectl -n \"$0\" delete novaexternalcompute n0 2>&1";
    let printed = run("sh", &["-c", delete, &ns.name]).await?;
    let lost = "Warning: the options in the spec of NovaExternalCompute n0 go with it";
    assert!(printed.contains(lost), "{printed}");
    ns.done().await
}
