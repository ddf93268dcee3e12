//! Computes whose service is up, down, and up again, and an operator that is killed meanwhile.

use anyhow::{Context as _, Result};
use api::dataplane::Node;
use api::nova::{Cell, ExternalCompute};
use e2e::{holds, says};
use kube::ResourceExt;
use simulated_cluster::{Host, NovaRequest, Operator};

use super::{READ, SERVICES, cell_reaches, is_up, reaches, start, start_reading};
use crate::computes::{self, CELL};
use crate::own::Own;

/// Deploys a host with a compute, until node and cell show that it is up, too.
pub(super) async fn deployed(test: &str) -> Result<(Own, Host)> {
    let own = start(test).await?;
    let host = own.sim.player.host(test, "192.0.2.10");
    let _broker = computes::cell(&own, &own.sim).await?;
    computes::deploy(&own, &[&host]).await?;
    is_up(&own, &host).await?;
    cell_reaches(&own, CELL, "ComputesUp", "ComputesUp", &["1 of 1 computes are up"]).await?;
    own.good::<Node>(&host.name, &["nova.openstack.org/ServiceUp"], READ).await?;
    Ok((own, host))
}

#[tokio::test]
async fn a_compute_is_ready_once_nova_was_read_since_it_has_registered() -> Result<()> {
    let own = start_reading("api-first-ready", 20).await?;
    let host = own.sim.player.host("api-first-ready", "192.0.2.10");
    let _broker = computes::cell(&own, &own.sim).await?;
    computes::admit(&own, &[&host], CELL).await?;
    computes::join(&own, &host, None).await?;
    let waiting = reaches(&own, &host, "Ready", "WaitingForNova").await?;
    assert!(holds(waiting.conditions(), "DeploymentReady"), "{waiting:?}");
    let ready = computes::settled(&own, &host).await?;
    assert!(holds(ready.conditions(), "HostMapped"), "{ready:?}");
    let registered = ready.services().iter().find(|it| it.name == "nova-registered");
    let since = registered.context("it has not registered")?.since.0;
    let is_since = |it: &NovaRequest| it.line.starts_with(SERVICES) && it.at >= since;
    assert!(own.sim.nova.requests().iter().any(is_since), "nova was not read since {since}");
    own.done()
}

#[tokio::test]
async fn a_deployed_compute_is_up_and_mapped_until_two_readings_find_it_down() -> Result<()> {
    let (own, host) = deployed("api-health").await?;
    let nova = &own.sim.nova;
    nova.report(&host.name, false);
    let n_readings = nova.count(SERVICES);
    reaches(&own, &host, "ServiceUp", "ServiceDown").await?;
    assert!(nova.count(SERVICES) >= n_readings + 2, "one reading was enough");
    reaches(&own, &host, "Ready", "ServiceDown").await?;
    own.event("NovaExternalCompute", &host.name, "ServiceDown").await?;
    let is_down = |it: &Node| {
        let conditions = it.conditions();
        let type_ = "nova.openstack.org/ServiceUp";
        holds(conditions, "Ready") && says(conditions, type_, "ServiceDown", &[])
    };
    own.wait::<Node>(&host.name, "ready, with a service that is down", READ, is_down).await?;
    nova.report(&host.name, true);
    let compute = is_up(&own, &host).await?;
    assert!(holds(compute.conditions(), "Ready"), "{compute:?}");
    own.done()
}

/// Returns the resource versions of what the operator writes.
pub(super) async fn versions(own: &Own, host: &str, cell: &str) -> Result<[Option<String>; 3]> {
    Ok([
        own.api::<ExternalCompute>().get(host).await?.resource_version(),
        own.api::<Node>().get(host).await?.resource_version(),
        own.api::<Cell>().get(cell).await?.resource_version(),
    ])
}

#[tokio::test]
async fn an_operator_that_is_killed_between_two_readings_writes_nothing_when_it_is_back()
-> Result<()> {
    let (own, host) = deployed("api-killed").await?;
    let nova = &own.sim.nova;
    nova.wait_for_requests(SERVICES, 1).await?;
    let before = versions(&own, &host.name, CELL).await?;
    own.replace(&[Operator::Nova]).await?;
    nova.wait_for_requests(SERVICES, 3).await?;
    assert_eq!(versions(&own, &host.name, CELL).await?, before);
    nova.report(&host.name, false);
    reaches(&own, &host, "ServiceUp", "ServiceDown").await?;
    own.done()
}
