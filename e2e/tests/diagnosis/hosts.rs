//! What goes wrong between a run and its host: one real host, and addresses where nobody answers.

use anyhow::{Context as _, Result};
use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::{Node, Role, RunState, Service};
use e2e::faults::{Fault, hosts::FAULTS};
use e2e::journey::{self, ROLE, SSH_SECRET};
use e2e::{Host, Namespace, cells, diagnosis, holds};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

use crate::world::{CELL, PATIENCE, has_run, is_held, job_ends, of_node, pod_runs};

/// Where nobody answers; each of its own, for runs at one address wait for each other.
const NOBODY: &str = "192.168.123.201";
const GONE: &str = "192.168.123.202";
const UNASKED: &str = "192.168.123.203";

/// Works for minutes, in the runner pod itself.
const SLEEPER: &str = "- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.command: sleep 300
";

#[tokio::test]
async fn what_goes_wrong_on_a_host_is_told_on_its_node() -> Result<()> {
    let client = Namespace::new("fault-host").await?;
    let host = Host::start(&client.client, "e2e-fault-host", "192.168.122.196").await?;
    host.ssh("touch forbidden").await?;
    let before = async |ns: &Namespace, fault: &Fault| before(ns, fault, &host).await;
    diagnosis::judge(FAULTS, before, inject).await?;
    host.stop().await?;
    client.done().await
}

/// A role that is deployed, and its node that is not yet.
async fn before(ns: &Namespace, fault: &Fault, host: &Host) -> Result<()> {
    let [(_, key), (_, known)] = &host.ssh_secret()?[..] else { anyhow::bail!("another Secret") };
    let line = |address: &str| Ok::<_, anyhow::Error>(format!("{address} {}\n", host.host_key()?));
    let (address, key, known) = match fault.name {
        "host-unreachable" => (NOBODY, key.clone(), line(NOBODY)?),
        "host-not-cleaned" => (GONE, key.clone(), line(GONE)?),
        "run-deleted" => (UNASKED, key.clone(), line(UNASKED)?),
        "ssh-key-refused" => (host.address.as_str(), host.refused_key()?, known.clone()),
        "host-key-mismatch" => (host.address.as_str(), key.clone(), host.wrong_known_hosts()?),
        _ => (host.address.as_str(), key.clone(), known.clone()),
    };
    ns.secret(SSH_SECRET, &[("ssh-privatekey", &key), ("known_hosts", &known)]).await?;
    if fault.name == "run-deleted" {
        ns.create::<Service>("sleeper", json!({ "playbookContents": SLEEPER })).await?;
        let mut role = journey::role();
        role["services"] = json!(["sleeper"]);
        role["nodeTemplate"]["ansibleVars"] = json!({ "ansible_connection": "local" });
        ns.create::<Role>(ROLE, role).await?;
    } else {
        journey::deploy(ns, &[]).await?;
    }
    if fault.name == "host-not-cleaned" {
        cells::create_unusable(ns).await?;
    }
    node(ns, fault, address).await
}

async fn node(ns: &Namespace, fault: &Fault, address: &str) -> Result<()> {
    let spec = json!({
        "role": ROLE, "hostName": "n0", "ansibleHost": address,
        "deployStrategy": { "deploy": false },
    });
    let is_cleaned = fault.name == "host-not-cleaned";
    let annotations = if is_cleaned { json!({ CELL: cells::CELL }) } else { json!({}) };
    ns.create_with::<Node>("n0", spec, json!({ "annotations": annotations })).await?;
    let is_complete = |it: &Node| holds(of_node(it), "InputReady");
    ns.wait::<Node>("n0", "complete", PATIENCE, is_complete).await?;
    if is_cleaned {
        has_run(ns, "n0").await?;
        is_held(ns, cells::CELL).await?;
    }
    Ok(())
}

async fn inject(ns: &Namespace, fault: &Fault) -> Result<()> {
    if fault.name == "host-not-cleaned" {
        ns.api::<Node>().delete("n0", &DeleteParams::background()).await?;
        return job_ends(ns).await;
    }
    ns.merge::<Node>("n0", json!({ "spec": { "deployStrategy": { "deploy": true } } })).await?;
    if fault.name != "run-deleted" {
        return job_ends(ns).await;
    }
    pod_runs(ns).await?;
    let is_running = |it: &Node| {
        let services = it.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default();
        services.iter().any(|it| it.state == RunState::Running)
    };
    ns.wait::<Node>("n0", "being deployed", PATIENCE, is_running).await?;
    let runs = ns.list::<AnsibleEe>().await?;
    let run = runs.first().context("no run")?.name_any();
    ns.api::<AnsibleEe>().delete(&run, &DeleteParams::background()).await?;
    ns.gone::<AnsibleEe>(&run, PATIENCE).await
}
