//! Plays for localhost, as in upstream's example of a service of one's own: they run in the runner,
//! and count for the hosts of their run.

use anyhow::{Context as _, Result};
use api::ansibleee::AnsibleEe;
use api::dataplane::{Deployment, NodeSet, Service};
use e2e::journey::{RUN, SSH_SECRET};
use e2e::{Namespace, says};
use kube::ResourceExt;
use serde_json::json;
use simulated_cluster::{Fate, Host, Matching};

use crate::deployment::{conditions, deploy, done};
use crate::world::World;

const PLAYBOOK: &str = "- hosts: localhost\n  gather_facts: no\n  tasks: [{command: sleep 1}]\n";

/// Creates a node set with two hosts and one service, whose plays are for localhost.
async fn node_set(ns: &Namespace, hosts: &[&Host], spec: serde_json::Value) -> Result<()> {
    let mut service = json!({ "playbookContents": PLAYBOOK });
    service
        .as_object_mut()
        .context("an object")?
        .extend(spec.as_object().cloned().context("an object")?);
    ns.create::<Service>("example", service).await?;
    let key = &hosts[0].ssh_secret()[0].1;
    ns.secret(SSH_SECRET, &[("ssh-privatekey", key)]).await?;
    let node = |it: &&Host| (it.name.clone(), json!({ "ansible": { "ansibleHost": it.address } }));
    let nodes: serde_json::Map<String, serde_json::Value> = hosts.iter().map(node).collect();
    let spec = json!({
        "preProvisioned": true, "tlsEnabled": false, "services": ["example"], "nodes": nodes,
        "nodeTemplate": {
            "ansibleSSHPrivateKeySecret": SSH_SECRET,
            "ansible": { "ansibleUser": "cloud-admin" },
        },
    });
    ns.create::<NodeSet>(crate::deployment::SET, spec).await.map(drop)
}

#[tokio::test]
async fn upstreams_example_of_a_service_runs_once_and_comes_to_no_host() -> Result<()> {
    for (name, spec, net) in [
        ("localhost", json!({}), "203.0.113.14"),
        ("localhost-all", json!({ "deployOnAllNodeSets": true }), "203.0.113.15"),
    ] {
        let (ns, first) = World::with_host(name, &format!("{name}-a"), &format!("{net}1")).await?;
        let second = ns.host_like(&first, &format!("{name}-b"), &format!("{net}2"));
        node_set(&ns, &[&first, &second], spec).await?;
        deploy(&ns, "edpm", json!({})).await?;
        assert_eq!(done(&ns, "edpm").await?.deployed, Some(true));
        let runs = ns.list::<AnsibleEe>().await?;
        let names: Vec<String> = runs.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(first.visits().is_empty() && second.visits().is_empty());
        ns.done().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_play_for_localhost_that_fails_fails_the_hosts_of_its_run_with_its_words() -> Result<()> {
    let (ns, host) =
        World::with_host("localhost-fails", "localhost-fails", "203.0.113.161").await?;
    let failure = json!({
        "host": "localhost", "play": "P", "task": "Fetch a token", "path": "/p.yml:3",
        "message": "no token",
    });
    let message = json!({ "v": 1, "hosts": "f", "changed": [0], "failures": [failure] });
    let fate = Fate::Ends { code: 2, message: message.to_string() };
    ns.sim.player.decide(Matching::all(&ns.name), fate);
    node_set(&ns, &[&host], json!({})).await?;
    deploy(&ns, "edpm", json!({ "backoffLimit": 0 })).await?;
    let words = [host.name.as_str(), "localhost, task 'Fetch a token'", "no token"];
    let is_over = |it: &Deployment| says(conditions(it), "Ready", "BackoffLimitExceeded", &words);
    ns.wait::<Deployment>("edpm", "failed", RUN, is_over).await?;
    ns.done().await
}
