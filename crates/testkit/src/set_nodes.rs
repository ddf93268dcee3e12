//! Hosts of node sets as the operators describe them: their nodes, and the computes that services of
//! type nova deploy there.

use api::dataplane::{
    DisruptionHolder, DisruptionTarget, HostState, Node, NodeDeployment, NodeStatus, ServiceRun,
};
use api::nova::ExternalCompute;
use serde_json::{Value, json};

/// When everything of these objects happened.
const SINCE: &str = "2026-01-01T00:00:00Z";

/// Returns the node of a host as it is described before the first deployment. UIDs are `uid-NAME`; the
/// generations are 1.
#[must_use]
pub fn node(namespace: &str, set: &str, name: &str, address: &str) -> Node {
    let node = json!({
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneNode",
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("uid-{name}"), "generation": 1,
            "labels": { "dataplane.openstack.org/node-set-uid": format!("uid-{set}") },
            "finalizers": ["dataplane.openstack.org/inventory"],
        },
        "spec": { "nodeSet": set },
        "status": {
            "observedGeneration": 1,
            "group": format!("NodeSet/{set}"),
            "observedNodeSet":
                { "name": set, "uid": format!("uid-{set}"), "generation": 1, "key": name },
            "conditions": [condition("Ready", "False", "NotDeployed")],
            "hostName": format!("{name}.example.org"),
            "address": format!("{address}:22"),
            "inventorySecretName": format!("dataplanenodeset-{set}"),
            "sshKeySecretName": "key",
        },
    });
    read(node)
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": "so it is.",
        "lastTransitionTime": SINCE,
    })
}

/// # Panics
///
/// When the object has another form.
fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the object has its kind's form")
}

/// Returns the node's status, which is empty at first.
fn status(node: &mut Node) -> &mut NodeStatus {
    node.status.get_or_insert_default()
}

/// Records that a deployment, by its UID, begins on the host or is tried there again.
pub fn begin(node: &mut Node, deployment: &str) {
    let attempt = status(node).deployment.as_ref().map_or(0, |it| it.attempt) + 1;
    let begun: NodeDeployment = read(json!({
        "name": format!("{deployment}-name"), "uid": deployment, "state": "Deploying",
        "attempt": attempt, "since": SINCE,
    }));
    let status = status(node);
    status.deployment = Some(begun);
    status.deployed = None;
}

/// Records that all of these services have succeeded on the host, so that it is in service.
pub fn succeed(node: &mut Node, services: &[&str]) {
    let run = |name: &&str| -> ServiceRun {
        read(json!({
            "name": name, "state": "Succeeded", "hash": "h", "deployedHash": "h", "attempt": 1,
            "since": SINCE,
        }))
    };
    let status = status(node);
    if let Some(deployment) = &mut status.deployment {
        deployment.state = HostState::Deployed;
    }
    status.deployed = Some(true);
    status.deployed_config_hash = Some("01234567".to_owned());
    status.deployed_address.clone_from(&status.address);
    status.services = services.iter().map(run).collect();
    status.conditions = read(json!([condition("Ready", "True", "Ready")]));
}

/// Records that a deployment, by its UID, is to disturb the host, and returns that target.
pub fn target(node: &mut Node, deployment: &str) -> DisruptionTarget {
    let disruption = status(node).disruption.get_or_insert_default();
    disruption.last += 1;
    let target = DisruptionTarget { deployment: deployment.to_owned(), number: disruption.last };
    disruption.target = Some(target.clone());
    target
}

/// Records what an operator says about disturbing the host.
pub fn hold(node: &mut Node, holder: DisruptionHolder) {
    let holders = &mut status(node).disruption.get_or_insert_default().holders;
    holders.retain(|it| it.name != holder.name);
    holders.push(holder);
}

/// Returns the compute that nova-operator makes for the node where a service of type nova deploys it;
/// `cell` is the `NovaCell` that it is known to be in.
#[must_use]
pub fn observed_compute(node: &Node, cell: Option<&str>) -> ExternalCompute {
    let (meta, status) = (&node.metadata, node.status.as_ref());
    let host_name = status.and_then(|it| it.host_name.as_deref());
    let mut compute = json!({
        "apiVersion": "nova.openstack.org/v1beta1",
        "kind": "NovaExternalCompute",
        "metadata": {
            "name": meta.name, "namespace": meta.namespace, "generation": 1,
            "uid": format!("uid-compute-{}", meta.name.as_deref().unwrap_or_default()),
            "ownerReferences": [{
                "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneNode",
                "name": meta.name, "uid": meta.uid, "controller": true, "blockOwnerDeletion": true,
            }],
            "finalizers": ["nova.openstack.org/cleanup"],
        },
        "spec": {
            "dataplaneNodeName": meta.name, "management": "Observed", "sshKeySecretName": "key",
        },
        "status": { "observedGeneration": 1, "hostName": host_name },
    });
    if let Some(cell) = cell {
        compute["spec"]["cellName"] = json!(cell);
    }
    read(compute)
}

/// Returns a status that an operator has written beside what others have written into the old one.
#[must_use]
pub fn merged(mut ours: NodeStatus, old: Option<NodeStatus>) -> NodeStatus {
    let Some(old) = old else { return ours };
    ours.conditions.extend(old.conditions.into_iter().filter(|it| it.type_.contains('/')));
    ours.host_vars = old.host_vars;
    let holders = old.disruption.map(|it| it.holders).unwrap_or_default();
    if !holders.is_empty() {
        ours.disruption.get_or_insert_default().holders = holders;
    }
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_and_targets_rise_and_an_operator_has_one_entry() {
        let mut node = node("ns", "edpm", "n0", "192.0.2.7");
        begin(&mut node, "d1");
        succeed(&mut node, &["nova"]);
        begin(&mut node, "d2");
        let begun = node.status.as_ref().and_then(|it| it.deployment.clone()).unwrap();
        assert_eq!(
            (begun.uid.as_str(), begun.attempt, begun.state),
            ("d2", 2, HostState::Deploying)
        );
        let first = target(&mut node, "d2");
        assert_ne!(target(&mut node, "d2"), first);
        for holds in [true, false] {
            let name = "nova.openstack.org".to_owned();
            hold(&mut node, DisruptionHolder { name, holds, ..DisruptionHolder::default() });
        }
        let held: Vec<bool> = node.disruption_holders().iter().map(|it| it.holds).collect();
        assert_eq!(held, [false]);
        let compute = observed_compute(&node, None);
        assert!(compute.is_observed() && compute.spec.cell_name.is_empty());
    }
}
