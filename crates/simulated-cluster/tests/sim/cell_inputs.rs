//! User mistakes in a cell: reported on cell, compute and node, and recovered from at once.
//!
//! Each test creates the cells again in its own namespace; no host is touched.

use std::time::Duration;

use anyhow::{Context as _, Result};
use api::ansibleee::AnsibleEe;
use api::conditions::Condition;
use api::dataplane::{Node, Role, Service};
use api::nova::{Cell, ExternalCompute};
use e2e::cells::{self, BUS, CELL, demo_value};
use e2e::{Namespace, holds, says};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use simulated_cluster::PRIVATE_KEY;

use crate::world::World;

/// Less than a cell's requeue interval, so that the effect of a changed Secret must come from its
/// watch.
const SOON: Duration = Duration::from_secs(25);
/// The condition in which a node reports its compute.
const COMPUTE: &str = "nova.openstack.org/Compute";

/// Creates a node that requests the cell, with every other input present; nothing is deployed.
async fn node(test: &str) -> Result<World> {
    let ns = World::new(test).await?;
    ns.secret("key", &[("ssh-privatekey", PRIVATE_KEY), ("known_hosts", "x")]).await?;
    let service = json!({ "playbookContents": "- hosts: all\n  tasks: [{fail: }]\n" });
    ns.create::<Service>("noop", service).await?;
    let role = json!({
        "preProvisioned": true,
        "services": ["noop"],
        "deployStrategy": { "deploy": false },
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key", "ansibleUser": "cloud-admin" },
    });
    ns.create::<Role>("compute", role).await?;
    let spec = json!({ "role": "compute", "hostName": "n0", "ansibleHost": "192.168.123.254" });
    let metadata = json!({ "annotations": { "nova.openstack.org/cell": CELL } });
    ns.create_with::<Node>("n0", spec, metadata).await?;
    Ok(ns)
}

fn of_node(it: &Node) -> &[Condition] {
    it.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default()
}

fn of_compute(it: &ExternalCompute) -> &[Condition] {
    it.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default()
}

fn of_cell(it: &Cell) -> &[Condition] {
    it.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default()
}

/// Waits until the compute reports this in that condition and in `Ready`, and the node repeats it;
/// both must have an Event with the reason.
async fn told(ns: &Namespace, type_: &str, reason: &str, words: &[&str]) -> Result<()> {
    let what = format!("{type_} {reason} with {words:?}");
    let tells = |it: &ExternalCompute| {
        [type_, "Ready"].iter().all(|type_| says(of_compute(it), type_, reason, words))
    };
    ns.wait::<ExternalCompute>("n0", &what, SOON, tells).await?;
    ns.wait::<Node>("n0", &what, SOON, |it| says(of_node(it), COMPUTE, reason, words)).await?;
    for kind in ["NovaExternalCompute", "OpenStackDataPlaneNode"] {
        event(ns, kind, "n0", reason).await?;
    }
    Ok(())
}

/// Waits until a cell reports this in that condition and in `Ready`, with an Event.
async fn cell_told(ns: &Namespace, type_: &str, reason: &str, words: &[&str]) -> Result<()> {
    let what = format!("{type_} {reason} with {words:?}");
    let tells =
        |it: &Cell| [type_, "Ready"].iter().all(|type_| says(of_cell(it), type_, reason, words));
    ns.wait::<Cell>(CELL, &what, SOON, tells).await?;
    event(ns, "NovaCell", CELL, reason).await
}

/// Waits for an Event, which is written just after the condition it belongs to.
async fn event(ns: &Namespace, kind: &str, name: &str, reason: &str) -> Result<()> {
    let is_it = |it: &Event| {
        let regarding = it.regarding.as_ref();
        it.reason.as_deref() == Some(reason)
            && regarding.is_some_and(|it| it.kind.as_deref() == Some(kind))
            && regarding.is_some_and(|it| it.name.as_deref() == Some(name))
    };
    let what = format!("Event {reason} on {kind} {name}");
    ns.wait_any::<Event>(SOON, &what, is_it).await.map(drop)
}

/// Waits until cell and compute have what they need; nothing may have run.
async fn healed(ns: &Namespace) -> Result<()> {
    ns.wait::<Cell>(CELL, "Ready", SOON, |it| holds(of_cell(it), "Ready")).await?;
    let is_complete = |it: &ExternalCompute| {
        let types = ["NovaCellReady", "InputReady", "ServiceConfigReady"];
        types.iter().all(|type_| holds(of_compute(it), type_))
    };
    ns.wait::<ExternalCompute>("n0", "complete", SOON, is_complete).await?;
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
    let tells = |it: &Cell| says(of_cell(it), "ServiceConfigReady", "SecretNotOurs", &words);
    let cell = ns.wait::<Cell>(CELL, "told of the Secret", SOON, tells).await?;
    let strangers = ns.api::<Secret>().get(&name).await?;
    assert_eq!(strangers.data.unwrap_or_default().keys().collect::<Vec<_>>(), ["mine"]);
    ns.api::<Secret>().delete(&name, &DeleteParams::default()).await?;

    let url = demo_value(&ns, BUS, "transport_url").await?;
    let is_whole = |it: &Secret| {
        let text = it.data.as_ref().and_then(|it| it.get("01-nova.conf"));
        let text = text.map(|it| String::from_utf8_lossy(&it.0).into_owned()).unwrap_or_default();
        let owners = it.metadata.owner_references.as_deref().unwrap_or_default();
        text.contains(&format!("transport_url = {url}"))
            && owners.iter().any(|it| Some(&it.uid) == cell.metadata.uid.as_ref())
    };
    ns.wait::<Secret>(&name, "rendered", SOON, is_whole).await?;
    let is_told = |it: &Cell| says(of_cell(it), "ServiceConfigReady", "Rendered", &[&name]);
    ns.wait::<Cell>(CELL, "done with its Secret", SOON, is_told).await?;
    for edit in [json!({ "01-nova.conf": "" }), json!({ "01-nova.conf": null })] {
        ns.merge::<Secret>(&name, json!({ "data": edit })).await?;
        ns.wait::<Secret>(&name, "mended", SOON, is_whole).await?;
    }
    ns.done().await
}
