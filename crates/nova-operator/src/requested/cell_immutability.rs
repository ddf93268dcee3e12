//! The immutable cell of a compute: one evaluation for the webhook, which rejects changes, and for
//! the controllers, which apply the rule when no webhook did.

use std::sync::Arc;

use api::dataplane::{Node, Role};
use api::nova::ExternalCompute;
use api::problem::Problem;
use kube::ResourceExt;
use nova_config::annotations::{ALLOW_REMOVAL, CELL};
use operator_core::object_key::Key;

use crate::group::Group;
use crate::requested::desired_compute::{DesiredCompute, annotated, desired, desired_of_group};
use crate::requested::mounted_cell::{NovaServices, ObservedCell};
use crate::shared_caches::SharedCaches;
use crate::shared_caches::indexes::BY_ROLE;

mod mismatch;
#[cfg(test)]
mod tests;

pub use mismatch::Mismatch;

/// The number of computes that a rejection names.
const NAMED: usize = 5;

/// How the cell that a node requests relates to the compute that the node owns.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CellBinding {
    /// The compute is in the requested cell.
    Agrees,
    /// The named group does not exist, so the requested cell is unknown and nothing changes.
    Unknown {
        /// The group that the node names, by kind and name.
        group: String,
    },
    /// Services do not tell the cell of a compute that they deploy, and none is recorded.
    CellUnknown(ObservedCell),
    /// Another cell or none is requested; the compute holds nothing that deleting it would lose.
    Replaceable,
    /// No cell is requested, and the user's annotation allows the deletion of the compute.
    MayGo,
    /// Another cell or none is requested, and the compute stays unchanged.
    Bound(Mismatch),
}

/// Compares what a node requests with the compute that it owns, which must not be terminating; `has_runs`
/// is whether a run of it exists.
pub fn binding_of(
    group: Option<&Group>,
    node: &Node,
    compute: &ExternalCompute,
    nova: &NovaServices,
    has_runs: bool,
) -> CellBinding {
    // Beside a service of type nova, a managed compute stays as it is and runs nothing.
    if !compute.is_observed() {
        return binding(&annotated(group, node), node, compute, has_runs);
    }
    // What the services of the node have deployed is known to the node.
    let has_run = has_runs || nova.deployed.is_some();
    binding(&desired(group, node, nova), node, compute, has_run)
}

/// Compares what is requested with the compute that a node owns.
fn binding(
    requested: &DesiredCompute,
    node: &Node,
    compute: &ExternalCompute,
    has_runs: bool,
) -> CellBinding {
    let own = &compute.spec.cell_name;
    let asked = match requested {
        DesiredCompute::Managed(cell) if cell == own && !compute.is_observed() => {
            return CellBinding::Agrees;
        }
        DesiredCompute::Observed { cell } if compute.is_observed() => match cell {
            ObservedCell::Mounted(cell) if cell != own && !own.is_empty() => Some(cell.clone()),
            ObservedCell::Several(cells) if !own.is_empty() && !cells.contains(own) => {
                Some(cells.join(" and "))
            }
            ObservedCell::None | ObservedCell::Several(_) if own.is_empty() => {
                return CellBinding::CellUnknown(cell.clone());
            }
            ObservedCell::Mounted(_) | ObservedCell::None | ObservedCell::Several(_) => {
                return CellBinding::Agrees;
            }
        },
        DesiredCompute::Managed(cell) => Some(cell.clone()),
        DesiredCompute::Nothing | DesiredCompute::Observed { .. } => None,
        DesiredCompute::Unknown { group } => return CellBinding::Unknown { group: group.clone() },
        // Reported separately; an invalid cell name does not move the compute.
        DesiredCompute::Refused(_) => return CellBinding::Agrees,
    };
    let has_run = has_run(compute, has_runs);
    if !has_run && compute.spec.custom_service_config.is_none() {
        return CellBinding::Replaceable;
    }
    if asked.is_none() && allows_removal(node) {
        return CellBinding::MayGo;
    }
    CellBinding::Bound(Mismatch::of(compute, asked, has_run))
}

/// Whether the compute has ever had a run, or was found in nova: its status records an attempt before the
/// run is created.
pub fn has_run(compute: &ExternalCompute, has_runs: bool) -> bool {
    let status = compute.status.as_ref();
    has_runs || status.is_some_and(|it| !it.services.is_empty() || it.service_id.is_some())
}

/// Whether this node is the compute's controller; an earlier node of the same name is not.
pub fn owns(node: &Node, compute: &ExternalCompute) -> bool {
    let owners = compute.metadata.owner_references.as_deref().unwrap_or_default();
    let controller = owners.iter().find(|it| it.controller == Some(true));
    controller.is_some_and(|it| Some(&it.uid) == node.metadata.uid.as_ref())
}

