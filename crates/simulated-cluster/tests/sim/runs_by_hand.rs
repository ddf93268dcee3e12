//! Runs that a human makes, one after the other on one host.

use std::time::Duration;

use anyhow::Result;
use common::api::ansibleee::AnsibleEe;
use e2e::{Namespace, says};
use serde_json::{Value, json};

use crate::world::World;

const SOON: Duration = Duration::from_mins(1);
const PLAYBOOK: &str = "- hosts: all\n  tasks: []\n";

/// A run on one host.
fn run(host: &str, address: &str) -> Value {
    let inventory = json!({ "all": { "hosts": { host: { "ansible_connection": "local" } } } });
    json!({
        "playbookContents": PLAYBOOK,
        "inventory": inventory.to_string(),
        "backoffLimit": 0,
        "hosts": [{ "name": host, "address": format!("{address}:22") }],
    })
}

/// Waits until the run's Ready has that reason and words.
async fn told(ns: &Namespace, run: &str, reason: &str, words: &[&str]) -> Result<AnsibleEe> {
    let is_told = |it: &AnsibleEe| {
        let conditions = it.status.as_ref().map(|it| it.conditions.as_slice());
        says(conditions.unwrap_or_default(), "Ready", reason, words)
    };
    ns.wait::<AnsibleEe>(run, &format!("{reason} with {words:?}"), SOON, is_told).await
}

#[tokio::test]
async fn a_run_waits_for_the_one_before_it_on_the_same_host() -> Result<()> {
    let ns = World::new("by-hand-order").await?;
    let (name, address) = ("order-a", "192.0.2.125");
    let host = ns.host(name, address);
    host.hold("");
    ns.create::<AnsibleEe>("first", run(name, address)).await?;
    // Two of the same second would go by their UIDs.
    told(&ns, "first", "Requested", &[]).await?;
    ns.create::<AnsibleEe>("second", run(name, address)).await?;
    told(&ns, "second", "Queued", &["first (host order-a, 192.0.2.125:22)"]).await?;
    host.release();
    let first = told(&ns, "first", "Ready", &[]).await?;
    let second = told(&ns, "second", "Ready", &[]).await?;
    let times = |it: &AnsibleEe| {
        let status = it.status.clone().unwrap_or_default();
        (status.start_time.map(|it| it.0), status.completion_time.map(|it| it.0))
    };
    assert!(times(&second).0 >= times(&first).1, "{:?} {:?}", times(&first), times(&second));
    let runs: Vec<String> = host.visits().into_iter().map(|it| it.run).collect();
    assert_eq!(runs, ["first", "second"]);
    ns.done().await
}
