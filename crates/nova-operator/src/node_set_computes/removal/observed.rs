//! What was observed of the hosts of a node set that have, get or leave a host finalizer, as plain
//! data.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{HostReadiness, HostState, NodeSet};
use jiff::Timestamp;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::hosts;
use operator_core::object_key::Key;
use operator_runtime::source_cache::Digests;

use crate::cell::mappings::known::Mapping;
use crate::drain::order::Drain;
use crate::drain::progress::HostProgress;
use crate::node_set_computes::claims::Claim;
use crate::node_set_computes::removal::record::HostRecord;
use crate::nova_health::HostHealth;

/// What was observed.
#[derive(Clone, Debug, Default)]
pub struct Removals {
    /// The hosts of `spec.nodes` that get a host finalizer, or have one, by their names in the
    /// inventory: a deployment has begun there, the namespace has a cell, and no other object has them;
    /// each with the name under which its service is registered.
    pub deployed: BTreeMap<String, (String, HostRecord)>,
    /// The hosts that leave, by their names in the inventory.
    pub terminating: Vec<TerminatingHost>,
    /// Runs that clean up hosts which do not leave any more.
    pub unneeded_runs: Vec<Arc<AnsibleEe>>,
    /// The digests of the ssh Secret of the node set, or `None` where that does not exist, or no
    /// host leaves.
    pub ssh: Option<Digests>,
    /// Whether the user lets hosts go without their removal.
    pub is_skipped: bool,
    /// Whether the namespace is being deleted; read only while hosts leave.
    pub namespace_goes: bool,
}

/// A host that leaves a node set.
#[derive(Clone, Debug)]
pub struct TerminatingHost {
    /// Its name in the inventory.
    pub name: String,
    /// The name under which its service is registered.
    pub host: String,
    /// What is recorded of it.
    pub record: HostRecord,
    /// The cell that has its service, and the name of the cell's Secret; `None` where no cell of
    /// the namespace is known to have it.
    pub cell: Option<(Key, String)>,
    /// Whether the node set decides about its service; the object that has the host from now on is
    /// named as in `NovaExternalCompute n0`.
    pub claim: Claim,
    /// What is known of it.
    pub health: HostHealth,
    /// When the last run that deploys nova on it ended, `Timestamp::MAX` before its end; `None` without
    /// such a run, and where it has a cell.
    pub deployed_at: Option<Timestamp>,
    /// How its servers leave.
    pub drain: Drain,
    /// Whether the node set's status has it as terminating: before, a deployment may be at it.
    pub is_reported: bool,
    /// The runs that clean it up.
    pub runs: Vec<Arc<AnsibleEe>>,
    /// How far what is to be done in nova is, as the decision has it.
    pub progress: HostProgress,
    /// What is known of its mapping.
    pub mapping: Mapping,
    /// Whether what is left in nova is on record, or there is no object to record it.
    pub is_on_record: bool,
    /// Whether its cell has no place to record it.
    pub is_list_full: bool,
}

/// Returns the hosts of a report that leave their node set: those that `spec.nodes` does not have
/// any more, or all of a node set that is being deleted; each with the name under which its service
/// is registered.
pub fn terminating<'a>(set: &NodeSet, report: &'a HostReadiness) -> BTreeMap<&'a str, &'a str> {
    let present: Vec<String> = hosts(set).into_iter().map(|it| it.name).collect();
    let stays = |name: &String| !is_terminating(set) && present.contains(name);
    let all = report.spec.host_finalizers.iter();
    all.filter(|(name, _)| !stays(name)).map(|(name, it)| (name.as_str(), it.as_str())).collect()
}

/// Returns how far a host is, as the status of its node set has it.
pub fn reported_state(set: &NodeSet, host: &str) -> Option<HostState> {
    let mut recorded = set.status.iter().flat_map(|it| &it.hosts);
    recorded.find(|it| it.name == host).map(|it| it.state)
}

/// Returns the UID under which what a host of a node set left in nova is on record.
pub fn leftover_uid(set: &NodeSet, host: &str) -> String {
    format!("{}/{host}", set.metadata.uid.as_deref().unwrap_or_default())
}
