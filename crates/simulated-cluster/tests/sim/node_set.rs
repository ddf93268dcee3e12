//! Node sets: deployed by a deployment, reporting later changes, and the only owner of a host.

use anyhow::Result;
use api::dataplane::{Deployment, HostState, Node, NodeSet, Service};
use e2e::journey::{self, RUN, SERVICE, ready};
use e2e::{Namespace, SOON, holds, says};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use serde_json::json;

use crate::journey::{node_set, trace};
use crate::world::World;

const SET: &str = "edpm";
const CONFIG: &str = "trace-config";

/// Deploys the node set, and waits until it reports that its current inputs are on the host.
async fn deploy(ns: &Namespace, name: &str) -> Result<NodeSet> {
    ns.create::<Deployment>(name, json!({ "nodeSets": [SET] })).await?;
    ns.good::<NodeSet>(SET, &["Ready", "UpToDate"], RUN).await
}

/// Waits until the node set reports that this input has changed, and is still ready.
async fn outdated(ns: &Namespace, input: &str) -> Result<()> {
    let is_told = |it: &NodeSet| {
        says(it.conditions(), "UpToDate", "InputsChanged", &[input])
            && holds(it.conditions(), "Ready")
    };
    ns.wait::<NodeSet>(SET, &format!("{input} is named"), SOON, is_told).await.map(drop)
}

#[tokio::test]
async fn a_node_set_is_deployed_when_it_is_told_to_and_names_what_has_changed_since() -> Result<()>
{
    let (ns, host) = World::with_host("node-set", "e2e-node-set", "192.168.122.187").await?;
    crate::journey::ssh_secret(&ns, &host).await?;
    crate::journey::deploy(&ns, &[]).await?;
    ns.config_map(CONFIG, &[("a.conf", "one")]).await?;
    let sources = json!({ "spec": { "dataSources": [{ "configMapRef": { "name": CONFIG } }] } });
    ns.merge::<Service>(SERVICE, sources).await?;
    ns.create::<NodeSet>(SET, node_set(&[&host], &[SERVICE])).await?;
    let waits = |it: &NodeSet| {
        holds(it.conditions(), "SetupReady")
            && says(it.conditions(), "Ready", "NotDeployed", &[SET])
    };
    ns.wait::<NodeSet>(SET, "set up", SOON, waits).await?;
    assert_eq!(trace(&host), [""; 0], "nothing runs by itself");

    let set = deploy(&ns, "first").await?;
    let status = set.status.clone().unwrap_or_default();
    assert_eq!(trace(&host), ["hello"]);
    assert_eq!((status.nodes, status.ready_nodes), (1, 1));
    assert_eq!(status.hosts[0].state, HostState::Deployed);
    assert_eq!(status.deployed_config_hash, status.config_hash);
    assert!(status.config_map_hashes.contains_key(CONFIG), "{:?}", status.config_map_hashes);

    // A changed variable is named, and nothing runs before another deployment.
    let vars = json!({ "ansibleVars": { "greeting": "again" } });
    ns.merge::<NodeSet>(SET, json!({ "spec": { "nodeTemplate": { "ansible": vars } } })).await?;
    outdated(&ns, "nodeTemplate.ansible.ansibleVars.greeting").await?;
    assert_eq!(trace(&host), ["hello"]);
    deploy(&ns, "second").await?;
    assert_eq!(trace(&host), ["hello", "again"]);

    // So is a changed input of a service.
    ns.merge::<ConfigMap>(CONFIG, json!({ "data": { "a.conf": "two" } })).await?;
    outdated(&ns, &format!("ConfigMap {CONFIG} of service {SERVICE}")).await?;
    deploy(&ns, "third").await?;

    // What was deployed stays known without its deployments.
    for name in ["first", "second", "third"] {
        ns.removed::<Deployment>(name, SOON).await?;
    }
    ns.good::<NodeSet>(SET, &["UpToDate", "Ready"], SOON).await?;

    let inventory = format!("dataplanenodeset-{SET}");
    assert!(ns.api::<Secret>().get_opt(&inventory).await?.is_some());
    ns.removed::<NodeSet>(SET, SOON).await?;
    ns.gone::<Secret>(&inventory, SOON).await?;
    ns.done().await
}

#[tokio::test]
async fn a_host_that_a_node_has_already_is_refused_by_name_until_the_node_goes() -> Result<()> {
    let (ns, host) = World::with_host("node-set-moving", "e2e-moving", "192.168.122.188").await?;
    crate::journey::deploy_to(&ns, &host).await?;
    ready(&ns, &host.name).await?;

    ns.create::<NodeSet>(SET, node_set(&[&host], &[SERVICE])).await?;
    let node = format!("OpenStackDataPlaneNode {}", host.name);
    let is_refused = |it: &NodeSet| {
        says(it.conditions(), "InputReady", "HostTaken", &[&host.name, &node])
            && !holds(it.conditions(), "SetupReady")
    };
    ns.wait::<NodeSet>(SET, "refused", SOON, is_refused).await?;
    let of_node = ns.api::<Node>().get(&host.name).await?;
    assert!(holds(of_node.conditions(), "Ready"), "the node has it");

    ns.remove::<Node>(&host.name).await?;
    // The name is then that of the node set's own node.
    let is_of_set = |it: &Node| it.uid() != of_node.uid() && it.node_set() == Some(SET);
    ns.wait::<Node>(&host.name, "the node set's", SOON, is_of_set).await?;
    ns.good::<NodeSet>(SET, &["SetupReady"], SOON).await?;
    deploy(&ns, "moved").await?;
    assert_eq!(trace(&host), ["hello", "hello"]);

    // The other way round: now the node is the younger one, and has another name.
    let other = "e2e-moving-back";
    journey::node(&ns, other, &host.address).await?;
    let set = format!("OpenStackDataPlaneNodeSet {SET}");
    ns.reports::<Node>(other, "InputReady", "HostTaken", &[other, &set], SOON).await?;
    assert_eq!(trace(&host), ["hello", "hello"]);
    ns.done().await
}
