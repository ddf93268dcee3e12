//! Hosts that are taken out of a node set while another operator still cleans up after them.

use anyhow::Result;
use api::dataplane::{Deployment, HostState, Node, NodeSet, Service};
use e2e::journey::RUN;
use e2e::{Namespace, SOON, holds, says};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use simulated_cluster::Host;

use crate::journey::{node_set, ssh_secret};
use crate::world::World;

const SET: &str = "compute";
const SERVICE: &str = "agent";
/// Simulates a play.
const PLAYBOOK: &str = "- hosts: all\n  tasks: []\n";
/// What a service operator that this project does not know holds nodes with, and that operator's name.
const FINALIZER: &str = "agents.example.org/agent";
const MANAGER: &str = "agent-operator";

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
    ns.good::<Deployment>(name, &["Ready"], RUN).await?;
    ns.good::<NodeSet>(SET, &["Ready", "UpToDate"], RUN).await.map(drop)
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
    ssh_secret(&ns, &stays).await?;
    ns.create::<Service>(SERVICE, json!({ "playbookContents": PLAYBOOK })).await?;
    ns.create::<NodeSet>(SET, node_set(&[&stays, &goes], &[SERVICE])).await?;
    deploy(&ns, "first").await?;
    for host in [&stays, &goes] {
        hold(&ns, host, true).await?;
    }

    ns.merge::<NodeSet>(SET, json!({ "spec": { "nodes": { goes.name.as_str(): null } } })).await?;
    let expected = [(&*stays.name, HostState::Deployed), (&*goes.name, HostState::Terminating)];
    let is_kept = |it: &NodeSet| states(it) == expected && holds(it.conditions(), "Ready");
    ns.wait::<NodeSet>(SET, "one terminating host", SOON, is_kept).await?;
    let is_told = |it: &Node| {
        let told = says(it.conditions(), "Ready", "Terminating", &[]);
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
    ns.reports::<NodeSet>(SET, "SetupReady", "DeletionWaits", &words, SOON).await?;
    assert!(inventory(&ns).await?.contains(&stays.name));
    hold(&ns, &stays, false).await?;
    ns.gone::<NodeSet>(SET, SOON).await?;
    ns.done().await
}
