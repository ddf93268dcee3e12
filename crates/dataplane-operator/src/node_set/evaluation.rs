//! A node set with all that follows from what was seen of it.

use kube::ResourceExt;
use operator_core::node_set_host::Host;
use operator_core::plan::Step;
use operator_core::run_engine::mounts::node_sets::inventory_name;

use crate::inputs::Inputs;
use crate::node_set::build::Content;
use crate::node_set::deployment_history::DeploymentHistory;
use crate::node_set::external_resources::ExternalResources;
use crate::node_set::host_keys::Trusts;
use crate::node_set::machine_request::Machines;
use crate::node_set::observed::Observed;
use crate::problem::Fault;

/// A node set, judged.
#[derive(Clone, Debug)]
pub struct Evaluation<'a> {
    /// Its hosts.
    pub hosts: Vec<Host<'a>>,
    /// What keeps it from having an inventory.
    pub faults: Vec<Fault>,
    /// What keeps its services from being deployed.
    pub service_faults: Vec<Fault>,
    /// By which keys its hosts are known.
    pub trusts: Trusts,
    /// What is said of hosts whose keys others showed before.
    pub shared_keys: Option<String>,
    /// What a deployment would depend on.
    pub inputs: Inputs,
    /// How far its machines are.
    pub machines: Machines,
    /// What is asked of them now.
    pub asked_of_machines: Option<Step>,
    /// What deployments have done to its hosts.
    pub outcome: DeploymentHistory,
    /// What operators of others serve for it.
    pub served: ExternalResources,
    /// What its inventory Secret is to hold; nothing where that cannot be told.
    pub content: Option<Content>,
}

impl Evaluation<'_> {
    /// Whether the inventory is left as it is, for a deployment began with it.
    pub fn is_frozen(&self) -> bool {
        !self.outcome.under_way.is_empty()
    }
}

/// The name of the Secret with the inventory, once there is one.
pub fn published_inventory(seen: &Observed, evaluated: &Evaluation<'_>) -> Option<String> {
    let is_there = evaluated.content.is_some() || seen.inventory.is_some();
    is_there.then(|| inventory_name(&seen.set.name_any()))
}
