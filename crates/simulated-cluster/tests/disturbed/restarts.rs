//! Operators restarted at random while hosts are deployed, redeployed and removed: the outcome is
//! the same, and each run reached its host once.

use std::cell::Cell;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use api::dataplane::{Deployment, Node, NodeSet, Service};
use api::nova::ExternalCompute;
use e2e::Namespace;
use e2e::journey::{SERVICE, ready_within};
use kube::api::PropagationPolicy;
use serde_json::json;
use simulated_cluster::{Host, Operator, Simulation};

use crate::computes::{self, CELL, is_settled};
use crate::ends::{cleaned, delete, gone, held};
use crate::journey::node_set;
use crate::own::Own;

/// Environment variable with the seed of an earlier run.
const SEED: &str = "EDPM_RESTARTS_SEED";
/// The shortest and the longest pause between two restarts, in milliseconds.
const PAUSE: std::ops::Range<u64> = 2_000..8_000;
/// Seconds of the operators' Leases, after which the next process of a killed one leads.
const LEASE: u16 = 12;
/// Time limit of what operators do that are restarted all the time, on a busy machine.
const LIMIT: Duration = Duration::from_mins(14);
const N_HOSTS: u8 = 5;
/// Nova's services that deploy a compute.
const OF_NOVA: [&str; 3] = ["libvirt", "nova", "nova-registered"];
/// The services of the node set.
const OF_SET: [&str; 2] = ["one", "two"];

#[tokio::test]
async fn operators_that_are_restarted_at_random_come_to_the_same_end() -> Result<()> {
    let seed = match std::env::var_os(SEED) {
        Some(seed) => {
            seed.to_string_lossy().parse().with_context(|| format!("{SEED} is no number"))?
        }
        None => UNIX_EPOCH.elapsed().unwrap_or_default().as_secs(),
    };
    let own = Own::start_with_lease("restarts", &[], LEASE).await?;
    let n_restarts = Cell::new(0);
    let work = Box::pin(all_ends_well(&own));
    let outcome = tokio::select! {
        ended = work => ended,
        Err(error) = restart_at_random(&own.sim, seed, &n_restarts) => Err(error),
    };
    outcome.with_context(|| format!("{SEED}={seed}"))?;
    assert!(n_restarts.get() > 0, "nothing was restarted");
    // One of them may have been between its end and its start.
    own.replace(&Operator::ALL).await?;
    own.done()
}

/// Restarts operators until it is dropped, and counts the restarts: some are terminated, some are
/// killed.
async fn restart_at_random(sim: &Simulation, seed: u64, n_restarts: &Cell<usize>) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    loop {
        // The pauses are the subject of the test: nothing is awaited here.
        tokio::time::sleep(Duration::from_millis(random.u64(PAUSE))).await;
        sim.operators.check()?;
        let operator = Operator::ALL[random.usize(..Operator::ALL.len())];
        if random.u8(..4) == 0 {
            sim.operators.kill(operator)?;
            sim.operators.start(operator)?;
        } else {
            sim.operators.restart(operator).await?;
        }
        n_restarts.update(|it| it + 1);
    }
}

/// Deploys hosts of a role and of a node set beside each other.
async fn all_ends_well(own: &Own) -> Result<()> {
    let hosts: Vec<Host> = (0..N_HOSTS)
        .map(|n| own.sim.player.host(&format!("restarts-{n}"), &format!("192.0.2.{}", 10 + n)))
        .collect();
    for host in &hosts[1..] {
        host.accept(&hosts[0].ssh_secret()[0].1);
    }
    let _broker = computes::cell(own, &own.sim).await?;
    computes::admit(own, &hosts.iter().collect::<Vec<_>>(), CELL).await?;
    tokio::try_join!(computes_end_well(own, &hosts), a_node_set_ends_well(own, &hosts[0])).map(drop)
}

/// Deploys a node set again and again: each of its services comes once to each host.
async fn a_node_set_ends_well(own: &Own, other: &Host) -> Result<()> {
    let host = |n: u8| {
        let host =
            own.sim.player.host(&format!("restarts-set-{n}"), &format!("192.0.2.{}", 20 + n));
        host.accept(&other.ssh_secret()[0].1);
        host
    };
    let hosts: Vec<Host> = (0..3).map(host).collect();
    for service in OF_SET {
        let spec = json!({ "playbookContents": "- hosts: all\n  tasks: []\n" });
        own.create::<Service>(service, spec).await?;
    }
    let spec = node_set(&hosts.iter().collect::<Vec<_>>(), &OF_SET);
    own.create::<NodeSet>("set", spec).await?;
    for n_deployments in 1..=3 {
        let name = format!("set-{n_deployments}");
        let spec = json!({ "nodeSets": ["set"], "maxUnavailable": 1 });
        own.create::<Deployment>(&name, spec).await?;
        own.good::<Deployment>(&name, &["Ready"], LIMIT).await?;
        // It sums up the deployment later; until then it has not become ready again.
        own.good::<NodeSet>("set", &["Ready"], LIMIT).await?;
        for host in &hosts {
            let expected = OF_SET.repeat(n_deployments);
            assert_eq!(host.services(), expected, "{}", host.name);
            assert_eq!(host.visits().len(), expected.len(), "a run was cut off on {}", host.name);
        }
    }
    Ok(())
}

/// Deploys computes, redeploys each, and removes one.
async fn computes_end_well(own: &Own, hosts: &[Host]) -> Result<()> {
    for host in hosts {
        computes::join(own, host, None).await?;
    }
    let mut expected: Vec<&str> = std::iter::once(SERVICE).chain(OF_NOVA).collect();
    all_have_seen(own, hosts, &expected).await?;
    // A host that is redeployed gets its compute's services again.
    expected.extend(expected.clone());
    for host in hosts {
        own.annotate::<Node>(&host.name, "dataplane.openstack.org/redeploy", "1").await?;
    }
    all_have_seen(own, hosts, &expected).await?;
    expected.extend(OF_NOVA);
    for host in hosts {
        let key = "nova.openstack.org/redeploy";
        own.annotate::<ExternalCompute>(&host.name, key, "1").await?;
    }
    all_have_seen(own, hosts, &expected).await?;
    let [leaving, staying @ ..] = hosts else { anyhow::bail!("no host") };
    held(own, &leaving.name).await?;
    delete(own, &leaving.name, PropagationPolicy::Background).await?;
    gone(own, &leaving.name, LIMIT).await?;
    assert_eq!(cleaned(leaving), 1);
    all_have_seen(own, staying, &expected).await
}

/// Waits until as many services were deployed to each host and all are ready, and asserts that it
/// was these.
async fn all_have_seen(ns: &Namespace, hosts: &[Host], services: &[&str]) -> Result<()> {
    for host in hosts {
        until(|| host.services().len() >= services.len(), host).await?;
        ns.wait::<ExternalCompute>(&host.name, "settled", LIMIT, is_settled).await?;
        ready_within(ns, &host.name, LIMIT).await?;
        assert_eq!(host.services(), services, "{}", host.name);
        assert_eq!(host.visits().len(), services.len(), "a run was cut off on {}", host.name);
    }
    Ok(())
}

/// Waits until `holds` is true of the runs that reached the host.
async fn until(holds: impl Fn() -> bool, host: &Host) -> Result<()> {
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    let waiting = async {
        while !holds() {
            tick.tick().await;
        }
    };
    let waited = tokio::time::timeout(LIMIT, waiting).await;
    waited.with_context(|| format!("{} has seen {:?} alone", host.name, host.services()))
}
