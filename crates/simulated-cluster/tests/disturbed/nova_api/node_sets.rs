//! Hosts of a node set that are drained and enabled, with an operator that is killed meanwhile.

use anyhow::Result;
use api::dataplane::NodeSet;
use api::nova::Cell;
use e2e::journey::conditions_of_set as conditions;
use e2e::{holds, says};
use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};
use simulated_cluster::{NovaFault, Operator};

use super::node_set_removal::World;
use super::{READ, SERVICES, cell_reaches};
use crate::computes::CELL;
use crate::own::{Own, PATIENCE};

pub(super) const SET: &str = "edpm";
const SERVICE: &str = "PUT /v2.1/os-services/";
pub(super) const DRAINED: &str = "nova.openstack.org/Drained";

/// Returns the entry of `spec.nodes` of a host in the domain `example.org`.
pub(super) fn host(name: &str, address: &str) -> Value {
    let ansible = json!({ "ansibleHost": address });
    json!({ "hostName": format!("{name}.example.org"), "ansible": ansible })
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
    let world = World::new("api-node-set-drain").await?;
    let (own, nova) = (&world.own, &world.own.sim.nova);
    let server = nova.boot("one", &world.other.name)?;
    annotate(own, json!("")).await?;
    reaches(own, "DrainInvalid", &["is \"\", and nothing was changed"]).await?;
    annotate(own, json!(r#"{"compute-1": "wait", "compute-2": "wait"}"#)).await?;
    reaches(own, "DrainInvalid", &["\"compute-2\""]).await?;
    nova.wait_for_requests(SERVICES, 2).await?;
    assert_eq!(nova.count(SERVICE), 0, "an annotation that is not valid changes nothing");

    // The answers to both writes are lost with the operator that has sent them.
    nova.fail_next(SERVICE, 1, NovaFault::LostAnswer);
    annotate(own, json!(r#"{"compute-1": "wait"}"#)).await?;
    nova.wait_for_total(SERVICE, 1, PATIENCE).await?;
    own.replace(&[Operator::Nova]).await?;
    nova.heal();
    let words = ["0 of 1 hosts are drained; compute-1: ", "1 server and"];
    reaches(own, "ServersOnHost", &words).await?;
    nova.delete_server(&server);
    reaches(own, "Drained", &["1 of 1 hosts are drained: compute-1."]).await?;
    let set = own.api::<NodeSet>().get(SET).await?;
    assert!(holds(conditions(&set), DRAINED), "{set:?}");

    nova.fail_next(SERVICE, 1, NovaFault::LostAnswer);
    annotate(own, Value::Null).await?;
    nova.wait_for_total(SERVICE, 2, PATIENCE).await?;
    own.replace(&[Operator::Nova]).await?;
    nova.heal();
    let is_quiet = |it: &NodeSet| conditions(it).iter().all(|it| it.type_ != DRAINED);
    own.wait::<NodeSet>(SET, "given back", PATIENCE, is_quiet).await?;
    assert_eq!(nova.count(SERVICE), 2, "disabled once and enabled once");
    discovered(&world).await?;
    world.own.done()
}

/// A host of a node set that is not mapped is discovered by the operator, as hosts of computes are.
async fn discovered(world: &World) -> Result<()> {
    let (own, host) = (&world.own, &world.host.name);
    // Any Secret will do, because nothing runs the Job here: that of the cell has its name.
    let annotations = json!({
        "nova.openstack.org/host-discovery": "operator",
        "nova.openstack.org/host-discovery-secret": CELL,
        "nova.openstack.org/host-discovery-image": "registry.example/nova:1",
    });
    own.merge::<Cell>(CELL, json!({ "metadata": { "annotations": annotations } })).await?;
    let discovery = "HostDiscovery";
    cell_reaches(own, CELL, discovery, "HostsMapped", &[]).await?;
    own.sim.nova.map(host, false)?;
    let cell = cell_reaches(own, CELL, discovery, "Discovering", &[]).await?;
    let attempt = cell.status.and_then(|it| it.discovery);
    let job = attempt.map(|it| it.job).unwrap_or_default();
    own.wait::<Job>(&job, "created", READ, |_| true).await?;
    own.sim.nova.map(host, true)?;
    cell_reaches(own, CELL, discovery, "HostsMapped", &[]).await?;
    Ok(())
}
