//! What becomes of machines, and what is told meanwhile by those that are to be deleted.

use std::sync::Arc;

use common::api::dataplane::{HostMachine, Node, NodeStatus, Role, RoleStatus};
use common::conditions::{self, Condition, Finding, READY, RECONCILING, STALLED, settle, some};
use common::finalizers::{is_held_by_it_alone, is_terminating};
use common::plan::{Step, Target, status_step};
use jiff::Timestamp;
use kube::ResourceExt;

use crate::effective::Effective;
use crate::group::holding::INVENTORY;
use crate::group::machines::{Asker, is_given_back, keeps_machine, needs_set};
use crate::group::observe::{Group, Observed};
use crate::group::provisioning::{BAREMETAL_READY, PROVISION_READY};
use crate::group::status::ours;
use crate::machines::{set, told};

/// The reason of a machine that goes back.
const GIVING_BACK: &str = "GivingBack";
/// How many nodes a message names.
const NAMED: usize = 5;

/// The step that asks for what is wanted of the machines, or gives all of them back.
pub fn set_step(seen: &Observed, asker: &Asker) -> Option<Step> {
    if is_going(seen) && !needs_set(seen, asker) {
        let is_last = match (&seen.group, &seen.role) {
            (Group::Role(_), Some(role)) => is_held_by_it_alone(&**role, INVENTORY),
            (Group::Role(_), None) | (Group::Node(_), _) => true,
        };
        if is_last {
            return asker.set(seen).and_then(set::deletion);
        }
    }
    asker.step(seen)
}

/// Whether whoever asks for the machines is to be deleted.
fn is_going(seen: &Observed) -> bool {
    match (&seen.group, &seen.role) {
        (Group::Role(_), role) => role.as_ref().is_some_and(|it| is_terminating(&**it)),
        (Group::Node(_), _) => seen.nodes.iter().any(|it| is_terminating(&**it)),
    }
}

/// What nodes and a role that are to be deleted say while machines keep them.
pub fn told_by(seen: &Observed, asker: &Asker, now: Timestamp) -> Vec<Step> {
    let waits = |it: &&Arc<Node>| !keeps_machine(it) && !is_given_back(Some(asker), seen, it);
    let nodes = seen.nodes.iter().filter(waits);
    let nodes = nodes.filter_map(|it| node_step(seen, asker, it, now));
    nodes.chain(role_step(seen, asker, now)).collect()
}

fn node_step(seen: &Observed, asker: &Asker, node: &Node, now: Timestamp) -> Option<Step> {
    let effective = Effective::of(seen.plane.as_deref(), seen.role.as_deref(), node, &seen.objects);
    asker.set(seen)?;
    let course = asker.followed(seen, node, &effective, now);
    let finding = match &asker.template {
        Ok(_) => told::leaving(BAREMETAL_READY, GIVING_BACK, &asker.owner, &course),
        // Nothing can be asked of the set, not even to do without the host.
        Err(fault) => told::fault(BAREMETAL_READY, fault),
    };
    let observed = node.status.as_ref();
    let previous = ours(observed.map(|it| it.conditions.as_slice()).unwrap_or_default());
    let conditions = settled(&previous, finding, node.metadata.generation, now);
    let rest = observed.cloned().unwrap_or_default();
    let machine = HostMachine { ready: false, ..course.record };
    let wanted = NodeStatus { conditions, machine: Some(machine), ..rest };
    status_step(Target::of(node), observed, &wanted, &previous, &wanted.conditions)
}

fn role_step(seen: &Observed, asker: &Asker, now: Timestamp) -> Option<Step> {
    let role: &Role = seen.role.as_ref().filter(|it| is_terminating(&***it))?;
    asker.set(seen)?;
    let name = role.name_any();
    let users: Vec<String> =
        seen.nodes.iter().filter(|it| asker.is_at_work(seen, it)).map(|it| it.name_any()).collect();
    let text = if users.is_empty() {
        format!(
            "OpenStackDataPlaneRole {name} is to be deleted, and waits until OpenStackBaremetalSet \
             {name} has given back its machines."
        )
    } else {
        format!(
            "OpenStackDataPlaneRole {name} is to be deleted, and waits for its nodes, whose machines \
             would go with it: {}. Delete these too.",
            some(&users, NAMED)
        )
    };
    let finding = Finding::warning(PROVISION_READY, "DeletionWaits", text);
    let observed = role.status.as_ref();
    let previous = observed.map(|it| it.conditions.clone()).unwrap_or_default();
    let conditions = settled(&previous, finding, role.metadata.generation, now);
    let wanted = RoleStatus { conditions, ..observed.cloned().unwrap_or_default() };
    status_step(Target::of(role), observed, &wanted, &previous, &wanted.conditions)
}

/// The conditions that stand, with one of them and the summary told anew.
fn settled(
    previous: &[Condition],
    finding: Finding,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let ready = finding.clone().under(READY);
    let anew = [finding.type_.as_str(), READY, RECONCILING, STALLED];
    let stands = previous.iter().filter(|it| !anew.contains(&it.type_.as_str()));
    let mut findings: Vec<Finding> = stands.map(as_found).collect();
    findings.extend(conditions::kstatus(&ready));
    findings.extend([finding, ready]);
    settle(previous, findings, generation, now)
}

fn as_found(condition: &Condition) -> Finding {
    Finding {
        type_: condition.type_.clone(),
        status: condition.status,
        severity: condition.severity,
        reason: condition.reason.clone(),
        message: condition.message.clone(),
    }
}
