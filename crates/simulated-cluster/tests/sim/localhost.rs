//! Plays for localhost, as in upstream's example of a service of one's own: they run in the runner,
//! and count for the hosts of their run.

use anyhow::Result;
use api::ansibleee::AnsibleEe;
use api::dataplane::{Deployment, NodeSet, Service};
use e2e::Namespace;
use e2e::journey::{RUN, SSH_SECRET};
use kube::ResourceExt;
use serde_json::json;
use simulated_cluster::{Fate, Host, Matching};

use crate::deployment::{SET, deploy, done};
use crate::journey;
use crate::world::World;

const PLAYBOOK: &str = "- hosts: localhost\n  gather_facts: no\n  tasks: [{command: sleep 1}]\n";

/// Creates a node set with two hosts and one service, whose plays are for localhost.
async fn node_set(ns: &Namespace, hosts: &[&Host], is_for_all: bool) -> Result<()> {
    let service = json!({ "playbookContents": PLAYBOOK, "deployOnAllNodeSets": is_for_all });
    ns.create::<Service>("example", service).await?;
    let key = &hosts[0].ssh_secret()[0].1;
    ns.secret(SSH_SECRET, &[("ssh-privatekey", key)]).await?;
    ns.create::<NodeSet>(SET, journey::node_set(hosts, &["example"])).await.map(drop)
}

#[tokio::test]
async fn upstreams_example_of_a_service_runs_once_and_comes_to_no_host() -> Result<()> {
    for (name, is_for_all, net) in
        [("localhost", false, "203.0.113.14"), ("localhost-all", true, "203.0.113.15")]
    {
        let (ns, first) = World::with_host(name, &format!("{name}-a"), &format!("{net}1")).await?;
        let second = ns.host_like(&first, &format!("{name}-b"), &format!("{net}2"));
        node_set(&ns, &[&first, &second], is_for_all).await?;
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
    node_set(&ns, &[&host], false).await?;
    deploy(&ns, "edpm", json!({ "backoffLimit": 0 })).await?;
    let words = [host.name.as_str(), "localhost, task 'Fetch a token'", "no token"];
    ns.reports::<Deployment>("edpm", "Ready", "BackoffLimitExceeded", &words, RUN).await?;
    ns.done().await
}
