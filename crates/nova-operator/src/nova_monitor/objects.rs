//! The computes and node sets whose hosts the readings of nova's APIs are about.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::dataplane::NodeSet;
use api::nova::ExternalCompute;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::node_set_host::{Host, canonical_host_name, hosts};
use operator_core::object_key::Key;
use operator_runtime::cache::Cache;

use crate::indexes::BY_CELL;
use crate::nova_health::HostHealth;
use crate::registration::{has_registered_since, registered_at, registered_host};
use crate::shared_caches::SharedCaches;

/// The caches of these objects.
pub struct MonitoredObjects {
    /// Computes by their cells.
    pub caches: SharedCaches,
    /// All node sets.
    pub node_sets: Arc<Cache<NodeSet>>,
    /// Whether this operator reconciles cells, so that their conditions say why an API is not read.
    pub cells_are_ours: bool,
}

/// A compute that has registered, or a host of a node set.
pub(crate) struct Registered {
    /// The cell of a compute; `None` for a host of a node set.
    pub(crate) cell: Option<Key>,
    /// The compute, or the node set.
    pub(crate) key: Key,
    /// The name under which its service is registered.
    pub(crate) host: String,
    /// When a compute has last registered, as far as its records say.
    pub(crate) at: Option<Timestamp>,
}

impl Registered {
    /// Whether a change of what is known of the host concerns the object. Since when a host is missing
    /// changes with each reading; only whether a compute has registered since then counts.
    pub(crate) fn is_concerned(&self, before: &HostHealth, after: &HostHealth) -> bool {
        if self.cell.is_none() {
            let used =
                |it: &HostHealth| (it.service.clone(), it.mapping.clone(), it.disabled.clone());
            return used(before) != used(after);
        }
        let used = |it: &HostHealth| {
            let has_registered_since = has_registered_since(self.at, it.missing_since);
            (HostHealth { missing_since: None, ..it.clone() }, has_registered_since)
        };
        used(before) != used(after)
    }
}

impl MonitoredObjects {
    /// Returns the computes of these cells that have registered, and the hosts of all node sets in
    /// the namespaces of the cells.
    pub(crate) fn of_cells(&self, cells: &BTreeSet<Key>) -> Vec<Registered> {
        let mut all: Vec<Registered> = cells.iter().flat_map(|it| self.computes(it)).collect();
        all.extend(self.hosts(cells));
        all
    }

    /// Returns the computes of a cell that have registered.
    pub(crate) fn computes(&self, cell: &Key) -> Vec<Registered> {
        let of_cell = self.caches.computes.indexed(BY_CELL, cell);
        let registered = |it: Arc<ExternalCompute>| {
            let host = registered_host(&it)?.to_owned();
            let (key, at) = (Key::of(&*it), registered_at(&it));
            Some(Registered { cell: Some(cell.clone()), key, host, at })
        };
        of_cell.into_iter().filter_map(registered).collect()
    }

    /// Returns the hosts of all node sets in the namespaces of cells.
    pub(crate) fn hosts(&self, cells: &BTreeSet<Key>) -> Vec<Registered> {
        let namespaces: BTreeSet<&String> = cells.iter().map(|it| &it.namespace).collect();
        let of_set = |set: &NodeSet| {
            let key = Key::of(set);
            let host = |it: &Host<'_>| Registered {
                cell: None,
                key: key.clone(),
                host: canonical_host_name(set, it),
                at: None,
            };
            hosts(set).iter().map(host).collect::<Vec<_>>()
        };
        let sets = self.node_sets.all();
        let here = |it: &&Arc<NodeSet>| it.namespace().is_some_and(|it| namespaces.contains(&it));
        sets.iter().filter(here).flat_map(|it| of_set(it)).collect()
    }
}
