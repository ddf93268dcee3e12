//! The readers of nova's APIs, one for all cells that use the same API in the same way.
//!
//! Controllers never wait for a reading: they use the last ones, and are enqueued when these change.

mod access;
pub mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use nova_config::conf::CellView;
use openstack_client::{Compute, ComputeService, Fault, Hypervisor};
use operator_core::object_key::Key;
use operator_runtime::clock;
use operator_runtime::lease::LeadershipWatch;
use operator_runtime::metrics::Metrics;
use operator_runtime::workqueue::WorkQueue;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use crate::drain::remove::Apis;
use crate::nova_fault::explained;
use crate::nova_health::{ApiHealth, HostHealth, Readings, ServiceHealth};
use crate::nova_monitor::access::Access;
use crate::nova_monitor::objects::{MonitoredObjects, Registered};
use crate::nova_reading;
use crate::queues::Queues;

/// How many hosts of a cell are drained, enabled or removed at a time.
const HOSTS_AT_A_TIME: usize = 8;

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
type TimedServices = (Result<Vec<ComputeService>, Fault>, u32);

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
    metrics: Metrics,
    leadership: LeadershipWatch,
    objects: MonitoredObjects,
    queues: MonitorQueues,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    readers: BTreeMap<Access, Arc<Reader>>,
    of_cell: BTreeMap<Key, Followed>,
    /// The cells whose API is not read, because an input is missing or wrong, or they do not exist.
    lost: BTreeMap<Key, Lost>,
}

/// A cell whose API is read.
struct Followed {
    access: Access,
    /// The name of the cell's Secret, for messages.
    secret: String,
}

/// A cell whose API is not read.
struct Lost {
    /// What is missing.
    cause: String,
    /// What is left of its last readings; `None` of a cell that does not exist.
    reader: Option<Arc<Reader>>,
}

/// The hosts that the API of a cell has services of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ApiHosts {
    /// Other cells are read from the same API, and nova does not say in which one a host is.
    OfSeveralCells,
    /// They are not known.
    Unknown,
    /// Those of the last reading, which are the cell's.
    OfCell(BTreeSet<String>),
}

/// Nova's API as the tasks of the hosts of one cell share it.
#[derive(Clone)]
pub struct SharedApi {
    /// Its clients, which cells share.
    pub apis: Arc<Apis>,
    /// How many hosts of the cell may use it at a time: a cell that hangs holds no other one back.
    pub permits: Arc<Semaphore>,
}

/// What is read of one API.
struct Reader {
    /// Its clients; `None` where inputs are missing, so that each reading fails.
    apis: Option<Arc<Apis>>,
    readings: Mutex<Readings>,
    /// The cells that use it, each with its permits.
    cells: Mutex<BTreeMap<Key, Arc<Semaphore>>>,
}

impl Reader {
    fn new(apis: Option<Apis>, readings: Readings) -> Arc<Self> {
        let (apis, readings) = (apis.map(Arc::new), Mutex::new(readings));
        Arc::new(Self { apis, readings, cells: Mutex::default() })
    }

    fn add(&self, cell: &Key) {
        let permits = Arc::new(Semaphore::new(HOSTS_AT_A_TIME));
        self.cells.lock().insert(cell.clone(), permits);
    }

    /// Returns the cells that use it.
    fn cells(&self) -> BTreeSet<Key> {
        self.cells.lock().keys().cloned().collect()
    }
}

