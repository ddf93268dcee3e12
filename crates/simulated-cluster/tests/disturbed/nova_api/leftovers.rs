//! What is left in nova of a compute that was let go, and cells that are deleted while a host has
//! servers.

use anyhow::Result;
use api::dataplane::Node;
use api::nova::{Cell, Leftover};
use kube::ResourceExt;
use kube::api::PropagationPolicy;
use simulated_cluster::{Host, Nova, NovaFault};

use super::health::deployed;
use super::{READ, cell_reaches, has_ids, start};
use crate::computes::{self, CELL};
use crate::ends::{GOES, delete, gone, leftovers};
use crate::own::Own;

const SERVICE: &str = "DELETE /v2.1/os-services/";

/// Waits until the cell's leftovers are as expected.
async fn remains(own: &Own, what: &str, is: impl Fn(&[Leftover]) -> bool) -> Result<()> {
    let is_so = |it: &Cell| it.status.as_ref().is_some_and(|it| is(&it.leftovers));
    own.wait::<Cell>(CELL, what, READ, is_so).await.map(drop)
}

async fn says(own: &Own, part: &str) -> Result<()> {
    let has = |it: &[Leftover]| it.len() == 1 && it[0].message.contains(part);
    remains(own, part, has).await
}

/// Waits until nothing is left of a compute that was let go.
pub(super) async fn none_in(own: &Own, cell: &str) -> Result<()> {
    let is_empty = |it: &Cell| it.status.as_ref().is_some_and(|it| it.leftovers.is_empty());
    own.wait::<Cell>(cell, "nothing is left", READ, is_empty).await.map(drop)
}

/// Removes the node of a host while nova's API fails, and lets its compute go.
async fn let_go(own: &Own, host: &Host) -> Result<()> {
    let_go_of(own, &own.sim.nova, &host.name).await
}

/// The same with the nova of a host, whose faults stay.
pub(super) async fn let_go_of(own: &Own, nova: &Nova, host: &str) -> Result<()> {
    has_ids(own, host).await?;
    nova.fail("", NovaFault::Status(503));
    own.annotate::<Node>(host, "nova.openstack.org/skip-cleanup", "true").await?;
    delete(own, host, PropagationPolicy::Background).await?;
    gone(own, host, GOES).await
}

#[tokio::test]
async fn what_a_skipped_removal_left_is_deleted_by_its_uuids_once_nova_answers() -> Result<()> {
    let (own, host) = deployed("api-leftovers").await?;
    let nova = &own.sim.nova;
    let server = nova.boot("one", &host.name)?;
    let_go(&own, &host).await?;
    let left = leftovers(&own).await?;
    assert!(left[0].service_id.is_some() && left[0].compute_id.is_some(), "{left:?}");
    says(&own, "asks to try later").await?;
    nova.heal();
    says(&own, "still reports to nova").await?;
    nova.report(&host.name, false);
    says(&own, &format!("Servers on it: {server}")).await?;
    assert!(nova.ask("GET", "/v2.1/os-services", None)?.to_string().contains(&host.name));
    nova.delete_server(&server);
    none_in(&own, CELL).await?;
    own.event("NovaCell", CELL, "LeftoverDeleted").await?;
    assert!(!nova.ask("GET", "/v2.1/os-services", None)?.to_string().contains(&host.name));
    own.done()
}

#[tokio::test]
async fn what_is_left_of_a_host_that_is_back_is_shown_and_not_deleted() -> Result<()> {
    let (own, host) = deployed("api-back").await?;
    let nova = &own.sim.nova;
    let_go(&own, &host).await?;
    computes::join(&own, &host, None).await?;
    says(&own, &format!("belongs to NovaExternalCompute {}", host.name)).await?;
    nova.heal();
    none_in(&own, CELL).await?;
    assert_eq!(nova.count(SERVICE), 0);
    own.done()
}

#[tokio::test]
async fn a_cell_stays_while_a_host_without_a_compute_has_servers() -> Result<()> {
    let own = start("api-cell").await?;
    let nova = &own.sim.nova;
    nova.register("elsewhere.example.org", CELL);
    let server = nova.boot("one", "elsewhere.example.org")?;
    let _broker = computes::cell(&own, &own.sim).await?;
    own.wait::<Cell>(CELL, "held", READ, |it| it.finalizers().len() == 1).await?;
    own.remove::<Cell>(CELL).await?;
    let words = ["elsewhere.example.org", &*server, "skip-cleanup"];
    cell_reaches(&own, CELL, "Released", "ServersOnHosts", &words).await?;
    nova.answer_for_cell(CELL, false);
    cell_reaches(&own, CELL, "Released", "ServersUnknown", &["start that database"]).await?;
    nova.answer_for_cell(CELL, true);
    nova.delete_server(&server);
    own.gone::<Cell>(CELL, READ).await?;
    own.done()
}
