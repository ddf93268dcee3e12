//! What was observed of the audits of a scope, as plain data.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::conditions::{READY, is_true};
use api::dataplane::{Node, RunState, ServiceRun};
use api::nova::ExternalCompute;
use nova_config::conditions::{DEPLOYMENT_READY, UP_TO_DATE};
use operator_core::finalizers::is_terminating;
use operator_core::plan::Target;
use operator_core::run_engine::run_template::MountedSource;
use operator_runtime::source_cache::Digests;

use crate::compute::audit::condition::Audited;
use crate::compute_status::deployed_files::{has_present_inputs, is_unrecorded};

/// A host of the scope that has a compute.
#[derive(Clone, Debug)]
pub struct AuditedHost {
    /// Its node.
    pub node: Arc<Node>,
    /// Its compute.
    pub compute: Arc<ExternalCompute>,
    /// What is requested, the last audit, and the audit playbooks of its services.
    pub audited: Audited,
    /// The digests of its ssh Secret, or `None` when it does not exist.
    pub ssh: Option<Digests>,
    /// What the service of type nova mounts that deploys the host, or `None` while something of it is
    /// missing; empty for a host that this operator deploys.
    pub sources: Option<Vec<MountedSource>>,
    /// Whether a run that is no audit waits for the host or works on it.
    pub is_busy: bool,
}

/// An audit of the scope.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The run.
    pub run: Arc<AnsibleEe>,
    /// Whether a run that is no audit waits for one of its hosts.
    pub is_in_the_way: bool,
}

/// A snapshot of everything that the decision on the audits of a scope uses.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The role or node set, or the node on its own: it owns the audits.
    pub owner: Target,
    /// Its hosts, by name.
    pub hosts: Vec<AuditedHost>,
    /// Its audits.
    pub audits: Vec<Audit>,
    /// How many audits of all scopes have not ended, by namespace.
    pub n_open: BTreeMap<String, usize>,
    /// How many may be open at a time.
    pub max_open: usize,
}

/// Returns whether a node was deployed with the present inputs and is not being changed.
pub fn is_node_settled(node: &Node) -> bool {
    let Some(status) = &node.status else { return false };
    !is_terminating(node)
        && status.observed_generation == node.metadata.generation
        && [READY, UP_TO_DATE].iter().all(|it| is_true(&status.conditions, it))
        && has_ended(&status.services)
}

/// Returns whether a compute was deployed with the present inputs and is not being changed, and what it was
/// deployed with is known.
pub fn is_compute_settled(compute: &ExternalCompute) -> bool {
    let Some(status) = &compute.status else { return false };
    !is_terminating(compute)
        && status.observed_generation == compute.metadata.generation
        && is_true(&status.conditions, DEPLOYMENT_READY)
        && (compute.is_observed() || has_present_inputs(&status.conditions))
        && !is_unrecorded(compute)
        && has_ended(&status.services)
}

fn has_ended(services: &[ServiceRun]) -> bool {
    services.iter().all(|it| !matches!(it.state, RunState::Pending | RunState::Running))
}
