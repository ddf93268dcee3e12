//! The cell is set once: what the installed chart's webhook denies, and what it allows.
//!
//! No host is touched: nothing is deployed. The test itself records in the status that a compute
//! has run, as the operator does before a first run.

use anyhow::{Result, bail};
use api::dataplane::{Node, Role, Service};
use api::nova::ExternalCompute;
use e2e::{Namespace, SOON, cells, eventually, run};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::idle::{CELL, cell, idle_node, idle_role, idle_service};
use crate::world::World;

const ALLOW_REMOVAL: &str = "nova.openstack.org/allow-removal";
/// The condition in which a node reports its compute.
const COMPUTE: &str = "nova.openstack.org/Compute";

/// Creates a role of that cell whose nodes are not deployed.
async fn role(ns: &Namespace, name: &str, cell: Option<&str>) -> Result<()> {
    let annotations = cell.map(|it| json!({ CELL: it })).unwrap_or_default();
    let metadata = json!({ "annotations": annotations });
    ns.create_with::<Role>(name, idle_role(), metadata).await.map(drop)
}

/// Creates a namespace with the role `compute` of that cell.
async fn world(test: &str, of_role: Option<&str>) -> Result<World> {
    let ns = World::new(test).await?;
    // The ssh Secret is missing: that is what computes wait for.
    ns.create::<Service>("noop", idle_service()).await?;
    role(&ns, "compute", of_role).await?;
    Ok(ns)
}

/// Waits until a node has a compute in that cell.
async fn compute(ns: &Namespace, name: &str, cell: &str) -> Result<ExternalCompute> {
    let is_it = |it: &ExternalCompute| {
        it.spec.cell_name == cell && it.metadata.deletion_timestamp.is_none()
    };
    ns.wait::<ExternalCompute>(name, &format!("in {cell}"), SOON, is_it).await
}

/// Records that a compute has run, and waits until the webhook knows it.
async fn has_run(ns: &Namespace, name: &str, cell: &str) -> Result<()> {
    compute(ns, name, cell).await?;
    cells::record_run(ns, name).await?;
    decided::<Node>(ns, name, &crate::idle::cell("nova-elsewhere"), false).await
}

/// Waits until the webhook decides this way, by dry runs: its caches lag behind.
async fn decided<K: e2e::Kind>(
    ns: &Namespace,
    name: &str,
    change: &Value,
    allowed: bool,
) -> Result<()> {
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    let (api, patch) = (ns.api::<K>(), Patch::Merge(change));
    eventually(&format!("{name}: {change} is answered with {allowed}"), async || {
        Ok(api.patch(name, &dry, &patch).await.is_ok() == allowed)
    })
    .await
}

async fn node_says(ns: &Namespace, name: &str, reason: &str, words: &[&str]) -> Result<()> {
    ns.reports::<Node>(name, COMPUTE, reason, words, SOON).await.map(drop)
}

/// Waits until the compute reports whether it is in the requested cell.
async fn matches(ns: &Namespace, name: &str, does: bool) -> Result<()> {
    let type_ = "CellMatches";
    if does {
        return ns.good::<ExternalCompute>(name, &[type_], SOON).await.map(drop);
    }
    ns.reports::<ExternalCompute>(name, type_, "CellMismatch", &[], SOON).await.map(drop)
}

#[tokio::test]
async fn a_compute_that_has_run_leaves_its_cell_only_by_the_legal_way() -> Result<()> {
    let ns = world("cell-node", None).await?;
    idle_node(&ns, "n0", Some("nova-cell1")).await?;
    has_run(&ns, "n0", "nova-cell1").await?;
    let way = format!(
        "kubectl annotate --overwrite -n {} openstackdataplanenode/n0 {ALLOW_REMOVAL}=true {CELL}=",
        ns.name
    );
    let words = ["NovaExternalCompute n0", "nova-cell1", "nova-cell2", way.as_str()];
    ns.denied::<Node>("n0", cell("nova-cell2"), &words).await?;
    for none in [Value::Null, json!("")] {
        ns.denied::<Node>("n0", cell(none), &["NovaExternalCompute n0", ALLOW_REMOVAL]).await?;
    }
    ns.denied::<Node>("n0", cell("nova-cell0"), &["cell0"]).await?;
    // Changes that do not concern the cell are allowed.
    for change in [
        json!({ "metadata": { "labels": { "rack": "7" } } }),
        json!({ "spec": { "ansibleHost": "192.168.123.253" } }),
        json!({ "spec": { "role": "another" } }),
        json!({ "spec": { "role": "compute" } }),
    ] {
        ns.merge::<Node>("n0", change).await?;
    }

    run("sh", &["-c", &way]).await?;
    ns.gone::<ExternalCompute>("n0", SOON).await?;
    ns.merge::<Node>("n0", cell("nova-cell2")).await?;
    compute(&ns, "n0", "nova-cell2").await?;
    ns.done().await
}

