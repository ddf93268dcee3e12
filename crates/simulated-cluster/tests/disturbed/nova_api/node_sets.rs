//! Hosts of a node set that are drained and enabled, with an operator that is killed meanwhile.

use anyhow::Result;
use api::dataplane::NodeSet;
use api::nova::Cell;
use e2e::journey::{SSH_SECRET, conditions_of_set as conditions};
use e2e::{holds, says};
use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};
use simulated_cluster::{NovaFault, Operator};

use super::{READ, SERVICES, cell_reaches, start};
use crate::computes::{self, CELL};
use crate::own::{Own, PATIENCE};

pub(super) const SET: &str = "edpm";
const SERVICE: &str = "PUT /v2.1/os-services/";
pub(super) const DRAINED: &str = "nova.openstack.org/Drained";

/// Returns the entry of `spec.nodes` of a host in the domain `example.org`.
pub(super) fn host(name: &str, address: &str) -> Value {
    let ansible = json!({ "ansibleHost": address });
    json!({ "hostName": format!("{name}.example.org"), "ansible": ansible })
}

/// Creates a node set of two hosts that have registered; nothing is deployed to them.
async fn registered(own: &Own) -> Result<()> {
    for host in ["compute-0", "compute-1"] {
        own.sim.nova.register(&format!("{host}.example.org"), CELL);
    }
    let spec = json!({
        "preProvisioned": true,
        "services": ["nova"],
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": SSH_SECRET },
        "nodes": {
            "compute-0": host("compute-0", "192.0.2.10"),
            "compute-1": host("compute-1", "192.0.2.11"),
        },
    });
    own.create::<NodeSet>(SET, spec).await.map(drop)
}

async fn annotate(own: &Own, drain_hosts: Value) -> Result<()> {
    let annotations = json!({ "nova.openstack.org/drain-hosts": drain_hosts });
    let change = json!({ "metadata": { "annotations": annotations } });
    own.merge::<NodeSet>(SET, change).await.map(drop)
}

/// Waits until `Drained` of the node set has a reason, and these words in its message.
pub(super) async fn reaches(own: &Own, reason: &str, words: &[&str]) -> Result<()> {
    let is_there = |it: &NodeSet| says(conditions(it), DRAINED, reason, words);
    own.wait::<NodeSet>(SET, reason, READ, is_there).await.map(drop)
}

#[tokio::test]
async fn one_host_of_a_node_set_is_drained_and_enabled_although_the_operator_dies() -> Result<()> {
    let own = start("api-node-set-drain").await?;
    let nova = &own.sim.nova;
    let _broker = computes::cell(&own, &own.sim).await?;
    registered(&own).await?;
    let server = nova.boot("one", "compute-1.example.org")?;
    annotate(&own, json!("")).await?;
    reaches(&own, "DrainInvalid", &["is \"\", and nothing was changed"]).await?;
    annotate(&own, json!(r#"{"compute-1": "wait", "compute-2": "wait"}"#)).await?;
    reaches(&own, "DrainInvalid", &["\"compute-2\""]).await?;
    nova.wait_for_requests(SERVICES, 2).await?;
    assert_eq!(nova.count(SERVICE), 0, "an annotation that is not valid changes nothing");

    // The answers to both writes are lost with the operator that has sent them.
    nova.fail_next(SERVICE, 1, NovaFault::LostAnswer);
    annotate(&own, json!(r#"{"compute-1": "wait"}"#)).await?;
    nova.wait_for_total(SERVICE, 1, PATIENCE).await?;
    own.replace(&[Operator::Nova]).await?;
    nova.heal();
    let words = ["0 of 1 hosts are drained; compute-1: ", "1 server and"];
    reaches(&own, "ServersOnHost", &words).await?;
    nova.delete_server(&server);
    reaches(&own, "Drained", &["1 of 1 hosts are drained: compute-1."]).await?;
    let set = own.api::<NodeSet>().get(SET).await?;
    assert!(holds(conditions(&set), DRAINED), "{set:?}");

    nova.fail_next(SERVICE, 1, NovaFault::LostAnswer);
    annotate(&own, Value::Null).await?;
    nova.wait_for_total(SERVICE, 2, PATIENCE).await?;
    own.replace(&[Operator::Nova]).await?;
    nova.heal();
    let is_quiet = |it: &NodeSet| conditions(it).iter().all(|it| it.type_ != DRAINED);
    own.wait::<NodeSet>(SET, "given back", PATIENCE, is_quiet).await?;
    assert_eq!(nova.count(SERVICE), 2, "disabled once and enabled once");
    discovered(&own).await?;
    own.done()
}

/// A host of a node set that is not mapped is discovered by the operator, as hosts of computes are.
async fn discovered(own: &Own) -> Result<()> {
    // Any Secret will do, because nothing runs the Job here: that of the cell has its name.
    let annotations = json!({
        "nova.openstack.org/host-discovery": "operator",
        "nova.openstack.org/host-discovery-secret": CELL,
        "nova.openstack.org/host-discovery-image": "registry.example/nova:1",
    });
    own.merge::<Cell>(CELL, json!({ "metadata": { "annotations": annotations } })).await?;
    let discovery = "HostDiscovery";
    cell_reaches(own, CELL, discovery, "HostsMapped", &[]).await?;
    own.sim.nova.map("compute-0.example.org", false)?;
    let cell = cell_reaches(own, CELL, discovery, "Discovering", &[]).await?;
    let attempt = cell.status.and_then(|it| it.discovery);
    let job = attempt.map(|it| it.job).unwrap_or_default();
    own.wait::<Job>(&job, "created", READ, |_| true).await?;
    own.sim.nova.map("compute-0.example.org", true)?;
    cell_reaches(own, CELL, discovery, "HostsMapped", &[]).await?;
    Ok(())
}
