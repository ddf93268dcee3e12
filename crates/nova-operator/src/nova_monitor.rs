//! The readers of nova's APIs, one for all cells that use the same API in the same way.
//!
//! Controllers never wait for a reading: they use the last ones, and are enqueued when these change.

mod access;
mod followed;
pub mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::conf::CellView;
use openstack_client::{Compute, ComputeService, Fault, Hypervisor};
use operator_core::node_set_host::{canonical_host_name, hosts};
use operator_core::object_key::Key;
use operator_runtime::answer_memory::Held;
use operator_runtime::clock;
use operator_runtime::workqueue::WorkQueue;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::nova_health::{ApiHealth, HostHealth, Readings, ServiceHealth};
use crate::nova_monitor::access::Access;
pub use crate::nova_monitor::access::ClientSettings;
pub use crate::nova_monitor::followed::{ApiHosts, SharedApi};
use crate::nova_monitor::followed::{Followed, FollowedCells, Lost, Reader};
use crate::nova_monitor::objects::{MonitoredObjects, Registered, SetHost};
use crate::nova_reading;
use crate::queues::Queues;

/// What is known of the inputs of a cell.
#[derive(Clone, Copy)]
pub enum CellInputs<'a> {
    /// They are there.
    Complete {
        /// The inputs.
        view: &'a CellView,
        /// The name of the cell's Secret, for messages.
        secret: &'a str,
    },
    /// One is missing or cannot be used: the sentence has the cause and the next step.
    Missing(&'a str),
    /// The cell does not exist.
    Gone,
}

/// What nova answers for services, and how many intervals it took to do so.
type TimedServices = (Result<Held<ComputeService>, Fault>, u32);

/// The queues of the objects to reconcile when a reading changes what is known of them.
pub struct MonitorQueues {
    /// The queue of computes.
    pub computes: Arc<WorkQueue>,
    /// The queue of cells, for their conditions.
    pub cells: Arc<WorkQueue>,
    /// The queue of cells, for what is reported of those of other operators.
    pub cell_readings: Arc<WorkQueue>,
    /// The queue of node sets.
    pub node_sets: Arc<WorkQueue>,
}

impl MonitorQueues {
    /// Returns those among all queues of the operator.
    pub fn of(queues: &Queues) -> Self {
        Self {
            computes: Arc::clone(&queues.computes),
            cells: Arc::clone(&queues.cells),
            cell_readings: Arc::clone(&queues.cell_readings),
            node_sets: Arc::clone(&queues.node_sets),
        }
    }
}

/// The readers of nova's APIs, which run as long as a cell uses them.
pub struct NovaMonitor {
    interval: Duration,
    settings: ClientSettings,
    objects: MonitoredObjects,
    queues: MonitorQueues,
    cells: Mutex<FollowedCells>,
}

impl NovaMonitor {
    /// Creates a monitor that reads nothing yet.
    pub fn new(
        interval: Duration,
        settings: ClientSettings,
        objects: MonitoredObjects,
        queues: MonitorQueues,
    ) -> Arc<Self> {
        let cells = Mutex::default();
        Arc::new(Self { interval, settings, objects, queues, cells })
    }

    /// Reads for a cell from now on, as its inputs say. The first reading begins at once, and nothing
    /// happens where the inputs are as before. Without inputs, each reading fails.
    pub fn follow(self: &Arc<Self>, cell: &Key, inputs: CellInputs<'_>) {
        match inputs {
            CellInputs::Complete { view, secret } => self.watch(cell, view, secret),
            CellInputs::Missing(cause) => self.lose(cell, cause, false),
            CellInputs::Gone => {
                self.lose(cell, &format!("NovaCell {} does not exist.", cell.name), true);
            }
        }
    }

