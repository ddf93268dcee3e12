//! User mistakes in nodes, roles and data planes; nothing runs.

use anyhow::{Result, bail};
use api::dataplane::{DataPlane, Node, Role, Service};
use e2e::diagnosis::{self, PATIENCE};
use e2e::faults::{Fault, nodes::FAULTS};
use e2e::{Namespace, attachments};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};
use simulated_cluster::PRIVATE_KEY;

use super::scene::World;
use crate::world::simulation;

const PLANE: &str = "plane";
const INVENTORY: &str = "dataplanerole-compute";

#[tokio::test]
async fn what_is_wrong_with_nodes_and_roles_is_told_where_a_human_looks() -> Result<()> {
    simulation().await?;
    diagnosis::judge(FAULTS, before, inject).await
}

fn vars_from() -> Value {
    json!({ "nodeTemplate": { "ansibleVarsFrom": [{ "secretRef": { "name": "vars" } }] } })
}

async fn before(ns: &Namespace, fault: &Fault) -> Result<()> {
    let mut world = World::default();
    match fault.name {
        "network-attachment-missing" | "network-attachments-differ" => {
            attachments::serve(&ns.client).await?;
            attachments::create(ns, "ctlplane").await?;
            attachments::create(ns, "internal").await?;
            world.role["networkAttachments"] = json!(["ctlplane"]);
        }
        "variables-not-text" => {
            ns.secret("vars", &[("greeting", "hello")]).await?;
            let from = &vars_from()["nodeTemplate"]["ansibleVarsFrom"];
            world.role["nodeTemplate"]["ansibleVarsFrom"] = from.clone();
        }
        "data-plane-missing" => return world.make_role(ns).await,
        "node-of-others" => return data_plane(ns, &world).await,
        _ => {}
    }
    world.make(ns).await
}

/// Creates a data plane whose objects exist, and a node that is not in its map.
async fn data_plane(ns: &Namespace, world: &World) -> Result<()> {
    ns.secret("key", &[("ssh-privatekey", PRIVATE_KEY), ("known_hosts", "x")]).await?;
    ns.create::<Node>("n1", json!({ "ansibleHost": "192.168.123.1" })).await?;
    let mut role = world.role.clone();
    role["services"] = json!([]);
    let spec = json!({
        "deployStrategy": { "deploy": false },
        "roles": { "compute": role },
        "nodes": { "n0": { "role": "compute", "ansibleHost": "192.168.123.200" } },
    });
    ns.create::<DataPlane>(PLANE, spec).await?;
    ns.reports::<DataPlane>(PLANE, "SetupReady", "Applied", &["2/2"], PATIENCE).await.map(drop)
}

async fn inject(ns: &Namespace, fault: &Fault) -> Result<()> {
    let role =
        async |spec: Value| ns.merge::<Role>("compute", json!({ "spec": spec })).await.map(drop);
    let node = async |spec: Value| ns.merge::<Node>("n0", json!({ "spec": spec })).await.map(drop);
    let secret = async |name: &str, data: Value| {
        ns.merge::<Secret>(name, json!({ "data": data })).await.map(drop)
    };
    match fault.name {
        "ssh-secret-missing" => ns.remove::<Secret>("key").await?,
        "ssh-secret-without-key" => secret("key", json!({ "ssh-privatekey": null })).await?,
        "role-missing" => node(json!({ "role": "computer" })).await?,
        "service-missing" => role(json!({ "services": ["noop", "no-such-service"] })).await?,
        "host-address-missing" => node(json!({ "ansibleHost": null, "hostName": null })).await?,
        "network-attachment-missing" => attachments::delete(ns, "ctlplane").await?,
        "network-attachments-differ" => node(json!({ "networkAttachments": ["internal"] })).await?,
        "variables-missing" => role(vars_from()).await?,
        "variables-not-text" => {
            // Two bytes that are not valid UTF-8.
            secret("vars", json!({ "blob": "//4=" })).await?;
        }
        "data-source-missing" => {
            let source = json!({ "dataSources": [{ "configMapRef": { "name": "site" } }] });
            ns.merge::<Service>("noop", json!({ "spec": source })).await?;
        }
        "inventory-refused" => {
            ns.wait::<ConfigMap>(INVENTORY, "there", PATIENCE, |_| true).await?;
            ns.forbid("count/configmaps").await?;
            ns.remove::<ConfigMap>(INVENTORY).await?;
        }
        "node-of-others" => {
            let entry = json!({ "role": "compute", "ansibleHost": "192.168.123.2" });
            let change = json!({ "spec": { "nodes": { "n1": entry } } });
            ns.merge::<DataPlane>(PLANE, change).await?;
        }
        "data-plane-missing" => {
            // A role that states itself whether to deploy lacks nothing.
            role(json!({ "dataPlane": PLANE, "deployStrategy": null })).await?;
        }
        other => bail!("nobody injects {other}"),
    }
    Ok(())
}
