//! The player: simulates kubelet, hosts and Ansible, and ends the pods of runs as a test specifies.

mod fate;
mod files;
pub(crate) mod host;
mod inventory;
pub(crate) mod ledger;
mod message;
mod pod;
mod registration;
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

use crate::nova::Nova;
use crate::ports;

/// Label selector of the pods of runs.
const PODS: &str = "app=openstackansibleee";

/// Plays all pods of runs in all namespaces.
#[derive(Clone)]
pub struct Player {
    shared: Arc<Shared>,
}

impl Player {
    /// Creates the worker node and starts watching; runs as long as the process does.
    pub(crate) async fn start(client: Client) -> Result<Self> {
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": WORKER } });
        let nodes: Api<Node> = Api::all(client.clone());
        let (params, node) = (PatchParams::apply("simulated-cluster"), Patch::Apply(node));
        nodes.patch(WORKER, &params, &node).await.context("make the worker")?;
        let player = Self { shared: Arc::new(Shared::new(client)) };
        tokio::spawn(player.clone().play());
        Ok(player)
    }

    /// Returns the record of which run touched which host.
    pub fn ledger(&self) -> &Ledger {
        &self.shared.ledger
    }

    /// Adds a host that answers at an address; plays succeed there unless the test says otherwise.
    pub fn host(&self, name: &str, address: &str) -> Host {
        self.host_at(name, address, 22)
    }

    /// Adds the host that a machine becomes: it answers at a port of the loopback address, which
    /// the operators can probe.
    pub fn machine(&self, name: &str) -> Result<Host> {
        Ok(self.host_at(name, "127.0.0.1", ports::free()?))
    }

    fn host_at(&self, name: &str, address: &str, port: u16) -> Host {
        let mut host = Host::new(name, address, &self.shared.ledger);
        host.port = port;
        self.shared.hosts().insert(format!("{address}:{port}"), host.clone());
        host
    }

    /// From now on every address has a host that accepts every login.
    pub fn answer_everywhere(&self) {
        self.shared.answer_everywhere();
    }

    /// From now on each run ends as soon as its pod is bound, well at all of its hosts. No visit is
    /// recorded, and what it mounts is read only where nova-compute starts and registers, so that
    /// thousands of hosts cost little.
    pub fn end_at_once(&self) {
        self.shared.end_at_once();
    }

    /// Sets the fate of the matching runs from now on; the last matching call applies.
    pub fn decide(&self, matching: Matching, fate: Fate) {
        self.shared.decide(matching, fate);
    }

    /// Lets computes whose configuration names that region register in this nova when they are
    /// deployed.
    pub(crate) fn registers_in(&self, region: &str, nova: &Nova) {
        self.shared.registrations().add(region, nova);
    }

    /// Watches all pods; each is played by a task of its own, which is aborted when the pod is
    /// deleted.
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

    /// Plays a pod, or ends it when it is being deleted.
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

    /// Aborts the task of a pod that was removed from the API, whether or not its kubelet took
    /// part.
    async fn gone(&self, pod: &Pod, tasks: &mut BTreeMap<String, JoinHandle<()>>) {
        let uid = pod.uid().unwrap_or_default();
        if let Some(task) = tasks.remove(&uid) {
            task.abort();
            let _ = task.await;
        }
        self.ledger().leaves(&uid);
    }
}
