//! Nodes without a role, nodes that get one, and services with two writers.

use anyhow::Result;
use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, Role, Service};
use api::nova::ExternalCompute;
use e2e::journey::{self, ROLE, SERVICE, SSH_SECRET, ready};
use e2e::{SOON, says};
use k8s_openapi::api::core::v1::Service as CoreService;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::json;

use crate::journey::trace;
use crate::world::World;

#[tokio::test]
async fn a_node_without_a_role_is_deployed_and_keeps_that_under_a_role() -> Result<()> {
    let (ns, host) = World::with_host("alone", "e2e-alone", "192.168.122.192").await?;
    crate::journey::ssh_secret(&ns, &host).await?;
    crate::journey::deploy(&ns, &[]).await?;
    let spec = json!({
        "hostName": host.name,
        "ansibleHost": host.address,
        "services": [SERVICE],
        "deployStrategy": { "deploy": true },
        "node": { "ansibleSSHPrivateKeySecret": SSH_SECRET, "ansibleUser": "cloud-admin" },
    });
    ns.create::<Node>(&host.name, spec).await?;
    ready(&ns, &host.name).await?;
    assert_eq!(trace(&host), ["hello"]);

    let to_role = json!({ "spec": { "role": ROLE, "services": null } });
    ns.merge::<Node>(&host.name, to_role).await?;
    let follows = |it: &Node| {
        let observed = it.status.as_ref().and_then(|it| it.observed_role.as_ref());
        observed.is_some_and(|it| it.name == ROLE)
    };
    ns.wait::<Node>(&host.name, "under its role", SOON, follows).await?;
    ready(&ns, &host.name).await?;

    // Deleting a role removes nothing from its nodes.
    ns.remove::<Role>(ROLE).await?;
    let node = ns.reports::<Node>(&host.name, "InputReady", "RoleNotFound", &[ROLE], SOON).await?;
    assert!(says(node.conditions(), "Ready", "Ready", &[]), "{:?}", node.conditions());
    ns.create::<Role>(ROLE, journey::role()).await?;
    ready(&ns, &host.name).await?;
    assert_eq!(trace(&host), ["hello"]);
    ns.done().await
}

#[tokio::test]
async fn a_service_of_novas_type_keeps_the_computes_of_its_role_from_running() -> Result<()> {
    let ns = World::new("two-writers").await?;
    let service = json!({ "playbook": "a.b.c", "edpmServiceType": "nova" });
    ns.create::<Service>("own", service).await?;
    let role = json!({ "preProvisioned": true, "services": [] });
    let annotations = json!({ "annotations": { "nova.openstack.org/cell": "nova-cell1" } });
    ns.create_with::<Role>(ROLE, role, annotations).await?;
    let spec = json!({ "role": ROLE, "hostName": "n0", "ansibleHost": "192.168.123.254" });
    ns.create::<Node>("n0", spec).await?;
    ns.wait::<ExternalCompute>("n0", "a compute", SOON, |it| !it.is_observed()).await?;
    ns.merge::<Role>(ROLE, json!({ "spec": { "services": ["own"] } })).await?;
    let words = ["OpenStackDataPlaneService own", "OpenStackDataPlaneRole compute", "off the list"];
    let told = "nova.openstack.org/Compute";
    ns.reports::<Node>("n0", told, "NovaServiceListed", &words, SOON).await?;
    ns.reports::<ExternalCompute>("n0", "InputReady", "NovaServiceListed", &words, SOON).await?;
    assert!(ns.list::<AnsibleEe>().await?.is_empty(), "something ran");
    ns.merge::<Role>(ROLE, json!({ "spec": { "services": [] } })).await?;
    let is_off = |it: &Node| !says(it.conditions(), told, "NovaServiceListed", &[]);
    ns.wait::<Node>("n0", "off the list", SOON, is_off).await?;
    ns.done().await
}

#[tokio::test]
async fn the_ports_of_a_service_follow_the_nodes_that_get_it() -> Result<()> {
    let (ns, host) = World::with_host("ports", "e2e-ports-0", "192.168.122.193").await?;
    let hosts = [host.clone(), ns.host_like(&host, "e2e-ports-1", "192.168.122.194")];
    crate::journey::ssh_secret(&ns, &hosts[0]).await?;
    crate::journey::deploy(&ns, &[&hosts[0], &hosts[1]]).await?;
    // A node that no run has reached: its address may belong to another cluster's pod.
    let foreign = json!({
        "role": ROLE,
        "hostName": "foreign",
        "ansibleHost": "10.244.0.7",
        "deployStrategy": { "deploy": false },
    });
    ns.create::<Node>("foreign", foreign).await?;
    let ports = json!({ "spec": { "services": [{ "name": "metrics", "port": 9100 }] } });
    ns.merge::<Service>(SERVICE, ports).await?;
    for host in &hosts {
        ready(&ns, &host.name).await?;
    }
    let addresses = |it: &EndpointSlice| -> Vec<String> {
        it.endpoints.iter().flat_map(|it| it.addresses.clone()).collect()
    };
    let has_both = |it: &EndpointSlice| addresses(it) == ["192.168.122.193", "192.168.122.194"];
    ns.wait::<EndpointSlice>("metrics-0", "both addresses", SOON, has_both).await?;
    let is_told = |it: &Service| {
        let words = ["2 addresses", "OpenStackDataPlaneNode foreign"];
        says(it.conditions(), "EndpointsReady", "Exposed", &words)
    };
    ns.wait::<Service>(SERVICE, "the node that nobody has reached", SOON, is_told).await?;
    let is_exposed = |it: &CoreService| {
        let ports = it.spec.as_ref().and_then(|it| it.ports.as_ref());
        ports.into_iter().flatten().any(|it| it.port == 9100)
    };
    ns.wait::<CoreService>("metrics", "the port", SOON, is_exposed).await?;
    ns.remove::<Node>(&hosts[0].name).await?;
    let has_one = |it: &EndpointSlice| addresses(it) == ["192.168.122.194"];
    ns.wait::<EndpointSlice>("metrics-0", "one address", SOON, has_one).await?;
    ns.merge::<Service>(SERVICE, json!({ "spec": { "services": [] } })).await?;
    ns.gone::<CoreService>("metrics", SOON).await?;
    ns.gone::<EndpointSlice>("metrics-0", SOON).await?;
    ns.done().await
}
