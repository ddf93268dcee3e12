//! The compute that a node and its group request: one in a cell, one that a service deploys, or none.

use api::dataplane::Node;
use api::names::is_dns_subdomain;
use api::problem::Problem;
use kube::ResourceExt;
use nova_config::annotations::CELL;

use crate::group::inherited_annotation::annotation;
use crate::group::{Group, group_key};
use crate::reasons;
use crate::requested::mounted_cell::{NovaServices, ObservedCell};

/// The compute that is requested.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DesiredCompute {
    /// No compute.
    Nothing,
    /// One in this cell that the operator deploys.
    Managed(String),
    /// One that a service of type nova deploys.
    Observed {
        /// Its cell, as far as the service tells.
        cell: ObservedCell,
    },
    /// Unknown: the group that would name the cell does not exist.
    Unknown {
        /// The group that the node names, by kind and name.
        group: String,
    },
    /// A cell that no compute can be in, and why.
    Refused(Problem),
}

impl DesiredCompute {
    /// Returns the cell that is requested, as far as it is known.
    pub fn cell(&self) -> Option<&str> {
        match self {
            Self::Managed(cell) | Self::Observed { cell: ObservedCell::Mounted(cell) } => {
                Some(cell)
            }
            Self::Nothing | Self::Observed { .. } | Self::Unknown { .. } | Self::Refused(_) => None,
        }
    }
}

/// Returns the requested compute. A listed service of type nova takes precedence over annotations, and
/// these over one that was run and is not listed any more.
///
/// `group` is the one that the node names, or `None` when it does not exist.
pub fn desired(group: Option<&Group>, node: &Node, nova: &NovaServices) -> DesiredCompute {
    let observed = || DesiredCompute::Observed { cell: nova.cell() };
    if nova.listed.is_some() {
        return observed();
    }
    let asked = annotated(group, node);
    let is_free = asked == DesiredCompute::Nothing && annotation(group, node, CELL).is_none();
    if is_free && nova.deployed.is_some() { observed() } else { asked }
}

/// Returns what annotations request: the node's own, even an empty one, takes precedence over its
/// group's.
pub fn annotated(group: Option<&Group>, node: &Node) -> DesiredCompute {
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
    DesiredCompute::Managed(cell.to_owned())
}
