//! The readers of nova's APIs, one for all cells that use the same API in the same way.
//!
//! Controllers never wait for a reading: they use the last ones, and are enqueued when these change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use api::dataplane::NodeSet;
use api::nova::ExternalCompute;
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::conf::CellView;
use openstack_client::keystone::{UserInProject, tokens_url};
use openstack_client::{Compute, Login, Network, Placement};
use operator_core::hash;
use operator_core::node_set_host::{Host, canonical_host_name, hosts};
use operator_core::object_key::Key;
use operator_runtime::cache::Cache;
use operator_runtime::clock;
use operator_runtime::lease::LeadershipWatch;
use operator_runtime::metrics::Metrics;
use operator_runtime::tls_stream::CaTrust;
use operator_runtime::workqueue::WorkQueue;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use crate::drain::remove::Apis;
use crate::indexes::BY_CELL;
use crate::nova_health::{ApiHealth, HostHealth, Readings, ServiceHealth};
use crate::nova_reading;
use crate::queues::Queues;
use crate::registration::{has_registered_since, registered_at, registered_host};
use crate::shared_caches::SharedCaches;

/// Pause after a refused login, for all that use the API.
const REFUSED: Duration = Duration::from_mins(5);

/// How many hosts of a cell are drained, enabled or removed at a time.
const HOSTS_AT_A_TIME: usize = 8;

/// What of a cell decides which reader it uses.
#[derive(Clone, Eq, Ord, PartialEq, PartialOrd)]
struct Access {
    auth_url: String,
    user: [String; 4],
    password: String,
    region: String,
    ca_bundle: Option<String>,
}

/// The queues of the objects to reconcile when a reading changes what is known of them.
pub struct MonitorQueues {
    /// The queue of computes.
    pub computes: Arc<WorkQueue>,
    /// The queue of cells.
    pub cells: Arc<WorkQueue>,
    /// The queue of node sets.
    pub node_sets: Arc<WorkQueue>,
}

impl MonitorQueues {
    /// Returns those among all queues of the operator.
    pub fn of(queues: &Queues) -> Self {
        Self {
            computes: Arc::clone(&queues.computes),
            cells: Arc::clone(&queues.cells),
            node_sets: Arc::clone(&queues.node_sets),
        }
    }
}

/// The readers of nova's APIs, which run as long as a cell uses them.
pub struct NovaMonitor {
    interval: Duration,
    metrics: Metrics,
    leadership: LeadershipWatch,
    caches: SharedCaches,
    queues: MonitorQueues,
    node_sets: Arc<Cache<NodeSet>>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    readers: BTreeMap<Access, Arc<Reader>>,
    of_cell: BTreeMap<Key, Access>,
    /// The cells whose API cannot be read, because an input is missing or wrong.
    unread: BTreeSet<Key>,
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
    apis: Arc<Apis>,
    readings: Mutex<Readings>,
    /// The cells that use it, each with its permits.
    cells: Mutex<BTreeMap<Key, Arc<Semaphore>>>,
}

