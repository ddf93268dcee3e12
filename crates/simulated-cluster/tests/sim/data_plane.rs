//! A data plane creates its roles and nodes, reconciles only what it owns, and deletes only on
//! request.

use anyhow::Result;
use api::ansibleee::AnsibleEe;
use api::dataplane::{DataPlane, Node, Role};
use e2e::{Namespace, SOON, says};
use kube::ResourceExt;
use serde_json::{Value, json};
use simulated_cluster::PRIVATE_KEY;

use crate::world::World;

const PLANE: &str = "plane";

/// Creates one role and two nodes at unused addresses; nothing is deployed.
fn spec() -> Value {
    json!({
        "deployStrategy": { "deploy": false },
        "roles": {
            "compute": {
                "preProvisioned": true,
                "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" },
            },
        },
        "nodes": {
            "n0": { "role": "compute", "ansibleHost": "192.168.123.253" },
            "n1": { "role": "compute", "ansibleHost": "192.168.123.254" },
        },
    })
}

/// Returns the data plane once its roles and nodes are created.
async fn made(ns: &Namespace) -> Result<DataPlane> {
    ns.secret("key", &[("ssh-privatekey", PRIVATE_KEY), ("known_hosts", "x")]).await?;
    ns.create::<DataPlane>(PLANE, spec()).await?;
    told(ns, "SetupReady", "Applied", &["3/3"]).await
}

/// Waits until a condition of the current data plane reports this.
async fn told(ns: &Namespace, type_: &str, reason: &str, words: &[&str]) -> Result<DataPlane> {
    let holds = |it: &DataPlane| {
        let observed = it.status.as_ref().and_then(|it| it.observed_generation);
        observed == it.metadata.generation && says(it.conditions(), type_, reason, words)
    };
    ns.wait::<DataPlane>(PLANE, &format!("{type_} {reason} {words:?}"), SOON, holds).await
}

async fn change(ns: &Namespace, spec: Value) -> Result<()> {
    ns.merge::<DataPlane>(PLANE, json!({ "spec": spec })).await.map(drop)
}

fn belongs_to<K: ResourceExt>(object: &K, plane: &DataPlane) -> bool {
    let uid = plane.uid().unwrap_or_default();
    object.owner_references().iter().any(|it| it.controller == Some(true) && it.uid == uid)
}

#[tokio::test]
async fn a_data_plane_makes_its_roles_and_nodes_and_sums_them_up() -> Result<()> {
    let ns = World::new("data-plane").await?;
    let plane = made(&ns).await?;
    let role = ns.api::<Role>().get("compute").await?;
    assert!(belongs_to(&role, &plane));
    assert_eq!(role.spec.data_plane.as_deref(), Some(PLANE));
    for name in ["n0", "n1"] {
        let node = ns.api::<Node>().get(name).await?;
        assert!(belongs_to(&node, &plane), "{name}");
        assert_eq!(node.spec.role.as_deref(), Some("compute"), "{name}");
    }
    let words = ["0/1 roles and 0/2 nodes", "OpenStackDataPlaneNode n0", "deployStrategy.deploy"];
    let plane = told(&ns, "Ready", "NotRequested", &words).await?;
    assert!(says(plane.conditions(), "Orphaned", "NoOrphans", &[]));
    assert!(ns.list::<AnsibleEe>().await?.is_empty(), "something ran");
    ns.done().await
}

#[tokio::test]
async fn what_a_human_adds_to_a_node_survives_a_change_of_its_entry() -> Result<()> {
    let ns = World::new("data-plane-added").await?;
    made(&ns).await?;
    let added = json!({
        "metadata": { "labels": { "rack": "seven" } },
        "spec": { "node": { "ansibleVars": { "greeting": "hello" } } },
    });
    ns.merge::<Node>("n0", added).await?;
    // What the map states is restored; what it does not state stays.
    ns.merge::<Node>("n0", json!({ "spec": { "ansibleHost": "192.168.123.252" } })).await?;
    let is_back = |it: &Node| it.spec.ansible_host.as_deref() == Some("192.168.123.253");
    ns.wait::<Node>("n0", "back at its address", SOON, is_back).await?;
    change(&ns, json!({ "nodes": { "n0": { "hostName": "zero" } } })).await?;
    let is_named = |it: &Node| it.spec.host_name.as_deref() == Some("zero");
    let node = ns.wait::<Node>("n0", "named zero", SOON, is_named).await?;
    assert_eq!(node.labels()["rack"], "seven");
    assert_eq!(node.spec.node.unwrap_or_default().ansible_vars["greeting"], "hello");
    // A field that the entry no longer states is released.
    change(&ns, json!({ "nodes": { "n0": { "hostName": null } } })).await?;
    let is_free = |it: &Node| it.spec.host_name.is_none();
    ns.wait::<Node>("n0", "without a host name", SOON, is_free).await?;
    ns.done().await
}