    /// Reads no longer for a cell. Of one that does not exist, nothing is known of its hosts at once;
    /// of another one, after as many intervals as where an API does not answer.
    fn lose(self: &Arc<Self>, cell: &Key, cause: &str, is_gone: bool) {
        let mut followed = self.cells.lock();
        let present = followed.lost.get_mut(cell).filter(|it| it.reader.is_none() == is_gone);
        if let Some(lost) = present {
            let is_new = lost.cause != cause;
            cause.clone_into(&mut lost.cause);
            drop(followed);
            if is_new {
                self.enqueue_hosts(cell);
            }
            return;
        }
        let (access, before) = followed.leave(cell);
        let reader = (!is_gone).then(|| {
            let readings = before.map(|it| it.readings.lock().clone()).unwrap_or_default();
            let reader = Reader::new(None, access.as_ref(), readings);
            reader.add(cell);
            tokio::spawn(read(Arc::downgrade(self), Arc::downgrade(&reader)));
            reader
        });
        let access = access.filter(|_| !is_gone);
        followed.lost.insert(cell.clone(), Lost { cause: cause.to_owned(), access, reader });
        drop(followed);
        if is_gone {
            self.settings.metrics.nova_computes(cell, None);
            self.settings.metrics.nova_failed_readings(cell, None);
            self.enqueue_hosts(cell);
        }
    }

    /// Enqueues all objects with hosts that may be in a cell.
    fn enqueue_hosts(&self, cell: &Key) {
        for it in &self.objects.of_cells(&BTreeSet::from([cell.clone()])) {
            self.enqueue(it);
        }
    }

    fn enqueue(&self, concerned: &Registered) {
        let queues = &self.queues;
        let queue = if concerned.cell.is_some() { &queues.computes } else { &queues.node_sets };
        queue.push(concerned.key.clone());
    }

    fn watch(self: &Arc<Self>, cell: &Key, view: &CellView, secret: &str) {
        let access = Access::of(view);
        let mut followed = self.cells.lock();
        if let Some(present) = followed.of_cell.get_mut(cell).filter(|it| it.access == access) {
            return secret.clone_into(&mut present.secret);
        }
        let reader = if let Some(reader) = followed.readers.get(&access) {
            Arc::clone(reader)
        } else {
            let bundle = view.ca_bundle.as_deref();
            let Some(apis) = access.apis(bundle, &self.settings, &cell.namespace) else {
                drop(followed);
                return self.lose(cell, &unusable(cell, secret), false);
            };
            let reader = Reader::new(Some(apis), Some(&access), Readings::default());
            tokio::spawn(read(Arc::downgrade(self), Arc::downgrade(&reader)));
            followed.readers.insert(access.clone(), Arc::clone(&reader));
            reader
        };
        followed.leave(cell);
        reader.add(cell);
        followed.of_cell.insert(cell.clone(), Followed { access, secret: secret.to_owned() });
        drop(followed);
        // The next reading may be like the last one, and then enqueues nothing.
        if reader.readings.lock().api() != ApiHealth::Pending {
            self.enqueue_hosts(cell);
            self.queues.cells.push(cell.clone());
            self.queues.cell_readings.push(cell.clone());
        }
    }

    /// Returns what is known of the API of a cell.
    pub fn api(&self, cell: &Key) -> ApiHealth {
        self.reader(cell).map(|it| it.readings.lock().api()).unwrap_or_default()
    }

    /// Returns what is known of a host of a cell, named as its service is registered.
    pub fn host(&self, cell: &Key, host: &str) -> HostHealth {
        self.host_in(std::slice::from_ref(cell), host)
    }

    /// Returns the API of a cell for tasks of single hosts; `None` while it is not read.
    pub fn shared(&self, cell: &Key) -> Option<SharedApi> {
        let reader = self.reader(cell)?;
        let apis = Arc::clone(reader.apis.as_ref()?);
        let permits = Arc::clone(reader.cells.lock().get(cell)?);
        Some(SharedApi { apis, nova: reader.nova.clone(), permits })
    }

    /// Whether nothing is known any more of the hosts of a cell, because an input is missing or wrong,
    /// or the cell does not exist.
    pub fn is_unread(&self, cell: &Key) -> bool {
        self.cells.lock().is_unread(cell)
    }

