//! Hosts that leave a node set, in an own simulated cluster with a nova: they are removed from it,
//! moved to another node set, or let go, with an operator that is killed meanwhile.

use anyhow::{Result, ensure};
use api::ansibleee::AnsibleEe;
use api::dataplane::{Deployment, HostReadiness, NodeSet, Service};
use api::nova::Cell;
use e2e::journey::{RUN, SSH_SECRET, conditions_of_set as conditions};
use e2e::says;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use simulated_cluster::{Broker, Host, Nova, NovaFault, Operator};

use super::node_sets::SET;
use super::{READ, start};
use crate::computes::{self, CELL};
use crate::ends::cleaned;
use crate::own::{Own, PATIENCE};

/// The report with the host finalizers of the node set.
pub(super) const REPORT: &str = "edpm-nova";
/// An object that the node set owns.
const OWNED: &str = "owned";
/// A service of type nova, which the player deploys as any other one.
pub(super) const SERVICE: &str = "compute";
const PLAYBOOK: &str = "- hosts: all\n  tasks: [{debug: {var: greeting}}]\n";
const WRITES: &str = "PUT /v2.1/os-services/";
const DELETES: &str = "DELETE /v2.1/os-services/";

/// A node set of two hosts that was deployed once, and whose hosts have registered.
pub(super) struct World {
    pub(super) own: Own,
    pub(super) host: Host,
    pub(super) other: Host,
    _broker: Broker,
}

fn node(host: &Host) -> Value {
    json!({ "ansible": { "ansibleHost": host.address } })
}

fn spec(hosts: &[&Host]) -> Value {
    let nodes: serde_json::Map<String, Value> =
        hosts.iter().map(|it| (it.name.clone(), node(it))).collect();
    json!({
        "preProvisioned": true,
        "services": [SERVICE],
        "nodeTemplate": {
            "ansibleSSHPrivateKeySecret": SSH_SECRET,
            "ansible": { "ansibleUser": "cloud-admin" },
        },
        "nodes": nodes,
    })
}

/// Creates a node set of these hosts, which have registered in a cell and share a user key, and
/// deploys it once, until all have host finalizers and the UUIDs of nova's records.
pub(super) async fn deploy(own: &Own, hosts: &[&Host]) -> Result<Broker> {
    let broker = computes::cell(own, &own.sim).await?;
    computes::access(own, hosts).await?;
    for host in hosts {
        own.sim.nova.register(&host.name, CELL);
    }
    let service = json!({ "playbookContents": PLAYBOOK, "edpmServiceType": "nova" });
    own.create::<Service>(SERVICE, service).await?;
    own.create::<NodeSet>(SET, spec(hosts)).await?;
    own.create::<Deployment>("first", json!({ "nodeSets": [SET] })).await?;
    let names: Vec<&str> = hosts.iter().map(|it| it.name.as_str()).collect();
    has_finalizers(own, &names).await?;
    let has_ids = |it: &HostReadiness| {
        let records = it.annotations().get("nova.openstack.org/hosts");
        records.is_some_and(|it| it.matches("computeID").count() == hosts.len())
    };
    own.wait::<HostReadiness>(REPORT, "with UUIDs", RUN, has_ids).await?;
    Ok(broker)
}

/// Waits until the report has host finalizers of these hosts, which are sorted, and of no others.
pub(super) async fn has_finalizers(own: &Own, hosts: &[&str]) -> Result<()> {
    let is_so = |it: &HostReadiness| it.spec.host_finalizers.keys().eq(hosts.iter());
    let what = format!("host finalizers of {hosts:?}");
    own.wait::<HostReadiness>(REPORT, &what, RUN, is_so).await.map(drop)
}

/// Takes hosts out of the node set.
pub(super) async fn take_out(own: &Own, hosts: &[&Host]) -> Result<()> {
    let nodes = hosts.iter().map(|it| (it.name.clone(), Value::Null));
    let nodes: serde_json::Map<String, Value> = nodes.collect();
    own.merge::<NodeSet>(SET, json!({ "spec": { "nodes": nodes } })).await.map(drop)
}

