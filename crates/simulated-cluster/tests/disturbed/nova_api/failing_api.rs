//! Nova's API answering with each kind of failure, and not at all.

use anyhow::{Context as _, Result};
use api::conditions::{ConditionStatus, find};
use api::nova::ExternalCompute;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use simulated_cluster::{Broker, Host, Nova, NovaFault};

use super::{SERVICES, cell_reaches, is_up, share_key, start};
use crate::computes;
use crate::own::{Own, PATIENCE};

/// Region → what its nova does from some time on; `None` stands for one that listens no more → the
/// reason of the cell's condition then.
const FAULTS: [(&str, Option<NovaFault>, &str); 9] = [
    ("r401", Some(NovaFault::Status(401)), "TokenRefused"),
    ("r403", Some(NovaFault::Status(403)), "RoleMissing"),
    ("r409", Some(NovaFault::Status(409)), "NovaConflict"),
    ("r429", Some(NovaFault::Status(429)), "NovaBusy"),
    ("r500", Some(NovaFault::Status(500)), "NovaFailed"),
    ("r503", Some(NovaFault::Status(503)), "NovaBusy"),
    ("garbage", Some(NovaFault::Garbage), "NotNova"),
    ("gone", None, "Unreachable"),
    // One that accepts requests and answers none is waited for.
    ("silent", Some(NovaFault::Silence), "Answered"),
];

/// The region of the compute that is deployed while the novas fail.
const FAILING: &str = "r503";

/// Returns the name of the cell in a region.
pub(super) fn cell(region: &str) -> String {
    format!("nova-{region}")
}

/// Creates a cell in a region of its own, and the nova there.
pub(super) async fn add_region(own: &Own, region: &str) -> Result<Nova> {
    let nova = own.sim.nova_of(region).await?;
    add_cell(own, region).await?;
    Ok(nova)
}

/// Creates the cell of a region.
pub(super) async fn add_cell(own: &Own, region: &str) -> Result<()> {
    let name = cell(region);
    let broker = Broker::start(&name, "first", &name).await?;
    let names = (name.as_str(), &*format!("{name}-transport"));
    computes::cell_at(own, &own.sim, names, &broker, &[("RegionName", region)]).await
}

/// Returns since when a compute is ready.
fn ready_since(compute: &ExternalCompute) -> Result<Time> {
    let ready = find(compute.conditions(), "Ready");
    let ready = ready.filter(|it| it.status == ConditionStatus::True);
    let since = ready.map(|it| it.last_transition_time.clone());
    since.with_context(|| format!("not ready: {compute:?}"))
}

/// Waits until what nova says of a host is Unknown, of a silent nova too: its first request ends after
/// a minute and a half, which is more than three intervals.
async fn are_unknown(own: &Own, host: &Host) -> Result<()> {
    let is_unknown = |it: &ExternalCompute| {
        ["ServiceUp", "HostMapped"].iter().all(|type_| {
            let found = find(it.conditions(), type_);
            found.is_some_and(|it| {
                it.status == ConditionStatus::Unknown && it.reason == "NovaNotAnswering"
            })
        })
    };
    own.wait::<ExternalCompute>(&host.name, "unknown", PATIENCE, is_unknown).await.map(drop)
}

#[tokio::test]
async fn an_api_that_fails_is_named_on_its_cell_and_holds_no_compute_back() -> Result<()> {
    let own = start("api-faults").await?;
    let mut novas = Vec::new();
    for (region, ..) in FAULTS {
        novas.push(add_region(&own, region).await?);
    }
    let (address, mut hosts) = (|idx: usize| format!("192.0.2.{}", 10 + idx), Vec::new());
    for (idx, name) in FAULTS.map(|it| it.0).into_iter().chain(["late"]).enumerate() {
        hosts.push(own.sim.player.host(name, &address(idx)));
    }
    share_key(&hosts);
    let late = hosts.last().context("no host")?;
    computes::admit(&own, &hosts.iter().collect::<Vec<&Host>>(), &cell(FAILING)).await?;
    for (host, (region, ..)) in hosts.iter().zip(FAULTS) {
        computes::join(&own, host, Some(&cell(region))).await?;
    }
    let mut ready = Vec::new();
    for (host, _) in hosts.iter().zip(FAULTS) {
        computes::settled(&own, host).await?;
        ready.push(ready_since(&is_up(&own, host).await?)?);
    }

    for (nova, (_, fault, _)) in novas.iter().zip(FAULTS) {
        match fault {
            Some(fault) => nova.fail("GET /v2.1/os-", fault),
            None => nova.stop(),
        }
    }
    let silent = novas.last().context("no nova")?;
    silent.wait_for_requests(SERVICES, 1).await?;
    let n_readings = silent.count(SERVICES);
    // Before the request to the silent nova ends, after a minute and a half.
    for (region, _, reason) in FAULTS {
        cell_reaches(&own, &cell(region), "NovaAPIReady", reason, &[]).await?;
    }
    assert_eq!(silent.count(SERVICES), n_readings, "a silent nova gets one request at a time");
    computes::join(&own, late, None).await?;
    computes::settled(&own, late).await?;
    for (host, (region, _, reason)) in hosts.iter().zip(FAULTS) {
        are_unknown(&own, host).await?;
        // Only then is the silent nova known as such.
        let reason = if reason == "Answered" { "Unreachable" } else { reason };
        cell_reaches(&own, &cell(region), "NovaAPIReady", reason, &[]).await?;
        own.event("NovaCell", &cell(region), reason).await?;
    }
    for (host, since) in hosts.iter().zip(&ready) {
        let compute = own.api::<ExternalCompute>().get(&host.name).await?;
        assert_eq!(ready_since(&compute)?, *since, "{}", host.name);
    }
    own.done()
}
