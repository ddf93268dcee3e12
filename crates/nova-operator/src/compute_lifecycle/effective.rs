//! The compute that a node and its role request: a cell, none, or an invalid cell.

use api::dataplane::Node;
use api::names::is_dns_subdomain;
use api::problem::Problem;
use kube::ResourceExt;
use nova_config::annotations::CELL;

use crate::group::{Group, group_key};
use crate::reasons;

/// The compute that the annotations request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DesiredCompute {
    /// No compute.
    Nothing,
    /// A compute in this cell.
    Cell(String),
    /// Unknown: the group that would name the cell does not exist.
    Unknown {
        /// The group that the node names, by kind and name.
        group: String,
    },
    /// A cell that no compute can be in, and why.
    Refused(Problem),
}

/// Returns the requested compute; the node's own annotation, even an empty one, takes precedence
/// over its group's.
///
/// `group` is the one that the node names, or `None` when it does not exist.
pub fn desired(group: Option<&Group>, node: &Node) -> DesiredCompute {
    if node.node_set().is_some() {
        // A service of type nova deploys the computes of node sets.
        return DesiredCompute::Nothing;
    }
    if let Some(cell) = node.annotations().get(CELL) {
        return of_annotation(cell, &format!("OpenStackDataPlaneNode {}", node.name_any()));
    }
    match (group, group_key(node)) {
        (Some(group), _) => desired_of_group(group),
        (None, Some(key)) => DesiredCompute::Unknown { group: key.title() },
        (None, None) => DesiredCompute::Nothing,
    }
}

/// Returns what a group requests for nodes without an annotation of their own.
pub fn desired_of_group(group: &Group) -> DesiredCompute {
    match group.annotations().get(CELL) {
        Some(cell) => of_annotation(cell, &group.title()),
        None => DesiredCompute::Nothing,
    }
}

fn of_annotation(cell: &str, origin: &str) -> DesiredCompute {
    let cell = cell.trim();
    if cell.is_empty() {
        return DesiredCompute::Nothing;
    }
    if cell.ends_with("cell0") {
        let message = format!(
            "Annotation {CELL} of {origin} names {cell}: cell0 holds instances that failed to \
             schedule and never has computes; name another cell."
        );
        return DesiredCompute::Refused(Problem::new(&reasons::node::CELL_ZERO, message));
    }
    if !is_dns_subdomain(cell) {
        let message = format!(
            "Annotation {CELL} of {origin} is not a valid NovaCell name: use lower-case letters, \
             digits, dashes and dots."
        );
        return DesiredCompute::Refused(Problem::new(&reasons::node::CELL_NAME_INVALID, message));
    }
    DesiredCompute::Cell(cell.to_owned())
}