/// Whether nova or placement has something under a host's name.
pub(super) fn has(nova: &Nova, host: &str) -> Result<bool> {
    let services = nova.ask("GET", "/v2.1/os-services", None)?.to_string();
    let providers = nova.ask("GET", "/placement/resource_providers", None)?.to_string();
    let quoted = format!("\"{host}\"");
    ensure!(services.contains(&quoted) == providers.contains(&quoted), "{services} {providers}");
    Ok(services.contains(&quoted))
}

impl World {
    pub(super) async fn new(test: &str) -> Result<Self> {
        let own = start(test).await?;
        let (host, other) = own.hosts("compute-0", "192.0.2.10", "compute-1", "192.0.2.11");
        let broker = deploy(&own, &[&host, &other]).await?;
        Ok(Self { own, host, other, _broker: broker })
    }

    async fn has_finalizers(&self, hosts: &[&str]) -> Result<()> {
        has_finalizers(&self.own, hosts).await
    }

    /// Takes the first host out of the node set.
    async fn take_out(&self) -> Result<()> {
        take_out(&self.own, &[&self.host]).await
    }

    async fn reaches(&self, reason: &str, words: &[&str]) -> Result<()> {
        let type_ = "nova.openstack.org/HostsRemoved";
        let is_there = |it: &NodeSet| says(conditions(it), type_, reason, words);
        self.own.wait::<NodeSet>(SET, reason, READ, is_there).await.map(drop)
    }

    /// Returns how often nova-compute was stopped on the first host by a run.
    fn n_stopped(&self) -> usize {
        cleaned(&self.host)
    }

    fn nova_has(&self, host: &Host) -> Result<bool> {
        has(&self.own.sim.nova, &host.name)
    }
}

/// Creates an object that the node set owns, and that holds its deletion in the foreground.
async fn owned(own: &Own, uid: Option<&str>) -> Result<()> {
    let owner = json!({
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneNodeSet",
        "name": SET,
        "uid": uid,
        "blockOwnerDeletion": true,
    });
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": OWNED, "ownerReferences": [owner], "finalizers": ["example.org/held"] },
    });
    let object = serde_json::from_value(object)?;
    own.api::<ConfigMap>().create(&PostParams::default(), &object).await?;
    Ok(())
}

#[tokio::test]
async fn a_host_that_leaves_a_node_set_is_removed_from_nova_although_the_operator_dies()
-> Result<()> {
    let world = World::new("api-set-leaves").await?;
    let (own, nova) = (&world.own, &world.own.sim.nova);
    let server = nova.boot("one", &world.host.name)?;
    // It gets another name, and nova keeps the one with which it registered.
    let renamed = json!({ "compute-0": { "hostName": "compute-0.example.org" } });
    own.merge::<NodeSet>(SET, json!({ "spec": { "nodes": renamed } })).await?;
    let is_read = |it: &NodeSet| {
        says(
            conditions(it),
            "nova.openstack.org/ComputesUp",
            "ComputesNotRegistered",
            &["compute-0"],
        )
    };
    own.wait::<NodeSet>(SET, "read under its new name", READ, is_read).await?;
    world.take_out().await?;
    world.reaches("ServersOnHost", &["compute-0: ", "1 server and", "skip-cleanup"]).await?;
    own.replace(&[Operator::Nova]).await?;
    world.has_finalizers(&["compute-0", "compute-1"]).await?;
    assert_eq!((world.n_stopped(), nova.count(DELETES)), (0, 0), "nothing is stopped yet");

    nova.delete_server(&server);
    world.has_finalizers(&["compute-1"]).await?;
    assert_eq!((world.n_stopped(), nova.count(DELETES)), (1, 1));
    assert!(!world.nova_has(&world.host)? && world.nova_has(&world.other)?);
    let is_quiet = |it: &NodeSet| conditions(it).iter().all(|it| !it.type_.ends_with("Removed"));
    own.wait::<NodeSet>(SET, "nothing is to be removed", READ, is_quiet).await?;

    // A node set that is deleted in the foreground: what it owns goes first.
    let server = nova.boot("two", &world.other.name)?;
    let uid = own.api::<NodeSet>().get(SET).await?.uid();
    owned(own, uid.as_deref()).await?;
    own.api::<NodeSet>().delete(SET, &DeleteParams::foreground()).await?;
    let is_deleted = |it: &ConfigMap| it.metadata.deletion_timestamp.is_some();
    own.wait::<ConfigMap>(OWNED, "deleted by the garbage collector", PATIENCE, is_deleted).await?;
    world.reaches("ServersOnHost", &["compute-1: ", "1 server and"]).await?;
    own.merge::<ConfigMap>(OWNED, json!({ "metadata": { "finalizers": null } })).await?;
    own.gone::<ConfigMap>(OWNED, PATIENCE).await?;
    own.replace(&[Operator::Nova]).await?;
    world.has_finalizers(&["compute-1"]).await?;
    nova.delete_server(&server);
    own.gone::<NodeSet>(SET, PATIENCE).await?;
    assert_eq!((cleaned(&world.other), nova.count(DELETES)), (1, 2));
    assert!(!world.nova_has(&world.other)?);
    own.gone::<HostReadiness>(REPORT, PATIENCE).await?;
    for run in own.api::<AnsibleEe>().list(&ListParams::default()).await? {
        if run.labels().contains_key("nova.openstack.org/cleanup-of-node-set") {
            own.gone::<AnsibleEe>(&run.name_any(), PATIENCE).await?;
        }
    }
    own.done()
}

