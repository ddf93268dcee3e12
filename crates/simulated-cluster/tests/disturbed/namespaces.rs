//! Operators that the chart's `watchNamespaces` confines to a namespace.

use anyhow::Result;
use api::dataplane::Node;
use api::nova::ExternalCompute;
use e2e::{Namespace, SOON};
use serde_json::{Value, json};
use simulated_cluster::{Options, Simulation};

const WATCHED: &str = "watched";

/// Creates a node that requests a compute.
async fn node(ns: &Namespace) -> Result<()> {
    let spec = json!({ "hostName": "n0", "ansibleHost": "192.0.2.10" });
    let cell = json!({ "annotations": { "nova.openstack.org/cell": "nova-cell1" } });
    ns.create_with::<Node>("n0", spec, cell).await.map(drop)
}

/// Options that oslo.config cannot parse.
fn bad_options() -> Value {
    json!({ "spec": { "customServiceConfig": "no section = x\n[" } })
}

#[tokio::test]
async fn what_is_watched_is_served_with_rights_there_alone_and_all_else_is_left_alone() -> Result<()>
{
    let values = vec![format!("watchNamespaces={{{WATCHED}}}")];
    // All operators become ready: none lacks a permission that it needs.
    let sim = Simulation::start(&Options { values, ..Options::default() }).await?;
    let watched = Namespace::existing(&sim.client, WATCHED);
    let other = Namespace::of(sim.client.clone(), "not-watched").await?;
    node(&other).await?;
    node(&watched).await?;
    let is_there = |it: &ExternalCompute| it.spec.cell_name == "nova-cell1";
    watched.wait::<ExternalCompute>("n0", "made for its node", SOON, is_there).await?;
    let words = ["spec.customServiceConfig"];
    watched.denied::<ExternalCompute>("n0", bad_options(), &words).await?;

    // Created before the other one, so an operator that watched here would have created this
    // compute too.
    assert!(other.api::<ExternalCompute>().get_opt("n0").await?.is_none());
    assert!(other.api::<Node>().get("n0").await?.status.is_none());
    let spec = json!({ "dataplaneNodeName": "n0", "cellName": "nova-cell1" });
    other.create::<ExternalCompute>("n0", spec).await?;
    other.merge::<ExternalCompute>("n0", bad_options()).await?;
    sim.operators.check()
}
