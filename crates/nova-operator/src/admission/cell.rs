//! The webhooks on nodes and roles, which reject a change that would move a compute to another
//! cell.
//!
//! They answer from caches, on every replica, and send no requests to the API server.

use api::dataplane::{Node, NodeSpec, Role};
use kube::core::DynamicObject;
use operator_runtime::webhook::{AdmissionDecision, Request, Webhook};

use crate::admission::caches::AdmissionCaches;
use crate::requested::cell_immutability::{
    CellChangeFault, faults_of_node, faults_of_role, rejection,
};
use crate::shared_caches::SharedCaches;

/// Path of the webhook on nodes.
pub const NODE: &str = "/validate-dataplane-openstack-org-v1beta1-openstackdataplanenode";
/// Path of the webhook on roles.
pub const ROLE: &str = "/validate-dataplane-openstack-org-v1beta1-openstackdataplanerole";

/// CEL expression: whether an object has the annotation.
macro_rules! has_cell {
    ($object:literal) => {
        concat!(
            "has(",
            $object,
            ".metadata.annotations) && 'nova.openstack.org/cell' in ",
            $object,
            ".metadata.annotations"
        )
    };
}

/// CEL expression: a list of the annotation's value, empty without the annotation. A list
/// distinguishes an absent value from an empty one and cannot fail: a failing condition would
/// reject the update.
macro_rules! cell {
    ($object:literal) => {
        concat!(
            "(",
            has_cell!($object),
            " ? [",
            $object,
            ".metadata.annotations['nova.openstack.org/cell']] : [])"
        )
    };
}

/// CEL expression: the same for the role that a node names.
macro_rules! role {
    ($object:literal) => {
        concat!(
            "(has(",
            $object,
            ".spec) && has(",
            $object,
            ".spec.role) ? [",
            $object,
            ".spec.role] : [])"
        )
    };
}

/// CEL condition: an update of a node that the webhook must check; all others pass without a call.
pub const NODE_CHANGES: &str = concat!(
    cell!("object"),
    " != ",
    cell!("oldObject"),
    " || ",
    role!("object"),
    " != ",
    role!("oldObject")
);
/// CEL condition: an update of a role that the webhook must check.
pub const ROLE_CHANGES: &str = concat!(cell!("object"), " != ", cell!("oldObject"));
/// CEL condition: a new node or role that the webhook must check.
pub const HAS_CELL: &str = has_cell!("object");

/// Why a change is rejected before the caches are filled.
const UNTOLD: &str =
    "nova-operator has just started and has not read the computes yet: try again in a moment";

/// Adds both webhooks.
pub fn add(webhook: Webhook, known: &AdmissionCaches) -> Webhook {
    let (of_nodes, of_roles) = (known.clone(), known.clone());
    webhook
        .validate(NODE, move |it| of_node(it, &of_nodes))
        .validate(ROLE, move |it| of_role(it, &of_roles))
}

/// Validates a node.
pub(crate) fn of_node(request: &Request, known: &AdmissionCaches) -> AdmissionDecision {
    validate_cell(request, known, node, faults_of_node)
}

/// Validates a role.
pub(crate) fn of_role(request: &Request, known: &AdmissionCaches) -> AdmissionDecision {
    validate_cell(request, known, role, faults_of_role)
}

/// Denies a change with faults, and every update while the caches are not yet filled.
fn validate_cell<K>(
    request: &Request,
    known: &AdmissionCaches,
    read: fn(&DynamicObject) -> K,
    faults: fn(Option<&K>, &K, &SharedCaches) -> Vec<CellChangeFault>,
) -> AdmissionDecision {
    let Some(new) = request.object.as_ref().map(read) else { return AdmissionDecision::allow() };
    let old = request.old_object.as_ref().map(read);
    let shared_caches = match (known.now(), &old) {
        (Some(shared_caches), _) => shared_caches,
        // A new object is checked without any others.
        (None, None) => SharedCaches::default(),
        (None, Some(_)) => return AdmissionDecision::ask_again(UNTOLD),
    };
    let faults = faults(old.as_ref(), &new, &shared_caches);
    if faults.is_empty() {
        AdmissionDecision::allow()
    } else {
        AdmissionDecision::deny(rejection(&faults))
    }
}

/// Reads only the fields that count for the cell: invalid other fields must not prevent the check.
fn node(object: &DynamicObject) -> Node {
    let spec = &object.data["spec"];
    let name = |field: &str| spec[field].as_str().map(str::to_owned);
    let spec = NodeSpec { role: name("role"), node_set: name("nodeSet"), ..NodeSpec::default() };
    Node { metadata: object.metadata.clone(), spec, status: None }
}

fn role(object: &DynamicObject) -> Role {
    Role { metadata: object.metadata.clone(), ..Role::default() }
}

#[cfg(test)]
mod tests;
