//! The conditions of a node of a node set, in the words of a node of a role.

use api::conditions::{
    self, Condition, ConditionDraft, READY, RECONCILING, STALLED, Severity, find, is_true,
    merge_conditions, shortened,
};
use api::dataplane::condition_types::{DEPLOYMENT_READY, INPUT_READY, SETUP_READY, UP_TO_DATE};
use api::dataplane::{HostState, Node, NodeSet, NodeStatus};
use api::problem::Problem;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::keyed::Digest;
use operator_core::node_set_host::{Host, PREFIX, prefix};
use operator_core::plan::Target;
use operator_core::run_engine::host_key_checking;
use operator_core::run_engine::outcome::last_failure;

use crate::host::machines::machine_conditions;
use crate::host::node_state::{failed_service, host_state};
use crate::node_set::inputs;
use crate::node_set::observed::Observed;
use crate::node_set::resolve::Resolved;
use crate::reasons;
use crate::role::provisioning::BAREMETAL_READY;

/// The maximum number of characters of a node set's own message.
const TEXT: usize = 600;

/// What holds for all hosts of a node set, evaluated once.
pub struct OfSet {
    /// What the node set lacks.
    pub input: ConditionDraft,
    /// Whether there is an inventory.
    pub setup: ConditionDraft,
    /// The node set's own condition on what was changed.
    pub up_to_date: ConditionDraft,
    /// Whether objects that services read have changed since they were deployed.
    pub has_changed_sources: bool,
    /// The digest of the present inputs, as hosts record it.
    pub digest: Digest,
}

impl OfSet {
    /// Evaluates the node set; `up_to_date` is its own condition.
    pub fn of(
        seen: &Observed,
        resolved: &Resolved<'_>,
        up_to_date: ConditionDraft,
        has_changed_sources: bool,
    ) -> Self {
        let set = seen.set.name_any();
        let faults: Vec<Problem> =
            resolved.problems.iter().chain(&resolved.network_faults).cloned().collect();
        let input = match Problem::worst(&faults) {
            None => {
                let text = "Every input is there.";
                reasons::inputs::INPUT_COMPLETE.condition(INPUT_READY, text)
            }
            Some(worst) => {
                let text = shortened(&worst.message, TEXT);
                let text = format!("OpenStackDataPlaneNodeSet {set}: {text}");
                worst.reason.condition(INPUT_READY, text)
            }
        };
        let setup = if resolved.content.is_some() {
            reasons::role::SET_UP.condition(SETUP_READY, "The inventory is written.")
        } else {
            let text = format!(
                "There is no inventory yet; see SetupReady of OpenStackDataPlaneNodeSet {set}."
            );
            reasons::inputs::INPUT_MISSING.condition(SETUP_READY, text)
        };
        let digest = inputs::digest(&resolved.inputs).cut(PREFIX);
        Self { input, setup, up_to_date, has_changed_sources, digest }
    }
}

/// Returns the condition of the host's machine.
pub fn machine(
    seen: &Observed,
    resolved: &Resolved<'_>,
    name: &str,
    address: &str,
) -> ConditionDraft {
    let Some(machine) = resolved.machines.states.get(name) else {
        let text = "The host is provisioned by others.";
        return reasons::machines::NOT_REQUIRED.condition(BAREMETAL_READY, text);
    };
    machine_conditions::condition(BAREMETAL_READY, &Target::of(&*seen.set), machine, address)
}

/// Returns how far the deployment of a node set's host is, as its node records it.
pub fn deployment(set: &NodeSet, node: &Node) -> ConditionDraft {
    let (set, status) = (set.name_any(), node.status.as_ref());
    let failed = || last_failure(DEPLOYMENT_READY, std::slice::from_ref(failed_service(status?)?));
    match host_state(node) {
        HostState::Terminating => {
            let text = format!(
                "The host leaves OpenStackDataPlaneNodeSet {set}; the conditions of other operators \
                 here, and those of the node set, say what it waits for."
            );
            reasons::node_set::HOST_TERMINATING.condition(DEPLOYMENT_READY, text)
        }
        HostState::Deployed => {
            let text = "The last deployment succeeded on this host.";
            reasons::role::DEPLOYED.condition(DEPLOYMENT_READY, text)
        }
        HostState::Deploying => failed().unwrap_or_else(|| deploying(status)),
        HostState::Failed => match failed() {
            Some(failed) => failed.with_severity(Severity::Error),
            None => reasons::node_set::DEPLOYMENT_GONE.condition(
                DEPLOYMENT_READY,
                "The deployment that was at the host has gone: create another \
                 OpenStackDataPlaneDeployment.",
            ),
        },
        HostState::Undeployed if status.is_some_and(|it| it.deployed_config_hash.is_some()) => {
            reasons::node_set::NOT_DEPLOYED.condition(
                DEPLOYMENT_READY,
                "The last deployment has left the host half changed: create another \
                 OpenStackDataPlaneDeployment.",
            )
        }
        HostState::Undeployed => {
            let text = format!(
                "Nothing is deployed: create an OpenStackDataPlaneDeployment that lists {set} in \
                 spec.nodeSets."
            );
            reasons::node_set::NOT_DEPLOYED.condition(DEPLOYMENT_READY, text)
        }
    }
}