#[tokio::test]
async fn a_host_that_moves_to_another_node_set_keeps_its_service() -> Result<()> {
    let world = World::new("api-set-moves").await?;
    let (own, nova) = (&world.own, &world.own.sim.nova);
    own.create::<NodeSet>("other", spec(&[&world.host])).await?;
    world.take_out().await?;
    world.has_finalizers(&["compute-1"]).await?;
    assert_eq!((world.n_stopped(), nova.count(WRITES), nova.count(DELETES)), (0, 0, 0));
    assert!(world.nova_has(&world.host)?);

    // A node set that is released by hand leaves its report, for which nothing is done any more.
    own.sim.operators.stop(Operator::Nova)?;
    own.api::<NodeSet>().delete(SET, &DeleteParams::default()).await?;
    own.merge::<NodeSet>(SET, json!({ "metadata": { "finalizers": null } })).await?;
    own.gone::<NodeSet>(SET, PATIENCE).await?;
    assert!(own.api::<HostReadiness>().get_opt(REPORT).await?.is_some());
    own.replace(&[Operator::Nova]).await?;
    own.gone::<HostReadiness>(REPORT, PATIENCE).await?;
    own.done()
}

#[tokio::test]
async fn a_dead_api_keeps_the_hosts_of_a_node_set_until_the_user_lets_them_go() -> Result<()> {
    let world = World::new("api-set-let-go").await?;
    let (own, nova) = (&world.own, &world.own.sim.nova);
    nova.fail("", NovaFault::Status(503));
    world.take_out().await?;
    world.reaches("NovaNotAnswering", &["compute-0: ", "skip-cleanup"]).await?;
    own.replace(&[Operator::Nova]).await?;
    world.has_finalizers(&["compute-0", "compute-1"]).await?;
    let skip = json!({ "nova.openstack.org/skip-cleanup": "true" });
    own.merge::<NodeSet>(SET, json!({ "metadata": { "annotations": skip } })).await?;
    world.has_finalizers(&["compute-1"]).await?;
    let cell = own.api::<Cell>().get(CELL).await?;
    let left = cell.status.map(|it| it.leftovers).unwrap_or_default();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].service_id.is_some() && left[0].compute_id.is_some(), "{left:?}");
    assert_eq!(world.n_stopped(), 0);

    // What is left is deleted by its UUIDs once nova answers again, and has nothing up there.
    nova.heal();
    nova.report(&world.host.name, false);
    let is_empty = |it: &Cell| it.status.as_ref().is_some_and(|it| it.leftovers.is_empty());
    own.wait::<Cell>(CELL, "nothing is left", PATIENCE, is_empty).await?;
    assert!(!world.nova_has(&world.host)? && world.nova_has(&world.other)?);

    // Of a node set that is deleted, all hosts leave.
    own.api::<NodeSet>().delete(SET, &DeleteParams::default()).await?;
    own.gone::<NodeSet>(SET, PATIENCE).await?;
    own.done()
}
