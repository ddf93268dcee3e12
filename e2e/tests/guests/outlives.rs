//! Guests outlive what is done to their host's containers and to the operators.

use anyhow::{Context as _, Result, ensure};
use api::nova::ExternalCompute;
use e2e::demo::{Demo, fresh};
use e2e::guests::{Guest, HOSTS};
use e2e::installation::Installation;
use e2e::{run, says};
use serde_json::json;

use crate::{Stage, stage};

/// Waits until libvirt answers.
const ANSWERS: &str = "timeout 120 sh -c 'until podman exec libvirt virsh -q list --name \
    >/dev/null 2>&1; do sleep 1; done'";
/// The containers of a host with guests.
const CONTAINERS: [&str; 4] = ["libvirt", "nova_compute", "ovn_controller", "ovn_metadata_agent"];

/// Returns start and number of the guest's process: a number may be given again, but not with the same
/// start.
async fn process(demo: &Demo, host: &str, guest: &Guest) -> Result<String> {
    let find = format!("pgrep -f '^/usr/bin/qemu-system-x86_64 .*uuid {}'", guest.id);
    let pid = demo.on(host, &find).await?.trim().to_owned();
    ensure!(pid.parse::<u32>().is_ok(), "one process: {pid:?}");
    demo.on(host, &format!("cut -d' ' -f1,22 /proc/{pid}/stat")).await
}

/// Removes the containers of a host, has `deploy` make them anew, and asserts that the guest on it has
/// gone on meanwhile.
pub(crate) async fn new_containers(
    demo: &Demo,
    host: &str,
    guest: &mut Guest,
    deploy: impl AsyncFnOnce() -> Result<()>,
) -> Result<()> {
    let begun = process(demo, host, guest).await?;
    let before = demo.containers(host).await?;
    demo.on(host, &format!("podman rm --force {}", CONTAINERS.join(" "))).await?;
    deploy().await?;
    let after = demo.containers(host).await?;
    let is_of = |name: &str, it: &str| it.starts_with(&format!("{name} "));
    for name in CONTAINERS {
        let [old, new] = [&before, &after].map(|it| it.lines().find(|it| is_of(name, it)));
        ensure!(old.is_some() && new.is_some() && old != new, "{name}: {before} {after}");
    }
    guest.lives(demo).await?;
    ensure!(process(demo, host, guest).await? == begun, "another process");
    Ok(())
}

#[tokio::test]
async fn a_guest_outlives_each_restart_of_libvirts_container() -> Result<()> {
    let Stage { demo, _lock } = stage().await?;
    let host = HOSTS[0];
    let mut guest = Guest::on(&demo, "t-a", host).await?;
    let begun = process(&demo, host, &guest).await?;
    // The unit restarts; the daemon dies; the role makes the container anew.
    let daemon = "kill -KILL $(pgrep -x libvirtd)";
    for stop in ["systemctl restart edpm_libvirt", daemon, "podman rm --force libvirt"] {
        demo.on(host, stop).await.context(stop)?;
        if stop.contains("rm") {
            demo.redeploy(host).await?;
        }
        demo.on(host, ANSWERS).await.context(stop)?;
        guest.lives(&demo).await.context(stop)?;
        ensure!(process(&demo, host, &guest).await? == begun, "{stop}: another process");
    }
    demo.settled_on(host).await
}

#[tokio::test]
async fn a_guest_outlives_new_containers_of_all_services() -> Result<()> {
    let Stage { demo, _lock } = stage().await?;
    let host = HOSTS[0];
    let mut guest = Guest::on(&demo, "t-a", host).await?;
    new_containers(&demo, host, &mut guest, async || redeploy_all(&demo, host).await).await?;
    // It is still connected: the other host's guest reaches it through the tunnel.
    let address = demo.guest(&["show", &guest.name]).await?["address"].clone();
    let address = address.as_str().context("it has an address")?;
    demo.guest(&["delete", "t-pings"]).await?;
    demo.guest(&["boot", "t-pings", HOSTS[1], "ping", address]).await?;
    let what = "replies of the guest";
    e2e::guests::until(what, e2e::demo::DEPLOYMENT, async || {
        let look = demo.guest(&["look", "t-pings"]).await?;
        ensure!(look["replies"]["last"].as_u64() > Some(10), "{look}");
        Ok(())
    })
    .await?;
    demo.guest(&["delete", "t-pings"]).await?;
    // The new agent serves guests, which wait for their metadata before they count.
    Guest::on(&demo, "t-c", host).await?;
    demo.guest(&["delete", "t-c"]).await.map(drop)
}

/// Has all services of a node and of its compute run once more.
async fn redeploy_all(demo: &Demo, host: &str) -> Result<()> {
    let computes = demo.ns.api::<ExternalCompute>();
    let before = computes.get(host).await?;
    demo.annotate(host, json!({ "dataplane.openstack.org/redeploy": fresh(&before) })).await?;
    let instance = |it: &ExternalCompute| it.status.as_ref()?.host_instance.clone();
    demo.compute(host, "deployed on the node's new instance", |it| {
        instance(it) != instance(&before) && e2e::holds(it.conditions(), "Ready")
    })
    .await?;
    demo.settled_on(host).await?;
    demo.annotate(host, json!({ "dataplane.openstack.org/redeploy": null })).await?;
    demo.settled_on(host).await
}

#[tokio::test]
async fn a_host_that_is_stopped_by_hand_keeps_its_guests() -> Result<()> {
    let Stage { demo, _lock } = stage().await?;
    let host = HOSTS[0];
    let mut guest = Guest::on(&demo, "t-a", host).await?;
    let begun = process(&demo, host, &guest).await?;
    demo.on(host, "systemctl stop edpm_nova_compute edpm_libvirt").await?;
    demo.compute(host, "reported as down", |it| {
        says(it.conditions(), "Ready", "ServiceDown", &["systemctl status edpm_nova_compute"])
    })
    .await?;
    ensure!(process(&demo, host, &guest).await? == begun, "another process");
    demo.on(host, "systemctl start edpm_libvirt edpm_nova_compute").await?;
    demo.settled_on(host).await?;
    ensure!(process(&demo, host, &guest).await? == begun, "another process");
    guest.lives(&demo).await
}

#[tokio::test]
async fn a_guest_and_its_hosts_notice_no_restart_and_no_rollout_of_the_operators() -> Result<()> {
    let Stage { demo, _lock } = stage().await?;
    let mut guest = Guest::on(&demo, "t-a", HOSTS[0]).await?;
    let release = Installation::existing(&demo.ns.client)?;
    let containers = async || -> Result<Vec<String>> {
        Ok(vec![demo.containers(HOSTS[0]).await?, demo.containers(HOSTS[1]).await?])
    };
    let before = containers().await?;
    let delete = ["-n", "edpm-system", "delete", "pods", "--all", "--wait"];
    run("kubectl", &delete).await?;
    release.at_work().await?;
    guest.lives(&demo).await?;
    // Another pod template of the same release: the test `upgrade` goes from one release to another.
    release.upgrade(&["logLevel=debug"]).await?;
    release.at_work().await?;
    guest.lives(&demo).await?;
    release.upgrade(&[]).await?;
    release.at_work().await?;
    guest.lives(&demo).await?;
    demo.settled_on(HOSTS[0]).await?;
    assert_eq!(containers().await?, before, "containers of both hosts");
    assert_eq!(guest.host(&demo).await?, HOSTS[0]);
    Ok(())
}