    /// Whether it is not known yet what is to be read for a cell.
    pub fn is_pending(&self, cell: &Key) -> bool {
        self.cells.lock().is_pending(cell)
    }

    /// Returns the hosts that the API of a cell has services of.
    pub fn hosts(&self, cell: &Key) -> ApiHosts {
        self.cells.lock().hosts(cell)
    }

    /// Returns another host of a cell, by which a task finds out whether the cell's database
    /// answers: one whose service the last reading has, as unknown too; `None` without one.
    ///
    /// Where several cells share a nova, it does not say in which of them a host of a node set is. A cell
    /// that no `NovaCell` describes is not known to share it.
    pub fn witness(&self, cell: &Key, host: &str) -> Option<String> {
        let reader = self.reader(cell)?;
        let is_another = |it: &String| it != host && reader.readings.lock().has_service(it);
        let computes = self.objects.computes(cell).into_iter().map(|it| it.host);
        computes.into_iter().find(is_another).or_else(|| {
            self.is_alone(cell).then(|| self.objects.first_host(cell, is_another)).flatten()
        })
    }

    /// Whether a cell has other hosts than this one that stay, and the last reading has a service of none
    /// of them.
    pub fn lists_no_other(&self, cell: &Key, host: &str) -> bool {
        let mut others = self.objects.others(cell, host).peekable();
        let reader = self.reader(cell);
        let is_listed =
            |it: &String| reader.as_ref().is_some_and(|of| of.readings.lock().has_service(it));
        others.peek().is_some() && !others.any(|it| is_listed(&it))
    }

    /// Whether no other cell uses the API of a cell, which is known once all of them were looked at.
    fn is_alone(&self, cell: &Key) -> bool {
        let (cells, all) = (self.cells.lock(), Key::of_each(self.objects.cells.all()));
        cells.sharing(cell).len() == 1 && !all.iter().any(|it| cells.is_pending(it))
    }

    /// Returns the time between two readings.
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns what is known of a host that is in one of these cells, named as its service is
    /// registered: what the cell says that has it, `NotFound` where every cell was read and none has
    /// it, and `Pending` until all of them were read.
    pub fn host_in(&self, cells: &[Key], host: &str) -> HostHealth {
        let of = |cell| (cell, self.host_of(cell, host));
        let Some((cell, health)) = cells.iter().map(of).min_by_key(|it| it.1.rank()) else {
            return HostHealth::default();
        };
        let is_reported = self.objects.cells_are_ours;
        let cause = || self.cells.lock().unreported_cause(cell, is_reported);
        let cause = health.has_cause().then(cause).flatten();
        HostHealth { cause, ..health }
    }

    fn host_of(&self, cell: &Key, host: &str) -> HostHealth {
        match self.reader(cell) {
            Some(reader) => {
                let health = reader.readings.lock().of_host(host);
                HostHealth { nova: reader.nova.clone(), ..health }
            }
            None if self.is_pending(cell) => HostHealth::default(),
            None => HostHealth::unread(),
        }
    }

    /// Returns the first of these cells whose nova had a service of the host in the last reading
    /// that succeeded; `None` where none had.
    pub fn cell_with(&self, cells: &[Key], host: &str) -> Option<Key> {
        let has =
            |cell: &&Key| self.reader(cell).is_some_and(|it| it.readings.lock().has_service(host));
        cells.iter().find(has).cloned()
    }

    /// Returns since when nova lists a service of a host of a cell and no hypervisor, see
    /// [`Readings::unmapped_since`].
    pub fn unmapped_since(&self, cell: &Key, host: &str) -> Option<Timestamp> {
        self.reader(cell)?.readings.lock().unmapped_since(host)
    }

    /// Returns the cells that use the same API as a cell, as any user, and the cell itself.
    pub fn sharing(&self, cell: &Key) -> BTreeSet<Key> {
        self.cells.lock().sharing(cell)
    }

