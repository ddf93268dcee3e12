//! User mistakes in a node: each is reported on the node, and recovered from without a restart.

use anyhow::Result;
use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, Role, Service};
use e2e::{Namespace, SOON, attachments};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde_json::{Value, json};
use simulated_cluster::PRIVATE_KEY;

use crate::idle::{idle_role, idle_service};
use crate::world::{World, idle_inputs};

/// Creates a role whose only service would fail if it ever ran, and a node at an unused address.
async fn role_and_node(ns: &Namespace, role: Value, node: Value) -> Result<()> {
    idle_inputs(ns).await?;
    ns.create::<Role>("compute", role).await?;
    ns.create::<Node>("n0", node).await?;
    Ok(())
}

fn role() -> Value {
    let mut role = idle_role();
    role["deployStrategy"] = json!({ "deploy": true });
    role
}

fn node() -> Value {
    json!({ "role": "compute", "hostName": "n0", "ansibleHost": "192.168.123.254" })
}

/// Waits until the node's `Ready` reports this, with an Event of the same reason; nothing may have
/// run.
async fn told(ns: &Namespace, reason: &str, words: &[&str]) -> Result<()> {
    ns.reports::<Node>("n0", "Ready", reason, words, SOON).await?;
    ns.event("OpenStackDataPlaneNode", "n0", reason).await?;
    assert!(ns.list::<AnsibleEe>().await?.is_empty(), "something ran");
    Ok(())
}

/// Waits until the inputs are complete, which is when the first run is created.
async fn healed(ns: &Namespace) -> Result<()> {
    ns.reports::<Node>("n0", "InputReady", "InputComplete", &[], SOON).await.map(drop)
}

#[tokio::test]
async fn what_an_ssh_secret_lacks_is_named_one_by_one_before_a_run_needs_it() -> Result<()> {
    let ns = World::new("ssh-secret").await?;
    ns.create::<Service>("noop", idle_service()).await?;
    ns.create::<Role>("compute", role()).await?;
    ns.create::<Node>("n0", node()).await?;
    told(&ns, "SshSecretNotFound", &["Secret key", "kubectl create secret"]).await?;
    ns.secret("key", &[("known_hosts", "x")]).await?;
    told(&ns, "SshSecretIncomplete", &["Secret key", "ssh-privatekey"]).await?;
    ns.secret("key", &[("ssh-privatekey", PRIVATE_KEY.trim_end())]).await?;
    let words = ["ssh-privatekey of Secret key has no line break", "--from-file"];
    told(&ns, "SshSecretInvalid", &words).await?;
    // Known hosts are not required: a host that they do not name is learned.
    ns.secret("key", &[("ssh-privatekey", PRIVATE_KEY)]).await?;
    healed(&ns).await?;
    ns.done().await
}

#[tokio::test]
async fn an_unknown_service_is_named_on_node_and_role_until_it_exists() -> Result<()> {
    let ns = World::new("unknown-service").await?;
    let mut role = role();
    role["services"] = json!(["noop", "no-such-service"]);
    role_and_node(&ns, role, node()).await?;
    let words = ["OpenStackDataPlaneService no-such-service", "create it or take it off the list"];
    told(&ns, "ServiceNotFound", &words).await?;
    ns.reports::<Role>("compute", "Ready", "ServiceNotFound", &words, SOON).await?;
    ns.event("OpenStackDataPlaneRole", "compute", "ServiceNotFound").await?;
    ns.create::<Service>("no-such-service", json!({ "playbook": "a.b.c" })).await?;
    healed(&ns).await?;
    ns.done().await
}

#[tokio::test]
async fn an_unknown_role_is_named_until_it_exists() -> Result<()> {
    let ns = World::new("unknown-role").await?;
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
    let ns = World::new("no-address").await?;
    role_and_node(&ns, role(), json!({ "role": "compute" })).await?;
    told(&ns, "HostAddressMissing", &["OpenStackDataPlaneNode n0", "spec.ansibleHost"]).await?;
    ns.merge::<Node>("n0", json!({ "spec": { "ansibleHost": "192.168.123.254" } })).await?;
    healed(&ns).await?;
    ns.done().await
}