impl NovaMonitor {
    /// Creates a monitor that reads nothing yet. Its clients count their requests in the metrics of
    /// the process, and change something only while it leads.
    pub fn new(
        interval: Duration,
        (metrics, leadership): (Metrics, LeadershipWatch),
        objects: MonitoredObjects,
        queues: MonitorQueues,
    ) -> Arc<Self> {
        let inner = Mutex::default();
        Arc::new(Self { interval, metrics, leadership, objects, queues, inner })
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
        let mut inner = self.inner.lock();
        let present = inner.lost.get_mut(cell).filter(|it| it.reader.is_none() == is_gone);
        if let Some(lost) = present {
            let is_new = lost.cause != cause;
            cause.clone_into(&mut lost.cause);
            drop(inner);
            if is_new {
                self.enqueue_hosts(cell);
            }
            return;
        }
        let before = inner.leave(cell);
        let reader = (!is_gone).then(|| {
            let readings = before.map(|it| it.readings.lock().clone()).unwrap_or_default();
            let reader = Reader::new(None, readings);
            reader.add(cell);
            tokio::spawn(read(Arc::downgrade(self), Arc::downgrade(&reader)));
            reader
        });
        inner.lost.insert(cell.clone(), Lost { cause: cause.to_owned(), reader });
        drop(inner);
        if is_gone {
            self.metrics.nova_computes(cell, None);
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
        let mut inner = self.inner.lock();
        if let Some(followed) = inner.of_cell.get_mut(cell).filter(|it| it.access == access) {
            return secret.clone_into(&mut followed.secret);
        }
        let reader = if let Some(reader) = inner.readers.get(&access) {
            Arc::clone(reader)
        } else {
            let Some(apis) = access.apis(&self.metrics, self.leadership.clone()) else {
                drop(inner);
                return self.lose(cell, &unusable(cell, secret), false);
            };
            let reader = Reader::new(Some(apis), Readings::default());
            tokio::spawn(read(Arc::downgrade(self), Arc::downgrade(&reader)));
            inner.readers.insert(access.clone(), Arc::clone(&reader));
            reader
        };
        inner.leave(cell);
        reader.add(cell);
        inner.of_cell.insert(cell.clone(), Followed { access, secret: secret.to_owned() });
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
        Some(SharedApi { apis, permits })
    }

    /// Whether nothing is known any more of the hosts of a cell, because an input is missing or wrong,
    /// or the cell does not exist.
    pub fn is_unread(&self, cell: &Key) -> bool {
        let inner = self.inner.lock();
        inner.lost.get(cell).is_some_and(|lost| {
            lost.reader.as_ref().is_none_or(|it| it.readings.lock().has_failed())
        })
    }

    /// Whether it is not known yet what is to be read for a cell.
    pub fn is_pending(&self, cell: &Key) -> bool {
        let inner = self.inner.lock();
        !inner.of_cell.contains_key(cell) && !inner.lost.contains_key(cell)
    }

    /// Returns the hosts that the API of a cell has services of.
    pub fn hosts(&self, cell: &Key) -> ApiHosts {
        let inner = self.inner.lock();
        let Some(Followed { access, .. }) = inner.of_cell.get(cell) else {
            return ApiHosts::Unknown;
        };
        let is_other = |(key, of): (&Key, &Followed)| key != cell && of.access.has_api_of(access);
        let hosts = inner.readers.get(access).and_then(|it| it.readings.lock().hosts());
        match hosts {
            None => ApiHosts::Unknown,
            Some(_) if inner.of_cell.iter().any(is_other) => ApiHosts::OfSeveralCells,
            Some(hosts) => ApiHosts::OfCell(hosts),
        }
    }

    /// Returns another host of a cell, by which a task finds out whether the cell's database
    /// answers: one whose service the last reading has, as unknown too; `None` without one.
    pub fn witness(&self, cell: &Key, host: &str) -> Option<String> {
        let reader = self.reader(cell)?;
        let others = self.objects.computes(cell).into_iter().map(|it| it.host);
        let readings = reader.readings.lock();
        others.filter(|it| it != host).find(|it| readings.has_service(it))
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
        let is_silent = health.service == ServiceHealth::ApiFails;
        let cause = if is_silent { self.unreported_cause(cell) } else { None };
        HostHealth { cause, ..health }
    }

    fn host_of(&self, cell: &Key, host: &str) -> HostHealth {
        match self.reader(cell) {
            Some(reader) => reader.readings.lock().of_host(host),
            None if self.is_pending(cell) => HostHealth::default(),
            None => HostHealth::unread(),
        }
    }

    /// Returns why nothing is known of a cell's hosts, and what to do about it, where no condition of
    /// the cell has it: this operator writes the status of its own cells alone.
    fn unreported_cause(&self, cell: &Key) -> Option<String> {
        let inner = self.inner.lock();
        let is_reported = self.objects.cells_are_ours;
        if let Some(Lost { cause, reader }) = inner.lost.get(cell) {
            return (reader.is_none() || !is_reported).then(|| cause.clone());
        }
        let followed = inner.of_cell.get(cell).filter(|_| !is_reported)?;
        match inner.readers.get(&followed.access)?.readings.lock().api() {
            ApiHealth::Fails(fault) => Some(explained(&fault, &followed.secret)),
            ApiHealth::Answers | ApiHealth::Pending => None,
        }
    }

    /// Returns the first of these cells whose nova had a service of the host in the last reading
    /// that succeeded; `None` where none had.
    pub fn cell_with(&self, cells: &[Key], host: &str) -> Option<Key> {
        let has =
            |cell: &&Key| self.reader(cell).is_some_and(|it| it.readings.lock().has_service(host));
        cells.iter().find(has).cloned()
    }

    /// Returns the compute that has registered under a host's name in the nova of a cell; `None`
    /// without one.
    pub fn compute_on(&self, cell: &Key, host: &str) -> Option<Key> {
        let cells = self.reader(cell)?.cells();
        let mut registered = cells.iter().flat_map(|it| self.objects.computes(it));
        registered.find(|it| it.host == host).map(|it| it.key)
    }

    /// Returns the node set with a host of that name, among those in the namespaces of all cells that
    /// share the nova of a cell; `None` without one.
    pub fn node_set_on(&self, cell: &Key, host: &str) -> Option<Key> {
        let cells = self.reader(cell)?.cells();
        let mut of_sets = self.objects.hosts(&cells).into_iter();
        of_sets.find(|it| it.host == host).map(|it| it.key)
    }

    fn reader(&self, cell: &Key) -> Option<Arc<Reader>> {
        let inner = self.inner.lock();
        match inner.of_cell.get(cell) {
            Some(followed) => inner.readers.get(&followed.access).cloned(),
            None => inner.lost.get(cell)?.reader.clone(),
        }
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
        drop(readings);
        let is_other_api = api_before != api_after;
        // The objects have the cause where the cell does not report it.
        let has_cause = |it: &HostHealth| {
            is_other_api && !self.objects.cells_are_ours && it.service == ServiceHealth::ApiFails
        };
        for (it, (before, after)) in registered.iter().zip(before.iter().zip(&after)) {
            if it.is_concerned(before, after) || has_cause(after) {
                self.enqueue(it);
            }
        }
        for cell in cells.iter().filter(|_| is_other_api) {
            self.queues.cells.push(cell.clone());
            self.queues.cell_readings.push(cell.clone());
        }
        self.count(&cells, &registered, &after);
    }

    /// Reads services and hypervisors; with the services comes how many intervals they took.
    async fn ask(&self, compute: &Compute) -> (TimedServices, Result<Vec<Hypervisor>, Fault>) {
        let started = Instant::now();
        let services = async {
            let found = compute.services().await;
            (found, intervals(started, self.interval))
        };
        nova_reading::read(services, compute.hypervisors()).await
    }

    /// Counts the computes of each cell in the metrics.
    fn count(&self, cells: &BTreeSet<Key>, registered: &[Registered], health: &[HostHealth]) {
        for cell in cells {
            let mut counts = [0; 3];
            for (_, health) in
                registered.iter().zip(health).filter(|(it, _)| it.cell.as_ref() == Some(cell))
            {
                counts[match health.service {
                    ServiceHealth::Up { .. } => 0,
                    ServiceHealth::Down { .. } | ServiceHealth::NotFound => 1,
                    ServiceHealth::Pending
                    | ServiceHealth::ApiFails
                    | ServiceHealth::CellNotAnswering => 2,
                }] += 1;
            }
            self.metrics.nova_computes(cell, Some(counts));
        }
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

impl Inner {
    /// Takes a cell out of all; returns what was read for it, if its inputs were there.
    fn leave(&mut self, cell: &Key) -> Option<Arc<Reader>> {
        self.lost.remove(cell);
        let access = self.of_cell.remove(cell)?.access;
        let reader = self.readers.get(&access).cloned()?;
        let mut cells = reader.cells.lock();
        cells.remove(cell);
        if cells.is_empty() {
            self.readers.remove(&access);
        }
        drop(cells);
        Some(reader)
    }
}

#[cfg(test)]
mod tests;