fn allows_removal(node: &Node) -> bool {
    node.annotations().get(ALLOW_REMOVAL).is_some_and(|it| it == "true")
}

/// Why a change is rejected.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CellChangeFault {
    /// The annotation holds a value that cannot be the cell of a compute.
    Invalid {
        /// Object, cause and next step.
        message: String,
    },
    /// The change requests another cell, or none, for a compute that has run.
    Bound(Mismatch),
    /// The change makes the cell of a compute that has run depend on a group that does not exist.
    GroupUnknown {
        /// The compute, and the requested cell, which is still `None`.
        mismatch: Mismatch,
        /// The group, by kind and name.
        group: String,
    },
}

/// Returns the reasons to reject a change of a node; `old` is `None` when the node is created.
pub fn faults_of_node(
    old: Option<&Node>,
    new: &Node,
    caches: &SharedCaches,
) -> Vec<CellChangeFault> {
    let asked = |it: &Node| annotated(caches.group_of(it).as_ref(), it);
    fault(old.map(asked), &asked(new), new, caches).into_iter().collect()
}

/// Returns the reasons to reject a change of a role; `old` is `None` when the role is created.
pub fn faults_of_role(
    old: Option<&Role>,
    new: &Role,
    caches: &SharedCaches,
) -> Vec<CellChangeFault> {
    let asked = |it: &Role| desired_of_group(&Group::Role(Arc::new(it.clone())));
    let (before, after) = (old.map(asked), asked(new));
    if before.as_ref() == Some(&after) || new.metadata.deletion_timestamp.is_some() {
        return vec![];
    }
    if let DesiredCompute::Refused(Problem { message, .. }) = after {
        return vec![CellChangeFault::Invalid { message }];
    }
    let nodes = caches.nodes.indexed(BY_ROLE, &Key::of(new));
    let inherits = |it: &&Arc<Node>| !it.annotations().contains_key(CELL);
    nodes
        .iter()
        .filter(inherits)
        .filter_map(|it| fault(before.clone(), &after, it, caches))
        .collect()
}

/// Returns the reason to reject a change of a node; an unchanged request is never rejected.
fn fault(
    before: Option<DesiredCompute>,
    after: &DesiredCompute,
    node: &Node,
    caches: &SharedCaches,
) -> Option<CellChangeFault> {
    if before.as_ref() == Some(after) || node.metadata.deletion_timestamp.is_some() {
        return None;
    }
    if let DesiredCompute::Refused(Problem { message, .. }) = after {
        return Some(CellChangeFault::Invalid { message: message.clone() });
    }
    // A new node has no compute, or one that is restored from a backup together with it.
    before?;
    let (compute, has_runs) = caches.compute_of(node)?;
    // A service has the cell of a compute that it deploys.
    let is_bound = owns(node, &compute) && !compute.is_observed();
    if !is_bound || compute.metadata.deletion_timestamp.is_some() {
        return None;
    }
    match binding(after, node, &compute, has_runs) {
        CellBinding::Bound(mismatch) if mismatch.has_run => Some(CellChangeFault::Bound(mismatch)),
        CellBinding::Unknown { group } if has_run(&compute, has_runs) && !allows_removal(node) => {
            let mismatch = Mismatch::of(&compute, None, true);
            Some(CellChangeFault::GroupUnknown { mismatch, group })
        }
        CellBinding::Agrees
        | CellBinding::Unknown { .. }
        | CellBinding::CellUnknown(_)
        | CellBinding::Replaceable
        | CellBinding::MayGo
        | CellBinding::Bound(_) => None,
    }
}

/// Returns the text of the rejection: the computes, their cells, and the allowed procedure.
pub fn rejection(faults: &[CellChangeFault]) -> String {
    let mut texts: Vec<String> = faults.iter().take(NAMED).map(CellChangeFault::cause).collect();
    if let Some(n_more @ 1..) = faults.len().checked_sub(NAMED) {
        texts.push(format!("So it is with {n_more} more."));
    }
    if let Some(way) = faults.first().and_then(CellChangeFault::way) {
        texts.push(way);
    }
    texts.join(" ")
}

impl CellChangeFault {
    fn cause(&self) -> String {
        match self {
            Self::Invalid { message } => message.clone(),
            Self::Bound(mismatch) => mismatch.cause(),
            Self::GroupUnknown { mismatch, group } => format!(
                "NovaExternalCompute {} has run in cell {}, and {group}, \
                 which would name its cell, does not exist.",
                mismatch.compute, mismatch.own
            ),
        }
    }

    fn way(&self) -> Option<String> {
        match self {
            Self::Invalid { .. } => None,
            Self::Bound(mismatch) => Some(mismatch.way()),
            Self::GroupUnknown { mismatch, group } => {
                Some(format!("Create {group} first, with annotation {CELL}: {}.", mismatch.own))
            }
        }
    }
}