fn deploying(status: Option<&NodeStatus>) -> ConditionDraft {
    let last = status.and_then(|it| it.deployment.as_ref());
    let name = last.map_or("", |it| &it.name);
    let text = format!(
        "OpenStackDataPlaneDeployment {name} is at the host; its own status has the progress."
    );
    reasons::node_set::DEPLOYING.condition(DEPLOYMENT_READY, text)
}

/// Returns the next status of a node, which says what a deployment does, with the conditions that follow
/// from that; the others are repeated as they are recorded.
#[must_use]
pub fn with_deployment(
    node: &Node,
    set: &NodeSet,
    status: NodeStatus,
    now: Timestamp,
) -> NodeStatus {
    let next = Node { status: Some(status.clone()), ..node.clone() };
    let recorded = node.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default();
    let has_succeeded =
        host_state(&next) == HostState::Deployed && host_state(node) != HostState::Deployed;
    let present = set.status.as_ref().and_then(|it| it.config_hash.as_deref()).map(prefix);
    let is_up_to_date = has_succeeded && status.deployed_config_hash == present;
    let stays = |it: &&Condition| match it.type_.as_str() {
        DEPLOYMENT_READY | READY | RECONCILING | STALLED => false,
        UP_TO_DATE => !is_up_to_date,
        // Those of other operators have a domain.
        type_ => !type_.contains('/'),
    };
    let others = recorded.iter().filter(stays);
    let mut drafts: Vec<ConditionDraft> = others.map(ConditionDraft::repeated).collect();
    drafts.push(deployment(set, &next));
    drafts.extend(is_up_to_date.then(brought));
    drafts.extend(summary(node, set, &drafts));
    let generation = node.metadata.generation;
    NodeStatus { conditions: merge_conditions(recorded, drafts, generation, now), ..status }
}

/// Returns `Ready`, and kstatus' condition, of a node with these other conditions.
///
/// A host that needs no deployment stays ready when an input of a deployment goes missing.
pub fn summary(node: &Node, set: &NodeSet, drafts: &[ConditionDraft]) -> Vec<ConditionDraft> {
    let is_deployed = drafts.iter().any(|it| it.type_ == DEPLOYMENT_READY && it.holds());
    let keeps_ready = is_deployed && has_stood(node, set);
    let counts = |it: &&ConditionDraft| match it.type_.as_str() {
        BAREMETAL_READY | DEPLOYMENT_READY => true,
        INPUT_READY => !keeps_ready,
        _ => false,
    };
    let blocking: Vec<ConditionDraft> = drafts.iter().filter(counts).cloned().collect();
    let good = format!("OpenStackDataPlaneNode {} is deployed.", node.name_any());
    let ready = conditions::ready(&blocking, reasons::role::READY.condition(READY, good));
    conditions::kstatus(&ready).into_iter().chain([ready]).collect()
}

/// Returns whether the node was ready at the node set's present generation.
fn has_stood(node: &Node, set: &NodeSet) -> bool {
    let Some(status) = &node.status else { return false };
    let generation = status.observed_node_set.as_ref().map(|it| it.generation);
    is_true(&status.conditions, READY) && generation == set.metadata.generation
}

/// Returns whether the host carries what a deployment would bring now; `memory` is its node with what
/// that records of deployments.
pub fn up_to_date(
    resolved: &Resolved<'_>,
    of_set: &OfSet,
    node: &Node,
    memory: &Node,
) -> ConditionDraft {
    let remembered = memory.status.as_ref().and_then(|it| it.deployed_config_hash.as_ref());
    let Some(hash) = remembered else {
        let text = "No deployment of all its services has succeeded on this host yet.";
        return reasons::NEVER_DEPLOYED.condition(UP_TO_DATE, text);
    };
    let is_same = of_set.digest.is(hash);
    let is_whole = host_state(memory) != HostState::Undeployed;
    // What services read is recorded of the last deployment that has succeeded on all hosts.
    let outcome = &resolved.outcome;
    let is_under_way = !outcome.under_way.is_empty();
    let deployed = outcome.deployed_config_hash.as_ref().filter(|_| !is_under_way);
    let has_changed_sources =
        of_set.has_changed_sources && deployed.is_some_and(|it| prefix(it) == *hash);
    let recorded = node.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default();
    let word = reasons::INPUTS_CHANGED.word;
    let recorded = find(recorded, UP_TO_DATE).filter(|it| it.reason == word);
    // While a deployment is under way, what it changes is not known of each host.
    let is_known = recorded.is_none() || !is_under_way;
    if is_same && is_whole && !has_changed_sources && is_known {
        return brought();
    }
    if of_set.up_to_date.reason == word {
        return of_set.up_to_date.clone();
    }
    if let Some(recorded) = recorded {
        return ConditionDraft::repeated(recorded);
    }
    let text = "The host does not carry the present inputs: a deployment brings them.";
    reasons::INPUTS_CHANGED.condition(UP_TO_DATE, text)
}

fn brought() -> ConditionDraft {
    let text = "The last deployment used the present inputs.";
    reasons::UP_TO_DATE.condition(UP_TO_DATE, text)
}

/// Returns the condition of a host whose variables turn the check of host keys off.
pub fn host_key_checks(seen: &Observed, host: Option<&Host<'_>>) -> Option<ConditionDraft> {
    let own = host.and_then(|it| it.node.ansible.as_ref());
    let levels = own.into_iter().chain(&seen.set.spec.node_template.ansible);
    host_key_checking::condition(levels.map(|it| &it.ansible_vars), "ansibleVars of the host")
}