    /// Returns a digest of what identifies the nova of a cell: Keystone's address and the region.
    pub fn nova_of(&self, cell: &Key) -> Option<String> {
        Some(self.cells.lock().access(cell)?.nova())
    }

    /// Returns the computes that have registered in the nova of a cell, by the names of their hosts.
    pub fn computes_by_host(&self, cell: &Key) -> BTreeMap<String, Key> {
        let cells = self.sharing(cell);
        let registered = cells.iter().flat_map(|it| self.objects.computes(it));
        registered.map(|it| (it.host, it.key)).collect()
    }

    /// Returns the compute that has registered under a host's name in the nova of a cell; `None`
    /// without one.
    pub fn compute_on(&self, cell: &Key, host: &str) -> Option<Key> {
        self.computes_by_host(cell).remove(host)
    }

    /// Returns the node set with a host of that name, among those in the namespaces of all cells that
    /// share the nova of a cell; `None` without one.
    pub fn node_set_on(&self, cell: &Key, host: &str) -> Option<Key> {
        let mut of_sets = self.objects.hosts(&self.sharing(cell)).into_iter();
        of_sets.find(|it| it.host == host).map(|it| it.key)
    }

    fn reader(&self, cell: &Key) -> Option<Arc<Reader>> {
        self.cells.lock().reader(cell)
    }

    /// Reads the API once, and enqueues the objects that the reading concerns.
    async fn refresh(&self, reader: &Reader) {
        let begun = clock::now();
        let found = match &reader.apis {
            Some(apis) => Some(self.ask(&apis.compute).await),
            None => None,
        };
        let cells = reader.cells();
        let registered = self.objects.of_cells(&cells);
        let mut readings = reader.readings.lock();
        let health = |readings: &Readings| -> Vec<HostHealth> {
            registered.iter().map(|it| readings.of_host(&it.host)).collect()
        };
        let (before, api_before) = (health(&readings), readings.api());
        match found {
            Some(((services, n_intervals), hypervisors)) => {
                readings.take(services, hypervisors, begun, n_intervals);
            }
            None => readings.miss(),
        }
        let (after, api_after) = (health(&readings), readings.api());
        let (failed, is_judged) = (readings.failed(), readings.is_judged());
        drop(readings);
        let is_other_api = api_before != api_after;
        // The objects have the cause where the cell does not report it.
        let is_unreported = is_other_api && !self.objects.cells_are_ours;
        let mut counted_in = BTreeSet::new();
        for (it, (before, after)) in registered.iter().zip(before.iter().zip(&after)) {
            let is_concerned = it.is_concerned(before, after);
            if is_concerned || (is_unreported && after.has_cause()) {
                self.enqueue(it);
            }
            if is_concerned && it.cell.is_none() {
                counted_in.insert(&it.key.namespace);
            }
        }
        for cell in &cells {
            if is_other_api || counted_in.contains(&cell.namespace) {
                self.queues.cells.push(cell.clone());
            }
            if is_other_api {
                self.queues.cell_readings.push(cell.clone());
            }
        }
        let counts =
            if is_judged { self.counts(reader, &registered, &after) } else { BTreeMap::new() };
        // Those of a cell that goes meanwhile go with it.
        let present = reader.cells.lock();
        for cell in present.keys() {
            self.settings.metrics.nova_failed_readings(cell, Some(failed));
            if let Some(counts) = counts.get(cell) {
                self.settings.metrics.nova_computes(cell, Some(*counts));
            }
        }
    }

    /// Reads services and hypervisors; with the services comes how many intervals they took.
    async fn ask(&self, compute: &Compute) -> (TimedServices, Result<Held<Hypervisor>, Fault>) {
        let started = Instant::now();
        let services = async {
            let found = compute.services().await;
            (found, intervals(started, self.interval))
        };
        nova_reading::read(services, compute.hypervisors()).await
    }

