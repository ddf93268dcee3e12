//! The tasks that carry out orders about hosts in nova, one for each host with an order.
//!
//! Orders are data of plans, which controllers give here once the writes of the plan are made; this is
//! the only place that carries them out. Controllers never wait for a task: they read what its last
//! pass found, and are enqueued when that changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use nova_config::annotations::SKIP_CLEANUP;
use openstack_client::error::Fault;
use operator_core::object_key::Key;
use operator_core::plan::Order;
use operator_runtime::workqueue::WorkQueue;
use parking_lot::Mutex;
use tokio::select;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::nova::drain::findings::Findings;
use crate::nova::drain::order::{HostOrder, LeftBehind, OrderOfHost};
use crate::nova::drain::pass::{HostOfOrder, PassMemory, pass};
use crate::nova::drain::progress::HostProgress;
use crate::nova::drain::service::Witness;
use crate::nova::health::{FAILED, is_lasting};
use crate::nova::monitor::{NovaMonitor, SharedApi, intervals};

/// How long a drained host counts as drained while the readings of nova have its service disabled;
/// then its servers are read again.
const DRAINED: Duration = Duration::from_mins(10);
/// How long an empty host of a cell that is being deleted counts as empty.
const INSPECTED: Duration = Duration::from_mins(1);

/// What a task is about: a host of an object, or one of several leftovers of that host.
type Subject = (Key, String, Option<LeftBehind>);

/// The tasks, by what they are about.
pub struct NovaOrders {
    monitor: Arc<NovaMonitor>,
    queues: Vec<Arc<WorkQueue>>,
    tasks: Mutex<BTreeMap<Subject, Arc<Task>>>,
}

#[derive(Default)]
struct Task {
    /// The present order, or `None` when the task is to end.
    order: Mutex<Option<OrderOfHost>>,
    progress: Mutex<HostProgress>,
    changed: Notify,
}

impl NovaOrders {
    /// Creates it without tasks. `queues` are those that an object enters, under its name, when a pass
    /// changes what is known of its host.
    pub fn new(monitor: Arc<NovaMonitor>, queues: Vec<Arc<WorkQueue>>) -> Arc<Self> {
        Arc::new(Self { monitor, queues, tasks: Mutex::default() })
    }

    /// Carries out these orders about an object from now on, and no others.
    pub fn give(self: &Arc<Self>, object: &Key, orders: &[Order<OrderOfHost>]) {
        let subject = |it: &OrderOfHost| (object.clone(), it.host.clone(), it.leftover().cloned());
        let orders: BTreeMap<Subject, &Order<OrderOfHost>> =
            orders.iter().map(|it| (subject(&it.what), it)).collect();
        let mut tasks = self.tasks.lock();
        let ending = of_object(&tasks, object).filter(|(it, _)| !orders.contains_key(*it));
        ending.for_each(|(_, task)| task.replace(None));
        for (subject, order) in orders {
            let task = tasks.entry(subject.clone()).or_insert_with(|| {
                let task = Arc::new(Task::default());
                tokio::spawn(work(Arc::downgrade(self), subject, Arc::clone(&task)));
                task
            });
            task.replace(Some(order));
        }
    }

    /// Ends the orders about an object that are not among these.
    pub fn keep(&self, object: &Key, orders: &[Order<OrderOfHost>]) {
        for (_, task) in of_object(&self.tasks.lock(), object) {
            let present = task.order.lock().clone();
            if present.is_some_and(|it| orders.iter().all(|order| order.what != it)) {
                task.replace(None);
            }
        }
    }

    /// Returns what the last passes over the present orders about an object have found.
    pub fn findings(&self, object: &Key) -> Findings {
        let known = |(_, task): (&Subject, &Arc<Task>)| task.known();
        of_object(&self.tasks.lock(), object).filter_map(known).collect()
    }

