//! What a node and its role ask for: a cell, none, or something that cannot be.

use common::api::dataplane::{Node, Role};
use common::api::shared::VolMounts;
use common::names::is_dns_subdomain;
use k8s_openapi::api::core::v1::EnvVar;
use kube::ResourceExt;

use crate::annotations::CELL;

/// What the annotations ask for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Wish {
    /// No compute.
    Nothing,
    /// A compute in this cell.
    Cell(String),
    /// A cell that no compute can be in, and why.
    Refused {
        /// One CamelCase word.
        reason: &'static str,
        /// Object, cause and next step.
        message: String,
    },
}

/// The node's own annotation, even an empty one, wins over its role's.
pub fn wish(role: Option<&Role>, node: &Node) -> Wish {
    let (cell, origin) = match (node.annotations().get(CELL), role) {
        (Some(cell), _) => (cell.trim(), format!("OpenStackDataPlaneNode {}", node.name_any())),
        (None, Some(role)) => (
            role.annotations().get(CELL).map(|it| it.trim()).unwrap_or_default(),
            format!("OpenStackDataPlaneRole {}", role.name_any()),
        ),
        (None, None) => return Wish::Nothing,
    };
    if cell.is_empty() {
        return Wish::Nothing;
    }
    if cell.ends_with("cell0") {
        let message = format!(
            "Annotation {CELL} of {origin} names {cell}: cell0 holds instances that failed to \
             schedule and never computes; name another cell."
        );
        return Wish::Refused { reason: "CellZero", message };
    }
    if !is_dns_subdomain(cell) {
        let message = format!(
            "Annotation {CELL} of {origin} is no name of a NovaCell: use lower-case letters, \
             digits, dashes and dots."
        );
        return Wish::Refused { reason: "CellNameInvalid", message };
    }
    Wish::Cell(cell.to_owned())
}

/// The environment of the runs: the node's list if it has one, else the role's.
pub fn env(role: Option<&Role>, node: &Node) -> Vec<EnvVar> {
    let inherited = || role.map(|it| it.spec.env.clone()).unwrap_or_default();
    if node.spec.env.is_empty() { inherited() } else { node.spec.env.clone() }
}

/// The mounts of the runs: the node's list if it has one, else the role's.
pub fn extra_mounts(role: Option<&Role>, node: &Node) -> Vec<VolMounts> {
    let own = node.spec.node.as_ref().map(|it| it.extra_mounts.clone()).unwrap_or_default();
    let inherited = || {
        let template = role.and_then(|it| it.spec.node_template.as_ref());
        template.map(|it| it.extra_mounts.clone()).unwrap_or_default()
    };
    if own.is_empty() { inherited() } else { own }
}
