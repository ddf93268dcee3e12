//! A cell whose region is mistyped, where the other region has a host of the same name: it is not
//! removed there, and nothing is stopped here.

use anyhow::{Result, ensure};
use api::dataplane::{Node, Role};
use api::nova::ExternalCompute;
use e2e::journey::ROLE;
use e2e::says;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PropagationPolicy;
use serde_json::json;
use simulated_cluster::Operator;

use super::health::deployed;
use super::{READ, SERVICES, cell_reaches, disabled, reaches};
use crate::computes::CELL;
use crate::ends::{GOES, cleaned, delete, gone};
use crate::own::Own;

/// The region of the other nova.
const OTHER: &str = "two";

async fn name_region(own: &Own, region: &str) -> Result<()> {
    let change = json!({ "stringData": { "RegionName": region } });
    own.merge::<Secret>(CELL, change).await.map(drop)
}

#[tokio::test]
async fn a_host_is_not_removed_from_a_mistyped_region_and_keeps_its_guests() -> Result<()> {
    let (own, host) = deployed("api-region").await?;
    let (nova, other) = (&own.sim.nova, own.sim.nova_of(OTHER).await?);
    // Each nova counts its UUIDs from one.
    other.register("other", CELL);
    other.register(&host.name, CELL);
    let server = nova.boot("guest", &host.name)?;
    let recorded = own.api::<ExternalCompute>().get(&host.name).await?.status.unwrap_or_default();
    ensure!(recorded.nova.is_some() && recorded.service_id.is_some(), "{recorded:?}");
    let no_deploy = json!({ "spec": { "deployStrategy": { "deploy": false } } });
    own.merge::<Role>(ROLE, no_deploy).await?;
    let is_off = |it: &ExternalCompute| it.spec.deploy == Some(false);
    own.wait::<ExternalCompute>(&host.name, "not deployed any more", READ, is_off).await?;

    name_region(&own, OTHER).await?;
    reaches(&own, &host, "NovaMatches", "OtherIdentity").await?;
    let names = [&*host.name, "region regionOne", "region two", "accept-nova"];
    cell_reaches(&own, CELL, "NovaMatches", "OtherIdentity", &names).await?;
    delete(&own, &host.name, PropagationPolicy::Background).await?;
    let is_held = |it: &Node| {
        let type_ = "nova.openstack.org/Compute";
        says(it.conditions(), type_, "OtherIdentity", &["accept-nova", "skip-cleanup"])
    };
    own.wait::<Node>(&host.name, "held", READ, is_held).await?;
    own.replace(&[Operator::Nova]).await?;
    other.wait_for_requests(SERVICES, 3).await?;
    let of_other = other.requests();
    let changes: Vec<_> = of_other.iter().filter(|it| !it.line.starts_with("GET ")).collect();
    ensure!(changes.is_empty(), "the other region was changed: {changes:?}");
    ensure!(cleaned(&host) == 0, "nova-compute was stopped above a guest");
    let kept = own.api::<ExternalCompute>().get(&host.name).await?.status.unwrap_or_default();
    let ids = |it: &api::nova::ExternalComputeStatus| {
        (it.nova.clone(), it.service_id.clone(), it.compute_id.clone())
    };
    ensure!(ids(&kept) == ids(&recorded), "{:?}", ids(&kept));

    name_region(&own, "regionOne").await?;
    reaches(&own, &host, "Drained", "ServersOnHost").await?;
    ensure!(disabled(&own, &host.name)?.is_some(), "the removal goes on in its own region");
    nova.delete_server(&server);
    gone(&own, &host.name, GOES).await?;
    ensure!(cleaned(&host) == 1, "it is stopped once it is empty");
    own.done()
}
