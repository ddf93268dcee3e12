//! Hosts that leave a node set, and an operator that is killed before and after each of its steps:
//! each host is removed once.

use anyhow::{Context as _, Result, ensure};
use api::ansibleee::{AnsibleEe, JobStatus};
use api::dataplane::{HostState, Node, NodeSet};
use e2e::journey::RUN;
use kube::ResourceExt;
use operator_core::run_engine::run::SERVICE_LABEL;
use serde_json::Value;
use simulated_cluster::{Host, Nova, NovaFault, Operator};

use super::killed::{AFTER, BEFORE};
use super::node_set_removal::{deploy, has, is_held, take_out};
use super::node_sets::SET;
use super::{share_key, start};
use crate::ends::cleaned;
use crate::own::{Own, PATIENCE};

/// Request about one host, with what it is about in place of `ID` → when the operator is killed.
const REQUESTS: [(&str, NovaFault); 7] = [
    ("PUT /v2.1/os-services/ID", BEFORE),
    // Nova-compute is to be stopped once this has shown that the host is empty.
    ("GET /v2.1/servers?all_tenants=1&host=ID&", BEFORE),
    ("DELETE /v2.1/os-services/ID", BEFORE),
    ("DELETE /v2.1/os-services/ID", AFTER),
    ("DELETE /placement/resource_providers/ID", BEFORE),
    ("DELETE /placement/resource_providers/ID", AFTER),
    // The node is to be released after this.
    ("DELETE /network/v2.0/agents/ID", AFTER),
];
/// The service that stops nova-compute on a host.
const STOPS: &str = "nova-cleanup";

/// A request at which the operator is killed.
struct Kill {
    line: String,
    fault: NovaFault,
}

/// Returns the requests, each about the host at its place.
fn kills(nova: &Nova, hosts: &[Host]) -> Result<Vec<Kill>> {
    let kill = |(idx, ((line, fault), host)): (usize, ((&str, NovaFault), &Host))| {
        let name = &host.name;
        // A share that no server accounts for keeps the provider.
        nova.allocate(&format!("00000000-0000-4000-9000-{idx:012}"), name)?;
        let agent = nova.add_agent(name, "neutron-ovn-metadata-agent");
        let id = match line {
            _ if line.contains("host=ID") => name.clone(),
            _ if line.contains("/agents/") => agent,
            _ if line.contains("/resource_providers/") => provider(nova, name)?,
            _ => service(nova, name)?,
        };
        Ok(Kill { line: line.replace("ID", &id), fault })
    };
    REQUESTS.into_iter().zip(hosts).enumerate().map(kill).collect()
}

/// Returns the UUID of the service of a host.
fn service(nova: &Nova, host: &str) -> Result<String> {
    let path = format!("/v2.1/os-services?host={host}");
    text(&nova.ask("GET", &path, None)?["services"][0]["id"])
}

/// Returns the UUID of the resource provider of a host.
fn provider(nova: &Nova, host: &str) -> Result<String> {
    let path = format!("/placement/resource_providers?name={host}");
    text(&nova.ask("GET", &path, None)?["resource_providers"][0]["uuid"])
}

fn text(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).context("no UUID")
}

/// Waits until nova-compute is being stopped on a host, or was stopped.
async fn stops(own: &Own, host: &Host, is: JobStatus) -> Result<()> {
    let is_there = |it: &AnsibleEe| {
        it.spec.hosts.iter().any(|it| it.name == host.name)
            && it.labels().get(SERVICE_LABEL).is_some_and(|it| it == STOPS)
            && it.status.as_ref().and_then(|it| it.job_status) == Some(is)
    };
    own.wait_any(RUN, &format!("{STOPS} {is:?}"), is_there).await.map(drop)
}

/// Waits until so many hosts of the node set are in a state.
async fn are(own: &Own, n_hosts: usize, state: HostState) -> Result<()> {
    let is_there = |it: &NodeSet| {
        let hosts = it.status.iter().flat_map(|it| &it.hosts);
        hosts.filter(|it| it.state == state).count() == n_hosts
    };
    own.wait::<NodeSet>(SET, &format!("{n_hosts} {state:?}"), RUN, is_there).await.map(drop)
}

#[tokio::test]
async fn hosts_leave_a_node_set_once_although_the_operator_dies_at_any_step() -> Result<()> {
    let own = start("api-set-killed").await?;
    let nova = &own.sim.nova;
    let host =
        |n: usize| own.sim.player.host(&format!("compute-{n}"), &format!("192.0.2.{}", 10 + n));
    let hosts: Vec<Host> = (0..REQUESTS.len() + 3).map(host).collect();
    share_key(&hosts);
    let _broker = deploy(&own, &hosts.iter().collect::<Vec<_>>()).await?;
    let kills = kills(nova, &hosts)?;
    let (stays, leaving) = hosts.split_last().context("no host")?;
    let [.., stopped, released] = leaving else { anyhow::bail!("too few hosts") };
    for kill in &kills {
        nova.fail_next(&kill.line, 1, kill.fault);
    }
    stopped.hold(STOPS);
    are(&own, hosts.len(), HostState::Deployed).await?;
    take_out(&own, &leaving.iter().collect::<Vec<_>>()).await?;
    are(&own, leaving.len(), HostState::Terminating).await?;
    // So the node set still has the released host as terminating when the operator is back.
    own.sim.operators.kill(Operator::DataPlane)?;

    for kill in &kills {
        nova.wait_for_total(&kill.line, 1, PATIENCE).await?;
    }
    stops(&own, stopped, JobStatus::Running).await?;
    own.wait::<Node>(&released.name, "released", RUN, |it| !is_held(it)).await?;
    own.sim.operators.kill(Operator::Nova)?;
    stopped.release();
    stops(&own, stopped, JobStatus::Succeeded).await?;
    let nodes = own.list::<Node>().await?;
    let n_held = nodes.iter().filter(|it| is_held(it)).count();
    assert_eq!((nodes.len(), n_held), (hosts.len(), hosts.len() - 1), "the others still are");
    own.replace(&[Operator::DataPlane, Operator::Nova]).await?;
    nova.heal();

    for host in leaving {
        own.gone::<Node>(&host.name, PATIENCE).await?;
    }
    let is_alone = |it: &NodeSet| it.status.as_ref().is_some_and(|it| it.hosts.len() == 1);
    own.wait::<NodeSet>(SET, "with the host that stays", RUN, is_alone).await?;
    for kill in kills {
        let n_expected = 1 + usize::from(kill.fault == BEFORE);
        let (is_write, n_sent) = (!kill.line.starts_with("GET "), nova.count(&kill.line));
        ensure!(!is_write || n_sent == n_expected, "{} was sent {n_sent} times", kill.line);
    }
    for host in leaving {
        ensure!(cleaned(host) == 1, "{} was stopped {} times", host.name, cleaned(host));
        ensure!(!has(nova, &host.name)?, "{} is still in nova", host.name);
    }
    assert!(cleaned(stays) == 0 && has(nova, &stays.name)?);
    own.done()
}
