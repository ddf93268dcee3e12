//! A simulated cluster for one test.

use std::ops::Deref;
use std::time::Duration;

use anyhow::{Result, ensure};
use api::dataplane::Node;
use e2e::Namespace;
use e2e::journey::ready;
use simulated_cluster::{Host, Operator, Options, Simulation};

use crate::journey::deploy_to;

/// Time limit of what operators do that are killed meanwhile, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);

/// Seconds of the operators' Leases: a busy machine renews no short one in time. Where a test replaces
/// an operator, its Lease is removed, so that nobody waits for it.
const LEASE: u16 = 60;

/// A namespace in a simulated cluster that no other test uses.
pub(crate) struct Own {
    /// The namespace.
    pub(crate) ns: Namespace,
    /// The simulated cluster.
    pub(crate) sim: Simulation,
}

impl Deref for Own {
    type Target = Namespace;

    fn deref(&self) -> &Namespace {
        &self.ns
    }
}

impl Own {
    /// Starts it, with an empty namespace.
    pub(crate) async fn start(test: &str) -> Result<Self> {
        Self::start_with(test, &[]).await
    }

    /// The same with values of the chart.
    pub(crate) async fn start_with(test: &str, values: &[&str]) -> Result<Self> {
        Self::start_with_lease(test, values, LEASE).await
    }

    /// The same with Leases of so many seconds, for a test that waits for new leaders.
    pub(crate) async fn start_with_lease(
        test: &str,
        values: &[&str],
        lease_seconds: u16,
    ) -> Result<Self> {
        let values = values.iter().map(|it| (*it).to_owned()).collect();
        let options = Options { values, lease_seconds: Some(lease_seconds), ..Options::default() };
        let sim = Simulation::start(&options).await?;
        let ns = Namespace::of(sim.client.clone(), test).await?;
        Ok(Self { ns, sim })
    }

    /// The same with a host and its role, deployed once.
    pub(crate) async fn deployed(test: &str) -> Result<(Self, Host)> {
        let own = Self::start(test).await?;
        let host = own.sim.player.host(test, "192.0.2.10");
        deploy_to(&own, &host).await?;
        ready(&own, &host.name).await?;
        Ok((own, host))
    }

    /// Two hosts that accept the same user key.
    pub(crate) fn hosts(&self, name: &str, address: &str, other: &str, at: &str) -> (Host, Host) {
        let player = &self.sim.player;
        let (host, other) = (player.host(name, address), player.host(other, at));
        other.accept(&host.ssh_secret()[0].1);
        (host, other)
    }

    /// Kills operators, starts new processes, and waits until those lead and are ready.
    pub(crate) async fn replace(&self, operators: &[Operator]) -> Result<()> {
        self.sim.operators.replace(operators).await
    }

    /// Waits until the host is ready again with its current inputs, and checks that no run was
    /// there twice.
    pub(crate) async fn ends_well(&self, host: &Host, n_runs: usize) -> Result<()> {
        let is_ready = |it: &Node| {
            let conditions = it.conditions();
            let observed = it.status.as_ref().and_then(|it| it.observed_generation);
            let holds = |type_| e2e::holds(conditions, type_);
            observed == it.metadata.generation && holds("Ready") && holds("UpToDate")
        };
        self.wait::<Node>(&host.name, "ready again", PATIENCE, is_ready).await?;
        let traces = crate::journey::trace(host);
        ensure!(traces.len() == n_runs, "{n_runs} runs were to be counted on the host: {traces:?}");
        ensure!(host.visits().len() == n_runs, "a run was cut off: {:?}", host.visits());
        self.done()
    }

    /// Ends the test: no run may have been executed twice or concurrently with another one on its
    /// host, no `Ready` may have fallen without a cause, and no operator may have exited by itself.
    pub(crate) fn done(&self) -> Result<()> {
        let faults = self.sim.player.ledger().faults(&self.name);
        ensure!(faults.is_empty(), "{faults:?}");
        let falls = self.sim.ready.unexplained(&self.name);
        ensure!(falls.is_empty(), "{falls:?}");
        self.sim.operators.check()
    }
}
