//! Hosts that leave a node set, in an own simulated cluster with a nova: they are removed from it,
//! moved to another node set, or let go, with an operator that is killed meanwhile.

use anyhow::{Result, ensure};
use api::dataplane::{Deployment, Node, NodeSet, Service};
use api::nova::ExternalCompute;
use e2e::journey::RUN;
use e2e::{holds, says};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use simulated_cluster::{Broker, Host, Nova, NovaFault, Operator};

use super::leftovers::none_in;
use super::node_sets::SET;
use super::{READ, disabled, has_ids, start};
use crate::computes::{self, CELL};
use crate::ends::{GOES, cleaned, gone, leftovers};
use crate::journey::node_set;
use crate::own::{Own, PATIENCE};

/// What nova-operator holds a node with.
pub(super) const FINALIZER: &str = "nova.openstack.org/compute";
/// The condition of a node that says how far the removal of its host is.
const COMPUTE: &str = "nova.openstack.org/Compute";
/// An object that the node set owns.
const OWNED: &str = "owned";
/// A service of type nova, which the player deploys as any other one.
pub(super) const SERVICE: &str = "compute";
const PLAYBOOK: &str = "- hosts: all\n  tasks: [{debug: {var: greeting}}]\n";
/// What the cell gives to services of type nova.
const CONFIG: &str = "nova-cell1-compute-config";
const WRITES: &str = "PUT /v2.1/os-services/";
const DELETES: &str = "DELETE /v2.1/os-services/";

/// A node set of two hosts that was deployed once, and whose hosts have registered.
pub(super) struct World {
    pub(super) own: Own,
    pub(super) host: Host,
    pub(super) other: Host,
    _broker: Broker,
}

/// Creates a node set of these hosts, which have registered in a cell and share a user key, and
/// deploys it once, until nova-operator holds their nodes and has the UUIDs of nova's records.
pub(super) async fn deploy(own: &Own, hosts: &[&Host]) -> Result<Broker> {
    let broker = computes::cell(own, &own.sim).await?;
    computes::access(own, hosts).await?;
    for host in hosts {
        own.sim.nova.register(&host.name, CELL);
    }
    let service = json!({
        "playbookContents": PLAYBOOK, "edpmServiceType": "nova",
        "dataSources": [{ "secretRef": { "name": CONFIG } }],
    });
    own.create::<Service>(SERVICE, service).await?;
    own.create::<NodeSet>(SET, node_set(hosts, &[SERVICE])).await?;
    own.create::<Deployment>("first", json!({ "nodeSets": [SET] })).await?;
    for host in hosts {
        is_recorded(own, host).await?;
    }
    Ok(broker)
}

/// Waits until nova-operator holds the node of a host that has registered.
async fn is_recorded(own: &Own, host: &Host) -> Result<()> {
    own.wait::<Node>(&host.name, "held", RUN, is_held).await?;
    has_ids(own, &host.name).await
}

