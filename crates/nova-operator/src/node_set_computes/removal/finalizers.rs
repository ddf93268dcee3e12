//! The host finalizers of a node set, and what is recorded of their hosts.

use std::collections::BTreeMap;

use api::dataplane::{HostReadiness, NodeSet};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_core::finalizers::is_terminating;

use crate::cell::mappings::known::Mapping;
use crate::drain::progress::Removal;
use crate::node_set_computes::claims::Claim;
use crate::node_set_computes::removal::decide::Decision;
use crate::node_set_computes::removal::observed::{Removals, TerminatingHost};
use crate::node_set_computes::removal::record::{HostRecords, MappingStep, records};
use crate::nova_health::HostHealth;

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
    decision: &Decision,
    found: Option<&HostReadiness>,
    now: Timestamp,
) -> HostFinalizers {
    let mut hosts = found.map(|it| it.spec.host_finalizers.clone()).unwrap_or_default();
    let mut recorded = found.map(records).unwrap_or_default();
    hosts.retain(|name, _| !decision.released.contains(name));
    recorded.retain(|name, _| hosts.contains_key(name));
    let held = || removals.terminating.iter().filter(|it| !decision.released.contains(&it.name));
    for of in held() {
        record_cell(&mut recorded, of);
        if let Some(record) = recorded.get_mut(&of.name) {
            record.is_another_s |= decision.another_s.contains(&of.name);
            record.is_another_s &= !decision.cleaned.contains(&of.name);
        }
    }
    record_mappings(&mut recorded, held(), now);
    for of in held().filter(|it| !decision.stopped.contains(&it.name)) {
        record_ids(&mut recorded, of);
    }
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
fn record_mappings<'a>(
    recorded: &mut HostRecords,
    held: impl Iterator<Item = &'a TerminatingHost>,
    now: Timestamp,
) {
    for record in recorded.values_mut() {
        record.mapping = None;
    }
    for of in held {
        if let Some((step, (cell, _))) = mapping_step(of, now).zip(of.cell.as_ref()) {
            let record = recorded.entry(of.name.clone()).or_default();
            (record.cell, record.mapping) = (cell.name.clone(), Some(step));
        }
    }
}

/// Records the cell in which a host that leaves is removed, because the one that was recorded may be
/// gone; and that nova was deployed there, if that was not known before.
fn record_cell(recorded: &mut HostRecords, of: &TerminatingHost) {
    let Some(record) = recorded.get_mut(&of.name) else { return };
    record.is_unproven = of.record.is_unproven;
    if let Some((cell, _)) = &of.cell {
        record.cell.clone_from(&cell.name);
    }
}

/// Records the UUIDs of a host that leaves where none were read before, as long as its nova-compute
/// runs: what appears in nova under its name later is not the host's.
fn record_ids(recorded: &mut HostRecords, of: &TerminatingHost) {
    let Some((cell, _)) = of.cell.as_ref().filter(|_| of.claim == Claim::Own) else { return };
    let HostHealth { service_id, compute_id, .. } = of.health.clone();
    let is_read = recorded.get(&of.name).is_some_and(|it| it.service_id.is_some());
    if service_id.is_some() && !is_read {
        let record = recorded.entry(of.name.clone()).or_default();
        record.cell.clone_from(&cell.name);
        (record.service_id, record.compute_id) = (service_id, compute_id);
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
