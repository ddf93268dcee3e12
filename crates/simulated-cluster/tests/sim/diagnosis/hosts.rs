//! Faults between a run and its host that are visible in the API.

use anyhow::Result;
use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, Role, Service};
use e2e::diagnosis::{self, PATIENCE, job_ends};
use e2e::faults::{Fault, hosts::FAULTS};
use e2e::journey::{self, ROLE};
use e2e::{Namespace, cells};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;
use simulated_cluster::{Fate, Matching};

use super::scene::{has_run, is_held};
use crate::deployment::at_work;
use crate::idle::CELL;
use crate::journey::{deploy, ssh_secret};
use crate::world::simulation;

/// Addresses without a host; each fault has its own, as runs at one address wait for each other.
const GONE: &str = "192.168.123.202";
const UNASKED: &str = "192.168.123.203";
/// The inventory object of the node's role.
const INVENTORY: &str = "dataplanerole-compute";

#[tokio::test]
async fn what_becomes_of_a_run_and_its_host_is_told_on_the_node() -> Result<()> {
    simulation().await?;
    diagnosis::judge(&FAULTS[4..], before, inject).await
}

/// Creates a role that is deployed, and its node, which is deployed where its run is to be deleted.
async fn before(ns: &Namespace, fault: &Fault) -> Result<()> {
    let player = &simulation().await?.player;
    let is_deleted = fault.name == "run-deleted";
    let host = player.host("n0", if is_deleted { UNASKED } else { GONE });
    ssh_secret(ns, &host).await?;
    if is_deleted {
        ns.create::<Service>("sleeper", json!({ "playbook": "a.b.sleep" })).await?;
        let mut role = journey::role();
        role["services"] = json!(["sleeper"]);
        ns.create::<Role>(ROLE, role).await?;
    } else {
        host.stop();
        deploy(ns, &[]).await?;
        cells::create_unusable(ns).await?;
    }
    node(ns, fault, &host.address).await
}

async fn node(ns: &Namespace, fault: &Fault, address: &str) -> Result<()> {
    let spec = json!({
        "role": ROLE, "hostName": "n0", "ansibleHost": address,
        "deployStrategy": { "deploy": false },
    });
    let is_cleaned = fault.name == "host-not-cleaned";
    let annotations = if is_cleaned { json!({ CELL: cells::CELL }) } else { json!({}) };
    ns.create_with::<Node>("n0", spec, json!({ "annotations": annotations })).await?;
    ns.good::<Node>("n0", &["InputReady"], PATIENCE).await?;
    if is_cleaned {
        has_run(ns, "n0").await?;
        return is_held(ns, cells::CELL).await;
    }
    ns.merge::<Node>("n0", json!({ "spec": { "deployStrategy": { "deploy": true } } })).await?;
    ns.good::<Node>("n0", &["Ready"], PATIENCE).await.map(drop)
}

async fn inject(ns: &Namespace, fault: &Fault) -> Result<()> {
    if fault.name == "host-not-cleaned" {
        ns.api::<Node>().delete("n0", &DeleteParams::background()).await?;
        return job_ends(ns).await;
    }
    deleted_run(ns).await
}

/// Deletes a run of the host while it is at work.
async fn deleted_run(ns: &Namespace) -> Result<()> {
    simulation().await?.player.decide(Matching::all(&ns.name), Fate::Hangs);
    let vars = json!({ "nodeTemplate": { "ansibleVars": { "greeting": "again" } } });
    ns.merge::<Role>(ROLE, json!({ "spec": vars })).await?;
    let run = at_work(ns, "sleeper").await?.name_any();
    // A pass that begins now sees the run at work, and makes the inventory anew.
    let inventory = ns.api::<ConfigMap>().get(INVENTORY).await?;
    ns.remove::<ConfigMap>(INVENTORY).await?;
    let is_new = |it: &ConfigMap| it.uid() != inventory.uid();
    ns.wait::<ConfigMap>(INVENTORY, "made anew", PATIENCE, is_new).await?;
    ns.api::<AnsibleEe>().delete(&run, &DeleteParams::background()).await?;
    ns.gone::<AnsibleEe>(&run, PATIENCE).await
}
