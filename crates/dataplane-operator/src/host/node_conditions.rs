//! The conditions of a node of a node set that follow from what deployments do there.

use api::conditions::{
    self, Condition, ConditionDraft, READY, RECONCILING, STALLED, Severity, is_true,
    merge_conditions,
};
use api::dataplane::condition_types::{BAREMETAL_READY, DEPLOYMENT_READY, INPUT_READY, UP_TO_DATE};
use api::dataplane::{HostState, Node, NodeSet, NodeStatus};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::node_set_host::prefix;
use operator_core::run_engine::outcome::last_failure;

use crate::host::node_state::{failed_service, host_state};
use crate::reasons;

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
    let recorded = node.conditions();
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
    drafts.push(summary(node, set, &drafts));
    let generation = node.metadata.generation;
    NodeStatus { conditions: merge_conditions(recorded, drafts, generation, now), ..status }
}

/// Returns the `Ready` of a node that is deployed.
pub fn is_ready(node: &Node) -> ConditionDraft {
    let text = format!("OpenStackDataPlaneNode {} is deployed.", node.name_any());
    reasons::role::READY.condition(READY, text)
}

/// Returns `Ready` of a node with these other conditions.
///
/// A host that needs no deployment stays ready when an input of a deployment goes missing.
pub fn summary(node: &Node, set: &NodeSet, drafts: &[ConditionDraft]) -> ConditionDraft {
    let is_deployed = drafts.iter().any(|it| it.type_ == DEPLOYMENT_READY && it.holds());
    let keeps_ready = is_deployed && has_stood(node, set);
    let counts = |it: &&ConditionDraft| match it.type_.as_str() {
        BAREMETAL_READY | DEPLOYMENT_READY => true,
        INPUT_READY => !keeps_ready,
        _ => false,
    };
    conditions::ready(drafts.iter().filter(counts), is_ready(node))
}

/// Returns whether the node was ready at the node set's present generation.
fn has_stood(node: &Node, set: &NodeSet) -> bool {
    let Some(status) = &node.status else { return false };
    let generation = status.observed_node_set.as_ref().map(|it| it.generation);
    is_true(&status.conditions, READY) && generation == set.metadata.generation
}

/// Returns the condition of a host that carries what a deployment would bring now.
pub fn brought() -> ConditionDraft {
    let text = "The last deployment used the present inputs.";
    reasons::UP_TO_DATE.condition(UP_TO_DATE, text)
}
