//! The main scenario as far as the API shows it: a cell whose message bus fails, and one whose
//! credentials rotate.

use anyhow::{Context as _, Result};
use api::nova::{Cell, ExternalCompute};
use e2e::{Namespace, holds, says};
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use simulated_cluster::{Broker, Host, Visit};

use crate::computes::{self, BUS, CELL, DEPLOYED, configure, is_settled, of_nova, settled};
use crate::world::World;

/// The services of one deployment of a compute.
const SERVICES: [&str; 3] = ["libvirt", "nova", "nova-registered"];

/// Changes the password of the cell's user: in its message bus, then in its Secret.
async fn rotate(ns: &Namespace, broker: &Broker, password: &str) -> Result<()> {
    broker.set_password(password);
    let change = json!({ "stringData": { "transport_url": broker.transport_url() } });
    ns.merge::<Secret>(BUS, change).await.map(drop)
}

/// Returns a file of nova's configuration as given to the last play of the service `nova`.
fn given(host: &Host, file: &str) -> Result<String> {
    let is_it = |it: &&Visit| it.service == "nova" && it.is_done;
    let visits = host.visits();
    let last = visits.iter().rev().find(is_it).context("the service nova never ran")?;
    let mut files = last.files.iter().filter(|(path, _)| path.ends_with(&format!("/{file}")));
    let paths: Vec<&String> = last.files.keys().collect();
    let (_, text) = files.next().with_context(|| format!("no {file} among {paths:?}"))?;
    Ok(text.clone())
}

#[tokio::test]
async fn a_stopped_message_bus_is_named_by_the_cell_and_by_computes_that_wait() -> Result<()> {
    let (ns, host) = World::with_host("stopped-bus", "stopped-bus", "192.0.2.110").await?;
    let broker = computes::cell(&ns, ns.sim).await?;
    computes::deploy(&ns, &[&host]).await?;
    assert_eq!(of_nova(&host), SERVICES);

    broker.stop().await;
    let lost = format!("RabbitMQ at {} cannot be reached", broker.address());
    ns.reports::<Cell>(CELL, "Ready", "Unreachable", &[&lost], DEPLOYED).await?;
    let kept = ns.api::<ExternalCompute>().get(&host.name).await?;
    assert!(holds(kept.conditions(), "Ready"), "a compute with nothing to deploy stays Ready");

    configure(&ns, &host, "[DEFAULT]\nmax_concurrent_builds = 8\n").await?;
    let (cell, address) = (format!("NovaCell {CELL} is not Ready"), broker.address());
    let words = [cell.as_str(), address.as_str()];
    let waits = |it: &ExternalCompute| {
        ["Ready", "NovaCellReady"]
            .iter()
            .all(|type_| says(it.conditions(), type_, "NovaCellNotReady", &words))
    };
    ns.wait::<ExternalCompute>(&host.name, "waiting for its cell", DEPLOYED, waits).await?;
    broker.listen().await?;
    settled(&ns, &host).await?;
    assert!(given(&host, "02-nova-override.conf")?.contains("max_concurrent_builds = 8"));
    ns.done().await
}

/// Returns the digest of the message bus that a compute was last deployed with.
fn credentials(compute: &ExternalCompute) -> Option<String> {
    let inputs = &compute.status.as_ref()?.deployed_inputs;
    inputs.get(&format!("Secret {BUS} transport_url")).cloned()
}

/// Waits until the cell reports how many of its computes use the current credentials.
async fn counts(ns: &Namespace, reason: &str, words: &str) -> Result<()> {
    ns.reports::<Cell>(CELL, "ComputesUpToDate", reason, &[words], DEPLOYED).await.map(drop)
}

async fn redeployed(ns: &Namespace, host: &Host, known: Option<String>) -> Result<()> {
    let is_new = |it: &ExternalCompute| credentials(it) != known && is_settled(it);
    ns.wait::<ExternalCompute>(&host.name, "deployed anew", DEPLOYED, is_new).await.map(drop)
}

#[tokio::test]
async fn rotated_credentials_reach_the_computes_of_the_cell_and_the_cell_counts_them() -> Result<()>
{
    let (ns, host) = World::with_host("rotated", "rotated", "192.0.2.111").await?;
    let untouched = ns.host_like(&host, "rotated-not", "192.0.2.124");
    let broker = computes::cell(&ns, ns.sim).await?;
    let _other = computes::cell_of(&ns, ns.sim, "nova-cell2", "nova-cell2-transport").await?;
    computes::deploy_in(&ns, &[(&host, CELL), (&untouched, "nova-cell2")]).await?;
    let visits = untouched.visits().len();
    counts(&ns, "UpToDate", "1/1 computes use the current credentials").await?;
    let known = credentials(&settled(&ns, &host).await?);
    assert!(known.is_some());

    host.hold("nova");
    rotate(&ns, &broker, "rotated").await?;
    let words = format!("0/1 computes use the current credentials. Not yet: {}", host.name);
    counts(&ns, "ComputesBehind", &words).await?;
    host.release();
    redeployed(&ns, &host, known.clone()).await?;
    counts(&ns, "UpToDate", "1/1 computes use the current credentials").await?;
    let line = format!("transport_url = {}", broker.transport_url());
    let shared = ns.api::<Secret>().get(&format!("{CELL}-compute-config")).await?;
    let shared = shared.data.unwrap_or_default().remove("01-nova.conf").unwrap_or_default();
    let on_host = given(&host, "01-nova.conf")?;
    for (place, text) in [("the host", on_host), ("the Secret", String::from_utf8(shared.0)?)] {
        assert!(text.lines().any(|it| it == line), "{place} has other credentials");
    }

    let rotated = credentials(&settled(&ns, &host).await?);
    rotate(&ns, &broker, "first").await?;
    redeployed(&ns, &host, rotated).await?;
    assert_eq!(credentials(&settled(&ns, &host).await?), known, "the first password again");
    counts(&ns, "UpToDate", "1/1 computes use the current credentials").await?;
    assert_eq!(untouched.visits().len(), visits, "another cell's compute was touched");
    ns.done().await
}
