//! Reads which other objects have deployed nova under the names of a node set's hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::dataplane::{HostReadiness, NodeSet};
use kube::ResourceExt;
use operator_core::object_key::Key;

use crate::caches::Caches;
use crate::indexes::BY_NODE_SET;
use crate::node_set_computes::claims::{Claim, NovaDeployment, claim, deployments, proven};
use crate::nova_monitor::NovaMonitor;

/// What is known of those that may have the hosts of a node set in nova.
pub struct Claims {
    namespace: String,
    deployments: BTreeMap<String, NovaDeployment>,
    /// Cell → names under which other node sets have deployed hosts in its nova, each with the set.
    others: BTreeMap<Key, BTreeMap<String, Key>>,
    /// Cell → names under which computes have registered in its nova, each with the compute.
    computes: BTreeMap<Key, BTreeMap<String, Key>>,
}

impl Claims {
    /// Returns what is known; `report` is the present report about the node set, if it is one of this
    /// operator, and `cells` are those of its namespace.
    pub fn new(
        (caches, monitor): (&Caches, &NovaMonitor),
        set: &NodeSet,
        report: Option<&HostReadiness>,
        cells: &[Key],
    ) -> Self {
        let runs = caches.runs.indexed(BY_NODE_SET, &Key::of(set));
        let of_cell = |it: &Key| (it.clone(), others(caches, monitor, set, it));
        Self {
            namespace: set.namespace().unwrap_or_default(),
            deployments: deployments(set, report, &runs),
            others: cells.iter().map(of_cell).collect(),
            computes: cells.iter().map(|it| (it.clone(), monitor.computes_by_host(it))).collect(),
        }
    }

    /// Returns how far nova is deployed on a host, by its name in the inventory.
    pub fn deployment(&self, name: &str) -> Option<NovaDeployment> {
        self.deployments.get(name).copied()
    }

    /// Returns whether the node set decides about a service of a cell's nova; `is_proven` is whether
    /// it has deployed nova on the host of that name.
    pub fn claim(&self, cell: &Key, host: &str, is_proven: bool) -> Claim {
        let compute = self.computes.get(cell).and_then(|it| it.get(host)).cloned();
        let other = self.others.get(cell).and_then(|it| it.get(host));
        claim(&self.namespace, is_proven, compute, other)
    }
}

/// Returns the names under which other node sets have deployed nova on hosts in the nova of a cell,
/// each with the node set.
fn others(
    caches: &Caches,
    monitor: &NovaMonitor,
    set: &NodeSet,
    cell: &Key,
) -> BTreeMap<String, Key> {
    let Some(of_sets) = &caches.node_sets else { return BTreeMap::new() };
    let own = Key::of(set);
    let cells = monitor.sharing(cell);
    let namespaces: BTreeSet<&String> = cells.iter().map(|it| &it.namespace).collect();
    let sets = namespaces.into_iter().flat_map(|it| caches.node_sets_of(it));
    let of_set = |it: Arc<NodeSet>| {
        let key = Key::of(&*it);
        let report = of_sets.report_about(&it).filter(|_| key != own)?;
        let names = proven(&report, |cell| cells.contains(&Key::new(&key.namespace, cell)));
        Some(names.into_iter().map(move |name| (name, key.clone())).collect::<Vec<_>>())
    };
    sets.filter_map(of_set).flatten().collect()
}