#[tokio::test]
async fn a_role_is_refused_for_the_nodes_that_inherit_from_it() -> Result<()> {
    let ns = world("cell-role", Some("nova-cell1")).await?;
    idle_node(&ns, "n0", None).await?;
    idle_node(&ns, "n1", Some("nova-cell1")).await?;
    for name in ["n0", "n1"] {
        has_run(&ns, name, "nova-cell1").await?;
    }
    let change = || cell("nova-cell2");
    let Err(error) = ns.merge::<Role>("compute", change()).await else { bail!("it passed") };
    let error = format!("{error:#}");
    assert!(error.contains("NovaExternalCompute n0 has run in cell nova-cell1"), "{error}");
    assert!(!error.contains("n1"), "{error}");
    ns.denied::<Role>("compute", cell(Value::Null), &["NovaExternalCompute n0"]).await?;

    ns.merge::<Node>("n0", cell("nova-cell1")).await?;
    decided::<Role>(&ns, "compute", &change(), true).await?;
    ns.merge::<Role>("compute", change()).await?;
    // Its own annotation is now all that keeps the node in its cell.
    decided::<Node>(&ns, "n0", &cell(Value::Null), false).await?;
    role(&ns, "other", Some("nova-cell1")).await?;
    let mut moved = cell(Value::Null);
    moved["spec"]["role"] = json!("other");
    decided::<Node>(&ns, "n0", &moved, true).await?;
    ns.merge::<Node>("n0", moved).await?;
    let back = json!({ "spec": { "role": "compute" } });
    ns.denied::<Node>("n0", back, &["NovaExternalCompute n0", "nova-cell2"]).await?;
    let typo = json!({ "spec": { "role": "othre" } });
    ns.denied::<Node>("n0", typo, &["OpenStackDataPlaneRole othre", "does not exist"]).await?;
    assert_eq!(compute(&ns, "n0", "nova-cell1").await?.spec.cell_name, "nova-cell1");
    ns.done().await
}

#[tokio::test]
async fn a_typo_before_the_first_run_is_mended_by_correcting_it() -> Result<()> {
    let ns = world("cell-typo", None).await?;
    idle_node(&ns, "n0", Some("nova-cel1")).await?;
    idle_node(&ns, "n1", Some("nova-cel1")).await?;
    compute(&ns, "n0", "nova-cel1").await?;
    compute(&ns, "n1", "nova-cel1").await?;
    ns.merge::<Node>("n0", cell("nova-cell1")).await?;
    compute(&ns, "n0", "nova-cell1").await?;

    let options = json!({ "spec": { "customServiceConfig": "[DEFAULT]\ndebug = True\n" } });
    ns.merge::<ExternalCompute>("n1", options).await?;
    ns.merge::<Node>("n1", cell("nova-cell1")).await?;
    let delete = format!("kubectl delete -n {} novaexternalcompute n1", ns.name);
    let words = ["nova-cel1", "customServiceConfig is lost", delete.as_str()];
    node_says(&ns, "n1", "CellMismatch", &words).await?;
    matches(&ns, "n1", false).await?;
    run("sh", &["-c", &delete]).await?;
    compute(&ns, "n1", "nova-cell1").await?;
    node_says(&ns, "n1", "Deploying", &[]).await?;
    ns.done().await
}

#[tokio::test]
async fn a_role_that_goes_changes_no_compute_and_what_slips_past_is_told_and_mended() -> Result<()>
{
    let ns = world("cell-slip", Some("nova-cell1")).await?;
    idle_node(&ns, "n0", None).await?;
    has_run(&ns, "n0", "nova-cell1").await?;
    // Everything that follows the node has arrived.
    let has_all = |it: &ExternalCompute| it.spec.inventory_config_map_name.is_some();
    let before = ns.wait::<ExternalCompute>("n0", "complete", SOON, has_all).await?;
    ns.remove::<Role>("compute").await?;
    node_says(&ns, "n0", "RoleNotFound", &["OpenStackDataPlaneRole compute"]).await?;

    // Creating a role is not an update: the webhook is not called for its nodes.
    role(&ns, "compute", Some("nova-cell2")).await?;
    let words = ["asks for cell nova-cell2", "is in cell nova-cell1"];
    node_says(&ns, "n0", "CellMismatch", &words).await?;
    matches(&ns, "n0", false).await?;
    for kind in ["OpenStackDataPlaneNode", "NovaExternalCompute"] {
        ns.event(kind, "n0", "CellMismatch").await?;
    }
    let after = ns.api::<ExternalCompute>().get("n0").await?;
    assert_eq!((&before.metadata.uid, &before.spec), (&after.metadata.uid, &after.spec));

    ns.merge::<Role>("compute", cell("nova-cell1")).await?;
    matches(&ns, "n0", true).await?;
    // The compute waits for the same input as before.
    node_says(&ns, "n0", "SshSecretNotFound", &["NovaExternalCompute n0"]).await?;
    ns.done().await
}

#[tokio::test]
async fn a_node_that_is_made_again_may_name_another_cell() -> Result<()> {
    let ns = world("cell-again", None).await?;
    idle_node(&ns, "n0", Some("nova-cell1")).await?;
    has_run(&ns, "n0", "nova-cell1").await?;
    ns.removed::<Node>("n0", SOON).await?;
    idle_node(&ns, "n0", Some("nova-cell2")).await?;
    compute(&ns, "n0", "nova-cell2").await?;
    ns.done().await
}

#[tokio::test]
async fn cell0_is_refused_from_the_beginning() -> Result<()> {
    let ns = world("cell-zero", None).await?;
    let made = idle_node(&ns, "n0", Some("nova-cell0")).await;
    let error = format!("{:#}", made.expect_err("cell0 passed"));
    assert!(error.contains("cell0 holds instances"), "{error}");
    ns.denied::<Role>("compute", cell("nova-cell0"), &["cell0 holds instances"]).await?;
    ns.done().await
}
