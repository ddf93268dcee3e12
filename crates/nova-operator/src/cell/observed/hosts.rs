//! What was observed in nova of the hosts of a cell, as plain data.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::nova::{ExternalCompute, Leftover};
use kube::ResourceExt;

use crate::nova::drain::progress::HostProgress;

/// What was observed of a cell's hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostsSeen {
    /// The leftovers with UUIDs, by the UID of their compute; without those whose compute is there.
    pub leftovers: BTreeMap<String, LeftoverSeen>,
    /// Of a cell that is being deleted and has no computes: its hosts by name, and what nova has of
    /// each, as the decision has it; `None` where it is unknown which hosts it has, and of any other cell.
    pub hosts: Option<Vec<(String, HostProgress)>>,
}

/// What was observed of a leftover.
#[derive(Clone, Debug, PartialEq)]
pub enum LeftoverSeen {
    /// Its host name belongs to this object again, as in `NovaExternalCompute n0`.
    InUse(String),
    /// Nova has a compute node of another UUID on its host.
    OtherNode(String),
    /// How far what it names is deleted, as the decision has it.
    Progress(HostProgress),
}

/// Returns the compute to which the host name of a leftover belongs again, among those of its namespace;
/// `None` if it belongs to none.
///
/// A compute that has no host name yet counts by its own name.
pub fn user(leftover: &Leftover, computes: &[Arc<ExternalCompute>]) -> Option<String> {
    let has_host = |it: &&Arc<ExternalCompute>| {
        it.host_name()
            .map_or_else(|| it.name_any() == leftover.compute, |it| it == leftover.host_name)
    };
    let compute = computes.iter().find(has_host);
    compute.map(|it| format!("NovaExternalCompute {}", it.name_any()))
}