impl Reader {
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
        caches: SharedCaches,
        node_sets: Arc<Cache<NodeSet>>,
        queues: MonitorQueues,
    ) -> Arc<Self> {
        let inner = Mutex::default();
        Arc::new(Self { interval, metrics, leadership, caches, queues, node_sets, inner })
    }

    /// Reads for a cell from now on, as its inputs say; no longer without inputs. The first reading
    /// begins at once, and nothing happens where the inputs are as before.
    pub fn follow(self: &Arc<Self>, cell: &Key, view: Option<&CellView>) {
        if let Some(view) = view {
            self.watch(cell, view);
        } else {
            self.lose(cell);
        }
    }

    /// Reads no longer for a cell, and enqueues the objects whose hosts are unknown from now on.
    fn lose(&self, cell: &Key) {
        let mut inner = self.inner.lock();
        inner.leave(cell);
        let is_new = inner.unread.insert(cell.clone());
        drop(inner);
        self.metrics.nova_computes(cell, None);
        if is_new {
            let mut concerned = self.registered(cell);
            concerned.extend(self.of_node_sets([cell]));
            for it in &concerned {
                self.enqueue(it);
            }
        }
    }

    fn enqueue(&self, concerned: &Registered) {
        let queues = &self.queues;
        let queue = if concerned.cell.is_some() { &queues.computes } else { &queues.node_sets };
        queue.push(concerned.key.clone());
    }

    fn watch(self: &Arc<Self>, cell: &Key, view: &CellView) {
        let access = Access::of(view);
        let mut inner = self.inner.lock();
        if inner.of_cell.get(cell) == Some(&access) {
            return;
        }
        inner.leave(cell);
        let reader = if let Some(reader) = inner.readers.get(&access) {
            Arc::clone(reader)
        } else {
            // Inputs that cannot be used are reported by the cell's other conditions.
            let Some(apis) = access.apis(&self.metrics, self.leadership.clone()) else {
                drop(inner);
                return self.lose(cell);
            };
            let reader = Arc::new(Reader::new(apis));
            tokio::spawn(read(Arc::downgrade(self), Arc::downgrade(&reader)));
            inner.readers.insert(access.clone(), Arc::clone(&reader));
            reader
        };
        let permits = Arc::new(Semaphore::new(HOSTS_AT_A_TIME));
        reader.cells.lock().insert(cell.clone(), permits);
        inner.unread.remove(cell);
        inner.of_cell.insert(cell.clone(), access);
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
        let permits = Arc::clone(reader.cells.lock().get(cell)?);
        Some(SharedApi { apis: Arc::clone(&reader.apis), permits })
    }

    /// Whether the API of a cell is not read because an input of the cell is missing or wrong.
    pub fn is_unread(&self, cell: &Key) -> bool {
        self.inner.lock().unread.contains(cell)
    }

    /// Returns the hosts that the API of a cell has services of.
    pub fn hosts(&self, cell: &Key) -> ApiHosts {
        let inner = self.inner.lock();
        let Some(access) = inner.of_cell.get(cell) else { return ApiHosts::Unknown };
        let is_other = |(key, of): (&Key, &Access)| key != cell && of.has_api_of(access);
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
        let others = self.registered(cell).into_iter().map(|it| it.host);
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
        let read = cells.iter().map(|cell| match self.reader(cell) {
            Some(reader) => reader.readings.lock().of_host(host),
            None if self.is_unread(cell) => HostHealth::unread(),
            None => HostHealth::default(),
        });
        read.min_by_key(HostHealth::rank).unwrap_or_default()
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
        let inner = self.inner.lock();
        let Some(access) = inner.of_cell.get(cell) else { return BTreeSet::from([cell.clone()]) };
        let has_it = |(_, of): &(&Key, &Access)| of.has_api_of(access);
        inner.of_cell.iter().filter(has_it).map(|(key, _)| key.clone()).collect()
    }

    /// Returns a digest of what identifies the nova of a cell: Keystone's address and the region.
    pub fn nova_of(&self, cell: &Key) -> Option<String> {
        let inner = self.inner.lock();
        inner.of_cell.get(cell).map(|it| hash::short(&(&it.auth_url, &it.region)))
    }

    /// Returns the compute that has registered under a host's name in the nova of a cell; `None`
    /// without one.
    pub fn compute_on(&self, cell: &Key, host: &str) -> Option<Key> {
        let cells = self.reader(cell)?.cells();
        let mut registered = cells.iter().flat_map(|it| self.registered(it));
        registered.find(|it| it.host == host).map(|it| it.key)
    }

    /// Returns the node set with a host of that name, among those in the namespaces of all cells that
    /// share the nova of a cell; `None` without one.
    pub fn node_set_on(&self, cell: &Key, host: &str) -> Option<Key> {
        let cells = self.reader(cell)?.cells();
        let mut of_sets = self.of_node_sets(&cells).into_iter();
        of_sets.find(|it| it.host == host).map(|it| it.key)
    }

    fn reader(&self, cell: &Key) -> Option<Arc<Reader>> {
        let inner = self.inner.lock();
        inner.readers.get(inner.of_cell.get(cell)?).cloned()
    }

    /// Reads the API once, and enqueues the objects that the reading concerns.
    async fn refresh(&self, reader: &Reader) {
        let compute = &reader.apis.compute;
        let (begun, started) = (clock::now(), Instant::now());
        let services = async {
            let found = compute.services().await;
            (found, intervals(started, self.interval))
        };
        let ((services, n_intervals), hypervisors) =
            nova_reading::read(services, compute.hypervisors()).await;
        let cells = reader.cells();
        let mut registered: Vec<Registered> =
            cells.iter().flat_map(|it| self.registered(it)).collect();
        registered.extend(self.of_node_sets(&cells));
        let mut readings = reader.readings.lock();
        let health = |readings: &Readings| -> Vec<HostHealth> {
            registered.iter().map(|it| readings.of_host(&it.host)).collect()
        };
        let (before, api_before) = (health(&readings), readings.api());
        readings.take(services, hypervisors, begun, n_intervals);
        let (after, api_after) = (health(&readings), readings.api());
        drop(readings);
        let all = || registered.iter().zip(before.iter().zip(&after));
        for (changed, _) in all().filter(|(it, (before, after))| it.is_concerned(before, after)) {
            self.enqueue(changed);
        }
        // Computes report their mapping to the cell; of node sets, the cell reads it itself.
        let is_other =
            all().any(|(it, (before, after))| it.cell.is_none() && before.mapping != after.mapping);
        if is_other || api_before != api_after {
            for cell in &cells {
                self.queues.cells.push(cell.clone());
            }
        }
        self.count(&cells, &registered, &after);
    }

    /// Returns the computes of a cell that have registered.
    fn registered(&self, cell: &Key) -> Vec<Registered> {
        let of_cell = self.caches.computes.indexed(BY_CELL, cell);
        let registered = |it: Arc<ExternalCompute>| {
            let host = registered_host(&it)?.to_owned();
            let (key, at) = (Key::of(&*it), registered_at(&it));
            Some(Registered { cell: Some(cell.clone()), key, host, at })
        };
        of_cell.into_iter().filter_map(registered).collect()
    }

    /// Returns the hosts of all node sets in the namespaces of cells.
    fn of_node_sets<'a>(&self, cells: impl IntoIterator<Item = &'a Key>) -> Vec<Registered> {
        let namespaces: BTreeSet<&String> = cells.into_iter().map(|it| &it.namespace).collect();
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

/// A compute that has registered, or a host of a node set.
struct Registered {
    /// The cell of a compute; `None` for a host of a node set.
    cell: Option<Key>,
    /// The compute, or the node set.
    key: Key,
    /// The name under which its service is registered.
    host: String,
    /// When a compute has last registered, as far as its records say.
    at: Option<Timestamp>,
}

impl Registered {
    /// Whether a change of what is known of the host concerns the object. Since when a host is missing
    /// changes with each reading; only whether a compute has registered since then counts.
    fn is_concerned(&self, before: &HostHealth, after: &HostHealth) -> bool {
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

impl Reader {
    fn new(apis: Apis) -> Self {
        Self { apis: Arc::new(apis), readings: Mutex::default(), cells: Mutex::default() }
    }
}

impl Inner {
    fn leave(&mut self, cell: &Key) {
        let Some(access) = self.of_cell.remove(cell) else { return };
        let Some(reader) = self.readers.get(&access) else { return };
        reader.cells.lock().remove(cell);
        if reader.cells.lock().is_empty() {
            self.readers.remove(&access);
        }
    }
}

impl Access {
    fn of(view: &CellView) -> Self {
        let text = |it: &nova_config::oslo::Value| it.text().to_owned();
        Self {
            auth_url: text(&view.keystone_auth_url),
            user: [&view.service_user, &view.user_domain, &view.project, &view.project_domain]
                .map(text),
            password: text(&view.service_password),
            region: text(&view.region),
            ca_bundle: view.ca_bundle.clone(),
        }
    }

    /// Whether both use the same API, as any users.
    fn has_api_of(&self, other: &Self) -> bool {
        (&self.auth_url, &self.region) == (&other.auth_url, &other.region)
    }

    fn apis(&self, metrics: &Metrics, leadership: LeadershipWatch) -> Option<Apis> {
        let [user, user_domain, project, project_domain] = &self.user;
        let identity =
            UserInProject { user, user_domain, project, project_domain }.identity(&self.password);
        let trust = CaTrust::new(self.ca_bundle.as_deref()).ok()?;
        let login = Login::new(tokens_url(&self.auth_url)?, identity).pausing(REFUSED);
        let login = Arc::new(login.leading(leadership));
        let compute = Compute::new(Arc::clone(&login), trust.clone(), &self.region);
        Some(Apis {
            compute: compute.counted(metrics.clone()),
            placement: Placement::new(Arc::clone(&login), trust.clone(), &self.region),
            network: Network::new(login, trust, &self.region),
        })
    }
}

#[cfg(test)]
mod tests;
