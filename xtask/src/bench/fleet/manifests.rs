//! The objects of a measured fleet.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::{Fleet, Road};

/// The namespace of all objects.
pub(super) const NAMESPACE: &str = "edpm-bench";
/// The name of the role; those of node sets and deployments begin with it.
pub(super) const NAME: &str = "bench";
/// The resource of roles.
pub(super) const ROLES: &str = "openstackdataplaneroles";
/// The resource of node sets.
pub(super) const NODE_SETS: &str = "openstackdataplanenodesets";
/// The resource of deployments.
pub(super) const DEPLOYMENTS: &str = "openstackdataplanedeployments";
/// The resource of nodes.
pub(super) const NODES: &str = "openstackdataplanenodes";
/// The resource of computes.
pub(super) const COMPUTES: &str = "novaexternalcomputes";
/// The resource of cells.
pub(super) const CELLS: &str = "novacells";
/// The cell of all computes, and its Secret.
pub(super) const CELL: &str = "nova-cell1";
/// The `ConfigMap` with the default configuration of computes.
pub(super) const DEFAULT_CONFIG: &str = "bench-nova";
/// The default services of a role.
pub(super) const SERVICES: [&str; 5] =
    ["configure-network", "validate-network", "install-os", "configure-os", "run-os"];
/// The most hosts of a measurement.
pub(super) const MOST: usize = 5000;
/// The most hosts of a node set.
pub(super) const SET: usize = 500;
/// The node sets of one deployment.
pub(super) const SETS_OF_DEPLOYMENT: usize = 5;
const BUS_SECRET: &str = "bench-bus";
const SSH_SECRET: &str = "bench-ssh";
/// A key in a form that ssh reads; no host accepts it.
const PRIVATE_KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\n\
    b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABbm8gb25lJ3M=\n\
    -----END OPENSSH PRIVATE KEY-----\n";

/// Returns what is there before the hosts. Their keys are learned at first contact.
pub(super) fn prerequisites() -> Vec<Value> {
    vec![
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } }),
        secret(SSH_SECRET, &json!({ "ssh-privatekey": PRIVATE_KEY })),
    ]
}

/// Returns the cell of computes, with the servers that the simulated cluster has for it.
pub(super) fn cell(servers: &Value) -> [Value; 4] {
    let spec = json!({
        "cellName": "cell1", "secret": CELL, "cellMessageBusSecretName": BUS_SECRET,
        "keystoneAuthURL": servers["keystoneURL"], "cellDatabaseHostname": "192.0.2.30",
        "conductorServiceTemplate": {}, "noVNCProxyServiceTemplate": {}, "serviceAccount": "nova",
    });
    let mut cell = object("NovaCell", CELL, &spec);
    cell["apiVersion"] = json!("nova.openstack.org/v1beta1");
    [
        secret(CELL, &json!({ "ServicePassword": servers["password"] })),
        secret(BUS_SECRET, &json!({ "transport_url": servers["transportURL"] })),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": DEFAULT_CONFIG, "namespace": NAMESPACE },
            "data": default_config(0),
        }),
        cell,
    ]
}

/// Returns the default configuration of computes, which differs in each edition.
pub(super) fn default_config(edition: usize) -> Value {
    json!({ "02-nova-default.conf": format!("[DEFAULT]\nreserved_host_memory_mb = {}\n", 512 + edition) })
}

/// Returns what describes the hosts, in the order in which it is created.
pub(super) fn hosts(fleet: Fleet) -> Vec<Value> {
    if fleet.road == Road::NodeSet {
        return sets(fleet.nodes).into_iter().enumerate().map(|(k, it)| node_set(k, it)).collect();
    }
    let mut objects: Vec<Value> = (0..fleet.nodes).map(node).collect();
    let at = if fleet.nodes_first { objects.len() } else { 0 };
    objects.insert(at, role(fleet.road));
    objects
}

/// Returns the hosts of each node set.
pub(super) fn sets(n_hosts: usize) -> Vec<Range<usize>> {
    (0..n_hosts).step_by(SET).map(|begin| begin..n_hosts.min(begin + SET)).collect()
}

/// Returns the name of a node set.
pub(super) fn set_name(k: usize) -> String {
    format!("{NAME}-{k}")
}

