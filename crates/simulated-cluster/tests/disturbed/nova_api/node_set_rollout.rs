//! Hosts of a node set that are drained before a deployment disturbs them, with an operator that is
//! killed meanwhile. The test writes the node set's status as dataplane-operator does, which is
//! stopped.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use api::dataplane::{HostReadiness, NodeSet};
use e2e::journey::{SSH_SECRET, conditions_of_set as conditions};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use simulated_cluster::{NovaFault, Operator};

use super::node_set_removal::REPORT;
use super::node_sets::{DRAINED, SET, host, reaches};
use super::{READ, SERVICES, disabled, start};
use crate::computes::{self, CELL};
use crate::own::{Own, PATIENCE};

const HOST: &str = "compute-0.example.org";
const ROLLOUT: &str = "nova.openstack.org/drain: rollout";
const SERVICE: &str = "PUT /v2.1/os-services/";

async fn annotate(own: &Own, drain_before: &str) -> Result<()> {
    let annotations = json!({ "nova.openstack.org/drain-before": drain_before });
    let change = json!({ "metadata": { "annotations": annotations } });
    own.merge::<NodeSet>(SET, change).await.map(drop)
}

/// Creates a node set of two hosts of which nova has the first one's service.
async fn create(own: &Own) -> Result<()> {
    for host in [HOST, "elsewhere.example.org"] {
        own.sim.nova.register(host, CELL);
    }
    let spec = json!({
        "preProvisioned": true,
        "services": ["nova"],
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": SSH_SECRET },
        "nodes": {
            "compute-0": host("compute-0", "192.0.2.10"),
            "storage-0": host("storage-0", "192.0.2.11"),
        },
    });
    own.create::<NodeSet>(SET, spec).await?;
    annotate(own, "true").await
}

