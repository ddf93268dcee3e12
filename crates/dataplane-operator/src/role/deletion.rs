//! The deletion of machines, and the statuses of nodes and roles that wait for it.

use std::sync::Arc;

use api::baremetal::BaremetalSet;
use api::conditions::{
    Condition, ConditionDraft, READY, RECONCILING, STALLED, first_names, merge_conditions,
};
use api::dataplane::condition_types::BAREMETAL_READY;
use api::dataplane::{HostMachine, NodeStatus, Role, RoleStatus};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Step, Target, status_step};
use operator_core::rejected_write::WRITES_ACCEPTED;

use crate::conditions::NAMED;
use crate::finalizers::{INVENTORY_FINALIZER, is_used};
use crate::host::last_look::is_host_skipped;
use crate::host::machines::machine_names::known_name;
use crate::host::machines::{machine_conditions, set};
use crate::host::status::own;
use crate::reasons;
use crate::role::last_looks;
use crate::role::machine_request::{MachineRequest, is_leaving};
use crate::role::observed::{NodeGroup, Observed};
use crate::role::resolved::ResolvedHost;
use crate::role::status::PROVISION_READY;

/// Returns the step that writes the desired set of machines, or that deletes the set, which gives
/// back all of its machines.
pub fn set_step(
    seen: &Observed,
    machine_request: &MachineRequest<'_>,
    hosts: &[ResolvedHost<'_>],
) -> Option<Step> {
    let set = machine_request.request.set;
    let is_deleted = set.is_some_and(|it| is_terminating(&**it));
    if (is_deleted || is_going(seen)) && !machine_request.needs_set() {
        // A node without a role has its set to itself.
        let is_last = matches!(seen.group, NodeGroup::Node(_)) || is_last(seen);
        if is_last || is_deleted {
            return set.and_then(set::deletion);
        }
    }
    machine_request.step(hosts)
}

/// Returns the step that releases the set of a group that requests none any more, without deleting
/// it.
///
/// The set is kept while its deletion would deprovision machines of nodes that others still hold,
/// unless the owner is about to go and nothing could release the set later.
pub fn abandonment(seen: &Observed) -> Option<Step> {
    let set = seen.machines.set_of(&seen.owner()?.0)?;
    let is_last = is_going(seen) && is_last(seen);
    let nodes =
        seen.nodes.iter().chain(&seen.migrating_nodes).filter(|it| !is_last && is_used(&***it));
    let alone = seen.nodes.first().filter(|_| matches!(seen.group, NodeGroup::Node(_)));
    let is_skipped = is_host_skipped(alone.map(|it| &**it), seen.role.as_deref());
    let is_let_go = seen.is_namespace_terminating || is_skipped;
    set::release_of(set, is_let_go, nodes.map(|it| known_name(it)))
}

/// Returns the steps that release the sets that nodes had of their own before they got a role.
///
/// The same rule applies as in [`abandonment`]: no node that others hold loses its machine.
pub fn leftovers(seen: &Observed) -> Vec<Step> {
    if matches!(seen.group, NodeGroup::Node(_)) {
        return Vec::new();
    }
    let release = |set: &Arc<BaremetalSet>| {
        let node = seen.nodes.iter().find(|it| it.metadata.name == set.metadata.name)?;
        let is_its_own = set::is_of(set, &Target::of(&**node));
        let in_use = is_used(&**node).then(|| known_name(node));
        let is_let_go =
            seen.is_namespace_terminating || is_host_skipped(Some(node), seen.role.as_deref());
        set::release_of(set, is_let_go, in_use.into_iter()).filter(|_| is_its_own)
    };
    seen.machines.others.iter().chain(&seen.machines.set).filter_map(release).collect()
}

/// Returns whether only the operator's finalizer holds the object that requests the machines.
fn is_last(seen: &Observed) -> bool {
    let finalizers = seen.owner().and_then(|(_, it)| it.finalizers.as_deref());
    matches!(finalizers, Some([only]) if only == INVENTORY_FINALIZER)
}

/// Returns whether the object that requests the machines is being deleted.
fn is_going(seen: &Observed) -> bool {
    seen.owner().is_some_and(|(_, it)| it.deletion_timestamp.is_some())
}

/// Returns the status steps of nodes and a role whose deletion waits for machines.
///
/// `rejected` is the condition of a rejected write of their group.
pub fn status_steps(
    seen: &Observed,
    machine_request: &MachineRequest<'_>,
    hosts: &[ResolvedHost<'_>],
    rejected: Option<&ConditionDraft>,
    now: Timestamp,
) -> Vec<Step> {
    if machine_request.request.set.is_none() {
        return Vec::new();
    }
    let waits =
        |it: &&ResolvedHost<'_>| is_leaving(it.node) && !machine_request.is_given_back(it.node);
    let nodes = hosts.iter().filter(waits);
    let nodes = nodes.filter_map(|it| node_step(seen, machine_request, it, rejected, now));
    nodes.chain(role_step(seen, machine_request, rejected, now)).collect()
}

fn node_step(
    seen: &Observed,
    machine_request: &MachineRequest<'_>,
    host: &ResolvedHost<'_>,
    rejected: Option<&ConditionDraft>,
    now: Timestamp,
) -> Option<Step> {
    let node = host.node;
    let held = last_looks::held(seen, node, now);
    let held = held.map(|it| it.reason.condition(BAREMETAL_READY, it.message));
    let draft = match (host.machine.as_ref()?, rejected.filter(|it| set::is_refused(it))) {
        _ if held.is_some() => held?,
        // The request is faulty, so the set cannot even be updated to drop the host.
        (Err(problem), _) => problem.condition(BAREMETAL_READY),
        (Ok(_), Some(rejected)) => rejected.clone().with_type(BAREMETAL_READY),
        (Ok(provisioning), None) => {
            machine_conditions::leaving(&machine_request.request.owner, provisioning)
        }
    };
    let rejected = rejected.filter(|_| matches!(seen.group, NodeGroup::Node(_)));
    let observed = node.status.as_ref().map(own);
    let observed = observed.as_ref();
    let conditions = settled(node.conditions(), draft, rejected, node.metadata.generation, now);
    let rest = observed.cloned().unwrap_or_default();
    let machine = host.record.clone().map(|it| HostMachine { ready: false, ..it });
    let desired = NodeStatus { conditions, machine, ..rest };
    status_step(Target::of(node), observed, &desired)
}

fn role_step(
    seen: &Observed,
    machine_request: &MachineRequest<'_>,
    rejected: Option<&ConditionDraft>,
    now: Timestamp,
) -> Option<Step> {
    let role: &Role = seen.role.as_ref().filter(|it| is_terminating(&***it))?;
    let name = role.name_any();
    let users = seen.nodes.iter().filter(|it| machine_request.is_at_work(it));
    let users: Vec<String> = users.map(|it| it.name_any()).collect();
    let text = if users.is_empty() {
        format!(
            "OpenStackDataPlaneRole {name} is to be deleted, and waits until OpenStackBaremetalSet \
             {name} has given back its machines."
        )
    } else {
        format!(
            "OpenStackDataPlaneRole {name} is to be deleted, and waits for its nodes, whose machines \
             would go with it: {}. Delete these too.",
            first_names(&users, NAMED)
        )
    };
    let draft = reasons::machines::DELETION_WAITS.condition(PROVISION_READY, text);
    let observed = role.status.as_ref();
    let conditions = settled(role.conditions(), draft, rejected, role.metadata.generation, now);
    let desired = RoleStatus { conditions, ..observed.cloned().unwrap_or_default() };
    status_step(Target::of(role), observed, &desired)
}

/// Returns the previous conditions, with this one, a rejected write and the summary replaced.
fn settled(
    previous: &[Condition],
    draft: ConditionDraft,
    rejected: Option<&ConditionDraft>,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let ready = draft.clone().with_type(READY);
    let anew = [draft.type_.as_str(), WRITES_ACCEPTED, READY, RECONCILING, STALLED];
    // Those of other operators have a domain.
    let is_ours = |it: &&Condition| !it.type_.contains('/') && !anew.contains(&it.type_.as_str());
    let stands = previous.iter().filter(is_ours);
    let mut drafts: Vec<ConditionDraft> = stands.map(ConditionDraft::repeated).collect();
    drafts.extend(rejected.cloned());
    drafts.extend([draft, ready]);
    merge_conditions(previous, drafts, generation, now)
}
