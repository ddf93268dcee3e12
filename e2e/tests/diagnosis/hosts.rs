//! Faults between a run and its host: one real host, and addresses where nothing listens.

use anyhow::Result;
use api::dataplane::Node;
use e2e::diagnosis::{self, PATIENCE, job_ends};
use e2e::faults::{Fault, hosts::FAULTS};
use e2e::journey::{self, ROLE, SSH_SECRET};
use e2e::{Host, Namespace};
use serde_json::json;

/// An address without a host.
const NOBODY: &str = "192.168.123.201";

#[tokio::test]
async fn what_goes_wrong_on_a_host_is_told_on_its_node() -> Result<()> {
    let client = Namespace::new("fault-host").await?;
    let host = Host::start(&client.client, "e2e-fault-host", "192.168.122.196").await?;
    host.ssh("touch forbidden").await?;
    let before = async |ns: &Namespace, fault: &Fault| before(ns, fault, &host).await;
    diagnosis::judge(&FAULTS[..4], before, inject).await?;
    host.stop().await?;
    client.done().await
}

/// Creates a role with deployment enabled, and its node, not yet deployed.
async fn before(ns: &Namespace, fault: &Fault, host: &Host) -> Result<()> {
    let [(_, key), (_, known)] = &host.ssh_secret()?[..] else { anyhow::bail!("another Secret") };
    let line = |address: &str| Ok::<_, anyhow::Error>(format!("{address} {}\n", host.host_key()?));
    let (address, key, known) = match fault.name {
        "host-unreachable" => (NOBODY, key.clone(), line(NOBODY)?),
        "ssh-key-refused" => (host.address.as_str(), host.refused_key()?, known.clone()),
        "host-key-mismatch" => (host.address.as_str(), key.clone(), host.wrong_known_hosts()?),
        _ => (host.address.as_str(), key.clone(), known.clone()),
    };
    ns.secret(SSH_SECRET, &[("ssh-privatekey", &key), ("known_hosts", &known)]).await?;
    journey::deploy(ns, &[]).await?;
    let spec = json!({
        "role": ROLE, "hostName": "n0", "ansibleHost": address,
        "deployStrategy": { "deploy": false },
    });
    ns.create::<Node>("n0", spec).await?;
    ns.good::<Node>("n0", &["InputReady"], PATIENCE).await.map(drop)
}

async fn inject(ns: &Namespace, _: &Fault) -> Result<()> {
    ns.merge::<Node>("n0", json!({ "spec": { "deployStrategy": { "deploy": true } } })).await?;
    job_ends(ns).await
}
