//! Hosts with nova-compute, as far as the API and the player show it: a cell, a role, nodes, and
//! deployed computes.

use std::time::Duration;

use anyhow::{Context as _, Result};
use api::dataplane::{Node, Role, Service};
use api::nova::{Cell, ExternalCompute};
use e2e::journey::{ROLE, SERVICE, SSH_SECRET, role};
use e2e::{Namespace, holds};
use serde_json::{Value, json};
use simulated_cluster::{Broker, Host, Simulation};

/// Time limit for a deployment of a compute: three runs.
pub(crate) const DEPLOYED: Duration = Duration::from_mins(10);
/// The cell of these computes.
pub(crate) const CELL: &str = "nova-cell1";
/// The password of nova's user in each cell; a fake Keystone refuses it before it is admitted.
pub(crate) const PASSWORD: &str = "password of nova";
/// The Secret with its message bus.
pub(crate) const BUS: &str = "nova-cell1-transport";

/// Creates a cell with a broker of its own.
pub(crate) async fn cell(ns: &Namespace, sim: &Simulation) -> Result<Broker> {
    cell_of(ns, sim, CELL, BUS).await
}

/// The same for a cell of that name, whose message bus is in the Secret `bus`.
pub(crate) async fn cell_of(
    ns: &Namespace,
    sim: &Simulation,
    name: &str,
    bus: &str,
) -> Result<Broker> {
    let broker = Broker::start(name, "first", name).await?;
    cell_at(ns, sim, (name, bus), &broker, &[]).await?;
    Ok(broker)
}

/// The same with an existing broker, and further keys of the cell's Secret.
pub(crate) async fn cell_at(
    ns: &Namespace,
    sim: &Simulation,
    (name, bus): (&str, &str),
    broker: &Broker,
    more: &[(&str, &str)],
) -> Result<()> {
    ns.secret(name, &[&[("ServicePassword", PASSWORD)], more].concat()).await?;
    ns.secret(bus, &[("transport_url", &broker.transport_url())]).await?;
    let spec = json!({
        "cellName": name.trim_start_matches("nova-"), "secret": name,
        "cellMessageBusSecretName": bus, "keystoneAuthURL": sim.keystone.url(),
        "cellDatabaseHostname": "192.0.2.30", "conductorServiceTemplate": {},
        "noVNCProxyServiceTemplate": {}, "serviceAccount": "nova",
    });
    ns.create::<Cell>(name, spec).await.map(drop)
}

/// Deploys nova-compute to hosts that share a user key.
pub(crate) async fn deploy(ns: &Namespace, hosts: &[&Host]) -> Result<()> {
    let hosts: Vec<(&Host, &str)> = hosts.iter().map(|it| (*it, CELL)).collect();
    deploy_in(ns, &hosts).await
}

/// The same, each in its cell: those of the first one's inherit it from their role.
pub(crate) async fn deploy_in(ns: &Namespace, hosts: &[(&Host, &str)]) -> Result<()> {
    let (_, cell) = hosts.first().context("no host")?;
    let all: Vec<&Host> = hosts.iter().map(|(it, _)| *it).collect();
    admit(ns, &all, cell).await?;
    for (host, own) in hosts {
        join(ns, host, Some(*own).filter(|it| it != cell)).await?;
    }
    for (host, _) in hosts {
        settled(ns, host).await?;
    }
    Ok(())
}

/// Creates the Secret by which all these hosts are reached; they share a user key.
pub(crate) async fn access(ns: &Namespace, hosts: &[&Host]) -> Result<()> {
    let key = hosts.first().context("no host")?.ssh_secret()[0].1.clone();
    let known: String = hosts.iter().map(|it| it.ssh_secret()[1].1.clone()).collect();
    ns.secret(SSH_SECRET, &[("ssh-privatekey", &key), ("known_hosts", &known)]).await
}

/// Creates a role in a cell, with the Secret by which all these hosts are reached.
pub(crate) async fn admit(ns: &Namespace, hosts: &[&Host], cell: &str) -> Result<()> {
    access(ns, hosts).await?;
    let service = json!({ "playbookContents": "- hosts: all\n  tasks: []\n" });
    ns.create::<Service>(SERVICE, service).await?;
    ns.create_with::<Role>(ROLE, role(), in_cell(cell)).await.map(drop)
}

/// Adds a host to the role; `cell` is its own one, or `None` when it inherits that of the role.
pub(crate) async fn join(ns: &Namespace, host: &Host, cell: Option<&str>) -> Result<()> {
    let spec = json!({ "role": ROLE, "hostName": host.name, "ansibleHost": host.address });
    let metadata = cell.map_or_else(|| json!({}), in_cell);
    ns.create_with::<Node>(&host.name, spec, metadata).await.map(drop)
}

/// Returns the metadata of an object whose computes are in a cell.
pub(crate) fn in_cell(cell: &str) -> Value {
    json!({ "annotations": { "nova.openstack.org/cell": cell } })
}

/// Returns whether a compute is ready with its current inputs.
pub(crate) fn is_settled(it: &ExternalCompute) -> bool {
    let observed = it.status.as_ref().and_then(|it| it.observed_generation);
    observed == it.metadata.generation
        && holds(it.conditions(), "Ready")
        && holds(it.conditions(), "UpToDate")
}

/// Waits until the compute of a host is ready with its current inputs.
pub(crate) async fn settled(ns: &Namespace, host: &Host) -> Result<ExternalCompute> {
    ns.wait(&host.name, "ready and up to date", DEPLOYED, is_settled).await
}

/// Returns nova's services that were deployed to a host, in order.
pub(crate) fn of_nova(host: &Host) -> Vec<String> {
    let services = host.services().into_iter();
    services.filter(|it| it == "libvirt" || it.starts_with("nova")).collect()
}

/// Changes the options of a compute.
pub(crate) async fn configure(ns: &Namespace, host: &Host, options: &str) -> Result<()> {
    let change = json!({ "spec": { "customServiceConfig": options } });
    ns.merge::<ExternalCompute>(&host.name, change).await.map(drop)
}
