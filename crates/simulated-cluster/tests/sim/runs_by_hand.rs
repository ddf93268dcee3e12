//! Runs created by a user: one after the other on one host, and one on more hosts than a message
//! can name.

use anyhow::Result;
use api::ansibleee::{AnsibleEe, HostOutcome};
use e2e::{Namespace, SOON};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use simulated_cluster::Behaviour;

use crate::world::World;

const PLAYBOOK: &str = "- hosts: all\n  tasks: []\n";

/// Creates a run on one host.
fn run(host: &str, address: &str) -> Value {
    let inventory = json!({ "all": { "hosts": { host: { "ansible_connection": "local" } } } });
    json!({
        "playbookContents": PLAYBOOK,
        "inventory": inventory.to_string(),
        "backoffLimit": 0,
        "hosts": [{ "name": host, "address": format!("{address}:22") }],
    })
}

/// Waits until the run's `Ready` has that reason and words.
async fn told(ns: &Namespace, run: &str, reason: &str, words: &[&str]) -> Result<AnsibleEe> {
    ns.reports::<AnsibleEe>(run, "Ready", reason, words, SOON).await
}

/// Returns when a run began and when it ended.
fn times(run: &AnsibleEe) -> [Option<Timestamp>; 2] {
    let status = run.status.as_ref();
    let begun = status.and_then(|it| it.start_time.as_ref());
    let ended = status.and_then(|it| it.completion_time.as_ref());
    [begun, ended].map(|it| it.map(|it| it.0))
}

#[tokio::test]
async fn a_run_waits_for_the_one_before_it_on_the_same_host() -> Result<()> {
    let ns = World::new("by-hand-order").await?;
    let (name, address) = ("order-a", "192.0.2.125");
    let host = ns.host(name, address);
    host.hold("");
    ns.create::<AnsibleEe>("first", run(name, address)).await?;
    // Two runs created in the same second would be ordered by their UIDs.
    told(&ns, "first", "Requested", &[]).await?;
    ns.create::<AnsibleEe>("second", run(name, address)).await?;
    told(&ns, "second", "Queued", &["first (host order-a, 192.0.2.125:22)"]).await?;
    host.release();
    let first = told(&ns, "first", "Ready", &[]).await?;
    let second = told(&ns, "second", "Ready", &[]).await?;
    assert!(times(&second)[0] >= times(&first)[1], "{:?} {:?}", times(&first), times(&second));
    let runs: Vec<String> = host.visits().into_iter().map(|it| it.run).collect();
    assert_eq!(runs, ["first", "second"]);
    ns.done().await
}

#[tokio::test]
async fn two_spellings_of_an_address_are_one_host_and_a_foreign_run_that_waits_holds_nobody()
-> Result<()> {
    let ns = World::new("by-hand-spellings").await?;
    let other = World::new("by-hand-foreign").await?;
    let (address, free) = ("192.0.2.126", "192.0.2.127");
    let spelling = "[::FFFF:192.0.2.126]";
    let host = ns.host("spelled-a", address);
    ns.host("spelled-a", spelling);
    ns.host("free-b", free);
    host.hold("");
    ns.create::<AnsibleEe>("first", run("spelled-a", address)).await?;
    told(&ns, "first", "Requested", &[]).await?;
    let mut wide = run("spelled-a", spelling);
    let local = json!({ "ansible_connection": "local" });
    let inventory = json!({ "all": { "hosts": { "spelled-a": local, "free-b": local } } });
    wide["inventory"] = json!(inventory.to_string());
    let hosts = wide["hosts"].as_array_mut().expect("it has a list");
    hosts.push(json!({ "name": "free-b", "address": format!("{free}:22") }));
    ns.create::<AnsibleEe>("wide", wide).await?;
    told(&ns, "wide", "Queued", &[&format!("first (host spelled-a, {spelling}:22)")]).await?;
    // It only waits, so it blocks nothing in another namespace.
    other.create::<AnsibleEe>("past", run("free-b", free)).await?;
    told(&other, "past", "Ready", &[]).await?;
    other.create::<AnsibleEe>("stopped", run("spelled-a", address)).await?;
    let words = "Waits for a run in another namespace (host spelled-a, 192.0.2.126:22)";
    let stopped = told(&other, "stopped", "Queued", &[words]).await?;
    let text = serde_json::to_string(&stopped.status)?;
    assert!(!text.contains("first") && !text.contains(&ns.name), "{text}");
    host.release();
    let mut runs = vec![
        times(&told(&ns, "first", "Ready", &[]).await?),
        times(&told(&ns, "wide", "Ready", &[]).await?),
        times(&told(&other, "stopped", "Ready", &[]).await?),
    ];
    runs.sort_unstable();
    assert!(runs.windows(2).all(|it| it[1][0] >= it[0][1]), "{runs:?}");
    other.done().await?;
    ns.done().await
}

#[tokio::test]
async fn five_hundred_hosts_that_fail_are_all_counted_and_some_are_told() -> Result<()> {
    let ns = World::new("by-hand-many").await?;
    let names: Vec<String> = (0..500).map(|n| format!("compute-{n:03}.rack.example.org")).collect();
    let mut hosts = Map::new();
    for name in &names {
        hosts.insert(name.clone(), json!({ "ansible_connection": "local" }));
        let host = ns.host(name, name);
        host.behave("", Behaviour::failed("Set the limits", &"no space left on device ".repeat(9)));
    }
    let spec = json!({
        "playbookContents": PLAYBOOK,
        "inventory": json!({ "all": { "hosts": hosts } }).to_string(),
        "backoffLimit": 0,
        "hosts": names.iter().map(|it| json!({ "name": it, "address": format!("{it}:22") }))
            .collect::<Vec<_>>(),
    });
    ns.create::<AnsibleEe>("many", spec).await?;
    let run = told(&ns, "many", "TaskFailed", &["Set the limits"]).await?;
    let status = run.status.unwrap_or_default();
    let n_failed = status.hosts.iter().filter(|it| it.result == HostOutcome::Failed).count();
    assert_eq!((status.hosts.len(), n_failed), (500, 500));
    assert!(!status.failures.is_empty(), "one failure at least is told with its words");
    ns.done().await
}
