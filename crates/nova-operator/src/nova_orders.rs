//! The tasks that carry out orders about hosts in nova, one for each host with an order.
//!
//! Controllers never wait for a task: they use what its last pass found, and are enqueued when that
//! changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use openstack_client::error::{Error, Fault};
use operator_core::object_key::Key;
use operator_runtime::workqueue::WorkQueue;
use parking_lot::Mutex;
use tokio::select;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::drain::order::HostOrder;
use crate::drain::pass::{Moves, pass};
use crate::drain::progress::HostProgress;
use crate::nova_health::{FAILED, is_lasting};
use crate::nova_monitor::{NovaMonitor, REFUSED, SharedApi, intervals};

/// An order about one host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OrderOfHost {
    /// The cell whose credentials are used.
    pub cell: Key,
    /// The host, named as its service is registered.
    pub host: String,
    /// What is to be done.
    pub order: HostOrder,
}

/// The tasks, by what they are about.
pub struct NovaOrders {
    monitor: Arc<NovaMonitor>,
    queue: Arc<WorkQueue>,
    tasks: Mutex<BTreeMap<Subject, Arc<Task>>>,
}

/// What a task is about.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Subject {
    /// The object that is enqueued when a pass changes what is known of the host.
    object: Key,
    /// The host, named as its service is registered.
    host: String,
}

#[derive(Default)]
struct Task {
    /// The present order, or `None` when the task is to end.
    order: Mutex<Option<OrderOfHost>>,
    progress: Mutex<HostProgress>,
    changed: Notify,
}

impl NovaOrders {
    /// Creates it without tasks. `queue` is that of the objects to reconcile when a pass changes
    /// what is known of their host.
    pub fn new(monitor: Arc<NovaMonitor>, queue: Arc<WorkQueue>) -> Arc<Self> {
        Arc::new(Self { monitor, queue, tasks: Mutex::default() })
    }

    /// Carries out an order about the only host of an object from now on, until it gets another one
    /// or none. Returns what the last pass found; [`HostProgress::Pending`] before the first one.
    pub fn set(self: &Arc<Self>, object: &Key, order: Option<OrderOfHost>) -> HostProgress {
        self.set_each(object, order).into_values().next().unwrap_or_default()
    }

    /// Carries out these orders, and no others, about hosts of an object from now on; of several
    /// about one host, the last one counts. Returns by host what the last pass found;
    /// [`HostProgress::Pending`] before the first one.
    pub fn set_each(
        self: &Arc<Self>,
        object: &Key,
        orders: impl IntoIterator<Item = OrderOfHost>,
    ) -> BTreeMap<String, HostProgress> {
        let orders: BTreeMap<String, OrderOfHost> =
            orders.into_iter().map(|it| (it.host.clone(), it)).collect();
        let mut tasks = self.tasks.lock();
        let first = Subject { object: object.clone(), host: String::new() };
        for (_, task) in tasks
            .range(first..)
            .take_while(|(it, _)| it.object == *object)
            .filter(|(it, _)| !orders.contains_key(&it.host))
        {
            task.replace(None);
        }
        let of_host = |(host, order): (String, OrderOfHost)| {
            let subject = Subject { object: object.clone(), host: host.clone() };
            let task = tasks.entry(subject.clone()).or_insert_with(|| {
                let task = Arc::new(Task::default());
                tokio::spawn(work(Arc::downgrade(self), subject, Arc::clone(&task)));
                task
            });
            task.replace(Some(order));
            (host, task.progress.lock().clone())
        };
        orders.into_iter().map(of_host).collect()
    }

    /// Carries out the task's order once; returns when to do so again, or `None` for a task that
    /// has ended.
    async fn step(&self, subject: &Subject, task: &Task, memory: &mut Memory) -> Option<Instant> {
        let begun = Instant::now();
        let order = self.order(subject, task)?;
        let found = match self.monitor.shared(&order.cell) {
            Some(api) => memory.pass(&api, &order, self.monitor.interval()).await,
            // The inputs of the cell are incomplete, which its conditions report.
            None => Some(HostProgress::Pending),
        };
        if let Some(found) = found {
            self.report(&subject.object, task, &order, found);
        }
        let pause = self.monitor.interval();
        Some(begun + if memory.is_refused { pause.max(REFUSED) } else { pause })
    }

    /// Records what a pass found, unless the order has changed meanwhile.
    fn report(&self, object: &Key, task: &Task, order: &OrderOfHost, found: HostProgress) {
        // Held until the end, so that a new order never has the findings of an old one.
        let present = task.order.lock();
        let mut known = task.progress.lock();
        if present.as_ref() == Some(order) && *known != found {
            *known = found;
            self.queue.push(object.clone());
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

impl Task {
    fn replace(&self, order: Option<OrderOfHost>) {
        let mut present = self.order.lock();
        if *present != order {
            *present = order;
            *self.progress.lock() = HostProgress::Pending;
            self.changed.notify_one();
        }
    }
}

/// What a task remembers from pass to pass.
#[derive(Default)]
struct Memory {
    moves: Moves,
    n_failed: u32,
    is_refused: bool,
}

impl Memory {
    /// Returns what a pass found, or `None` if that says nothing new: an API that fails seldom.
    async fn pass(
        &mut self,
        api: &SharedApi,
        order: &OrderOfHost,
        interval: Duration,
    ) -> Option<HostProgress> {
        let Ok(_permit) = api.permits.acquire().await else { return None };
        let begun = Instant::now();
        let found = pass(&api.apis, &order.host, &order.order, &mut self.moves).await;
        self.is_refused = found.as_ref().is_err_and(|it| it.error == Error::Unauthorized);
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
    let mut memory = Memory::default();
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
