//! Hosts of a node set that are drained before a deployment disturbs them, with an operator that is
//! killed meanwhile. The test writes the status of nodes as dataplane-operator does, which is stopped.

use anyhow::{Context as _, Result};
use api::dataplane::{DisruptionTarget, Node, NodeSet};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use simulated_cluster::{Host, NovaFault, Operator};

use super::node_set_removal::World;
use super::node_sets::{SET, reaches};
use super::{READ, SERVICES, disabled, is_given_back, replace};
use crate::own::{Own, PATIENCE};

const ROLLOUT: &str = "nova.openstack.org/drain: rollout";
const SERVICE: &str = "PUT /v2.1/os-services/";

async fn annotate(own: &Own, drain_before: &str) -> Result<()> {
    own.annotate::<NodeSet>(SET, "nova.openstack.org/drain-before", drain_before).await.map(drop)
}

/// Which target a host has, and how far the deployment is that is there, as dataplane-operator writes
/// it.
async fn is(own: &Own, host: &Host, state: &str, target: Option<(&str, i64)>) -> Result<()> {
    let node = own.api::<Node>().get(&host.name).await?;
    let status = node.status.context("no status")?;
    let recorded = status.deployment.context("no deployment")?;
    let begins = state == "Deploying";
    let (uid, attempt) = match &status.disruption.unwrap_or_default().target {
        Some(target) if begins => (target.deployment.clone(), recorded.attempt + 1),
        _ => (recorded.uid, recorded.attempt),
    };
    let given = target.map(|(uid, number)| json!({ "deployment": uid, "number": number }));
    let mut disruption = json!({ "target": given });
    if let Some((_, number)) = target {
        disruption["last"] = json!(number);
    }
    let status = json!({ "status": {
        "deployment": { "name": "written", "uid": uid, "state": state, "attempt": attempt },
        "disruption": disruption,
    } });
    let patch = Patch::Merge(&status);
    own.api::<Node>().patch_status(&host.name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Waits until nova-operator lets exactly this target disturb a host.
async fn allowed(own: &Own, host: &Host, target: Option<(&str, i64)>) -> Result<()> {
    let expected =
        target.map(|(uid, number)| DisruptionTarget { deployment: uid.to_owned(), number });
    let is_there = |it: &Node| {
        let holders = it.disruption_holders();
        holders.iter().any(|it| it.holds && it.allowed == expected)
    };
    let what = format!("a node that allows {target:?}");
    own.wait::<Node>(&host.name, &what, READ, is_there).await.map(drop)
}

/// Replaces the operator, and waits until the new one has read nova as often as a change needs.
async fn replace_at_rest(own: &Own) -> Result<()> {
    replace(own).await?;
    own.sim.nova.wait_for_requests(SERVICES, 3).await
}

async fn version(own: &Own, host: &Host) -> Result<String> {
    let node = own.api::<Node>().get(&host.name).await?;
    node.metadata.resource_version.context("it has a version")
}

#[tokio::test]
async fn a_host_may_be_disturbed_from_when_it_is_drained_until_it_is_enabled() -> Result<()> {
    let world = World::new("api-node-set-rollout").await?;
    let (own, nova, host) = (&world.own, &world.own.sim.nova, &world.host);
    annotate(own, "true").await?;
    allowed(own, host, None).await?;
    own.sim.operators.kill(Operator::DataPlane)?;

    // The answers to both writes are lost with the operator that has sent them.
    nova.boot("one", &host.name)?;
    nova.hold_migrations(true);
    nova.fail_next(SERVICE, 1, NovaFault::LostAnswer);
    is(own, host, "Deployed", Some(("d1", 1))).await?;
    nova.wait_for_total(SERVICE, 1, PATIENCE).await?;
    replace(own).await?;
    reaches(own, host, "Migrating", &["1 server and"]).await?;
    allowed(own, host, None).await?;
    assert_eq!(disabled(own, &host.name)?.as_deref(), Some(ROLLOUT));
    nova.finish_migrations();
    allowed(own, host, Some(("d1", 1))).await?;

    is(own, host, "Deploying", None).await?;
    replace_at_rest(own).await?;
    reaches(own, host, "Drained", &[]).await?;
    let before = version(own, host).await?;
    replace_at_rest(own).await?;
    assert_eq!(version(own, host).await?, before, "a restart changes nothing");

    nova.report(&host.name, false);
    is(own, host, "Deployed", None).await?;
    reaches(own, host, "WaitingForService", &[]).await?;
    allowed(own, host, Some(("d1", 1))).await?;
    nova.fail_next(SERVICE, 1, NovaFault::LostAnswer);
    nova.report(&host.name, true);
    nova.wait_for_total(SERVICE, 2, PATIENCE).await?;
    replace(own).await?;
    allowed(own, host, None).await?;
    is_given_back(own, &host.name).await?;
    assert_eq!(disabled(own, &host.name)?, None);
    assert_eq!(nova.count(SERVICE), 2, "disabled once and enabled once");

    fails(own, host).await?;
    own.sim.operators.start(Operator::DataPlane)?;
    world.own.done()
}

/// A deployment fails, and another one begins at once, because the host is still drained.
async fn fails(own: &Own, host: &Host) -> Result<()> {
    is(own, host, "Deployed", Some(("d2", 2))).await?;
    allowed(own, host, Some(("d2", 2))).await?;
    is(own, host, "Deploying", None).await?;
    is(own, host, "Failed", None).await?;
    allowed(own, host, None).await?;
    replace_at_rest(own).await?;
    assert_eq!(disabled(own, &host.name)?.as_deref(), Some(ROLLOUT));
    is(own, host, "Failed", Some(("d3", 3))).await?;
    allowed(own, host, Some(("d3", 3))).await?;

    annotate(own, "yes").await?;
    reaches(own, host, "DrainInvalid", &["is \"yes\", so nothing is deployed"]).await?;
    allowed(own, host, None).await?;
    assert_eq!(disabled(own, &host.name)?.as_deref(), Some(ROLLOUT), "nothing is enabled");
    annotate(own, "false").await?;
    let is_open = |it: &Node| it.disruption_holders().iter().all(|it| !it.holds);
    own.wait::<Node>(&host.name, "without restriction", READ, is_open).await?;
    is_given_back(own, &host.name).await?;
    assert_eq!(disabled(own, &host.name)?, None);
    Ok(())
}
