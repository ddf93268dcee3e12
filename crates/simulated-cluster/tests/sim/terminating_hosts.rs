//! Hosts that are taken out of a node set while another operator still cleans up after them.

use anyhow::Result;
use api::dataplane::{Deployment, HostState, Node, NodeSet, Service};
use e2e::journey::{RUN, SSH_SECRET, conditions_of_set as conditions};
use e2e::{Namespace, SOON, holds, says};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use simulated_cluster::Host;

use crate::world::World;

const SET: &str = "compute";
const SERVICE: &str = "agent";
/// Simulates a play.
const PLAYBOOK: &str = "- hosts: all\n  tasks: []\n";
/// What a service operator that this project does not know holds nodes with, and that operator's name.
const FINALIZER: &str = "agents.example.org/agent";
const MANAGER: &str = "agent-operator";

fn node(host: &Host) -> Value {
    json!({ "ansible": { "ansibleHost": host.address } })
}

/// Holds the node of a host as that operator does, or releases it.
async fn hold(ns: &Namespace, host: &Host, is_held: bool) -> Result<()> {
    let finalizers = if is_held { json!([FINALIZER]) } else { json!([]) };
    let node = json!({
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneNode",
        "metadata": { "finalizers": finalizers },
    });
    let parameters = PatchParams::apply(MANAGER);
    ns.api::<Node>().patch(&host.name, &parameters, &Patch::Apply(&node)).await?;
    Ok(())
}

async fn deploy(ns: &Namespace, name: &str) -> Result<()> {
    ns.create::<Deployment>(name, json!({ "nodeSets": [SET] })).await?;
    let is_ready = |it: &Deployment| {
        let status = it.status.as_ref();
        status.is_some_and(|it| holds(&it.conditions, "Ready"))
    };
    ns.wait::<Deployment>(name, "deployed", RUN, is_ready).await?;
    let is_done =
        |it: &NodeSet| holds(conditions(it), "Ready") && holds(conditions(it), "UpToDate");
    ns.wait::<NodeSet>(SET, "ready and up to date", RUN, is_done).await.map(drop)
}

async fn inventory(ns: &Namespace) -> Result<String> {
    let secret = ns.api::<Secret>().get(&format!("dataplanenodeset-{SET}")).await?;
    let data = secret.data.unwrap_or_default();
    Ok(String::from_utf8_lossy(&data["inventory"].0).into_owned())
}

fn states(set: &NodeSet) -> Vec<(&str, HostState)> {
    let hosts = set.status.as_ref().map(|it| it.hosts.as_slice()).unwrap_or_default();
    hosts.iter().map(|it| (it.name.as_str(), it.state)).collect()
}

#[tokio::test]
async fn a_host_stays_until_its_finalizer_is_removed_and_so_does_a_deleted_node_set() -> Result<()>
{
    let (ns, stays) = World::with_host("terminating-hosts", "e2e-stays", "192.168.122.205").await?;
    let goes = ns.host_like(&stays, "e2e-taken-out", "192.168.122.206");
    crate::journey::ssh_secret(&ns, &stays).await?;
    ns.create::<Service>(SERVICE, json!({ "playbookContents": PLAYBOOK })).await?;
    let nodes = json!({ stays.name.as_str(): node(&stays), goes.name.as_str(): node(&goes) });
    let spec = json!({
        "preProvisioned": true,
        "tlsEnabled": false,
        "services": [SERVICE],
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": SSH_SECRET },
        "nodes": nodes,
    });
    ns.create::<NodeSet>(SET, spec).await?;
    deploy(&ns, "first").await?;
    for host in [&stays, &goes] {
        hold(&ns, host, true).await?;
    }

    ns.merge::<NodeSet>(SET, json!({ "spec": { "nodes": { goes.name.as_str(): null } } })).await?;
    let expected = [(&*stays.name, HostState::Deployed), (&*goes.name, HostState::Terminating)];
    let is_kept = |it: &NodeSet| states(it) == expected && holds(conditions(it), "Ready");
    ns.wait::<NodeSet>(SET, "one terminating host", SOON, is_kept).await?;
    let is_told = |it: &Node| {
        let told = says(e2e::journey::conditions(it), "Ready", "Terminating", &[]);
        told && it.spec.leaving == Some(true)
    };
    ns.wait::<Node>(&goes.name, "leaving", SOON, is_told).await?;
    // The others are deployed meanwhile.
    let vars = json!({ "ansible": { "ansibleVars": { "greeting": "again" } } });
    ns.merge::<NodeSet>(SET, json!({ "spec": { "nodeTemplate": vars } })).await?;
    deploy(&ns, "second").await?;
    assert_eq!((stays.visits().len(), goes.visits().len()), (2, 1));
    let text = inventory(&ns).await?;
    assert!(text.contains(&goes.name) && text.contains("again"), "{text}");

    hold(&ns, &goes, false).await?;
    ns.gone::<Node>(&goes.name, SOON).await?;
    let is_gone = |it: &NodeSet| states(it) == expected[..1];
    ns.wait::<NodeSet>(SET, "without the host", SOON, is_gone).await?;
    assert!(!inventory(&ns).await?.contains(&goes.name));

    ns.api::<NodeSet>().delete(SET, &DeleteParams::background()).await?;
    let words = [FINALIZER, &stays.name];
    let waits = |it: &NodeSet| says(conditions(it), "SetupReady", "DeletionWaits", &words);
    ns.wait::<NodeSet>(SET, "waiting for its host", SOON, waits).await?;
    assert!(inventory(&ns).await?.contains(&stays.name));
    hold(&ns, &stays, false).await?;
    ns.gone::<NodeSet>(SET, SOON).await?;
    ns.done().await
}