/// Returns deployments of these node sets, whose names begin with that of a step.
pub(super) fn deployments(step: &str, n_sets: usize) -> Vec<Value> {
    let names: Vec<String> = (0..n_sets).map(set_name).collect();
    let parts = names.chunks(SETS_OF_DEPLOYMENT).enumerate();
    let deployment = |(k, sets)| {
        object(
            "OpenStackDataPlaneDeployment",
            &format!("{NAME}-{step}-{k}"),
            &json!({ "nodeSets": sets }),
        )
    };
    parts.map(deployment).collect()
}

/// Returns a deployment to one host alone.
pub(super) fn deployment_to(step: &str, idx: usize) -> Value {
    let spec = json!({ "nodeSets": [set_name(idx / SET)], "ansibleLimit": name(idx) });
    object("OpenStackDataPlaneDeployment", &format!("{NAME}-{step}"), &spec)
}

/// Returns a node of the role.
pub(super) fn node(idx: usize) -> Value {
    object(
        "OpenStackDataPlaneNode",
        &name(idx),
        &json!({ "role": NAME, "ansibleHost": address(idx) }),
    )
}

/// Returns the entry of a host in its node set.
pub(super) fn entry(idx: usize) -> Value {
    json!({ "hostName": name(idx), "ansible": { "ansibleHost": address(idx) } })
}

fn role(road: Road) -> Value {
    let spec = json!({
        "preProvisioned": true,
        "services": SERVICES,
        "deployStrategy": { "deploy": true },
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": SSH_SECRET, "ansibleUser": "cloud-admin" },
    });
    let mut role = object("OpenStackDataPlaneRole", NAME, &spec);
    if road == Road::Compute {
        role["metadata"]["annotations"] = json!({
            "nova.openstack.org/cell": CELL, "nova.openstack.org/default-config": DEFAULT_CONFIG,
        });
    }
    role
}

fn node_set(k: usize, hosts: Range<usize>) -> Value {
    let spec = json!({
        "preProvisioned": true,
        "tlsEnabled": false,
        "services": SERVICES,
        "nodeTemplate": {
            "ansibleSSHPrivateKeySecret": SSH_SECRET,
            "ansible": { "ansibleUser": "cloud-admin" },
        },
        "nodes": hosts.map(|idx| (name(idx), entry(idx))).collect::<Map<_, _>>(),
    });
    object("OpenStackDataPlaneNodeSet", &set_name(k), &spec)
}

fn secret(name: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": NAMESPACE }, "stringData": data,
    })
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": spec,
    })
}

/// Returns the name of a host and of its node and compute.
pub(super) fn name(idx: usize) -> String {
    format!("bench-{idx:04}")
}

/// Returns an address of the network that is set apart for benchmarks.
fn address(idx: usize) -> String {
    format!("198.18.{}.{}", idx / 250, idx % 250 + 1)
}

/// Returns the objects as one text for kubectl.
pub(super) fn text(objects: &[Value]) -> String {
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    texts.join("\n---\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(fleet: Fleet) -> Vec<String> {
        hosts(fleet).iter().map(|it| it["kind"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_role_comes_before_its_nodes_or_after_them() {
        let fleet = Fleet { road: Road::Role, nodes: 2, nodes_first: false };
        let (role, node) = ("OpenStackDataPlaneRole", "OpenStackDataPlaneNode");
        assert_eq!(kinds(fleet), [role, node, node]);
        assert_eq!(kinds(Fleet { nodes_first: true, ..fleet }), [node, node, role]);
    }

    #[test]
    fn five_node_sets_of_at_most_five_hundred_hosts_share_a_deployment() {
        let sizes = |n| sets(n).iter().map(ExactSizeIterator::len).collect::<Vec<_>>();
        assert_eq!((sizes(200), sizes(501)), (vec![200], vec![500, 1]));
        assert_eq!(sizes(MOST), [SET; 10]);
        let of = |n_sets| deployments("first", n_sets);
        let named: Vec<Value> = of(10).iter().map(|it| it["spec"]["nodeSets"].clone()).collect();
        assert_eq!(named.len(), 2);
        assert_eq!(named[1], json!(["bench-5", "bench-6", "bench-7", "bench-8", "bench-9"]));
        assert_eq!(of(1)[0]["metadata"]["name"], "bench-first-0");
        let last = deployment_to("add", MOST - 1);
        assert_eq!(last["spec"], json!({ "nodeSets": ["bench-9"], "ansibleLimit": "bench-4999" }));
        assert_eq!(entry(MOST - 1)["ansible"]["ansibleHost"], "198.18.19.250");
    }
}
