//! A host with guests leaves nova, neutron and OVN, once its guests have left it.

use anyhow::{Result, ensure};
use api::conditions::Condition;
use api::dataplane::Node;
use api::nova::ExternalCompute;
use e2e::cells::CELL;
use e2e::demo::{DEPLOYMENT, Demo};
use e2e::guests::{Guest, HOSTS};
use e2e::{Namespace, says};
use kube::api::DeleteParams;

use crate::{COMPUTE, Stage, stage};

/// The guests of the demo and of other tests, which may be on the host too.
const OTHERS: [&str; 6] = ["guest-a", "guest-b", "t-b", "t-c", "t-honest", "t-pings"];

/// Has nova's database say that a server is on another host.
async fn claim(demo: &Demo, guest: &Guest, host: &str) -> Result<()> {
    let id = &guest.id;
    demo.sql(CELL, &format!("UPDATE instances SET host='{host}' WHERE uuid='{id}'")).await.map(drop)
}

/// Has nova say that a guest is elsewhere, and waits until the removal of its host's node is held by the
/// last look, which is on the host itself; nova is right again afterwards.
pub(crate) async fn is_seen_on_host(
    demo: &Demo,
    ns: &Namespace,
    guest: &Guest,
    host: &str,
) -> Result<()> {
    claim(demo, guest, "elsewhere").await?;
    let words = [guest.id.as_str()];
    let seen = ns.reports::<Node>(host, COMPUTE, "GuestsOnHost", &words, DEPLOYMENT).await;
    claim(demo, guest, host).await?;
    seen.map(drop)
}

#[tokio::test]
async fn a_host_leaves_when_its_guest_has_left_it_whatever_nova_says() -> Result<()> {
    let Stage { demo, _lock } = stage().await?;
    let [other, host] = HOSTS;
    demo.guest(&[&["delete"][..], &OTHERS].concat()).await?;
    let mut guest = Guest::on(&demo, "t-a", host).await?;
    let agents = demo.agents(host).await?;
    ensure!(agents.len() >= 2, "agents of {host}: {agents:?}");
    assert!(demo.chassis().await?.contains(host));

    demo.ns.api::<Node>().delete(host, &DeleteParams::background()).await?;
    let is_held = |it: &[Condition]| says(it, COMPUTE, "ServersOnHost", &["has 1 server"]);
    demo.node(host, "held by its guest", is_held).await?;
    is_seen_on_host(&demo, &demo.ns, &guest, host).await?;
    demo.on(host, "systemctl is-active edpm_nova_compute edpm_ovn_controller").await?;
    guest.lives(&demo).await?;
    demo.node(host, "held by its guest again", is_held).await?;

    guest.migrate(&demo, other).await?;
    demo.ns.gone::<Node>(host, DEPLOYMENT).await?;
    assert!(demo.ns.api::<ExternalCompute>().get_opt(host).await?.is_none());
    assert_eq!(demo.service(host).await?, None);
    assert_eq!(demo.provider(host).await?, None);
    assert!(demo.agents(host).await?.is_empty(), "agents of {host} are left");
    assert_eq!(demo.agents(other).await?, agents, "agents of the other host");
    let chassis = demo.chassis().await?;
    assert!(!chassis.contains(host) && chassis.contains(other), "{chassis:?}");
    guest.lives(&demo).await?;
    assert_eq!(guest.host(&demo).await?, other);
    Ok(())
}
