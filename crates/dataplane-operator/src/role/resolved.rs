//! A host of a group with everything that holds of it whatever its runs do.

use std::collections::BTreeSet;

use api::dataplane::{HostMachine, Node, ServiceRun};
use api::problem::Problem;
use operator_core::run_engine::DesiredService;
use operator_core::run_engine::host_key::HostKeyTrust;
use operator_runtime::source_cache::Digests;

use crate::host::effective_spec::EffectiveSpec;
use crate::host::inputs::Inputs;
use crate::host::machines::ProvisioningState;

/// A resolved host: the decision, the objects and the statuses are made from it.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ResolvedHost<'a> {
    /// The node, which may be terminating.
    pub node: &'a Node,
    /// The effective spec of the node.
    pub effective: EffectiveSpec,
    /// Whether its services are known: its role exists, or it lists its own.
    pub has_services: bool,
    /// Whether `ansibleLimit` excludes it: it keeps the state that it has.
    pub is_left_out: bool,
    /// Whether it was last evaluated under another role than now, or under none.
    pub has_moved: bool,
    /// Whether it belongs to another object, which describes it as well.
    pub is_taken: bool,
    /// The instance of the host; see [`redeploy`](crate::role::redeploy).
    pub instance: Option<String>,
    /// The state of its machine, or the fault that keeps it from getting one.
    ///
    /// `None` when the host is provisioned by other means.
    pub machine: Option<Result<ProvisioningState, Problem>>,
    /// The record of its machine for the status.
    pub record: Option<HostMachine>,
    /// The digests of its ssh Secret; `None` when that does not exist.
    pub ssh: Option<&'a Digests>,
    /// The trusted ssh host key.
    pub trust: HostKeyTrust,
    /// The message about its host key, when another host presented the same key before.
    pub shared_key: Option<String>,
    /// The faults that keep it from being deployed.
    pub problems: Vec<Problem>,
    /// Whether some of its variables are unknown at present because an object is missing or
    /// invalid.
    pub has_unknown_vars: bool,
    /// The index of the role's inventory object that contains it, see
    /// [`inventory_shards`](crate::role::inventory_shards).
    pub shard: usize,
    /// The inputs of all its services.
    pub inputs: Inputs,
    /// Its desired services, in order.
    pub desired: Vec<DesiredService>,
    /// The services that wait for certificates of the host.
    pub uncertified: BTreeSet<String>,
    /// Whether its services may begin, as far as no other host matters.
    pub may_run: bool,
}

impl ResolvedHost<'_> {
    /// Returns whether the host has the address and the ssh key that an inventory needs.
    pub fn is_reachable(&self) -> bool {
        !self.effective.ansible_host.is_empty() && self.effective.ssh_secret.is_some()
    }

    /// Returns whether an inventory describes the host as it is at present.
    pub fn is_set_up(&self) -> bool {
        self.is_reachable() && !self.has_unknown_vars
    }
}

/// Returns the services that a node's status records.
pub fn recorded_services(node: &Node) -> &[ServiceRun] {
    node.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default()
}

/// Returns whether the host has never had all of its services.
///
/// Such a host runs the services before one whose inputs are missing. A host in service waits until
/// all of them can run, so that it is not left half changed.
pub fn is_first_deployment(node: &Node) -> bool {
    node.status.as_ref().is_none_or(|it| it.deployed_inputs.is_empty())
}

/// Returns whether the host's machine lets services begin; true when no machine was requested.
pub fn may_begin(machine: Option<&Result<ProvisioningState, Problem>>) -> bool {
    machine.is_none_or(|it| it.as_ref().is_ok_and(|it| it.record.ready))
}