pub(super) fn is_held(node: &Node) -> bool {
    node.finalizers().iter().any(|it| it == FINALIZER)
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

    /// Takes the first host out of the node set.
    async fn take_out(&self) -> Result<()> {
        take_out(&self.own, &[&self.host]).await
    }

    /// Waits until the node of a host says what its removal waits for.
    async fn reaches(&self, host: &Host, reason: &str, words: &[&str]) -> Result<()> {
        let is_there = |it: &Node| says(it.conditions(), COMPUTE, reason, words) && is_held(it);
        self.own.wait::<Node>(&host.name, reason, READ, is_there).await.map(drop)
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
    world.take_out().await?;
    let words = ["1 server and", "skip-cleanup"];
    world.reaches(&world.host, "ServersOnHost", &words).await?;
    own.replace(&[Operator::Nova]).await?;
    world.reaches(&world.host, "ServersOnHost", &words).await?;
    assert_eq!((world.n_stopped(), nova.count(DELETES)), (0, 0), "nothing is stopped yet");

    nova.delete_server(&server);
    gone(own, &world.host.name, GOES).await?;
    assert_eq!((world.n_stopped(), nova.count(DELETES)), (1, 1));
    assert!(!world.nova_has(&world.host)? && world.nova_has(&world.other)?);

    // A node set that is deleted in the foreground: what it owns goes first.
    let server = nova.boot("two", &world.other.name)?;
    let uid = own.api::<NodeSet>().get(SET).await?.uid();
    owned(own, uid.as_deref()).await?;
    own.api::<NodeSet>().delete(SET, &DeleteParams::foreground()).await?;
    let is_deleted = |it: &ConfigMap| it.metadata.deletion_timestamp.is_some();
    own.wait::<ConfigMap>(OWNED, "deleted by the garbage collector", PATIENCE, is_deleted).await?;
    world.reaches(&world.other, "ServersOnHost", &["1 server and"]).await?;
    own.merge::<ConfigMap>(OWNED, json!({ "metadata": { "finalizers": null } })).await?;
    own.gone::<ConfigMap>(OWNED, PATIENCE).await?;
    own.replace(&[Operator::Nova]).await?;
    world.reaches(&world.other, "ServersOnHost", &["1 server and"]).await?;
    nova.delete_server(&server);
    own.gone::<NodeSet>(SET, PATIENCE).await?;
    gone(own, &world.other.name, PATIENCE).await?;
    assert_eq!((cleaned(&world.other), nova.count(DELETES)), (1, 2));
    assert!(!world.nova_has(&world.other)?);
    own.done()
}

#[tokio::test]
async fn a_host_that_is_put_back_before_the_stop_keeps_its_service_and_its_node() -> Result<()> {
    let world = World::new("api-set-back").await?;
    let (own, nova) = (&world.own, &world.own.sim.nova);
    nova.boot("one", &world.host.name)?;
    let before = own.api::<Node>().get(&world.host.name).await?;
    world.take_out().await?;
    world.reaches(&world.host, "ServersOnHost", &["1 server and"]).await?;
    assert!(disabled(own, &world.host.name)?.is_some(), "it gets no further servers");
    let entry = json!({ "ansible": { "ansibleHost": world.host.address } });
    let back = json!({ "spec": { "nodes": { &*world.host.name: entry } } });
    own.merge::<NodeSet>(SET, back).await?;
    let is_back =
        |it: &Node| !it.is_leaving() && it.status.as_ref().is_some_and(|it| it.deployed.is_none());
    let after = own.wait::<Node>(&world.host.name, "put back", READ, is_back).await?;
    assert_eq!(after.uid(), before.uid());
    // It is in service, and to be deployed again.
    own.create::<Deployment>("second", json!({ "nodeSets": [SET] })).await?;
    let is_ready = |it: &Node| holds(it.conditions(), "Ready") && is_held(it);
    own.wait::<Node>(&world.host.name, "deployed again", RUN, is_ready).await?;
    nova.wait_for_total(WRITES, 2, PATIENCE).await?;
    assert_eq!((world.n_stopped(), nova.count(DELETES)), (0, 0));
    assert_eq!(disabled(own, &world.host.name)?, None);
    own.done()
}

#[tokio::test]
async fn a_host_that_moves_to_another_node_set_keeps_its_service() -> Result<()> {
    let world = World::new("api-set-moves").await?;
    let (own, nova) = (&world.own, &world.own.sim.nova);
    let uids = async || -> Result<_> {
        let node = own.api::<Node>().get(&world.host.name).await?;
        Ok((node.uid(), own.api::<ExternalCompute>().get(&world.host.name).await?.uid()))
    };
    let before = uids().await?;
    own.create::<NodeSet>("other", node_set(&[&world.host], &[SERVICE])).await?;
    world.take_out().await?;
    let is_moved = |it: &Node| {
        let group = it.status.as_ref().and_then(|it| it.group.as_deref());
        it.node_set() == Some("other") && group == Some("NodeSet/other") && is_held(it)
    };
    own.wait::<Node>(&world.host.name, "handed over", READ, is_moved).await?;
    own.good::<Node>(&world.host.name, &["Ready"], READ).await?;
    assert_eq!(uids().await?, before, "both are the objects of before");
    assert_eq!((world.n_stopped(), nova.count(WRITES), nova.count(DELETES)), (0, 0, 0));
    assert_eq!(world.host.visits().len(), 1, "nothing ran");
    assert!(world.nova_has(&world.host)?);

    // What is left of the first node set goes without it.
    own.removed::<NodeSet>(SET, PATIENCE).await?;
    assert_eq!((uids().await?, world.n_stopped()), (before, 0));
    own.done()
}

#[tokio::test]
async fn a_dead_api_keeps_the_hosts_of_a_node_set_until_the_user_lets_them_go() -> Result<()> {
    let world = World::new("api-set-let-go").await?;
    let (own, nova) = (&world.own, &world.own.sim.nova);
    nova.fail("", NovaFault::Status(503));
    world.take_out().await?;
    world.reaches(&world.host, "NovaNotAnswering", &["skip-cleanup"]).await?;
    own.replace(&[Operator::Nova]).await?;
    world.reaches(&world.host, "NovaNotAnswering", &["skip-cleanup"]).await?;
    own.annotate::<NodeSet>(SET, "nova.openstack.org/skip-cleanup", "true").await?;
    gone(own, &world.host.name, GOES).await?;
    assert!(is_held(&own.api::<Node>().get(&world.other.name).await?));
    let left = leftovers(own).await?;
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].service_id.is_some() && left[0].compute_id.is_some(), "{left:?}");
    assert_eq!(world.n_stopped(), 0);

    // What is left is deleted by its UUIDs once nova answers again, and has nothing up there.
    nova.heal();
    nova.report(&world.host.name, false);
    none_in(own, CELL).await?;
    assert!(!world.nova_has(&world.host)? && world.nova_has(&world.other)?);

    // Of a node set that is deleted, all hosts leave.
    own.removed::<NodeSet>(SET, PATIENCE).await?;
    own.done()
}
