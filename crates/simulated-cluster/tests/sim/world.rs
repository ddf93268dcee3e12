//! The simulated cluster of this test program, and a namespace in it for each test.

use std::ops::Deref;

use anyhow::{Context as _, Result, ensure};
use e2e::{Namespace, cluster};
use simulated_cluster::{Host, Options, Simulation};
use std::sync::OnceLock;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// Each test has a runtime of its own, which ends with it; the simulated cluster goes on.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();
static SIMULATION: OnceCell<Simulation> = OnceCell::const_new();

/// The simulated cluster, which starts with the first test that asks for it.
pub(crate) async fn simulation() -> Result<&'static Simulation> {
    SIMULATION
        .get_or_try_init(|| async {
            let runtime = RUNTIME.get_or_init(|| Runtime::new().expect("a runtime"));
            let started = runtime.spawn(async { Simulation::start(&Options::default()).await });
            let simulation = started.await.context("the start panicked")??;
            cluster::choose(simulation.kubeconfig.clone(), simulation.bin.clone());
            Ok(simulation)
        })
        .await
}

/// A namespace of one test in the simulated cluster.
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
    /// An empty namespace.
    pub(crate) async fn new(test: &str) -> Result<Self> {
        let sim = simulation().await?;
        Ok(Self { ns: Namespace::new(test).await?, sim })
    }

    /// A host at an address that no other test has.
    pub(crate) fn host(&self, name: &str, address: &str) -> Host {
        self.sim.player.host(name, address)
    }

    /// The same, of a host that lets in the same user as another one.
    pub(crate) fn host_like(&self, other: &Host, name: &str, address: &str) -> Host {
        let host = self.host(name, address);
        host.accept(&other.ssh_secret()[0].1);
        host
    }

    /// Ends the test: no run may have happened twice, or beside another one on its host.
    pub(crate) async fn done(self) -> Result<()> {
        let faults = self.sim.player.ledger().faults(&self.ns.name);
        ensure!(faults.is_empty(), "{faults:?}");
        self.sim.operators.check()?;
        self.ns.done().await
    }
}
