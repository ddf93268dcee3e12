//! The computes whose hosts the readings of nova's APIs are about.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::nova::ExternalCompute;
use jiff::Timestamp;
use operator_core::finalizers::is_terminating;
use operator_core::object_key::Key;

use crate::compute_status::registration::{has_registered_since, registered_at, registered_host};
use crate::nova::health::HostHealth;
use crate::shared_caches::SharedCaches;
use crate::shared_caches::indexes::BY_CELL;

/// The caches of these objects.
pub struct MonitoredObjects {
    /// Computes by their cells.
    pub caches: SharedCaches,
    /// Whether this operator reconciles cells, so that their conditions say why an API is not read.
    pub cells_are_ours: bool,
}

/// A compute that has registered.
pub(crate) struct Registered {
    /// Its cell; `None` where that is not known.
    pub(crate) cell: Option<Key>,
    /// The compute.
    pub(crate) key: Key,
    /// The name under which its service is registered.
    pub(crate) host: String,
    /// When it has last registered, as far as its records say.
    pub(crate) at: Option<Timestamp>,
}

impl Registered {
    /// Whether a change of what is known of the host concerns the compute. When it was read, and since
    /// when a host is missing, changes with each reading; only whether a compute has registered since
    /// then counts.
    pub(crate) fn is_concerned(&self, before: &HostHealth, after: &HostHealth) -> bool {
        let used = |it: &HostHealth| {
            let is_after =
                [it.missing_since, it.read_at].map(|at| has_registered_since(self.at, at));
            (HostHealth { missing_since: None, read_at: None, ..it.clone() }, is_after)
        };
        used(before) != used(after)
    }
}

impl MonitoredObjects {
    /// Returns the computes that have registered and are in one of these cells, or in an unknown one of
    /// their namespaces.
    pub(crate) fn of_cells(&self, cells: &BTreeSet<Key>) -> Vec<Registered> {
        let namespaces: BTreeSet<&String> = cells.iter().map(|it| &it.namespace).collect();
        let unknown = namespaces.into_iter().map(|it| Key::new(it, ""));
        cells.iter().cloned().chain(unknown).flat_map(|it| self.computes(&it)).collect()
    }

    /// Returns the computes of a cell that have registered.
    pub(crate) fn computes(&self, cell: &Key) -> Vec<Registered> {
        let registered = |it: Arc<ExternalCompute>| {
            let (host, at) = (registered_host(&it)?.to_owned(), registered_at(&it));
            let cell = Some(cell.clone()).filter(|it| !it.name.is_empty());
            Some(Registered { cell, key: Key::of(&*it), host, at })
        };
        let of_cell = self.caches.computes.indexed(BY_CELL, cell);
        of_cell.into_iter().filter_map(registered).collect()
    }

    /// Returns the other hosts than this one that stay in a cell: those of registered computes.
    pub(crate) fn others(&self, cell: &Key, host: &str) -> impl Iterator<Item = String> {
        let computes = self.caches.computes.indexed(BY_CELL, cell).into_iter();
        let computes = computes.filter(|it| !is_terminating(&**it));
        let hosts = computes.filter_map(|it| registered_host(&it).map(str::to_owned));
        hosts.filter(move |it| it != host)
    }

    /// Returns the computes of a cell whose records have the service with this UUID on a host.
    pub(crate) fn recorded_on(&self, cell: &Key, host: &str, service_id: &str) -> Vec<Key> {
        let mut all = self.caches.computes.indexed(BY_CELL, cell);
        all.retain(|it| {
            let id = it.status.as_ref().and_then(|it| it.service_id.as_deref());
            it.host_name() == Some(host) && id == Some(service_id)
        });
        Key::of_each(all)
    }
}
