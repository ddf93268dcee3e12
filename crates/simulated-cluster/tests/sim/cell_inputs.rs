//! User mistakes in a cell: reported on cell, compute and node, and recovered from at once.
//!
//! Each test creates the cells again in its own namespace; no host is touched.

use std::time::Duration;

use anyhow::{Context as _, Result};
use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, Role};
use api::nova::{Cell, ExternalCompute};
use e2e::Namespace;
use e2e::cells::{self, BUS, CELL, demo_value};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use serde_json::{Value, json};

use crate::idle::idle_role;
use crate::world::{World, idle_inputs};

/// Less than a cell's requeue interval, so that the effect of a changed Secret must come from its
/// watch.
const SOON: Duration = Duration::from_secs(25);
/// The condition in which a node reports its compute.
const COMPUTE: &str = "nova.openstack.org/Compute";

/// Creates a node that requests the cell, with every other input present; nothing is deployed.
async fn node(test: &str) -> Result<World> {
    let ns = World::new(test).await?;
    idle_inputs(&ns).await?;
    ns.create::<Role>("compute", idle_role()).await?;
    let spec = json!({ "role": "compute", "hostName": "n0", "ansibleHost": "192.168.123.254" });
    let metadata = json!({ "annotations": { "nova.openstack.org/cell": CELL } });
    ns.create_with::<Node>("n0", spec, metadata).await?;
    Ok(ns)
}

/// Waits until the compute reports this in that condition and in `Ready`, and the node repeats it;
/// both must have an Event with the reason.
async fn told(ns: &Namespace, type_: &str, reason: &str, words: &[&str]) -> Result<()> {
    for type_ in [type_, "Ready"] {
        ns.reports::<ExternalCompute>("n0", type_, reason, words, SOON).await?;
    }
    ns.reports::<Node>("n0", COMPUTE, reason, words, SOON).await?;
    for kind in ["NovaExternalCompute", "OpenStackDataPlaneNode"] {
        ns.event(kind, "n0", reason).await?;
    }
    Ok(())
}

/// Waits until a cell reports this in that condition and in `Ready`, with an Event.
async fn cell_told(ns: &Namespace, type_: &str, reason: &str, words: &[&str]) -> Result<()> {
    for type_ in [type_, "Ready"] {
        ns.reports::<Cell>(CELL, type_, reason, words, SOON).await?;
    }
    ns.event("NovaCell", CELL, reason).await
}

/// Waits until cell and compute have what they need; nothing may have run.
async fn healed(ns: &Namespace) -> Result<()> {
    ns.good::<Cell>(CELL, &["Ready"], SOON).await?;
    let types = ["NovaCellReady", "InputReady", "ServiceConfigReady"];
    ns.good::<ExternalCompute>("n0", &types, SOON).await?;
    assert!(ns.list::<AnsibleEe>().await?.is_empty(), "something ran");
    Ok(())
}

#[tokio::test]
async fn a_missing_cell_is_named_on_compute_and_node_until_it_exists() -> Result<()> {
    let ns = node("missing-cell").await?;
    cells::create_secrets(&ns).await?;
    let words = ["NovaCell nova-cell1 does not exist: create it", "nova.openstack.org/cell"];
    told(&ns, "NovaCellReady", "NovaCellNotFound", &words).await?;
    cells::create(&ns).await?;
    healed(&ns).await?;
    ns.done().await
}

#[tokio::test]
async fn a_key_that_a_cells_secret_lacks_is_named_until_it_is_added() -> Result<()> {
    let ns = node("cell-secret").await?;
    cells::create_secrets(&ns).await?;
    cells::create(&ns).await?;
    healed(&ns).await?;
    for (secret, key) in [(CELL, "ServicePassword"), (BUS, "transport_url")] {
        ns.secret(secret, &[("another", "x")]).await?;
        let secret_words = format!("{}/{secret}", ns.name);
        let words = [secret_words.as_str(), key, "add it: kubectl"];
        cell_told(&ns, "InputReady", "SecretIncomplete", &words).await?;
        told(&ns, "InputReady", "SecretIncomplete", &words).await?;
        let added: Value = json!({ "stringData": { key: demo_value(&ns, secret, key).await? } });
        ns.merge::<Secret>(secret, added).await?;
        healed(&ns).await?;
    }
    ns.done().await
}

#[tokio::test]
async fn a_wrong_password_of_the_message_bus_is_told_and_never_shown() -> Result<()> {
    let ns = node("bus-password").await?;
    cells::create_secrets(&ns).await?;
    let right = demo_value(&ns, BUS, "transport_url").await?;
    let (user, broker) = right.split_once('@').context("transport_url names a user")?;
    let (user, password) = user.rsplit_once(':').context("transport_url has a password")?;
    let wrong = format!("{user}:not-the-password@{broker}");
    ns.merge::<Secret>(BUS, json!({ "stringData": { "transport_url": wrong } })).await?;
    cells::create(&ns).await?;
    let address = broker.split('/').next().unwrap_or_default();
    let words = [address, "refuses the user or password of transport_url"];
    cell_told(&ns, "MessageBusReady", "AccessRefused", &words).await?;
    told(&ns, "NovaCellReady", "NovaCellNotReady", &words).await?;
    let mut texts = serde_json::to_string(&ns.list::<Cell>().await?)?;
    texts += &serde_json::to_string(&ns.list::<ExternalCompute>().await?)?;
    texts += &serde_json::to_string(&ns.list::<Node>().await?)?;
    texts += &serde_json::to_string(&ns.list::<Event>().await?)?;
    for secret in ["not-the-password", password] {
        assert!(!texts.contains(secret), "a password is shown");
    }
    ns.merge::<Secret>(BUS, json!({ "stringData": { "transport_url": right } })).await?;
    healed(&ns).await?;
    ns.done().await
}

#[tokio::test]
async fn the_files_that_computes_share_come_back_and_a_strangers_secret_stays() -> Result<()> {
    let ns = World::new("cell-files").await?;
    let name = format!("{CELL}-compute-config");
    ns.secret(&name, &[("mine", "x")]).await?;
    cells::create_secrets(&ns).await?;
    cells::create(&ns).await?;
    let words = [name.as_str(), "was not made by the operator", "kubectl delete -n e2e-cell-files"];
    let cell =
        ns.reports::<Cell>(CELL, "ServiceConfigReady", "SecretNotOurs", &words, SOON).await?;
    let strangers = ns.api::<Secret>().get(&name).await?;
    assert_eq!(strangers.data.unwrap_or_default().keys().collect::<Vec<_>>(), ["mine"]);
    ns.remove::<Secret>(&name).await?;

    let url = demo_value(&ns, BUS, "transport_url").await?;
    let is_whole = |it: &Secret| {
        let text = it.data.as_ref().and_then(|it| it.get("01-nova.conf"));
        let text = text.map(|it| String::from_utf8_lossy(&it.0).into_owned()).unwrap_or_default();
        let owners = it.metadata.owner_references.as_deref().unwrap_or_default();
        text.contains(&format!("transport_url = {url}"))
            && owners.iter().any(|it| Some(&it.uid) == cell.metadata.uid.as_ref())
    };
    ns.wait::<Secret>(&name, "rendered", SOON, is_whole).await?;
    ns.reports::<Cell>(CELL, "ServiceConfigReady", "Rendered", &[&name], SOON).await?;
    for edit in [json!({ "01-nova.conf": "" }), json!({ "01-nova.conf": null })] {
        ns.merge::<Secret>(&name, json!({ "data": edit })).await?;
        ns.wait::<Secret>(&name, "mended", SOON, is_whole).await?;
    }
    ns.done().await
}
