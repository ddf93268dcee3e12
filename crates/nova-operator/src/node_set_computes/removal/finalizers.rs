//! The host finalizers of a node set, and what is recorded of their hosts.

use std::collections::{BTreeMap, BTreeSet};

use api::dataplane::{HostReadiness, NodeSet};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_core::finalizers::is_terminating;

use crate::cell::mappings::known::Mapping;
use crate::drain::progress::Removal;
use crate::node_set_computes::removal::observed::{Removals, TerminatingHost};
use crate::node_set_computes::removal::record::{HostRecords, MappingStep, records};

/// The host finalizers that a report should have.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostFinalizers {
    /// The hosts by their names in the inventory, each with the name of its service in nova.
    pub hosts: BTreeMap<String, String>,
    /// What is recorded of them.
    pub records: HostRecords,
}

/// Returns the host finalizers: those that `found`, the present report, has, without those of hosts
/// that are let go, and with those of hosts that were deployed since.
///
/// A host finalizer stays while nova does not answer. A node set that is being deleted gets none.
pub fn desired(
    set: &NodeSet,
    removals: &Removals,
    released: &BTreeSet<String>,
    found: Option<&HostReadiness>,
    now: Timestamp,
) -> HostFinalizers {
    let mut hosts = found.map(|it| it.spec.host_finalizers.clone()).unwrap_or_default();
    let mut recorded = found.map(records).unwrap_or_default();
    hosts.retain(|name, _| !released.contains(name));
    recorded.retain(|name, _| hosts.contains_key(name));
    record_mappings(&mut recorded, removals, released, now);
    if is_terminating(set) {
        return HostFinalizers { hosts, records: recorded };
    }
    for (name, (host, record)) in &removals.deployed {
        hosts.insert(name.clone(), host.clone());
        let before = recorded.remove(name).unwrap_or_default();
        recorded.insert(name.clone(), record.clone().with_ids_of(&before));
    }
    HostFinalizers { hosts, records: recorded }
}

/// Records of the hosts that leave how far they are about their mappings, and of no other host: one
/// that comes back and leaves again is read again.
fn record_mappings(
    recorded: &mut HostRecords,
    removals: &Removals,
    released: &BTreeSet<String>,
    now: Timestamp,
) {
    for record in recorded.values_mut() {
        record.mapping = None;
    }
    for of in removals.terminating.iter().filter(|it| !released.contains(&it.name)) {
        if let Some((step, (cell, _))) = mapping_step(of, now).zip(of.cell.as_ref()) {
            let record = recorded.entry(of.name.clone()).or_default();
            (record.cell, record.mapping) = (cell.name.clone(), Some(step));
        }
    }
}

/// Returns how far the removal of a host is about its mapping.
fn mapping_step(of: &TerminatingHost, now: Timestamp) -> Option<MappingStep> {
    let is_out_of_nova = of.progress.removal().map(Removal::is_out_of_nova);
    if is_out_of_nova == Some(false) {
        return None;
    }
    match (of.record.mapping.clone(), &of.mapping) {
        (Some(_), Mapping::Absent | Mapping::NotRead(_)) => Some(MappingStep::Settled),
        (None, Mapping::Unread | Mapping::Present | Mapping::PresentThenFailed(_))
            if is_out_of_nova.is_some() =>
        {
            Some(MappingStep::Awaited(Time(now)))
        }
        (before, _) => before,
    }
}
