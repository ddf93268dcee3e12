//! What a human may get wrong about a node: each is told on the node, and heals without a restart.

use std::time::Duration;

use anyhow::Result;
use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::{Node, Role, Service};
use common::conditions::Condition;
use e2e::{Namespace, says};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(15);

fn conditions(node: &Node) -> &[Condition] {
    node.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default()
}

/// A role whose only service would fail if it ever ran, and a node at an address nobody has.
async fn role_and_node(ns: &Namespace, role: Value, node: Value) -> Result<()> {
    let service = json!({ "playbookContents": "- hosts: all\n  tasks: [{fail: }]\n" });
    ns.create::<Service>("noop", service).await?;
    ns.create::<Role>("compute", role).await?;
    ns.create::<Node>("n0", node).await?;
    Ok(())
}

fn role() -> Value {
    json!({
        "preProvisioned": true,
        "services": ["noop"],
        "deployStrategy": { "deploy": true },
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key", "ansibleUser": "cloud-admin" },
    })
}

fn node() -> Value {
    json!({ "role": "compute", "hostName": "n0", "ansibleHost": "192.168.123.254" })
}

/// Waits until the node's Ready says so, with an Event of the same reason; nothing may have run.
async fn told(ns: &Namespace, reason: &str, words: &[&str]) -> Result<()> {
    let what = format!("{reason} with {words:?}");
    ns.wait::<Node>("n0", &what, SOON, |it| says(conditions(it), "Ready", reason, words)).await?;
    ns.event("OpenStackDataPlaneNode", "n0", reason).await?;
    assert!(ns.list::<AnsibleEe>().await?.is_empty(), "something ran");
    Ok(())
}

/// Waits until the inputs are complete, which is when the first run is made.
async fn healed(ns: &Namespace) -> Result<()> {
    let holds = |it: &Node| says(conditions(it), "InputReady", "InputComplete", &[]);
    ns.wait::<Node>("n0", "InputReady", SOON, holds).await.map(drop)
}

#[tokio::test]
async fn a_missing_ssh_secret_and_its_missing_keys_are_named_one_by_one() -> Result<()> {
    let ns = Namespace::new("ssh-secret").await?;
    role_and_node(&ns, role(), node()).await?;
    told(&ns, "SshSecretNotFound", &["Secret key", "kubectl create secret"]).await?;
    ns.secret("key", &[("known_hosts", "x")]).await?;
    told(&ns, "SshSecretIncomplete", &["Secret key", "ssh-privatekey"]).await?;
    ns.secret("key", &[("ssh-privatekey", "x")]).await?;
    told(&ns, "SshSecretIncomplete", &["Secret key", "known_hosts"]).await?;
    ns.secret("key", &[("ssh-privatekey", "x"), ("known_hosts", "x")]).await?;
    healed(&ns).await?;
    ns.done().await
}

#[tokio::test]
async fn an_unknown_service_is_named_on_node_and_role_until_it_exists() -> Result<()> {
    let ns = Namespace::new("unknown-service").await?;
    let mut role = role();
    role["services"] = json!(["noop", "no-such-service"]);
    ns.secret("key", &[("ssh-privatekey", "x"), ("known_hosts", "x")]).await?;
    role_and_node(&ns, role, node()).await?;
    let words = ["OpenStackDataPlaneService no-such-service", "create it or take it off the list"];
    told(&ns, "ServiceNotFound", &words).await?;
    let of_role = |it: &Role| {
        let conditions = it.status.as_ref().map(|it| it.conditions.as_slice());
        says(conditions.unwrap_or_default(), "Ready", "ServiceNotFound", &words)
    };
    ns.wait::<Role>("compute", "ServiceNotFound", SOON, of_role).await?;
    ns.create::<Service>("no-such-service", json!({ "playbook": "a.b.c" })).await?;
    healed(&ns).await?;
    ns.done().await
}

#[tokio::test]
async fn an_unknown_role_is_named_until_it_exists() -> Result<()> {
    let ns = Namespace::new("unknown-role").await?;
    ns.secret("key", &[("ssh-privatekey", "x"), ("known_hosts", "x")]).await?;
    let mut lost = node();
    lost["role"] = json!("no-such-role");
    role_and_node(&ns, role(), lost).await?;
    told(&ns, "RoleNotFound", &["OpenStackDataPlaneRole no-such-role", "correct spec.role"])
        .await?;
    ns.create::<Role>("no-such-role", role()).await?;
    healed(&ns).await?;
    ns.done().await
}

#[tokio::test]
async fn a_node_without_any_address_is_told_to_set_one() -> Result<()> {
    let ns = Namespace::new("no-address").await?;
    ns.secret("key", &[("ssh-privatekey", "x"), ("known_hosts", "x")]).await?;
    role_and_node(&ns, role(), json!({ "role": "compute" })).await?;
    told(&ns, "HostAddressMissing", &["OpenStackDataPlaneNode n0", "spec.ansibleHost"]).await?;
    ns.merge::<Node>("n0", json!({ "spec": { "ansibleHost": "192.168.123.254" } })).await?;
    healed(&ns).await?;
    ns.done().await
}
