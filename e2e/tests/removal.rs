//! Deletion of a compute: what the play does on a real host.
//!
//! The hosts have a unit with nova-compute's name that does nothing else. The test records in the
//! compute's status that it has run, as the operator does before a first run. The cell is the demo's,
//! whose nova has never had such a host.

use std::time::Duration;

use anyhow::Result;
use api::dataplane::Node;
use api::nova::{Cell, Leftover};
use e2e::cells::{self, CELL, gone};
use e2e::journey::{self, ready};
use e2e::{Host, Namespace, SOON};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

/// The timeout for the deletion of a compute whose host answers, on a busy machine.
const GOES: Duration = Duration::from_mins(10);
const UNIT: &str = "edpm_nova_compute.service";

/// A ready node whose host runs something under nova-compute's unit, with a compute that has run.
async fn world(test: &str, address: &str) -> Result<(Namespace, Host)> {
    let ns = Namespace::new(test).await?;
    let host = Host::start(&ns.client, &format!("e2e-{test}"), address).await?;
    journey::ssh_secret(&ns, &host).await?;
    journey::deploy(&ns, &[&host]).await?;
    ready(&ns, &host.name).await?;
    let unit = format!(
        "printf '[Service]\\nExecStart=/bin/sleep infinity\\nRestart=always\\n[Install]\\n\
         WantedBy=multi-user.target\\n' | sudo tee /etc/systemd/system/{UNIT} >/dev/null && \
         sudo systemctl daemon-reload && sudo systemctl enable --now {UNIT}"
    );
    host.ssh(&unit).await?;
    assert_eq!(states(&host).await?, "enabled active");
    // Only the play of the removal is to run.
    ns.merge::<Node>(&host.name, json!({ "spec": { "deployStrategy": { "deploy": false } } }))
        .await?;
    cells::create_secrets(&ns).await?;
    cells::create(&ns).await?;
    ns.annotate::<Node>(&host.name, "nova.openstack.org/cell", CELL).await?;
    has_run(&ns, &host.name).await?;
    Ok((ns, host))
}

/// Records that the node's compute has run, and waits until its clean-up can start.
async fn has_run(ns: &Namespace, name: &str) -> Result<()> {
    cells::wait_until_reachable(ns, name, SOON).await?;
    cells::record_run(ns, name).await?;
    ns.wait::<Cell>(CELL, "held", SOON, |it| it.finalizers().len() == 1).await?;
    let is_held_by_both = |it: &Node| it.finalizers().len() == 2;
    ns.wait::<Node>(name, "held by both operators", SOON, is_held_by_both).await.map(drop)
}

/// Whether the unit starts with the host, and whether it runs.
async fn states(host: &Host) -> Result<String> {
    let command = format!(
        "echo $(systemctl is-enabled {UNIT}) $(systemctl show --property=ActiveState --value {UNIT})"
    );
    Ok(host.ssh(&command).await?.trim().to_owned())
}

async fn delete(ns: &Namespace, node: &str) -> Result<()> {
    ns.api::<Node>().delete(node, &DeleteParams::background()).await?;
    Ok(())
}

/// Returns the leftovers that the cell records.
async fn leftovers(ns: &Namespace) -> Result<Vec<Leftover>> {
    let status = ns.api::<Cell>().get(CELL).await?.status;
    Ok(status.map(|it| it.leftovers).unwrap_or_default())
}

#[tokio::test]
async fn a_deleted_node_stops_nova_compute_on_its_host_and_leaves_nothing() -> Result<()> {
    let (ns, host) = world("removal", "192.168.122.180").await?;
    let [files, key, accepted] = [
        "/var/lib/openstack/config/nova",
        "/var/lib/nova/.ssh/ssh-privatekey",
        "/home/nova/.ssh/authorized_keys",
    ];
    let folders = format!("{files} /var/lib/nova/.ssh /home/nova/.ssh");
    let made =
        format!("sudo mkdir -p {folders} && sudo touch {files}/01-nova.conf {key} {accepted}");
    host.ssh(&made).await?;
    delete(&ns, &host.name).await?;
    gone(&ns, &host.name, GOES).await?;
    assert_eq!(states(&host).await?, "disabled inactive");
    for path in [files, key, accepted] {
        host.ssh(&format!("sudo test ! -e {path}")).await?;
    }
    assert_eq!(leftovers(&ns).await?, []);
    host.stop().await?;
    ns.done().await
}
