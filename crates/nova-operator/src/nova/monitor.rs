//! The readers of nova's APIs, one for all cells that use the same API in the same way.
//!
//! Controllers never wait for a reading: they use the last ones, and are enqueued when these change.

mod access;
mod followed;
mod marks;
pub mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use api::dataplane::SeenDeployment;
use nova_config::conf::CellView;
use openstack_client::{Compute, ComputeService, Fault, Hypervisor};
use operator_core::object_key::Key;
use operator_runtime::answer_memory::Held;
use operator_runtime::clock;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::nova::health::{ApiHealth, HostHealth, Readings, ServiceHealth};
use crate::nova::monitor::access::Access;
pub use crate::nova::monitor::access::ClientSettings;
pub use crate::nova::monitor::followed::{ApiHosts, SharedApi};
use crate::nova::monitor::followed::{Followed, FollowedCells, Lost, Reader};
use crate::nova::monitor::marks::Marks;
use crate::nova::monitor::objects::{MonitoredObjects, Registered};
use crate::nova::reading;
use crate::shared_caches::queues::Queues;

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

/// The readers of nova's APIs, which run as long as a cell uses them.
pub struct NovaMonitor {
    interval: Duration,
    settings: ClientSettings,
    objects: MonitoredObjects,
    queues: Queues,
    cells: Mutex<FollowedCells>,
    marks: Mutex<Marks>,
}

impl NovaMonitor {
    /// Creates a monitor that reads nothing yet; `queues` are those of the objects to reconcile when a
    /// reading changes what is known of them.
    pub fn new(
        interval: Duration,
        settings: ClientSettings,
        objects: MonitoredObjects,
        queues: Queues,
    ) -> Arc<Self> {
        let (cells, marks) = (Mutex::default(), Mutex::default());
        Arc::new(Self { interval, settings, objects, queues, cells, marks })
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
            self.settings.metrics.set_computes(cell, None);
            self.settings.metrics.set_failed_readings(cell, None);
            self.enqueue_hosts(cell);
        }
    }

    /// Enqueues all computes that may be in a cell.
    fn enqueue_hosts(&self, cell: &Key) {
        for it in self.objects.of_cells(&BTreeSet::from([cell.clone()])) {
            self.queues.computes.push(it.key);
        }
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
    pub fn witness(&self, cell: &Key, host: &str) -> Option<String> {
        let reader = self.reader(cell)?;
        let is_another = |it: &String| it != host && reader.readings.lock().has_service(it);
        let computes = self.objects.computes(cell).into_iter().map(|it| it.host);
        computes.into_iter().find(is_another)
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

    /// Whether a host was read twice since a deployment on it has ended, so that what is known of it is of
    /// after that. A reading counts that says something new: a service that nova has as up has reported
    /// since the reading before, for nova goes on to have it as up for a while after it has died.
    pub fn has_read_twice_since(&self, compute: &Key, deployment: &SeenDeployment) -> bool {
        self.marks.lock().has_read_twice(compute, deployment)
    }

    /// Returns the computes that a reading of their own cell shows to have registered under a host's name
    /// in the nova of a cell: their records have the UUID of the service that it shows.
    pub fn confirmed_on(&self, cell: &Key, host: &str) -> Vec<Key> {
        let cells = self.cells.lock().sharing(cell);
        let confirmed = |cell: &Key| {
            let service_id = self.reader(cell)?.readings.lock().of_host(host).service_id?;
            Some(self.objects.recorded_on(cell, host, &service_id))
        };
        cells.iter().filter_map(confirmed).flatten().collect()
    }

    fn reader(&self, cell: &Key) -> Option<Arc<Reader>> {
        self.cells.lock().reader(cell)
    }

    /// Reads the API once, and enqueues the objects that the reading concerns.
    async fn refresh(&self, reader: &Reader) {
        let (begun, started) = (clock::now(), Instant::now());
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
        self.count_readings(&readings, &registered, started);
        drop(readings);
        let is_other_api = api_before != api_after;
        // The objects have the cause where the cell does not report it.
        let is_unreported = is_other_api && !self.objects.cells_are_ours;
        for (it, (before, after)) in registered.iter().zip(before.iter().zip(&after)) {
            if it.is_concerned(before, after) || (is_unreported && after.has_cause()) {
                self.queues.computes.push(it.key.clone());
            }
        }
        for cell in cells.iter().filter(|_| is_other_api) {
            self.queues.cells.push(cell.clone());
            self.queues.cell_readings.push(cell.clone());
        }
        let counts = if is_judged { counts(&cells, &registered, &after) } else { BTreeMap::new() };
        // Those of a cell that goes meanwhile go with it.
        let present = reader.cells.lock();
        for cell in present.keys() {
            self.settings.metrics.set_failed_readings(cell, Some(failed));
            if let Some(counts) = counts.get(cell) {
                self.settings.metrics.set_computes(cell, Some(*counts));
            }
        }
    }

    /// Counts a reading that began then for the hosts on which deployments have ended, and enqueues those
    /// of which enough is read.
    fn count_readings(&self, readings: &Readings, registered: &[Registered], begun: Instant) {
        let mut marks = self.marks.lock();
        marks.keep(|it| self.objects.caches.computes.get(it).is_some());
        let is_read = |it: &&Registered| {
            readings.has_news(&it.host) && (it.cell.is_some() || readings.has_service(&it.host))
        };
        for it in registered.iter().filter(is_read) {
            if marks.count(&it.key, begun) {
                self.queues.computes.push(it.key.clone());
                self.queues.nodes.push(it.key.clone());
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
        reading::read(services, compute.hypervisors()).await
    }
}

/// Returns how many computes each cell has that are up, down and unknown.
fn counts(
    cells: &BTreeSet<Key>,
    registered: &[Registered],
    health: &[HostHealth],
) -> BTreeMap<Key, [usize; 3]> {
    let mut counts: BTreeMap<Key, [usize; 3]> =
        cells.iter().map(|it| (it.clone(), [0; 3])).collect();
    for (it, health) in registered.iter().zip(health) {
        let Some(of_cell) = it.cell.as_ref().and_then(|it| counts.get_mut(it)) else { continue };
        of_cell[match health.service {
            ServiceHealth::Up { .. } => 0,
            ServiceHealth::Down { .. } | ServiceHealth::NotFound => 1,
            ServiceHealth::Pending | ServiceHealth::ApiFails | ServiceHealth::CellNotAnswering => 2,
        }] += 1;
    }
    counts
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