/// Waits until an inventory object is as it was written: the same one, or a new one.
async fn restored(ns: &Namespace, written: &ConfigMap, other_uid: bool) -> Result<()> {
    let what = format!("as it was, {} anew", if other_uid { "made" } else { "not made" });
    let is_restored = |it: &ConfigMap| {
        it.data == written.data
            && it.annotations() == written.annotations()
            && (it.uid() != written.uid()) == other_uid
    };
    ns.wait::<ConfigMap>(&written.name_any(), &what, SOON, is_restored).await.map(drop)
}

#[tokio::test]
async fn a_deleted_and_an_edited_inventory_come_back_and_nothing_runs() -> Result<()> {
    let ns = World::new("inventories").await?;
    role_and_node(&ns, idle_role(), node()).await?;
    let own = json!({ "ansibleSSHPrivateKeySecret": "key" });
    let alone = json!({ "hostName": "n0-alone", "ansibleHost": "192.168.123.253", "node": own });
    ns.create::<Node>("n0-alone", alone).await?;
    let is_there = |it: &ConfigMap| it.data.iter().flatten().any(|it| it.1.contains("n0"));
    for name in ["dataplanenode-n0-alone", "dataplanerole-compute"] {
        let written = ns.wait::<ConfigMap>(name, "an inventory", SOON, is_there).await?;
        ns.remove::<ConfigMap>(name).await?;
        restored(&ns, &written, true).await?;
        let written = ns.wait::<ConfigMap>(name, "an inventory", SOON, is_there).await?;
        ns.merge::<ConfigMap>(name, json!({ "data": { "inventory": "all: {}" } })).await?;
        restored(&ns, &written, false).await?;
        // A removed key, and the hash that would hide an edit.
        ns.merge::<ConfigMap>(name, json!({ "data": { "network": null } })).await?;
        restored(&ns, &written, false).await?;
        ns.annotate::<ConfigMap>(name, "edpm.openstack.org/content-hash", "none").await?;
        restored(&ns, &written, false).await?;
    }
    assert!(ns.list::<AnsibleEe>().await?.is_empty(), "something ran");
    ns.done().await
}

#[tokio::test]
async fn a_refused_inventory_is_told_on_role_and_node_until_the_quota_goes() -> Result<()> {
    let ns = World::new("refused").await?;
    ns.forbid("count/configmaps").await?;
    role_and_node(&ns, role(), node()).await?;
    let words = ["ConfigMap dataplanerole-compute cannot be written", "quota", "Raise the quota"];
    told(&ns, "Forbidden", &words).await?;
    ns.reports::<Role>("compute", "WritesAccepted", "Forbidden", &words, SOON).await?;
    ns.allow().await?;
    let is_healed = |it: &Role| it.conditions().iter().all(|it| it.type_ != "WritesAccepted");
    // The pauses between attempts grow.
    ns.wait::<Role>("compute", "healed", SOON, is_healed).await?;
    healed(&ns).await?;
    ns.done().await
}

#[tokio::test]
async fn missing_variables_are_named_until_their_object_exists() -> Result<()> {
    let ns = World::new("missing-variables").await?;
    let mut role = role();
    role["nodeTemplate"]["ansibleVarsFrom"] = json!([{ "secretRef": { "name": "vars" } }]);
    role_and_node(&ns, role, node()).await?;
    let words = ["Secret vars", "ansibleVarsFrom of OpenStackDataPlaneRole compute", "create it"];
    told(&ns, "VariablesNotFound", &words).await?;
    ns.secret("vars", &[("greeting", "x")]).await?;
    healed(&ns).await?;
    ns.done().await
}

#[tokio::test]
async fn a_missing_network_attachment_is_named_until_it_exists() -> Result<()> {
    let ns = World::new("attachments").await?;
    attachments::serve(&ns.client).await?;
    let mut role = role();
    role["networkAttachments"] = json!(["ctlplane"]);
    role_and_node(&ns, role, node()).await?;
    let words = ["NetworkAttachmentDefinition ctlplane", "create it"];
    let reason = "NetworkAttachmentNotFound";
    // A kind that is this new may be found only at the second attempt.
    ns.reports::<Node>("n0", "Ready", reason, &words, SOON).await?;
    assert!(ns.list::<AnsibleEe>().await?.is_empty(), "something ran");
    attachments::create(&ns, "ctlplane").await?;
    healed(&ns).await?;
    ns.done().await
}
