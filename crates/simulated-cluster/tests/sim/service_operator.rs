//! An operator unknown to this project brings its service to a host, through objects alone.

use anyhow::{Context as _, Result};
use api::ansibleee::{AnsibleEe, HostOutcome};
use api::dataplane::Node;
use e2e::journey::{self, ready};
use e2e::{Namespace, SOON, says};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use simulated_cluster::{Host, Visit};

use crate::world::World;

/// The name of the fictitious operator in the API.
const MANAGER: &str = "agent-operator";
/// The condition that it sets on a node.
const CONDITION: &str = "agents.example.org/Agent";
/// Simulates a play that starts the agent.
const PLAYBOOK: &str = "- hosts: all\n  tasks: []\n";

/// Returns what the plays have written on a host: the role's writes its greeting, the agent's its
/// name.
fn trace(host: &Host) -> Vec<String> {
    let written = |it: Visit| {
        let greeting = it.variables.get("greeting").and_then(Value::as_str);
        if it.run == "agent" { "agent".to_owned() } else { greeting.unwrap_or("hello").to_owned() }
    };
    host.visits().into_iter().filter(|it| it.is_done).map(written).collect()
}

/// Creates a run on the host from what the node publishes.
fn run_on(node: &Node) -> Result<Value> {
    let status = node.status.as_ref().context("a ready node has a status")?;
    let inventory = status.inventory_config_map_name.as_ref().context("no inventory")?;
    let secret = status.ssh_key_secret_name.as_ref().context("no ssh key")?;
    let address = status.address.as_ref().context("no address")?;
    let mount = |volume: &str, path: &str, key: &str| json!({ "name": volume, "mountPath": path, "subPath": key, "readOnly": true });
    Ok(json!({
        "playbookContents": PLAYBOOK,
        "hosts": [{ "name": node.name_any(), "address": address }],
        "backoffLimit": 0,
        "extraMounts": [{
            "volumes": [
                { "name": "inventory", "configMap": { "name": inventory } },
                { "name": "key", "secret": { "secretName": secret, "defaultMode": 0o440 } },
            ],
            "mounts": [
                mount("inventory", "/runner/inventory/hosts", "inventory"),
                mount("key", &format!("/runner/env/ssh_key/{secret}"), "ssh-privatekey"),
                mount("key", &format!("/runner/env/known_hosts/{secret}"), "known_hosts"),
            ],
        }],
    }))
}

/// Holds a node, or lets it go, as an operator does that needs the node's own inventory until it has
/// cleaned up.
async fn hold(ns: &Namespace, node: &str, finalizers: &[&str]) -> Result<()> {
    let object = json!({
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneNode",
        "metadata": { "name": node, "finalizers": finalizers },
    });
    let parameters = PatchParams::apply(MANAGER);
    ns.api::<Node>().patch(node, &parameters, &Patch::Apply(&object)).await?;
    Ok(())
}

/// Sets the operator's own condition on a node.
async fn tell(ns: &Namespace, node: &str, reason: &str) -> Result<()> {
    let object = json!({
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneNode",
        "metadata": { "name": node },
        "status": { "conditions": [{
            "type": CONDITION, "status": "False", "reason": reason, "severity": "Error",
            "message": "The agent does not answer.", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] },
    });
    let parameters = PatchParams::apply(MANAGER);
    ns.api::<Node>().patch_status(node, &parameters, &Patch::Apply(&object)).await?;
    Ok(())
}

#[tokio::test]
async fn an_operator_that_nobody_knows_brings_its_service_to_a_ready_host() -> Result<()> {
    let (ns, host) = World::with_host("service-operator", "e2e-agent", "192.168.122.195").await?;
    crate::journey::deploy_to(&ns, &host).await?;
    hold(&ns, &host.name, &["agents.example.org/agent"]).await?;
    let node = ready(&ns, &host.name).await?;
    let inventory = node.status.as_ref().and_then(|it| it.inventory_config_map_name.as_ref());
    ns.wait::<ConfigMap>(inventory.context("no name")?, "written", SOON, |_| true).await?;
    ns.create::<AnsibleEe>("agent", run_on(&node)?).await?;
    let has_ended = |it: &AnsibleEe| {
        it.status.as_ref().is_some_and(|it| it.completion_time.is_some() && !it.hosts.is_empty())
    };
    let run = ns.wait::<AnsibleEe>("agent", "ended", journey::RUN, has_ended).await?;
    let results = run.status.map(|it| it.hosts).unwrap_or_default();
    assert_eq!(results[0].result, HostOutcome::Ok, "{results:?}");
    assert_eq!(trace(&host), ["hello", "agent"]);

    // Its condition changes nothing else of the node, and outlives the node's next runs.
    tell(&ns, &host.name, "AgentSilent").await?;
    let greeting = json!({ "spec": { "node": { "ansibleVars": { "greeting": "again" } } } });
    ns.merge::<Node>(&host.name, greeting).await?;
    let node = ready(&ns, &host.name).await?;
    assert!(says(node.conditions(), CONDITION, "AgentSilent", &[]), "{:?}", node.conditions());
    assert_eq!(trace(&host), ["hello", "agent", "again"]);
    hold(&ns, &host.name, &[]).await?;
    ns.done().await
}
