//! The simulated cluster of this test program, and a namespace in it for each test.

use std::ops::Deref;
use std::process::Stdio;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, ensure};
use api::dataplane::Service;
use api::nova::Cell;
use e2e::{Namespace, cluster};
use k8s_openapi::api::core::v1::Namespace as CoreNamespace;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use simulated_cluster::{Host, Options, PRIVATE_KEY, Simulation};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use crate::idle::idle_service;

/// Each test has a runtime of its own, which ends with it; the simulated cluster keeps running.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();
static SIMULATION: OnceCell<Simulation> = OnceCell::const_new();

/// Returns the simulated cluster, which the first caller starts.
pub(crate) async fn simulation() -> Result<&'static Simulation> {
    SIMULATION
        .get_or_try_init(|| async {
            let runtime = RUNTIME.get_or_init(|| Runtime::new().expect("a runtime"));
            let started = runtime.spawn(async { Simulation::start(&Options::default()).await });
            let simulation = started.await.context("the start panicked")??;
            let labs = ["10.96.10.21:5672", "10.96.10.22:5672"].map(str::to_owned);
            let aliases =
                simulation.brokers.iter().map(simulated_cluster::Broker::address).zip(labs);
            let (kubeconfig, bin) = (simulation.kubeconfig.clone(), simulation.bin.clone());
            cluster::choose(kubeconfig, bin, aliases.collect());
            describe_cells(&simulation).await?;
            Ok(simulation)
        })
        .await
}

/// Creates the cells from which tests copy the values of theirs, as the demo does in the lab.
async fn describe_cells(simulation: &Simulation) -> Result<()> {
    let namespaces: Api<CoreNamespace> = Api::all(simulation.client.clone());
    let namespace = json!({ "metadata": { "name": "openstack" } });
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
    let ns = Namespace::existing(&simulation.client, "openstack");
    for (idx, broker) in simulation.brokers.iter().enumerate() {
        let (name, bus) =
            (format!("nova-cell{}", idx + 1), format!("nova-cell{}-transport", idx + 1));
        ns.secret(&name, &[("ServicePassword", &format!("password of {name}"))]).await?;
        ns.secret(&bus, &[("transport_url", &broker.transport_url())]).await?;
        let spec = json!({
            "cellName": format!("cell{}", idx + 1), "secret": name, "cellMessageBusSecretName": bus,
            "keystoneAuthURL": simulation.keystone.url(), "cellDatabaseHostname": "192.0.2.30",
            "conductorServiceTemplate": {}, "noVNCProxyServiceTemplate": {},
            "serviceAccount": "nova",
        });
        ns.create::<Cell>(&name, spec).await?;
    }
    Ok(())
}

/// Creates all that a role of which nothing is deployed names.
pub(crate) async fn idle_inputs(ns: &Namespace) -> Result<()> {
    ns.secret("key", &[("ssh-privatekey", PRIVATE_KEY), ("known_hosts", "x")]).await?;
    ns.create::<Service>("noop", idle_service()).await.map(drop)
}

/// A test's namespace in the simulated cluster.
pub(crate) struct World {
    /// The namespace.
    pub(crate) ns: Namespace,
    /// The simulated cluster.
    pub(crate) sim: &'static Simulation,
}

impl Deref for World {
    type Target = Namespace;

    fn deref(&self) -> &Namespace {
        &self.ns
    }
}

impl World {
    /// Creates an empty namespace.
    pub(crate) async fn new(test: &str) -> Result<Self> {
        let sim = simulation().await?;
        Ok(Self { ns: Namespace::new(test).await?, sim })
    }

    /// The same, with a host at an address that no other test uses.
    pub(crate) async fn with_host(test: &str, name: &str, address: &str) -> Result<(Self, Host)> {
        let world = Self::new(test).await?;
        let host = world.host(name, address);
        Ok((world, host))
    }

    /// Adds a host at an address that no other test uses.
    pub(crate) fn host(&self, name: &str, address: &str) -> Host {
        self.sim.player.host(name, address)
    }

    /// The same, for a host that accepts the same user key as another one.
    pub(crate) fn host_like(&self, other: &Host, name: &str, address: &str) -> Host {
        let host = self.host(name, address);
        host.accept(&other.ssh_secret()[0].1);
        host
    }

    /// Runs kubectl with this input; returns whether it succeeded, and what it printed as errors and
    /// warnings.
    pub(crate) async fn kubectl(&self, arguments: &[&str], input: &str) -> Result<(bool, String)> {
        let mut kubectl = Command::new(self.sim.bin.join("kubectl"));
        kubectl.env("KUBECONFIG", &self.sim.kubeconfig).args(arguments);
        kubectl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = kubectl.spawn()?;
        let mut stdin = process.stdin.take().context("kubectl has no input")?;
        stdin.write_all(input.as_bytes()).await?;
        drop(stdin);
        let output = process.wait_with_output().await?;
        Ok((output.status.success(), String::from_utf8(output.stderr)?))
    }

    /// Ends the test: no run may have been executed twice or concurrently with another one on its
    /// host, and no `Ready` may have fallen without a cause.
    pub(crate) async fn done(self) -> Result<()> {
        let faults = self.sim.player.ledger().faults(&self.ns.name);
        ensure!(faults.is_empty(), "{faults:?}");
        let falls = self.sim.ready.unexplained(&self.ns.name);
        ensure!(falls.is_empty(), "{falls:?}");
        self.sim.operators.check()?;
        self.ns.done().await
    }
}
