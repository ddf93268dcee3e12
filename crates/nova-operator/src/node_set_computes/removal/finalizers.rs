//! The host finalizers of a node set, and what is recorded of their hosts.

use std::collections::{BTreeMap, BTreeSet};

use api::dataplane::{HostReadiness, NodeSet};
use operator_core::finalizers::is_terminating;

use crate::node_set_computes::removal::observed::Removals;
use crate::node_set_computes::removal::record::{HostRecords, records};

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
) -> HostFinalizers {
    let mut hosts = found.map(|it| it.spec.host_finalizers.clone()).unwrap_or_default();
    let mut recorded = found.map(records).unwrap_or_default();
    hosts.retain(|name, _| !released.contains(name));
    recorded.retain(|name, _| hosts.contains_key(name));
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