    /// Returns the hosts of node sets that count to a cell: nova has a service of each of them, and no
    /// compute or older node set has the host. Of several cells that may have it, that one counts whose
    /// files the node set uses. `None` where there may be some, and nova was not read yet.
    pub fn set_hosts(&self, cell: &Key) -> Option<Vec<SetHost>> {
        let reader = self.reader(cell);
        let Some(reader) = reader.filter(|it| it.readings.lock().has_read()) else {
            let sets = self.objects.sets_with_nova(&BTreeSet::from([cell.clone()]));
            return sets.is_empty().then(Vec::new);
        };
        Some(self.set_hosts_of(&reader).remove(cell).unwrap_or_default())
    }

    /// Returns the same for all cells that use a reader.
    fn set_hosts_of(&self, reader: &Reader) -> BTreeMap<Key, Vec<SetHost>> {
        let cells = reader.cells();
        let sharing: BTreeSet<Key> = cells.iter().flat_map(|it| self.sharing(it)).collect();
        let computes = sharing.iter().flat_map(|it| self.objects.computes(it));
        let mut counted: BTreeSet<String> = computes.map(|it| it.host).collect();
        let mut found: BTreeMap<Key, Vec<SetHost>> = BTreeMap::new();
        for set in self.objects.sets_with_nova(&sharing) {
            let of_set = self.cells.lock().cells_in(&set.namespace().unwrap_or_default());
            let of_set = self.objects.used_first(of_set, &set);
            for it in hosts(&set) {
                let host = canonical_host_name(&set, &it);
                let cell = self.cell_with(&of_set, &host).filter(|it| sharing.contains(it));
                let cell = cell.filter(|_| counted.insert(host.clone()));
                let Some(cell) = cell.filter(|it| cells.contains(it)) else { continue };
                let service = reader.readings.lock().of_host(&host).service;
                let name = format!("{}/{}", set.name_any(), it.name);
                found.entry(cell).or_default().push(SetHost { name, service });
            }
        }
        found
    }

    /// Returns how many computes and hosts of node sets each cell has that are up, down and unknown.
    fn counts(
        &self,
        reader: &Reader,
        registered: &[Registered],
        health: &[HostHealth],
    ) -> BTreeMap<Key, [usize; 3]> {
        let mut of_sets = self.set_hosts_of(reader);
        let mut counts_of = |cell: Key| {
            let here = |(it, _): &(&Registered, &HostHealth)| it.cell.as_ref() == Some(&cell);
            let computes = registered.iter().zip(health).filter(here).map(|it| &it.1.service);
            let of_sets = of_sets.remove(&cell).unwrap_or_default();
            let mut counts = [0; 3];
            for service in computes.chain(of_sets.iter().map(|it| &it.service)) {
                counts[match service {
                    ServiceHealth::Up { .. } => 0,
                    ServiceHealth::Down { .. } | ServiceHealth::NotFound => 1,
                    ServiceHealth::Pending
                    | ServiceHealth::ApiFails
                    | ServiceHealth::CellNotAnswering => 2,
                }] += 1;
            }
            (cell, counts)
        };
        reader.cells().into_iter().map(&mut counts_of).collect()
    }
}

/// Returns how many times an interval fits into the time since then.
pub fn intervals(since: Instant, interval: Duration) -> u32 {
    let n = since.elapsed().as_millis() / interval.as_millis().max(1);
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Reads an API at its interval, as long as a cell uses it.
async fn read(monitor: Weak<NovaMonitor>, reader: Weak<Reader>) {
    loop {
        let begun = Instant::now();
        let (Some(monitor), Some(reader)) = (monitor.upgrade(), reader.upgrade()) else { return };
        monitor.refresh(&reader).await;
        let next = begun + monitor.interval;
        drop((monitor, reader));
        sleep_until(next).await;
    }
}

/// Returns why inputs that are complete cannot be used.
fn unusable(cell: &Key, secret: &str) -> String {
    format!(
        "spec.keystoneAuthURL of NovaCell {} is no http or https URL, or CABundle in Secret {secret} \
         has no certificate: correct it.",
        cell.name
    )
}

#[cfg(test)]
mod tests;
