//! The tasks that probe the services of cells, one for each cell whose inputs are complete.
//!
//! Controllers never wait for a probe: they use the last results, and are enqueued after each probe.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use nova_config::conf::CellView;
use operator_core::object_key::Key;
use operator_runtime::http_client::HttpClients;
use operator_runtime::places::Places;
use operator_runtime::workqueue::WorkQueue;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::cell::observed::Answers;
use crate::cell::probe::keystone_fault::KeystoneFault;
use crate::cell::probe::{CaTrust, amqp_login, keystone_answers};

/// How many cells are probed at a time.
const AT_A_TIME: usize = 32;
/// How many cells of one namespace are probed at a time.
const OF_NAMESPACE: usize = 4;

/// The probed cells, with the last results for each.
pub struct Probes {
    http: HttpClients,
    queue: Arc<WorkQueue>,
    places: Places,
    cells: Mutex<BTreeMap<Key, Probed>>,
}

/// A cell that is probed.
struct Probed {
    view: Arc<CellView>,
    /// The last results for these inputs, or `None` before the first ones.
    answers: Option<Answers>,
    /// Ends with this entry.
    _task: JoinSet<()>,
}

impl Probes {
    /// Creates it without tasks. `queue` is that of cells.
    pub fn new(http: HttpClients, queue: Arc<WorkQueue>) -> Arc<Self> {
        let places = Places::new(AT_A_TIME, OF_NAMESPACE);
        Arc::new(Self { http, queue, places, cells: Mutex::default() })
    }

    /// Probes a cell with these inputs from now on, or no longer. Returns the last results for them;
    /// `None` before the first ones.
    pub fn follow(self: &Arc<Self>, key: &Key, view: Option<CellView>) -> Option<Answers> {
        let mut cells = self.cells.lock();
        let Some(view) = view else {
            cells.remove(key);
            return None;
        };
        if let Some(known) = cells.get(key).filter(|it| *it.view == view) {
            return known.answers.clone();
        }
        let (view, mut task) = (Arc::new(view), JoinSet::new());
        task.spawn(probe(Arc::downgrade(self), key.clone(), Arc::clone(&view)));
        cells.insert(key.clone(), Probed { view, answers: None, _task: task });
        None
    }

    /// Records results, unless the cell has other inputs meanwhile.
    fn record(&self, key: &Key, view: &Arc<CellView>, answers: &Answers) {
        let mut cells = self.cells.lock();
        if let Some(known) = cells.get_mut(key).filter(|it| Arc::ptr_eq(&it.view, view)) {
            known.answers = Some(answers.clone());
            self.queue.push(key.clone());
        }
    }

    async fn answers(&self, namespace: &str, view: &CellView) -> Answers {
        match CaTrust::new(view.ca_bundle.as_deref()) {
            Ok(trust) => {
                let bus = amqp_login(&view.message_bus, &trust, &self.http);
                let http = self.http.of(namespace, trust.clone());
                let keystone = keystone_answers(view.keystone_auth_url.text(), &http);
                let (message_bus, keystone) = tokio::join!(bus, keystone);
                Answers { message_bus, keystone }
            }
            // Unreachable in practice: reading the view has already accepted the bundle.
            Err(fault) => Answers {
                message_bus: vec![],
                keystone: Err(KeystoneFault::Untrusted(fault.to_string())),
            },
        }
    }
}

/// Probes a cell again and again, each time when its namespace has a place.
async fn probe(probes: Weak<Probes>, key: Key, view: Arc<CellView>) {
    while let Some(probes) = probes.upgrade() {
        let place = probes.places.take(&key.namespace).await;
        let answers = probes.answers(&key.namespace, &view).await;
        drop(place);
        probes.record(&key, &view, &answers);
        drop(probes);
        sleep(answers.count_for()).await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::net::TcpListener;

    use super::*;
    use crate::test_cloud;

    /// A view whose broker and Keystone are at an address.
    fn view(address: SocketAddr) -> CellView {
        let mut view = test_cloud::view(address, "password");
        for broker in &mut view.message_bus.brokers {
            (broker.host, broker.port) = (address.ip().to_string(), address.port());
        }
        view
    }

    #[tokio::test]
    async fn cells_that_swallow_packets_delay_no_other_namespace_and_a_cell_has_one_task() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let queue = Arc::new(WorkQueue::default());
        let probes = Probes::new(HttpClients::with_loopback(), Arc::clone(&queue));
        for cell in 0..1000 {
            let key = Key::new("hostile", cell.to_string());
            assert_eq!(probes.follow(&key, Some(view(silent.local_addr().unwrap()))), None);
        }
        let honest = Key::new("honest", "cell1");
        assert_eq!(probes.follow(&honest, Some(view(closed))), None);
        assert_eq!(queue.next().await, honest);
        let answers = probes.follow(&honest, Some(view(closed))).unwrap();
        assert!(answers.keystone.is_err() && answers.message_bus.len() == 1);
        assert_eq!(probes.follow(&honest, Some(view(silent.local_addr().unwrap()))), None);
        assert_eq!(probes.follow(&honest, Some(view(closed))), None, "they were for other inputs");
        assert_eq!(probes.follow(&honest, None), None);
        assert_eq!(probes.cells.lock().len(), 1000);
    }
}
