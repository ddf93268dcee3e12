//! What operators read of a nova: each test has a simulated cluster whose nova-operator reads its
//! API often.

mod cell_that_hangs;
mod described;
mod failing_api;
mod health;
mod identity;
mod killed;
mod killed_node_set;
mod leftovers;
mod maintenance;
mod node_set_deployment;
mod node_set_removal;
mod node_set_rollout;
mod node_sets;
mod nova_matches;
mod rollout;

use std::time::Duration;

use anyhow::Result;
use api::dataplane::Node;
use api::nova::{Cell, ExternalCompute};
use e2e::Namespace;
use e2e::journey::RUN;
use serde_json::Value;
use simulated_cluster::{Host, Operator};

use crate::computes::PASSWORD;
use crate::own::Own;

/// The list of services, which each reading requests once.
const SERVICES: &str = "GET /v2.1/os-services";
/// The list of hypervisors, which each reading requests page by page.
const HYPERVISORS: &str = "GET /v2.1/os-hypervisors/detail";
/// Time limit for what the third reading shows, on a busy machine.
const READ: Duration = Duration::from_mins(10);

/// The annotation of a node that drains its host.
const DRAIN: &str = "nova.openstack.org/drain";
/// The condition of a node that says how far that is.
const DRAINED: &str = "nova.openstack.org/Drained";

/// Starts a simulated cluster whose nova-operator reads nova's API every other second.
async fn start(test: &str) -> Result<Own> {
    start_reading(test, 2).await
}

/// The same with another interval, in seconds.
async fn start_reading(test: &str, interval: u8) -> Result<Own> {
    let interval = format!("nova.api.interval={interval}");
    let own = Own::start_with(test, &["nova.api.enabled=true", &interval]).await?;
    own.sim.keystone.admit("nova", PASSWORD);
    Ok(own)
}

/// Waits until a condition of a compute has this reason.
async fn reaches(
    ns: &Namespace,
    host: &Host,
    type_: &str,
    reason: &str,
) -> Result<ExternalCompute> {
    ns.reports::<ExternalCompute>(&host.name, type_, reason, &[], READ).await
}

/// Waits until nova has shown a compute as up and mapped.
async fn is_up(ns: &Namespace, host: &Host) -> Result<ExternalCompute> {
    reaches(ns, host, "HostMapped", "Mapped").await?;
    reaches(ns, host, "ServiceUp", "ServiceUp").await
}

/// Waits until the status of a compute has the UUIDs of nova's records.
async fn has_ids(ns: &Namespace, compute: &str) -> Result<()> {
    let has_ids = |it: &ExternalCompute| {
        let status = it.status.as_ref();
        status.is_some_and(|it| it.service_id.is_some() && it.compute_id.is_some())
    };
    ns.wait::<ExternalCompute>(compute, "with its UUIDs", RUN, has_ids).await.map(drop)
}

/// Sets how the host of a node is drained.
async fn drain(ns: &Namespace, node: &str, how: Value) -> Result<()> {
    ns.annotate::<Node>(node, DRAIN, how).await.map(drop)
}

/// Waits until no drain of the host of a node is reported.
async fn is_given_back(ns: &Namespace, node: &str) -> Result<()> {
    let is_quiet = |it: &Node| it.conditions().iter().all(|it| it.type_ != DRAINED);
    ns.wait::<Node>(node, "given back", READ, is_quiet).await.map(drop)
}

/// Replaces nova-operator, whose nova loses no answer from then on.
async fn replace(own: &Own) -> Result<()> {
    own.replace(&[Operator::Nova]).await?;
    own.sim.nova.heal();
    Ok(())
}

/// Has all hosts accept the user key of the first one.
fn share_key(hosts: &[Host]) {
    for host in hosts.iter().skip(1) {
        host.accept(&hosts[0].ssh_secret()[0].1);
    }
}

/// Returns the reason of the service of a host if nova has it disabled.
fn disabled(own: &Own, host: &str) -> Result<Option<String>> {
    let services = own.sim.nova.ask("GET", "/v2.1/os-services", None)?;
    let all = services["services"].as_array().into_iter().flatten();
    let mut of_host = all.filter(|it| it["host"] == host);
    let found = of_host.find(|it| it["status"] == "disabled");
    Ok(found.map(|it| it["disabled_reason"].as_str().unwrap_or_default().to_owned()))
}

/// Waits until a condition of a cell has this reason and these words.
async fn cell_reaches(
    ns: &Namespace,
    cell: &str,
    type_: &str,
    reason: &str,
    words: &[&str],
) -> Result<Cell> {
    ns.reports::<Cell>(cell, type_, reason, words, READ).await
}
