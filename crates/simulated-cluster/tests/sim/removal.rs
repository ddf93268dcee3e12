//! Removal of computes: what runs on their hosts, what is reported, and which finalizers wait for
//! what.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use api::dataplane::Node;
use api::nova::{Cell, ExternalCompute};
use e2e::journey::ready;
use e2e::{Namespace, SOON};
use kube::ResourceExt;
use kube::api::PropagationPolicy;
use serde_json::json;
use simulated_cluster::{Behaviour, Host};

use crate::computes::{self, CELL, settled};
use crate::ends::{GOES, cleaned, delete, gone, held, leftovers};
use crate::world::World;

/// Time limit for removing a compute whose host does not answer: three attempts with their pauses.
const GIVEN_UP: Duration = Duration::from_mins(10);

/// A host with a deployed compute.
async fn world(test: &str, address: &str) -> Result<(World, Host)> {
    let (ns, host) = World::with_host(test, test, address).await?;
    let _broker = computes::cell(&ns, ns.sim).await?;
    computes::deploy(&ns, &[&host]).await?;
    held(&ns, &host.name).await?;
    assert_eq!(cleaned(&host), 0);
    Ok((ns, host))
}

/// Returns how often a run reached a host to stop nova-compute, successfully or not.
fn attempts(host: &Host) -> usize {
    host.visits().iter().filter(|it| it.service == "nova-cleanup").count()
}

async fn node_says(ns: &Namespace, node: &str, reason: &str, words: &[&str]) -> Result<()> {
    let type_ = "nova.openstack.org/Compute";
    ns.reports::<Node>(node, type_, reason, words, GOES).await.map(drop)
}

#[tokio::test]
async fn a_deleted_node_has_its_host_cleaned_and_leaves_word_in_its_cell() -> Result<()> {
    let policies = [
        ("removal-back", "192.0.2.112", PropagationPolicy::Background),
        ("removal-fore", "192.0.2.113", PropagationPolicy::Foreground),
    ];
    for (test, address, policy) in policies {
        let (ns, host) = world(test, address).await?;
        delete(&ns, &host.name, policy).await?;
        gone(&ns, &host.name, GOES).await?;
        assert_eq!(cleaned(&host), 1);
        let [left] = &leftovers(&ns).await?[..] else { bail!("the cell does not remember it") };
        assert_eq!((left.host_name.as_str(), left.stopped), (host.name.as_str(), true));
        ns.event("NovaExternalCompute", &host.name, "HostCleaned").await?;
        ns.event("OpenStackDataPlaneNode", &host.name, "LeftInNova").await?;
        ns.event("NovaCell", CELL, "LeftInNova").await?;
        ns.done().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_compute_that_goes_alone_leaves_its_node_in_service_and_may_come_back() -> Result<()> {
    let (ns, host) = world("removal-alone", "192.0.2.114").await?;
    let away = json!({ "nova.openstack.org/cell": "", "nova.openstack.org/allow-removal": "true" });
    ns.merge::<Node>(&host.name, json!({ "metadata": { "annotations": away } })).await?;
    ns.gone::<ExternalCompute>(&host.name, GOES).await?;
    assert_eq!(cleaned(&host), 1);
    let is_free = |it: &Node| it.finalizers() == ["dataplane.openstack.org/inventory"];
    ns.wait::<Node>(&host.name, "released by nova-operator", SOON, is_free).await?;
    ready(&ns, &host.name).await?;

    ns.annotate::<Node>(&host.name, "nova.openstack.org/cell", CELL).await?;
    let first = settled(&ns, &host).await?;
    held(&ns, &host.name).await?;
    ns.remove::<ExternalCompute>(&host.name).await?;
    let is_another =
        |it: &ExternalCompute| it.uid() != first.uid() && it.metadata.deletion_timestamp.is_none();
    ns.wait::<ExternalCompute>(&host.name, "made again", GOES, is_another).await?;
    assert_eq!(cleaned(&host), 2);
    ns.done().await
}

#[tokio::test]
async fn a_dead_host_keeps_its_node_for_a_few_minutes_or_until_a_human_says_so() -> Result<()> {
    let (ns, host) = World::with_host("removal-dead", "removal-dead", "192.0.2.115").await?;
    let other = ns.host_like(&host, "removal-skipped", "192.0.2.116");
    let _broker = computes::cell(&ns, ns.sim).await?;
    computes::deploy(&ns, &[&host, &other]).await?;
    for host in [&host, &other] {
        held(&ns, &host.name).await?;
        host.stop();
        delete(&ns, &host.name, PropagationPolicy::Background).await?;
    }
    let words = ["could not be stopped", "nova.openstack.org/skip-cleanup=true"];
    node_says(&ns, &other.name, "HostUnreachable", &words).await?;
    let before = attempts(&other);
    ns.annotate::<Node>(&other.name, "nova.openstack.org/skip-cleanup", "true").await?;
    gone(&ns, &other.name, SOON).await?;
    ns.event("NovaExternalCompute", &other.name, "CleanupSkipped").await?;
    assert_eq!(attempts(&other), before, "no attempt is made that is to be skipped");
    gone(&ns, &host.name, GIVEN_UP).await?;
    ns.event("NovaExternalCompute", &host.name, "HostNotCleaned").await?;
    let left = leftovers(&ns).await?;
    assert_eq!(left.iter().filter(|it| !it.stopped).count(), 2, "{left:?}");
    assert_eq!(attempts(&host), 3, "attempts of the host that was not skipped");
    ns.done().await
}

#[tokio::test]
async fn guests_on_a_host_hold_its_node_until_they_are_gone() -> Result<()> {
    let (ns, host) = world("removal-guests", "192.0.2.118").await?;
    let guests = "2 guests are on this host, so nova-compute is not stopped: g1 (0f-1), g2 (0f-2).";
    host.behave("nova-cleanup", Behaviour::failed("The host must have no guests", guests));
    delete(&ns, &host.name, PropagationPolicy::Background).await?;
    let words = ["2 guests", "g1 (0f-1)", "nova.openstack.org/skip-cleanup=true"];
    node_says(&ns, &host.name, "GuestsOnHost", &words).await?;
    host.behave("nova-cleanup", Behaviour::Done);
    gone(&ns, &host.name, GOES).await?;
    let [left] = &leftovers(&ns).await?[..] else { bail!("the cell does not remember it") };
    assert!(left.stopped && attempts(&host) > 1, "it is tried again by itself");
    ns.done().await
}

#[tokio::test]
async fn a_cell_stays_while_it_has_computes_and_a_namespace_goes_at_once() -> Result<()> {
    let (ns, host) = world("removal-space", "192.0.2.117").await?;
    host.stop();
    ns.remove::<Cell>(CELL).await?;
    let words = ["1 do: ", host.name.as_str()];
    ns.reports::<Cell>(CELL, "Released", "CellInUse", &words, SOON).await?;
    ns.event("NovaCell", CELL, "CellInUse").await?;

    ns.delete().await?;
    ns.deleted(GOES).await?;
    assert_eq!(attempts(&host), 0, "no host is touched");
    let faults = ns.sim.player.ledger().faults(&ns.name);
    ensure!(faults.is_empty(), "{faults:?}");
    ns.sim.operators.check()
}