    /// Returns the present order about the host of an object, and what its last pass has found,
    /// whichever pass of the object gave it; `None` without one.
    pub fn newest(&self, object: &Key) -> Option<(OrderOfHost, HostProgress)> {
        let tasks = self.tasks.lock();
        let mut of_host =
            of_object(&tasks, object).filter(|((.., leftover), _)| leftover.is_none());
        of_host.find_map(|(_, task)| task.known())
    }

    /// Carries out the task's order once; returns when to do so again, or `None` for a task that
    /// has ended.
    async fn step(&self, subject: &Subject, task: &Task, memory: &mut Memory) -> Option<Instant> {
        let begun = Instant::now();
        let order = self.order(subject, task)?;
        if !self.is_settled(task, &order, memory) {
            memory.read_at = begun;
            let found = match self.rival(&subject.0, &order) {
                Some(rival) => Some(rival),
                None => self.found(&order, memory).await,
            };
            if let Some(found) = found {
                self.report(&subject.0, task, &order, found);
            }
        }
        Some(begun + self.monitor.interval())
    }

    /// Returns that nothing is done about a host whose service nova shows to be that of another compute.
    fn rival(&self, object: &Key, order: &OrderOfHost) -> Option<HostProgress> {
        // The others are about hosts that a cell looks after.
        if matches!(order.order, HostOrder::DeleteLeftover(_) | HostOrder::Inspect) {
            return None;
        }
        let confirmed = self.monitor.confirmed_on(&order.cell, &order.host);
        let rival = confirmed.into_iter().find(|it| it != object)?;
        Some(HostProgress::OtherIdentity(contested(&order.host, &rival)))
    }

    /// Returns what a pass finds, or `None` if that says nothing new.
    async fn found(&self, order: &OrderOfHost, memory: &mut Memory) -> Option<HostProgress> {
        let cell = &order.cell;
        match self.monitor.shared(cell) {
            // The object learns of the other nova by its reading, and takes the order back.
            Some(api) if order.meant_for.is_elsewhere(api.nova.as_ref()) => {
                Some(HostProgress::Pending)
            }
            Some(api) => {
                let found = self.monitor.witness(cell, &order.host);
                let witness = match &found {
                    Some(host) => Witness::Host(host),
                    None if self.monitor.lists_no_other(cell, &order.host) => Witness::Unlisted,
                    None => Witness::None,
                };
                let node = self.monitor.host(cell, &order.host).compute_id;
                let meant_for = &order.meant_for;
                let host = HostOfOrder {
                    name: &order.host,
                    service: meant_for.service_id.as_deref(),
                    node: node.as_deref().or(meant_for.compute_id.as_deref()),
                    witness,
                };
                memory.pass(&api, order, &host, self.monitor.interval()).await
            }
            None if self.monitor.is_unread(cell) => {
                Some(HostProgress::Unread { cell: cell.name.clone() })
            }
            None if self.monitor.is_pending(cell) => Some(HostProgress::Pending),
            // An input is missing, for a moment only.
            None => None,
        }
    }

    /// Whether the host was found empty a short while ago, and the last reading, which costs no
    /// further request, has its service as it was.
    ///
    /// A host that is to be removed is always read anew, because it is stopped when it is empty.
    fn is_settled(&self, task: &Task, order: &OrderOfHost, memory: &Memory) -> bool {
        let health = self.monitor.host(&order.cell, &order.host);
        let age = memory.read_at.elapsed();
        health.service.is_known()
            && match (&order.order, &*task.progress.lock()) {
                (HostOrder::Drain(_), HostProgress::Drained) => {
                    health.disabled.is_some() && age < DRAINED
                }
                (HostOrder::Inspect, HostProgress::Empty) => age < INSPECTED,
                _ => false,
            }
    }

    /// Records what a pass found, unless the order has changed meanwhile.
    fn report(&self, object: &Key, task: &Task, order: &OrderOfHost, found: HostProgress) {
        // Held until the end, so that a new order never has the findings of an old one.
        let present = task.order.lock();
        let mut known = task.progress.lock();
        if present.as_ref() == Some(order) && *known != found {
            *known = found;
            self.queues.iter().for_each(|it| it.push(object.clone()));
        }
    }

