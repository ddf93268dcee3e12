//! The objects of a measured fleet.

use serde_json::{Map, Value, json};

use super::{Fleet, Road};

/// The namespace of all objects.
pub(super) const NAMESPACE: &str = "edpm-bench";
/// The name of the role, the node set and the deployment.
pub(super) const NAME: &str = "bench";
/// The resource of roles.
pub(super) const ROLES: &str = "openstackdataplaneroles";
/// The resource of node sets.
pub(super) const NODE_SETS: &str = "openstackdataplanenodesets";
/// The resource of deployments.
pub(super) const DEPLOYMENTS: &str = "openstackdataplanedeployments";
/// The default services of a role.
pub(super) const SERVICES: [&str; 5] =
    ["configure-network", "validate-network", "install-os", "configure-os", "run-os"];
/// The hosts that have an address below.
pub(super) const ADDRESSES: usize = 5000;
const SSH_SECRET: &str = "bench-ssh";
/// A key in a form that ssh reads; no host accepts it.
const PRIVATE_KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\n\
    b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABbm8gb25lJ3M=\n\
    -----END OPENSSH PRIVATE KEY-----\n";

/// Returns what is there before the hosts. Their keys are learned at first contact.
pub(super) fn prerequisites() -> String {
    documents([
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } }),
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": SSH_SECRET, "namespace": NAMESPACE },
            "stringData": { "ssh-privatekey": PRIVATE_KEY },
        }),
    ])
}

/// Returns the hosts, in the order in which they are created.
pub(super) fn of(fleet: Fleet) -> String {
    match fleet.road {
        Road::Role => documents(std::iter::once(role()).chain((0..fleet.nodes).map(|idx| {
            let spec = json!({ "role": NAME, "ansibleHost": address(idx) });
            object("OpenStackDataPlaneNode", &name(idx), &spec)
        }))),
        Road::NodeSet => {
            let spec = json!({ "nodeSets": [NAME] });
            let deployment = object("OpenStackDataPlaneDeployment", NAME, &spec);
            documents([node_set(fleet.nodes), deployment])
        }
    }
}

fn role() -> Value {
    let spec = json!({
        "preProvisioned": true,
        "services": SERVICES,
        "deployStrategy": { "deploy": true },
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": SSH_SECRET, "ansibleUser": "cloud-admin" },
    });
    object("OpenStackDataPlaneRole", NAME, &spec)
}

fn node_set(n_nodes: usize) -> Value {
    let node = |idx: usize| {
        let ansible = json!({ "ansibleHost": address(idx) });
        (name(idx), json!({ "hostName": name(idx), "ansible": ansible }))
    };
    let spec = json!({
        "preProvisioned": true,
        "tlsEnabled": false,
        "services": SERVICES,
        "nodeTemplate": {
            "ansibleSSHPrivateKeySecret": SSH_SECRET,
            "ansible": { "ansibleUser": "cloud-admin" },
        },
        "nodes": (0..n_nodes).map(node).collect::<Map<_, _>>(),
    });
    object("OpenStackDataPlaneNodeSet", NAME, &spec)
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": spec,
    })
}

fn name(idx: usize) -> String {
    format!("bench-{idx:04}")
}

/// Returns an address of the network that is set apart for benchmarks.
fn address(idx: usize) -> String {
    format!("198.18.{}.{}", idx / 250, idx % 250 + 1)
}

fn documents(objects: impl IntoIterator<Item = Value>) -> String {
    let texts: Vec<String> = objects.into_iter().map(|it| it.to_string()).collect();
    texts.join("\n---\n")
}
