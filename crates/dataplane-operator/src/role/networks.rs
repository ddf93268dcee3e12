//! Faults of network attachments: they must exist, and a role and its nodes must agree on them.

use std::time::Duration;

use api::dataplane::Node;
use api::problem::Problem;
use kube::ResourceExt;

use crate::known_networks::Networks;
use crate::reasons;
use crate::role::observed::Observed;

/// The requeue interval while the cluster does not serve the kind.
pub const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Returns whether faults say that the cluster does not serve the kind; no informer reports when it
/// does.
pub fn are_unserved(faults: &[Problem]) -> bool {
    faults.iter().any(|it| *it.reason == reasons::inputs::NETWORK_ATTACHMENTS_NOT_SERVED)
}

/// Returns the faults of the role's list.
pub fn of_role(seen: &Observed) -> Vec<Problem> {
    let Some(role) = &seen.role else { return Vec::new() };
    let names = &role.spec.network_attachments;
    missing(&seen.networks, names, "OpenStackDataPlaneRole", &role.name_any())
}

/// Returns the faults of the node's own list.
pub fn of_node(seen: &Observed, node: &Node) -> Vec<Problem> {
    let own = &node.spec.network_attachments;
    let mut faults = missing(&seen.networks, own, "OpenStackDataPlaneNode", &node.name_any());
    faults.extend(disagreement(seen, node));
    faults
}

/// Returns the faults of attachments that an object names and that do not exist in the namespace.
pub fn missing(networks: &Networks, names: &[String], kind: &str, object: &str) -> Vec<Problem> {
    let place = format!("spec.networkAttachments of {kind} {object}");
    let absent = |name: &String| {
        let text = format!(
            "NetworkAttachmentDefinition {name}, named in {place}, does not exist: create it, or \
             correct the list."
        );
        Problem::new(&reasons::inputs::NETWORK_ATTACHMENT_NOT_FOUND, text)
    };
    match networks {
        Networks::Known(known) => {
            names.iter().filter(|it| !known.contains(*it)).map(absent).collect()
        }
        Networks::NotServed if !names.is_empty() => vec![Problem::new(
            &reasons::inputs::NETWORK_ATTACHMENTS_NOT_SERVED,
            format!(
                "{place} is set, but this cluster has no kind NetworkAttachmentDefinition \
                 (k8s.cni.cncf.io/v1): install Multus, or empty the list."
            ),
        )],
        Networks::NotServed | Networks::NotNamed => Vec::new(),
    }
}

/// Compares the node's list with the role's or, without one, with that of the first node that has a
/// list.
fn disagreement(seen: &Observed, node: &Node) -> Option<Problem> {
    let own = &node.spec.network_attachments;
    if own.is_empty() {
        return None;
    }
    let of_role = seen.role.as_ref().filter(|it| !it.spec.network_attachments.is_empty());
    let (kind, name, expected) = if let Some(role) = of_role {
        ("OpenStackDataPlaneRole", role.name_any(), &role.spec.network_attachments)
    } else {
        let first = seen.nodes.iter().find(|it| !it.spec.network_attachments.is_empty())?;
        ("OpenStackDataPlaneNode", first.name_any(), &first.spec.network_attachments)
    };
    (own != expected).then(|| {
        let text = format!(
            "spec.networkAttachments of OpenStackDataPlaneNode {} ({}) and of {kind} {name} ({}) \
             differ: make them equal, in the same order, or empty the node's.",
            node.name_any(),
            own.join(", "),
            expected.join(", ")
        );
        Problem::new(&reasons::role::NETWORK_ATTACHMENTS_DIFFER, text)
    })
}