#[tokio::test]
async fn a_key_that_is_taken_out_orphans_its_node_until_prune_deletes_it() -> Result<()> {
    let ns = World::new("data-plane-orphans").await?;
    made(&ns).await?;
    change(&ns, json!({ "nodes": { "n1": null } })).await?;
    let words = ["1 no longer", "OpenStackDataPlaneNode n1", "spec.prune"];
    let plane = told(&ns, "Orphaned", "OrphansKept", &words).await?;
    assert_eq!(plane.status.map(|it| (it.nodes, it.orphans)), Some((1, 1)));
    assert!(ns.api::<Node>().get_opt("n1").await?.is_some(), "n1 is gone");
    change(&ns, json!({ "prune": true })).await?;
    ns.gone::<Node>("n1", SOON).await?;
    told(&ns, "Orphaned", "NoOrphans", &[]).await?;
    assert!(ns.api::<Node>().get_opt("n0").await?.is_some(), "n0 is gone");
    assert!(ns.api::<Role>().get_opt("compute").await?.is_some(), "the role is gone");
    ns.done().await
}

#[tokio::test]
async fn a_node_that_others_made_is_left_alone_until_it_is_handed_over() -> Result<()> {
    let ns = World::new("data-plane-foreign").await?;
    ns.create::<Node>("n1", json!({ "ansibleHost": "192.168.123.1" })).await?;
    ns.secret("key", &[("ssh-privatekey", PRIVATE_KEY), ("known_hosts", "x")]).await?;
    ns.create::<DataPlane>(PLANE, spec()).await?;
    let words = ["OpenStackDataPlaneNode n1 was made by others", "kubectl annotate"];
    told(&ns, "SetupReady", "NotOurs", &words).await?;
    ns.event("OpenStackDataPlane", PLANE, "NotOurs").await?;
    let node = ns.api::<Node>().get("n1").await?;
    assert_eq!(node.owner_references(), []);
    assert_eq!(node.spec.ansible_host.as_deref(), Some("192.168.123.1"));
    ns.annotate::<Node>("n1", "dataplane.openstack.org/adopt", PLANE).await?;
    let plane = told(&ns, "SetupReady", "Applied", &["3/3"]).await?;
    let node = ns.api::<Node>().get("n1").await?;
    assert!(belongs_to(&node, &plane));
    assert_eq!(node.spec.ansible_host.as_deref(), Some("192.168.123.254"));
    ns.done().await
}

/// Waits until the node says whether it may be deployed to.
async fn deploys(ns: &Namespace, expected: bool) -> Result<()> {
    let is_so = |it: &Node| it.status.as_ref().and_then(|it| it.deploy) == Some(expected);
    ns.wait::<Node>("n0", &format!("deploying: {expected}"), SOON, is_so).await.map(drop)
}

#[tokio::test]
async fn a_role_tells_that_its_data_plane_is_missing_and_follows_it_when_it_comes() -> Result<()> {
    let ns = World::new("data-plane-missing").await?;
    let role = json!({
        "dataPlane": PLANE,
        "preProvisioned": true,
        // The Secret does not exist: deployment is not tested here.
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": "none" },
    });
    ns.create::<Role>("compute", role).await?;
    ns.create::<Node>("n0", json!({ "role": "compute", "ansibleHost": "192.168.123.1" })).await?;
    let (found, words) = ("DataPlaneFound", ["OpenStackDataPlane plane", "create it"]);
    ns.reports::<Role>("compute", found, "DataPlaneNotFound", &words, SOON).await?;
    ns.event("OpenStackDataPlaneRole", "compute", "DataPlaneNotFound").await?;
    deploys(&ns, false).await?;
    ns.create::<DataPlane>(PLANE, json!({ "deployStrategy": { "deploy": true } })).await?;
    ns.reports::<Role>("compute", found, "Found", &[PLANE], SOON).await?;
    deploys(&ns, true).await?;
    change(&ns, json!({ "deployStrategy": { "deploy": false } })).await?;
    deploys(&ns, false).await?;
    ns.done().await
}

#[tokio::test]
async fn a_node_without_a_role_follows_the_data_plane_that_made_it() -> Result<()> {
    let ns = World::new("data-plane-alone").await?;
    // It names no SSH Secret: deployment is not tested here.
    let node = json!({ "ansibleHost": "192.168.123.1", "services": ["configure-os"] });
    let spec = json!({ "deployStrategy": { "deploy": true }, "nodes": { "n0": node } });
    ns.create::<DataPlane>(PLANE, spec).await?;
    deploys(&ns, true).await?;
    change(&ns, json!({ "deployStrategy": { "deploy": false } })).await?;
    deploys(&ns, false).await?;
    ns.done().await
}