/// Writes how far both hosts are: their state, and the deployment that waits for them.
async fn hosts_are(own: &Own, state: &str, target: Option<&str>) -> Result<()> {
    let host = |name: &str| {
        let host = json!({ "name": name, "state": state, "hash": "01234567" });
        let mut host = host.as_object().cloned().unwrap_or_default();
        host.extend(target.map(|it| ("disruptionTarget".to_owned(), json!(it))));
        Value::from(host)
    };
    // A deployment of all services has succeeded on both.
    let (hosts, hash) = ([host("compute-0"), host("storage-0")], "0123456789");
    let services = json!({ "services": "d" });
    let set = own.api::<NodeSet>().get(SET).await?;
    let condition = |type_: &str| {
        json!({
            "type": type_, "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let written = ["InputReady", "SetupReady", "DeploymentReady"];
    let of_others = conditions(&set).iter().filter(|it| !written.contains(&&*it.type_));
    let of_others = of_others.map(|it| json!(it));
    let all: Vec<Value> = of_others.chain(written.map(condition)).collect();
    let status = json!({ "status": {
        "hosts": hosts, "deployedConfigHash": hash, "inputs": services, "deployedInputs": services,
        "observedGeneration": set.metadata.generation, "conditions": all,
    } });
    let patch = Patch::Merge(&status);
    own.api::<NodeSet>().patch_status(SET, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Waits until exactly these hosts may be disturbed, each by this deployment.
async fn allowed(own: &Own, hosts: &[(&str, &str)]) -> Result<()> {
    let text = |(host, uid): &(&str, &str)| ((*host).to_owned(), (*uid).to_owned());
    let expected: BTreeMap<String, String> = hosts.iter().map(text).collect();
    let is_there = |it: &HostReadiness| it.spec.disruption_allowed.as_ref() == Some(&expected);
    let what = format!("report with {hosts:?}");
    own.wait::<HostReadiness>(REPORT, &what, READ, is_there).await.map(drop)
}

async fn is_given_back(own: &Own) -> Result<()> {
    let is_quiet = |it: &NodeSet| conditions(it).iter().all(|it| it.type_ != DRAINED);
    own.wait::<NodeSet>(SET, "given back", READ, is_quiet).await?;
    assert_eq!(disabled(own, HOST)?, None);
    Ok(())
}

/// Replaces the operator.
async fn replace(own: &Own) -> Result<()> {
    own.replace(&[Operator::Nova]).await?;
    own.sim.nova.heal();
    Ok(())
}

/// Replaces the operator, and waits until the new one has read nova as often as a change needs.
async fn replace_at_rest(own: &Own) -> Result<()> {
    replace(own).await?;
    own.sim.nova.wait_for_requests(SERVICES, 3).await
}

async fn version(own: &Own) -> Result<String> {
    let report = own.api::<HostReadiness>().get(REPORT).await?;
    report.metadata.resource_version.context("it has a version")
}

#[tokio::test]
async fn a_host_may_be_disturbed_from_when_it_is_drained_until_it_is_enabled() -> Result<()> {
    let own = start("api-node-set-rollout").await?;
    let nova = &own.sim.nova;
    let _broker = computes::cell(&own, &own.sim).await?;
    create(&own).await?;
    allowed(&own, &[]).await?;
    own.sim.operators.kill(Operator::DataPlane)?;

    // The answers to both writes are lost with the operator that has sent them.
    nova.boot("one", HOST)?;
    nova.hold_migrations(true);
    nova.fail_next(SERVICE, 1, NovaFault::LostAnswer);
    hosts_are(&own, "Deployed", Some("d1")).await?;
    nova.wait_for_total(SERVICE, 1, PATIENCE).await?;
    replace(&own).await?;
    reaches(&own, "Migrating", &["0 of 1 hosts are drained; compute-0: "]).await?;
    allowed(&own, &[("storage-0", "d1")]).await?;
    assert_eq!(disabled(&own, HOST)?.as_deref(), Some(ROLLOUT));
    nova.finish_migrations();
    allowed(&own, &[("compute-0", "d1"), ("storage-0", "d1")]).await?;

    let before = version(&own).await?;
    hosts_are(&own, "Deploying", None).await?;
    replace_at_rest(&own).await?;
    reaches(&own, "Drained", &["1 of 1 hosts are drained: compute-0."]).await?;
    assert_eq!(version(&own).await?, before, "a restart changes nothing");

    nova.report(HOST, false);
    hosts_are(&own, "Deployed", None).await?;
    reaches(&own, "WaitingForService", &["compute-0: "]).await?;
    allowed(&own, &[("compute-0", "d1")]).await?;
    nova.fail_next(SERVICE, 1, NovaFault::LostAnswer);
    nova.report(HOST, true);
    nova.wait_for_total(SERVICE, 2, PATIENCE).await?;
    replace(&own).await?;
    allowed(&own, &[]).await?;
    is_given_back(&own).await?;
    assert_eq!(nova.count(SERVICE), 2, "disabled once and enabled once");

    fails(&own).await?;
    own.sim.operators.start(Operator::DataPlane)?;
    own.done()
}

/// A deployment fails, and another one begins at once, because the host is still drained.
async fn fails(own: &Own) -> Result<()> {
    hosts_are(own, "Deployed", Some("d2")).await?;
    allowed(own, &[("compute-0", "d2"), ("storage-0", "d2")]).await?;
    hosts_are(own, "Deploying", None).await?;
    hosts_are(own, "Failed", None).await?;
    allowed(own, &[]).await?;
    replace_at_rest(own).await?;
    assert_eq!(disabled(own, HOST)?.as_deref(), Some(ROLLOUT));
    hosts_are(own, "Failed", Some("d3")).await?;
    allowed(own, &[("compute-0", "d3"), ("storage-0", "d3")]).await?;

    annotate(own, "yes").await?;
    reaches(own, "DrainBeforeInvalid", &["is \"yes\", so nothing is deployed"]).await?;
    allowed(own, &[]).await?;
    assert_eq!(disabled(own, HOST)?.as_deref(), Some(ROLLOUT), "nothing is enabled");
    annotate(own, "false").await?;
    let is_open = |it: &HostReadiness| it.spec.disruption_allowed.is_none();
    own.wait::<HostReadiness>(REPORT, "without restriction", READ, is_open).await?;
    is_given_back(own).await
}
