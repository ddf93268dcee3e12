//! A node set with everything that follows from what was observed of it.

use api::problem::Problem;
use kube::ResourceExt;
use operator_core::node_set_host::Host;
use operator_core::plan::Step;
use operator_core::run_engine::mounts::node_sets::inventory_name;

use crate::inputs::Inputs;
use crate::node_set::build::Content;
use crate::node_set::deployment_history::DeploymentHistory;
use crate::node_set::external_resources::ExternalResources;
use crate::node_set::host_key_trust::Trusts;
use crate::node_set::machine_request::Machines;
use crate::node_set::observed::Observed;

/// An evaluated node set.
#[derive(Clone, Debug)]
pub struct Evaluation<'a> {
    /// Its hosts.
    pub hosts: Vec<Host<'a>>,
    /// Faults that keep it from having an inventory.
    pub faults: Vec<Problem>,
    /// Faults that keep its services from being deployed.
    pub service_faults: Vec<Problem>,
    /// The trusted key of each host.
    pub trusts: Trusts,
    /// The message about hosts whose keys another host showed earlier.
    pub shared_keys: Option<String>,
    /// The inputs of a deployment that would begin now.
    pub inputs: Inputs,
    /// The evaluated machines.
    pub machines: Machines,
    /// The step for the baremetal set.
    pub asked_of_machines: Option<Step>,
    /// What deployments have done to its hosts.
    pub outcome: DeploymentHistory,
    /// What external operators provide for it.
    pub served: ExternalResources,
    /// The desired content of its inventory Secret; `None` while it cannot be determined.
    pub content: Option<Content>,
}

impl Evaluation<'_> {
    /// Returns whether the inventory must not change, because a deployment is under way.
    pub fn is_frozen(&self) -> bool {
        !self.outcome.under_way.is_empty()
    }
}

/// Returns the name of the inventory Secret, once it exists.
pub fn published_inventory(seen: &Observed, evaluated: &Evaluation<'_>) -> Option<String> {
    let is_there = evaluated.content.is_some() || seen.inventory.is_some();
    is_there.then(|| inventory_name(&seen.set.name_any()))
}
