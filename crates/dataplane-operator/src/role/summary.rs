//! What a group needs to know of each of its hosts: its turn, what is said of it, and its part of the
//! inventory.

use std::sync::Arc;

use api::conditions::ConditionDraft;

use crate::role::evaluate::{BlockedRollout, Turn};
use crate::role::inventory_part::InventoryPart;

/// The result of evaluating one host, as far as its group needs it. It borrows nothing, so that it may
/// outlive the pass.
#[derive(Debug)]
pub struct HostSummary {
    /// The name of its node.
    pub name: String,
    /// Where it stood in the rollout before the group admitted hosts.
    pub turn: Turn,
    /// Why its deployment does not begin yet, when the disruption budget blocks it.
    pub blocked: Option<BlockedRollout>,
    /// The summary of its node's conditions.
    pub ready: ConditionDraft,
    /// Whether the last deployment used the present inputs.
    pub is_up_to_date: bool,
    /// Whether its machine is provisioned; `None` where its group requests none.
    pub machine: Option<ConditionDraft>,
    /// The run that it is in.
    pub run: Option<String>,
    /// Its runs whose attempts are still wanted.
    pub wanted_runs: Vec<String>,
    /// Whether a pause of the rollout stops it.
    pub may_be_paused: bool,
    /// The Secret with its ssh key.
    pub ssh_secret: Option<String>,
    /// Its part of the role's inventory; `None` where an inventory cannot describe it at present.
    pub part: Option<Arc<InventoryPart>>,
    /// Whether some of its variables are unknown at present.
    pub has_unknown_vars: bool,
    /// The index of the role's inventory object that contains it.
    pub shard: usize,
}

impl HostSummary {
    /// Returns whether the host is in an inventory that runs can use.
    pub fn is_set_up(&self) -> bool {
        self.part.is_some()
    }
}