    /// Returns the present order; forgets the task without one.
    fn order(&self, subject: &Subject, task: &Task) -> Option<OrderOfHost> {
        let mut tasks = self.tasks.lock();
        let order = task.order.lock().clone();
        if order.is_none() {
            tasks.remove(subject);
        }
        order
    }
}

/// Returns that another compute has the host too, and what to do about it.
fn contested(host: &str, rival: &Key) -> String {
    format!(
        "host {host} has registered in the same nova as the host of NovaExternalCompute {rival}, so \
         nothing is done about it: delete the one of both objects that is not to have the host, with \
         annotation {SKIP_CLEANUP}: \"true\" on its node, so that it goes and the host stays as it is."
    )
}

impl Task {
    /// Returns the present order and what its last pass has found; `None` without an order.
    fn known(&self) -> Option<(OrderOfHost, HostProgress)> {
        let order = self.order.lock();
        Some((order.clone()?, self.progress.lock().clone()))
    }

    /// Replaces the order by another one, or ends it; the same one goes on, with what was found.
    fn replace(&self, order: Option<&Order<OrderOfHost>>) {
        let mut present = self.order.lock();
        if present.as_ref() == order.map(|it| &it.what) {
            return;
        }
        if let Some(Order { what, reason }) = order {
            let (cell, host) = (&what.cell, &what.host);
            tracing::info!(%cell, host, order = ?what.order, because = reason, "order");
        }
        *present = order.map(|it| it.what.clone());
        *self.progress.lock() = HostProgress::Pending;
        self.changed.notify_one();
    }
}

/// Returns the tasks of an object.
fn of_object<'a>(
    tasks: &'a BTreeMap<Subject, Arc<Task>>,
    object: &'a Key,
) -> impl Iterator<Item = (&'a Subject, &'a Arc<Task>)> {
    let first = (object.clone(), String::new(), None);
    tasks.range(first..).take_while(move |((of, ..), _)| of == object)
}

/// What a task remembers from pass to pass.
struct Memory {
    of_passes: PassMemory,
    n_failed: u32,
    /// When the last pass began.
    read_at: Instant,
}

impl Memory {
    /// Returns what a pass found, or `None` if that says nothing new: an API that fails seldom.
    async fn pass(
        &mut self,
        api: &SharedApi,
        order: &OrderOfHost,
        host: &HostOfOrder<'_>,
        interval: Duration,
    ) -> Option<HostProgress> {
        let Ok(_permit) = api.permits.acquire().await else { return None };
        let begun = Instant::now();
        let found = pass(&api.apis, host, &order.order, &mut self.of_passes).await;
        match found {
            Ok(found) => {
                self.n_failed = 0;
                Some(found)
            }
            Err(fault) => self.failed(fault, intervals(begun, interval)),
        }
    }

    fn failed(&mut self, fault: Fault, n_intervals: u32) -> Option<HostProgress> {
        self.n_failed = self.n_failed.saturating_add(n_intervals.max(1));
        let is_known = self.n_failed >= FAILED || is_lasting(&fault.error);
        is_known.then_some(HostProgress::Fails(fault))
    }
}

/// Carries out the orders of a task, until it has none.
async fn work(orders: Weak<NovaOrders>, subject: Subject, task: Arc<Task>) {
    let mut memory =
        Memory { of_passes: PassMemory::default(), n_failed: 0, read_at: Instant::now() };
    loop {
        let Some(present) = orders.upgrade() else { return };
        let Some(next) = present.step(&subject, &task, &mut memory).await else { return };
        drop(present);
        select! {
            () = sleep_until(next) => {}
            () = task.changed.notified() => {}
        }
    }
}

#[cfg(test)]
mod tests;
