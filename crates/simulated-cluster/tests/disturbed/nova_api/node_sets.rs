//! Hosts of a node set that are drained and enabled, with an operator that is killed meanwhile.

use anyhow::Result;
use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, NodeSet};
use api::nova::Cell;
use e2e::holds;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use simulated_cluster::{Fate, Host, Matching, NovaFault};

use super::node_set_removal::World;
use super::{DRAINED, READ, SERVICES, cell_reaches, drain, is_given_back, replace};
use crate::computes::CELL;
use crate::own::{Own, PATIENCE};

pub(super) const SET: &str = "edpm";
const SERVICE: &str = "PUT /v2.1/os-services/";
const IN_SYNC: &str = "nova.openstack.org/ConfigurationInSync";
/// The condition that names annotations which do not count where they are.
const IGNORED: &str = "nova.openstack.org/AnnotationsIgnored";

/// Waits until `Drained` of the node of a host has a reason, and these words in its message.
pub(super) async fn reaches(own: &Own, host: &Host, reason: &str, words: &[&str]) -> Result<()> {
    own.reports::<Node>(&host.name, DRAINED, reason, words, READ).await.map(drop)
}

#[tokio::test]
async fn one_host_of_a_node_set_is_drained_and_enabled_although_the_operator_dies() -> Result<()> {
    let world = World::new("api-node-set-drain").await?;
    let (own, nova, host) = (&world.own, &world.own.sim.nova, &world.other);
    let server = nova.boot("one", &host.name)?;
    // An annotation of before says what to do instead.
    let drain_hosts = async |value: Value| {
        own.annotate::<NodeSet>(SET, "nova.openstack.org/drain-hosts", value).await
    };
    drain_hosts(json!(r#"{"compute-1": "wait"}"#)).await?;
    let words = ["kubectl annotate", "compute-1", "nova.openstack.org/drain=wait"];
    let is_named = |it: &NodeSet| {
        let conditions = it.conditions().iter();
        conditions
            .filter(|it| it.type_ == IGNORED)
            .any(|it| words.iter().all(|word| it.message.contains(word)))
    };
    own.wait::<NodeSet>(SET, "with the commands", READ, is_named).await?;
    nova.wait_for_requests(SERVICES, 2).await?;
    assert_eq!(nova.count(SERVICE), 0, "it changes nothing");

    // The answers to both writes are lost with the operator that has sent them.
    nova.fail_next(SERVICE, 1, NovaFault::LostAnswer);
    drain(own, &host.name, json!("wait")).await?;
    nova.wait_for_total(SERVICE, 1, PATIENCE).await?;
    replace(own).await?;
    reaches(own, host, "ServersOnHost", &["1 server and"]).await?;
    nova.delete_server(&server);
    reaches(own, host, "Drained", &[]).await?;
    assert!(holds(own.api::<Node>().get(&host.name).await?.conditions(), DRAINED));

    // As long as the annotation of before is there, no host comes out of its maintenance by an upgrade.
    drain(own, &host.name, Value::Null).await?;
    reaches(own, host, "DrainInvalid", &["drain-hosts", "remove it"]).await?;
    nova.wait_for_requests(SERVICES, 2).await?;
    assert_eq!(nova.count(SERVICE), 1, "it stays disabled");
    nova.fail_next(SERVICE, 1, NovaFault::LostAnswer);
    drain_hosts(Value::Null).await?;
    nova.wait_for_total(SERVICE, 2, PATIENCE).await?;
    replace(own).await?;
    is_given_back(own, &host.name).await?;
    assert_eq!(nova.count(SERVICE), 2, "disabled once and enabled once");
    discovered(&world).await?;
    audited(&world).await?;
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

/// The hosts of a node set share an audit, which has the files of their service; what differs names the
/// deployment to create.
async fn audited(world: &World) -> Result<()> {
    const DIFFERS: &str = "file /var/lib/openstack/config/nova/01-nova.conf: content";
    let own = &world.own;
    let report = json!({ "audit": { &world.host.name: [1, [DIFFERS]] } }).to_string();
    let message = json!({
        "v": 1, "hosts": "oo", "changed": [0, 0], "failures": [], "report": report,
    });
    let fate = Fate::Ends { code: 0, message: message.to_string() };
    own.sim.player.decide(Matching::service(&own.ns.name, "nova-audit"), fate);
    // So long that no second audit is due while the test runs.
    own.annotate::<NodeSet>(SET, "nova.openstack.org/audit", "24h").await?;
    let words = [DIFFERS, "OpenStackDataPlaneDeployment", SET];
    own.reports::<Node>(&world.host.name, IN_SYNC, "OutOfSync", &words, PATIENCE).await?;
    own.good::<Node>(&world.other.name, &[IN_SYNC], PATIENCE).await?;
    let runs = own.list::<AnsibleEe>().await?;
    let is_audit = |it: &&AnsibleEe| it.labels().contains_key("nova.openstack.org/audit");
    let audits: Vec<&AnsibleEe> = runs.iter().filter(is_audit).collect();
    let found =
        audits.iter().map(|it| (it.owner_references()[0].kind.as_str(), it.spec.hosts.len()));
    let found: Vec<_> = found.collect();
    assert_eq!(found, [("OpenStackDataPlaneNodeSet", 2)]);
    let spec = serde_json::to_string(&audits[0].spec)?;
    assert!(
        spec.contains("nova-cell1-compute-config") && spec.contains("/configs/nova/"),
        "{spec}"
    );
    Ok(())
}
