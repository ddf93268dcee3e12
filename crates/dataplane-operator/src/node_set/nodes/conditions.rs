//! The conditions of a node of a node set, in the words of a node of a role.

use api::conditions::{ConditionDraft, find, shortened};
use api::dataplane::condition_types::{BAREMETAL_READY, INPUT_READY, SETUP_READY, UP_TO_DATE};
use api::dataplane::{HostState, Node};
use api::problem::Problem;
use kube::ResourceExt;
use operator_core::host_key_checking;
use operator_core::keyed::Digest;
use operator_core::node_set_host::{Host, PREFIX, prefix};
use operator_core::plan::Target;

use crate::host::machines::machine_conditions;
use crate::host::node_conditions::brought;
use crate::host::node_state::host_state;
use crate::node_set::inputs;
use crate::node_set::observed::Observed;
use crate::node_set::resolve::Resolved;
use crate::reasons;

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
    /// Whether a deployment is under way.
    pub is_in_use: bool,
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
        let is_in_use = seen.is_in_use();
        Self { input, setup, up_to_date, has_changed_sources, digest, is_in_use }
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
    let deployed = outcome.status.deployed_config_hash.as_ref().filter(|_| !is_under_way);
    let has_changed_sources =
        of_set.has_changed_sources && deployed.is_some_and(|it| prefix(it) == *hash);
    let recorded = node.conditions();
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

/// Returns the condition of a host whose variables turn the check of host keys off.
pub fn host_key_checks(seen: &Observed, host: Option<&Host<'_>>) -> Option<ConditionDraft> {
    let own = host.and_then(|it| it.node.ansible.as_ref());
    let levels = own.into_iter().chain(&seen.set.spec.node_template.ansible);
    host_key_checking::condition(levels.map(|it| &it.ansible_vars), "ansibleVars of the host")
}
