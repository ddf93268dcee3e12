//! Audits of the hosts of a role: one run for all, a repair of what differs, also of services of
//! phase 0, and none beside a deployment.

use std::time::Duration;

use anyhow::{Context as _, Result};
use api::ansibleee::AnsibleEe;
use api::conditions::find;
use api::dataplane::{Node, Role, Service};
use api::nova::ExternalCompute;
use e2e::journey::{ROLE, SERVICE};
use kube::ResourceExt as _;
use kube::runtime::wait::await_condition;
use kube::runtime::wait::conditions::is_deleted;
use serde_json::{Value, json};
use simulated_cluster::{Fate, Host, Matching};
use tokio::time::timeout;

use crate::computes::{DEPLOYED, cell, deploy, join, of_nova, settled};
use crate::world::World;

const IN_SYNC: &str = "nova.openstack.org/ConfigurationInSync";
const FILE: &str = "file /var/lib/openstack/config/nova/01-nova.conf: content";
const REQUESTED: &str = "nova.openstack.org/RedeployRequested";
const COMMAND: &str = "openstackdataplanenode/audit-4 dataplane.openstack.org/redeploy=";
const MOTD: &str = "file /etc/motd: content";
/// So long that none of the next interval is due while a test runs.
const INTERVAL: &str = "24h";
/// How long an audit may stand in the way of a run that deploys one of its hosts.
const YIELDS: Duration = Duration::from_secs(10);

/// How an audit ends that found this on these hosts.
fn found(n_hosts: usize, audit: &Value) -> Fate {
    let report = json!({ "audit": audit }).to_string();
    let message = json!({
        "v": 1, "hosts": "o".repeat(n_hosts), "changed": vec![0; n_hosts], "failures": [],
        "report": report,
    });
    Fate::Ends { code: 0, message: message.to_string() }
}

fn decide(world: &World, fate: Fate) {
    world.sim.player.decide(Matching::service(&world.ns.name, "nova-audit"), fate);
}

fn is_audit(run: &AnsibleEe) -> bool {
    run.labels().contains_key("nova.openstack.org/audit")
}

/// The hosts of each audit.
async fn audits(world: &World) -> Result<Vec<Vec<String>>> {
    let runs = world.list::<AnsibleEe>().await?.into_iter();
    let audits = runs.filter(is_audit);
    let hosts = |it: &AnsibleEe| it.spec.hosts.iter().map(|it| it.name.clone()).collect();
    Ok(audits.map(|it| hosts(&it)).collect())
}

#[tokio::test]
async fn hosts_share_an_audit_one_that_differs_is_repaired_and_a_deployment_ends_an_audit()
-> Result<()> {
    let world = World::new("audit").await?;
    let _broker = cell(&world.ns, world.sim).await?;
    let one = world.host("audit-1", "192.0.2.231");
    let two = world.host_like(&one, "audit-2", "192.0.2.232");
    let three = world.host_like(&one, "audit-3", "192.0.2.233");
    deploy(&world.ns, &[&one, &two]).await?;
    decide(&world, found(2, &json!({ "audit-1": [1, [FILE]] })));
    world.annotate::<Role>(ROLE, "nova.openstack.org/audit", INTERVAL).await?;
    let words = [FILE, "redeploy="];
    world.reports::<Node>(&one.name, IN_SYNC, "OutOfSync", &words, DEPLOYED).await?;
    world.good::<Node>(&two.name, &[IN_SYNC], DEPLOYED).await?;
    assert_eq!(audits(&world).await?, [["audit-1", "audit-2"]]);

    decide(&world, found(1, &json!({})));
    world.annotate::<Role>(ROLE, "nova.openstack.org/audit-repair", "true").await?;
    world.good::<Node>(&one.name, &[IN_SYNC], DEPLOYED).await?;
    let services = of_nova(&one);
    assert_eq!(services.iter().filter(|it| *it == "nova").count(), 2, "{services:?}");
    assert_eq!(of_nova(&two).iter().filter(|it| *it == "nova").count(), 1);

    decide(&world, Fate::Hangs);
    join(&world.ns, &three, None).await?;
    settled(&world.ns, &three).await?;
    let begun = |it: &AnsibleEe| {
        is_audit(it)
            && it.spec.hosts[0].name == "audit-3"
            && it.status.as_ref().is_some_and(|it| it.start_time.is_some())
    };
    let audit = world.wait_any::<AnsibleEe>(DEPLOYED, "an audit that has begun", begun).await?;
    decide(&world, found(1, &json!({})));
    let known: Vec<String> =
        world.list::<AnsibleEe>().await?.iter().map(AnsibleEe::name_any).collect();
    world.annotate::<ExternalCompute>(&three.name, "nova.openstack.org/redeploy", "1").await?;
    let deploys_it = |it: &AnsibleEe| {
        !is_audit(it) && it.spec.hosts[0].name == "audit-3" && !known.contains(&it.name_any())
    };
    world.wait_any::<AnsibleEe>(DEPLOYED, "a run of the deployment", deploys_it).await?;
    // The next audit of the host has the same name if it begins in the same minute.
    let (name, uid) = (audit.name_any(), audit.uid().unwrap_or_default());
    let goes = await_condition(world.api::<AnsibleEe>(), &name, is_deleted(&uid));
    timeout(YIELDS, goes).await.context("the audit stays in the way of the deployment")??;
    world.good::<Node>(&three.name, &[IN_SYNC], DEPLOYED).await?;
    assert_eq!(of_nova(&three).iter().filter(|it| *it == "nova").count(), 2);
    world.done().await
}

/// What was deployed to a host, in order.
fn deployed(host: &Host) -> Vec<String> {
    host.services().into_iter().filter(|it| it != "nova-audit").collect()
}

#[tokio::test]
async fn a_repair_beside_audited_services_deploys_those_of_the_node_and_then_the_compute_once()
-> Result<()> {
    let world = World::new("audit-phase-zero").await?;
    let _broker = cell(&world.ns, world.sim).await?;
    let host = world.host("audit-4", "192.0.2.234");
    deploy(&world.ns, &[&host]).await?;
    let audited = json!({ "spec": { "auditPlaybook": "example.site.motd_audit" } });
    world.merge::<Service>(SERVICE, audited).await?;
    decide(&world, found(1, &json!({ "audit-4": [1, [MOTD]] })));
    world.annotate::<Role>(ROLE, "nova.openstack.org/audit", INTERVAL).await?;
    let words = [MOTD, COMMAND];
    world.reports::<Node>(&host.name, IN_SYNC, "OutOfSync", &words, DEPLOYED).await?;

    decide(&world, found(1, &json!({})));
    world.annotate::<Role>(ROLE, "nova.openstack.org/audit-repair", "true").await?;
    world.good::<Node>(&host.name, &[IN_SYNC], DEPLOYED).await?;
    let once = [SERVICE, "libvirt", "nova", "nova-registered"];
    assert_eq!(deployed(&host), [once, once].concat());
    let is_served = |it: &Node| find(it.conditions(), REQUESTED).is_none();
    world.wait::<Node>(&host.name, "served", DEPLOYED, is_served).await?;
    settled(&world.ns, &host).await?;
    world.done().await
}
