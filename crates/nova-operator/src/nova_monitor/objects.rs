//! The computes and node sets whose hosts the readings of nova's APIs are about.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::dataplane::{HostReadiness, NodeSet, Service};
use api::nova::{Cell, ExternalCompute};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::{Host, canonical_host_name, hosts, is_about};
use operator_core::object_key::Key;
use operator_runtime::cache::Cache;

use crate::conflicting_service::is_nova;
use crate::indexes::BY_CELL;
use crate::node_set_cells::used_first;
use crate::node_set_computes::removal::record::records;
use crate::nova_health::{HostHealth, ServiceHealth};
use crate::registration::{has_registered_since, registered_at, registered_host};
use crate::shared_caches::SharedCaches;

/// The caches of these objects.
pub struct MonitoredObjects {
    /// Computes by their cells.
    pub caches: SharedCaches,
    /// All node sets.
    pub node_sets: Arc<Cache<NodeSet>>,
    /// The reports about them, of every operator.
    pub reports: Arc<Cache<HostReadiness>>,
    /// The services that node sets list.
    pub services: Arc<Cache<Service>>,
    /// All cells, of other operators too.
    pub cells: Arc<Cache<Cell>>,
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
    /// Whether a change of what is known of the host concerns the object. When it was read, and since
    /// when a host is missing, changes with each reading; only whether a compute has registered since
    /// then counts.
    pub(crate) fn is_concerned(&self, before: &HostHealth, after: &HostHealth) -> bool {
        if self.cell.is_none() {
            let used =
                |it: &HostHealth| (it.service.clone(), it.mapping.clone(), it.disabled.clone());
            return used(before) != used(after);
        }
        let used = |it: &HostHealth| {
            let is_after =
                [it.missing_since, it.read_at].map(|at| has_registered_since(self.at, at));
            (HostHealth { missing_since: None, read_at: None, ..it.clone() }, is_after)
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

    /// Returns the other hosts than this one that stay in a cell: those of registered computes, and those
    /// that node sets have deployed and nova has listed.
    pub(crate) fn others(&self, cell: &Key, host: &str) -> impl Iterator<Item = String> {
        let computes = self.caches.computes.indexed(BY_CELL, cell).into_iter();
        let computes = computes.filter(|it| !is_terminating(&**it));
        let computes = computes.filter_map(|it| registered_host(&it).map(str::to_owned));
        computes.chain(self.recorded_hosts(cell)).filter(move |it| it != host)
    }

    /// Returns the hosts of node sets that stay there, and of which nova had a service in a cell, named
    /// as that is registered.
    fn recorded_hosts(&self, cell: &Key) -> impl Iterator<Item = String> {
        let reports = self.reports.all().into_iter();
        let here = reports.filter(|it| it.namespace().as_ref() == Some(&cell.namespace));
        here.flat_map(|report| self.recorded_on(&report, &cell.name))
    }

    fn recorded_on(&self, report: &HostReadiness, cell: &str) -> Vec<String> {
        let key = Key::new(report.namespace().unwrap_or_default(), &report.spec.node_set);
        let set = self.node_sets.get(&key).filter(|it| !is_terminating(&**it));
        let Some(set) = set.filter(|it| is_about(report, it)) else { return Vec::new() };
        let recorded = records(report);
        let is_there = |name: &String| {
            let of_host = recorded.get(name);
            of_host.is_some_and(|it| it.cell == cell && !it.is_unproven && it.service_id.is_some())
        };
        let names = hosts(&set).into_iter().map(|it| it.name).filter(is_there);
        names.filter_map(|it| report.spec.host_finalizers.get(&it).cloned()).collect()
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

    /// Returns the first name of a host of a node set in the namespace of a cell that `is_it` accepts.
    pub(crate) fn first_host(&self, cell: &Key, is_it: impl Fn(&String) -> bool) -> Option<String> {
        let sets = self.node_sets.all().into_iter();
        let mut here = sets.filter(|it| it.namespace().as_ref() == Some(&cell.namespace));
        here.find_map(|set| {
            hosts(&set).iter().map(|it| canonical_host_name(&set, it)).find(|it| is_it(it))
        })
    }

    /// Returns the node sets in the namespaces of cells that list a service of type nova, the oldest
    /// first.
    pub(crate) fn sets_with_nova(&self, cells: &BTreeSet<Key>) -> Vec<Arc<NodeSet>> {
        let namespaces: BTreeSet<&String> = cells.iter().map(|it| &it.namespace).collect();
        let is_of_nova = |set: &NodeSet, name: &String| {
            let key = Key::new(set.namespace().unwrap_or_default(), name);
            is_nova(name, self.services.get(&key).as_deref())
        };
        let mut sets = self.node_sets.all();
        sets.retain(|set| {
            let is_here = set.namespace().is_some_and(|it| namespaces.contains(&it));
            is_here && set.spec.services.iter().any(|it| is_of_nova(set, it))
        });
        sets.sort_by_cached_key(|it| (it.creation_timestamp().map(|it| it.0), Key::of(&**it)));
        sets
    }

    /// Returns the cells of a node set, those first that it uses.
    pub(crate) fn used_first(&self, cells: Vec<Key>, set: &NodeSet) -> Vec<Key> {
        used_first(cells, set, |it| self.services.get(it))
    }
}

/// A host of a node set that a cell has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SetHost {
    /// The node set and the host's name in the inventory: `compute/edpm-compute-0`.
    pub name: String,
    /// Its service.
    pub service: ServiceHealth,
}
