//! The player: in place of kubelet, hosts and Ansible it ends the pods of runs as a test says.

mod fate;
mod files;
pub(crate) mod host;
mod inventory;
pub(crate) mod ledger;
mod message;
mod pod;
mod shared;
mod state;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::task::JoinHandle;

pub use fate::{Fate, Matching};
use host::Host;
use ledger::Ledger;
use shared::{Shared, WORKER};

use crate::ports;

/// All pods of runs have it.
const PODS: &str = "app=openstackansibleee";

/// Plays all pods of runs in all namespaces.
#[derive(Clone)]
pub struct Player {
    shared: Arc<Shared>,
}

impl Player {
    /// Makes the worker and begins to watch; goes on for as long as the process does.
    pub(crate) async fn start(client: Client) -> Result<Self> {
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": WORKER } });
        let nodes: Api<Node> = Api::all(client.clone());
        let (params, node) = (PatchParams::apply("simulated-cluster"), Patch::Apply(node));
        nodes.patch(WORKER, &params, &node).await.context("make the worker")?;
        let player = Self { shared: Arc::new(Shared::new(client)) };
        tokio::spawn(player.clone().play());
        Ok(player)
    }

    /// What touched which host.
    pub fn ledger(&self) -> &Ledger {
        &self.shared.ledger
    }

    /// A host that answers at an address; plays end well there unless it is told otherwise.
    pub fn host(&self, name: &str, address: &str) -> Host {
        self.host_at(name, address, 22)
    }

    /// The same of a host that a machine becomes: it answers at a port of the loopback address, where an
    /// operator can ask for it.
    pub fn machine(&self, name: &str) -> Result<Host> {
        Ok(self.host_at(name, "127.0.0.1", ports::free()?))
    }

    fn host_at(&self, name: &str, address: &str, port: u16) -> Host {
        let mut host = Host::new(name, address, &self.shared.ledger);
        host.port = port;
        self.shared.hosts().insert(format!("{address}:{port}"), host.clone());
        host
    }

    /// From now on a host answers at every address, and lets everybody in.
    pub fn answer_everywhere(&self) {
        self.shared.answer_everywhere();
    }

    /// From now on the pods of some runs come to that end; what was said last counts.
    pub fn decide(&self, matching: Matching, fate: Fate) {
        self.shared.decide(matching, fate);
    }

    /// Follows all pods: each has a task of its own, which is cut off when the pod is to go.
    async fn play(self) {
        let pods: Api<Pod> = Api::all(self.shared.client.clone());
        let watching = watcher(pods, watcher::Config::default().labels(PODS));
        let mut seen = std::pin::pin!(watching.default_backoff());
        let mut tasks: BTreeMap<String, JoinHandle<()>> = BTreeMap::new();
        while let Some(event) = seen.next().await {
            match event {
                Ok(Event::Apply(pod) | Event::InitApply(pod)) => self.seen(pod, &mut tasks).await,
                Ok(Event::Delete(pod)) => self.gone(&pod, &mut tasks).await,
                Ok(Event::Init | Event::InitDone) | Err(_) => {}
            }
        }
    }

    /// A pod is there: it is played, or ended where it is to go.
    async fn seen(&self, pod: Pod, tasks: &mut BTreeMap<String, JoinHandle<()>>) {
        let uid = pod.uid().unwrap_or_default();
        if pod.metadata.deletion_timestamp.is_none() {
            tasks
                .entry(uid)
                .or_insert_with(|| tokio::spawn(pod::run(Arc::clone(&self.shared), pod)));
        } else if let Some(task) = tasks.remove(&uid) {
            task.abort();
            let _ = task.await;
            tokio::spawn(pod::remove(Arc::clone(&self.shared), pod));
        }
    }

    /// A pod is not there any more, whether its worker knows that or not.
    async fn gone(&self, pod: &Pod, tasks: &mut BTreeMap<String, JoinHandle<()>>) {
        let uid = pod.uid().unwrap_or_default();
        if let Some(task) = tasks.remove(&uid) {
            task.abort();
            let _ = task.await;
        }
        self.ledger().leaves(&uid);
    }
}
