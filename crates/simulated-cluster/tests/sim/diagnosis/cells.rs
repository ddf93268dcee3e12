//! Faults of cells, and of the computes of nodes. The cells are the lab's own, copied to a
//! namespace of each fault; no host is touched.

use anyhow::{Context as _, Result, bail};
use api::dataplane::{Node, Role, Service};
use api::nova::{Cell, ExternalCompute};
use e2e::Namespace;
use e2e::cells::{self, BUS, CELL as CELL1, demo_value};
use e2e::diagnosis::{self, PATIENCE};
use e2e::faults::{Fault, cells::FAULTS};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::scene::{World, has_run, is_held};
use crate::idle::CELL;
use crate::world::simulation;

const DEFAULT_CONFIG: &str = "nova.openstack.org/default-config";

#[tokio::test]
async fn what_is_wrong_with_cells_and_computes_is_told_where_a_human_looks() -> Result<()> {
    simulation().await?;
    diagnosis::judge(FAULTS, before, inject).await
}

async fn before(ns: &Namespace, fault: &Fault) -> Result<()> {
    let in_cell = || json!({ CELL: CELL1 });
    match fault.name {
        "cell-missing" => World::default().make(ns).await,
        "compute-of-others" => {
            World::default().make(ns).await?;
            compute(ns, CELL1, Some(owner(ns).await?)).await
        }
        "compute-differs" => {
            World::default().make(ns).await?;
            compute(ns, "nova-cell2", None).await
        }
        "nova-service-listed" => {
            let service = json!({ "playbook": "a.b.c", "edpmServiceType": "nova" });
            ns.create::<Service>("own", service).await?;
            World { node_annotations: in_cell(), ..World::default() }.make(ns).await
        }
        "cell-changed" => {
            World { role_annotations: in_cell(), ..World::default() }.make(ns).await?;
            has_run(ns, "n0").await
        }
        "cell-in-use" => {
            ready_cell(ns).await?;
            World { node_annotations: in_cell(), ..World::default() }.make(ns).await?;
            is_held(ns, CELL1).await
        }
        "default-config-missing" => {
            ready_cell(ns).await?;
            World { node_annotations: in_cell(), ..World::default() }.make(ns).await?;
            rendered(ns).await
        }
        "default-config-unreadable" => {
            ready_cell(ns).await?;
            ns.config_map("defaults", &[("02-nova-default.conf", "[libvirt]\n")]).await?;
            let role_annotations = json!({ DEFAULT_CONFIG: "defaults" });
            let world = World { role_annotations, node_annotations: in_cell(), ..World::default() };
            world.make(ns).await?;
            rendered(ns).await
        }
        _ => ready_cell(ns).await,
    }
}

/// Returns an owner reference to a ConfigMap.
async fn owner(ns: &Namespace) -> Result<Value> {
    ns.config_map("owner", &[]).await?;
    let uid = ns.api::<ConfigMap>().get("owner").await?.uid();
    Ok(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "controller": true,
    }))
}

/// Creates a compute with the node's name that the operator did not create.
async fn compute(ns: &Namespace, cell: &str, owner: Option<Value>) -> Result<()> {
    let spec = json!({ "dataplaneNodeName": "n0", "cellName": cell });
    let metadata = json!({ "ownerReferences": owner.into_iter().collect::<Vec<_>>() });
    ns.create_with::<ExternalCompute>("n0", spec, metadata).await.map(drop)
}

/// Creates a copy of the demo's cell, and waits until it can be used.
async fn ready_cell(ns: &Namespace) -> Result<()> {
    cells::create_secrets(ns).await?;
    cells::create(ns).await?;
    ns.good::<Cell>(CELL1, &["Ready"], PATIENCE).await.map(drop)
}

/// Waits until the compute has its files.
async fn rendered(ns: &Namespace) -> Result<()> {
    ns.good::<ExternalCompute>("n0", &["ServiceConfigReady"], PATIENCE).await.map(drop)
}

async fn inject(ns: &Namespace, fault: &Fault) -> Result<()> {
    let values = async |secret: &str, change: Value| ns.merge::<Secret>(secret, change).await;
    match fault.name {
        "cell-missing" | "compute-of-others" | "compute-differs" => {
            ns.annotate::<Node>("n0", CELL, CELL1).await?;
        }
        "nova-service-listed" => {
            let services = json!({ "spec": { "services": ["noop", "own"] } });
            ns.merge::<Role>("compute", services).await?;
        }
        "default-config-missing" => {
            ns.annotate::<Role>("compute", DEFAULT_CONFIG, "defaults").await?;
        }
        "default-config-unreadable" => {
            let text = "[libvirt]\ncpu_mode custom\n";
            let change = json!({ "data": { "02-nova-default.conf": text } });
            ns.merge::<ConfigMap>("defaults", change).await?;
        }
        "cell-changed" => other_cell(ns).await?,
        "cell-secret-missing" => ns.remove::<Secret>(CELL1).await?,
        "cell-secret-without-key" => {
            values(CELL1, json!({ "data": { "ServicePassword": null } })).await?;
        }
        "transport-url-invalid" => {
            values(BUS, json!({ "stringData": { "transport_url": "192.0.2.1:5672" } })).await?;
        }
        "broker-refuses-login" => {
            let right = demo_value(ns, BUS, "transport_url").await?;
            let (user, broker) = right.split_once('@').context("transport_url names a user")?;
            let (user, _) = user.rsplit_once(':').context("transport_url has a password")?;
            let wrong = format!("{user}:not-the-password@{broker}");
            values(BUS, json!({ "stringData": { "transport_url": wrong } })).await?;
        }
        "keystone-silent" => {
            let url = json!({ "spec": { "keystoneAuthURL": "http://127.0.0.1:9" } });
            ns.merge::<Cell>(CELL1, url).await?;
        }
        "cell-in-use" => ns.remove::<Cell>(CELL1).await?,
        other => bail!("nobody injects {other}"),
    }
    Ok(())
}

/// Creating a role is not an update: the webhook is not called for its nodes.
async fn other_cell(ns: &Namespace) -> Result<()> {
    ns.removed::<Role>("compute", PATIENCE).await?;
    ns.reports::<Node>("n0", "nova.openstack.org/Compute", "RoleNotFound", &[], PATIENCE).await?;
    let metadata = json!({ "annotations": { CELL: "nova-cell2" } });
    ns.create_with::<Role>("compute", World::default().role, metadata).await.map(drop)
}
