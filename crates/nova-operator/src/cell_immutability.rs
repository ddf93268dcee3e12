//! The cell is set once: one judgement for the webhook, which refuses a change, and for the
//! controllers, which keep the rule where no webhook did.

use std::sync::Arc;

use api::dataplane::{Node, Role};
use api::nova::ExternalCompute;
use kube::ResourceExt;
use nova_config::annotations::{ALLOW_REMOVAL, CELL};
use operator_core::object_key::Key;

use crate::compute_lifecycle::effective::{DesiredCompute, desired, desired_of_role};
use crate::indexes::BY_ROLE;
use crate::shared_caches::SharedCaches;

mod mismatch;
#[cfg(test)]
mod tests;

pub use mismatch::Mismatch;

/// How many computes a refusal names.
const NAMED: usize = 5;

/// How what a node asks for stands to the compute of its own that it has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CellBinding {
    /// The compute is in the cell that is asked for.
    Agrees,
    /// Nobody can tell, so nothing changes: the named role does not exist.
    Unknown {
        /// The role that the node names.
        role: String,
    },
    /// Another cell or none is asked for, and nothing is lost with the compute.
    Replaceable,
    /// No cell is asked for, and the node's human has allowed that the compute goes.
    MayGo,
    /// Another cell or none is asked for, and the compute stays as it is.
    Bound(Mismatch),
}

/// Judges a node and the compute that it owns, which is not terminating.
pub fn binding(
    requested: &DesiredCompute,
    node: &Node,
    compute: &ExternalCompute,
    has_runs: bool,
) -> CellBinding {
    let asked = match requested {
        DesiredCompute::Cell(cell) if *cell == compute.spec.cell_name => {
            return CellBinding::Agrees;
        }
        DesiredCompute::Cell(cell) => Some(cell.clone()),
        DesiredCompute::Nothing => None,
        DesiredCompute::Unknown { role } => return CellBinding::Unknown { role: role.clone() },
        // Told for itself; what is no cell moves no compute.
        DesiredCompute::Refused { .. } => return CellBinding::Agrees,
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

/// Whether the compute has ever had a run: attempts stay in its status, before the first run is made.
pub fn has_run(compute: &ExternalCompute, has_runs: bool) -> bool {
    has_runs || compute.status.as_ref().is_some_and(|it| !it.services.is_empty())
}

/// Whether the node is the compute's controller: another node of its name is not.
pub fn owns(node: &Node, compute: &ExternalCompute) -> bool {
    let owners = compute.metadata.owner_references.as_deref().unwrap_or_default();
    let controller = owners.iter().find(|it| it.controller == Some(true));
    controller.is_some_and(|it| Some(&it.uid) == node.metadata.uid.as_ref())
}

fn allows_removal(node: &Node) -> bool {
    node.annotations().get(ALLOW_REMOVAL).is_some_and(|it| it == "true")
}

/// Why a change is refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The annotation names what no compute can be in.
    Invalid {
        /// Object, cause and next step.
        message: String,
    },
    /// The change asks for another cell, or for none, than that of a compute that has run.
    Bound(Mismatch),
    /// The change leaves the cell of a compute that has run to a role that does not exist.
    RoleUnknown {
        /// The compute, and what is asked for: no cell yet.
        mismatch: Mismatch,
        /// The role.
        role: String,
    },
}

/// Why a node may not become what it is to become; without `old` it is created.
pub fn faults_of_node(old: Option<&Node>, new: &Node, world: &SharedCaches) -> Vec<Fault> {
    let asked = |it: &Node| desired(world.role_of(it).as_deref(), it);
    fault(old.map(asked), &asked(new), new, world).into_iter().collect()
}

/// Why a role may not become what it is to become; without `old` it is created.
pub fn faults_of_role(old: Option<&Role>, new: &Role, world: &SharedCaches) -> Vec<Fault> {
    let before = old.map(desired_of_role);
    let after = desired_of_role(new);
    if before.as_ref() == Some(&after) || new.metadata.deletion_timestamp.is_some() {
        return vec![];
    }
    if let DesiredCompute::Refused { message, .. } = after {
        return vec![Fault::Invalid { message }];
    }
    let nodes = world.nodes.indexed(BY_ROLE, &Key::of(new));
    let inherits = |it: &&Arc<Node>| !it.annotations().contains_key(CELL);
    nodes
        .iter()
        .filter(inherits)
        .filter_map(|it| fault(before.clone(), &after, it, world))
        .collect()
}

/// Why a node may not ask for that; what it asked for already hinders no other change.
fn fault(
    before: Option<DesiredCompute>,
    after: &DesiredCompute,
    node: &Node,
    caches: &SharedCaches,
) -> Option<Fault> {
    if before.as_ref() == Some(after) || node.metadata.deletion_timestamp.is_some() {
        return None;
    }
    if let DesiredCompute::Refused { message, .. } = after {
        return Some(Fault::Invalid { message: message.clone() });
    }
    // What is created has no compute yet, or one that is restored with it.
    before?;
    let (compute, has_runs) = caches.compute_of(node)?;
    if !owns(node, &compute) || compute.metadata.deletion_timestamp.is_some() {
        return None;
    }
    match binding(after, node, &compute, has_runs) {
        CellBinding::Bound(mismatch) if mismatch.has_run => Some(Fault::Bound(mismatch)),
        CellBinding::Unknown { role } if has_run(&compute, has_runs) && !allows_removal(node) => {
            let mismatch = Mismatch::of(&compute, None, true);
            Some(Fault::RoleUnknown { mismatch, role })
        }
        CellBinding::Agrees
        | CellBinding::Unknown { .. }
        | CellBinding::Replaceable
        | CellBinding::MayGo
        | CellBinding::Bound(_) => None,
    }
}

/// What a refused human reads: which computes, their cells, and the legal way.
pub fn rejection(faults: &[Fault]) -> String {
    let mut texts: Vec<String> = faults.iter().take(NAMED).map(Fault::cause).collect();
    if let Some(n_more @ 1..) = faults.len().checked_sub(NAMED) {
        texts.push(format!("So it is with {n_more} more."));
    }
    if let Some(way) = faults.first().and_then(Fault::way) {
        texts.push(way);
    }
    texts.join(" ")
}

impl Fault {
    fn cause(&self) -> String {
        match self {
            Self::Invalid { message } => message.clone(),
            Self::Bound(mismatch) => mismatch.cause(),
            Self::RoleUnknown { mismatch, role } => format!(
                "NovaExternalCompute {} has run in cell {}, and OpenStackDataPlaneRole {role}, \
                 which would name its cell, does not exist.",
                mismatch.compute, mismatch.own
            ),
        }
    }

    fn way(&self) -> Option<String> {
        match self {
            Self::Invalid { .. } => None,
            Self::Bound(mismatch) => Some(mismatch.way()),
            Self::RoleUnknown { mismatch, role } => Some(format!(
                "Create OpenStackDataPlaneRole {role} first, with annotation {CELL}: {}.",
                mismatch.own
            )),
        }
    }
}
