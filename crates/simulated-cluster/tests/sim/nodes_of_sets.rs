//! Each host of a node set has a node, which says what is known of it and goes with it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::dataplane::{Node, NodeSet, RunState};
use e2e::journey::{self, RUN, SSH_SECRET};
use e2e::plugin::edpm_in;
use e2e::{Namespace, SOON, holds, says};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams, PropagationPolicy, WatchEvent, WatchParams};
use serde_json::{Value, json};
use simulated_cluster::{Behaviour, Host};

use crate::deployment::{SET, deploy, done, node_set};
use crate::world::World;

/// The condition of a node set about its nodes.
const ACCEPTED: &str = "NodesAccepted";
/// What a quota counts nodes by.
const COUNTED: &str = "count/openstackdataplanenodes.dataplane.openstack.org";
/// The only service.
const SERVICE: &str = "one";

/// Creates the Secret for these hosts, which share one user key, and a node set of them.
async fn described(ns: &Namespace, hosts: &[&Host]) -> Result<()> {
    let first = hosts.first().context("no host")?;
    ns.secret(SSH_SECRET, &[("ssh-privatekey", &first.ssh_secret()[0].1)]).await?;
    node_set(ns, hosts, &[SERVICE]).await
}

/// Adds a host to the node set, or takes it out.
async fn with_entry(ns: &Namespace, host: &Host, is_there: bool) -> Result<()> {
    let entry =
        if is_there { json!({ "ansible": { "ansibleHost": host.address } }) } else { Value::Null };
    let change = json!({ "spec": { "nodes": { host.name.as_str(): entry } } });
    ns.merge::<NodeSet>(SET, change).await.map(drop)
}

fn is_of_set(node: &Node) -> bool {
    let status = node.status.as_ref();
    node.spec.node_set.as_deref() == Some(SET)
        && status.and_then(|it| it.group.as_deref()) == Some("NodeSet/compute")
}

/// Waits until the node says that its host is deployed with the present inputs.
async fn ready(ns: &Namespace, host: &Host) -> Result<Node> {
    let is_ready = |it: &Node| {
        is_of_set(it) && holds(it.conditions(), "Ready") && holds(it.conditions(), "UpToDate")
    };
    ns.wait::<Node>(&host.name, "ready and up to date", RUN, is_ready).await
}

/// Waits until the node says that nothing was deployed to its host.
async fn undeployed(ns: &Namespace, host: &Host) -> Result<Node> {
    let words = ["OpenStackDataPlaneDeployment", SET];
    let waits = |it: &Node| is_of_set(it) && says(it.conditions(), "Ready", "NotDeployed", &words);
    ns.wait::<Node>(&host.name, "not deployed", SOON, waits).await
}

/// Returns what the node records of each service: name, state, attempt, and digest of the last success.
fn recorded(node: &Node) -> Vec<(&str, RunState, i64, Option<&str>)> {
    let services = node.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default();
    services
        .iter()
        .map(|it| (it.name.as_str(), it.state, it.attempt, it.deployed_hash.as_deref()))
        .collect()
}

/// Returns the first six columns of what `kubectl get` prints for each host.
async fn listed(ns: &Namespace) -> Result<Vec<Vec<String>>> {
    let text = e2e::run("kubectl", &["get", "osdpnode", "--no-headers", "-n", &ns.name]).await?;
    let columns = |line: &str| line.split_whitespace().take(6).map(str::to_owned).collect();
    Ok(text.lines().map(columns).collect())
}

/// Returns the versions of all nodes.
async fn versions(ns: &Namespace) -> Result<BTreeMap<String, Option<String>>> {
    let nodes = ns.list::<Node>().await?;
    Ok(nodes.iter().map(|it| (it.name_any(), it.resource_version())).collect())
}

#[tokio::test]
async fn kubectl_lists_hosts_of_roles_and_node_sets_and_each_says_what_is_known_of_it() -> Result<()>
{
    let (ns, of_role) = World::with_host("nodes-of-sets", "e2e-of-role", "203.0.113.181").await?;
    let good = ns.host_like(&of_role, "e2e-of-set-0", "203.0.113.182");
    let bad = ns.host_like(&of_role, "e2e-of-set-1", "203.0.113.183");
    described(&ns, &[&good, &bad]).await?;
    for host in [&good, &bad] {
        undeployed(&ns, host).await?;
    }
    crate::journey::deploy(&ns, &[&of_role]).await?;
    journey::ready(&ns, &of_role.name).await?;

    bad.behave(SERVICE, Behaviour::failed("Nothing forbids it", "non-zero return code"));
    deploy(&ns, "first", json!({ "backoffLimit": 0 })).await?;
    let words = [SERVICE, "Nothing forbids it"];
    let failed = ns.reports::<Node>(&bad.name, "Ready", "TaskFailed", &words, RUN).await?;
    let service = failed.status.context("no status")?.services.into_iter().next();
    let service = service.context("no record of the service")?;
    assert_eq!((service.name.as_str(), service.state), (SERVICE, RunState::Failed));
    let message = service.message.unwrap_or_default();
    assert!(message.contains("Nothing forbids it"), "{message}");

    let status = ready(&ns, &good).await?.status.context("no status")?;
    let observed = status.observed_node_set.context("no node set")?;
    assert_eq!((&*observed.name, observed.key.as_deref()), (SET, Some(&*good.name)));
    assert_eq!((status.host_name.as_deref(), status.deployed), (Some(&*good.name), Some(true)));
    assert!(status.services.iter().all(|it| it.attempt == 1 && it.deployed_hash.is_some()));
    let services: Vec<_> = status.services.iter().map(|it| (&*it.name, it.state)).collect();
    assert_eq!(services, [(SERVICE, RunState::Succeeded)]);

    let expected = [
        [of_role.name.as_str(), "True", "Ready", "True", "Role/compute", "203.0.113.181:22"],
        [good.name.as_str(), "True", "Ready", "True", "NodeSet/compute", "203.0.113.182:22"],
        [bad.name.as_str(), "False", "TaskFailed", "False", "NodeSet/compute", "203.0.113.183:22"],
    ];
    assert_eq!(listed(&ns).await?, expected);
    let shown = edpm_in(&ns.name, &["status", "-o", "json"]).await?;
    let shown: Value = serde_json::from_str(&shown.out)?;
    let shown = shown["nodes"].as_array().context("a list of nodes")?;
    let shown: Vec<&str> = shown.iter().filter_map(|it| it["node"].as_str()).collect();
    assert_eq!(shown, [&of_role, &good, &bad].map(|it| it.name.as_str()));

    // A change of the node set makes no host unready.
    let vars = json!({ "ansible": { "ansibleVars": { "greeting": "again" } } });
    ns.merge::<NodeSet>(SET, json!({ "spec": { "nodeTemplate": vars } })).await?;
    let input = ["does not carry the present inputs"];
    let is_behind = |it: &Node| {
        says(it.conditions(), "UpToDate", "InputsChanged", &input)
            && holds(it.conditions(), "Ready")
    };
    ns.wait::<Node>(&good.name, "behind", SOON, is_behind).await?;
    bad.behave(SERVICE, Behaviour::Done);
    deploy(&ns, "second", json!({})).await?;
    done(&ns, "second").await?;
    for host in [&good, &bad] {
        ready(&ns, host).await?;
    }
    ns.done().await
}

#[tokio::test]
async fn nodes_follow_the_entries_and_one_that_is_deleted_is_made_anew_and_runs_nothing()
-> Result<()> {
    let (ns, stays) = World::with_host("nodes-of-entries", "e2e-entry-0", "203.0.113.184").await?;
    let moves = ns.host_like(&stays, "e2e-entry-1", "203.0.113.185");
    described(&ns, &[&stays, &moves]).await?;
    deploy(&ns, "first", json!({})).await?;
    for host in [&stays, &moves] {
        ready(&ns, host).await?;
    }

    // What the host is stands in the node set.
    let address = json!({ "spec": { "ansibleHost": "203.0.113.1" } });
    let refused = ns.merge::<Node>(&stays.name, address).await.map(drop).unwrap_err();
    let refused = format!("{refused:#}");
    assert!(refused.contains("described by its entry in spec.nodes"), "{refused}");

    let first = ns.api::<Node>().get(&stays.name).await?;
    ns.remove::<Node>(&stays.name).await?;
    let is_new = |it: &Node| it.uid() != first.uid() && is_of_set(it);
    ns.wait::<Node>(&stays.name, "made anew", SOON, is_new).await?;
    let anew = undeployed(&ns, &stays).await?;
    assert_eq!(recorded(&anew), [], "what was known of the host has gone with its node");

    with_entry(&ns, &moves, false).await?;
    ns.gone::<Node>(&moves.name, SOON).await?;
    with_entry(&ns, &moves, true).await?;
    let again = undeployed(&ns, &moves).await?;
    assert_eq!(recorded(&again), [], "it is a new host");
    deploy(&ns, "second", json!({})).await?;
    done(&ns, "second").await?;
    ready(&ns, &moves).await?;
    assert_eq!((stays.visits().len(), moves.visits().len()), (2, 2), "only deployments ran");

    // At rest nothing is written. A pass that begins after the result of an earlier one has seen all
    // of that one's writes.
    ready(&ns, &stays).await?;
    ns.good::<NodeSet>(SET, &["Ready", "UpToDate"], SOON).await?;
    inventory_comes_back(&ns).await?;
    let before = versions(&ns).await?;
    assert_eq!(before.len(), 2);
    for _ in 0..2 {
        inventory_comes_back(&ns).await?;
    }
    assert_eq!(versions(&ns).await?, before);
    ns.done().await
}

/// Returns how often the node was written until two passes of the node set changed nothing more.
async fn n_writes(
    ns: &Namespace,
    host: &Host,
    watch: &mut (impl Stream<Item = kube::Result<WatchEvent<Node>>> + Unpin),
) -> Result<usize> {
    for _ in 0..2 {
        inventory_comes_back(ns).await?;
    }
    let present = ns.api::<Node>().get(&host.name).await?.resource_version();
    let mut n_seen = 0;
    while let Some(event) = watch.try_next().await? {
        if let WatchEvent::Added(it) | WatchEvent::Modified(it) = event {
            n_seen += 1;
            if it.resource_version() == present {
                return Ok(n_seen);
            }
        }
    }
    anyhow::bail!("the watch ended")
}

#[tokio::test]
async fn a_node_is_written_when_its_host_is_described_begun_and_ended_and_not_in_between()
-> Result<()> {
    let (ns, host) = World::with_host("nodes-writes", "e2e-writes", "203.0.113.209").await?;
    // Without known hosts, so that the key of the host is learned with its first deployment.
    ns.secret(SSH_SECRET, &[("ssh-privatekey", &host.ssh_secret()[0].1)]).await?;
    let only = WatchParams::default().fields(&format!("metadata.name={}", host.name));
    let mut watch = ns.api::<Node>().watch(&only, "0").await?.boxed();
    node_set(&ns, &[&host], &["one", "two", "three"]).await?;
    undeployed(&ns, &host).await?;
    assert_eq!(n_writes(&ns, &host, &mut watch).await?, 2, "created, described");
    for name in ["first", "second"] {
        deploy(&ns, name, json!({})).await?;
        done(&ns, name).await?;
        ready(&ns, &host).await?;
        let n_written = n_writes(&ns, &host, &mut watch).await?;
        assert_eq!(n_written, 2, "{name}: begun, and ended, at first with its key");
    }
    ns.done().await
}

/// Deletes the inventory, which each pass of the node set's controller makes anew.
async fn inventory_comes_back(ns: &Namespace) -> Result<()> {
    let name = format!("dataplanenodeset-{SET}");
    let found = ns.wait::<Secret>(&name, "made", SOON, |_| true).await?;
    ns.remove::<Secret>(&name).await?;
    let is_new = |it: &Secret| it.uid() != found.uid();
    ns.wait::<Secret>(&name, "made anew", SOON, is_new).await.map(drop)
}

/// Creates a node that is younger than the node set: the host of that name is then the node set's.
async fn younger(ns: &Namespace, name: &str) -> Result<Node> {
    let set = ns.api::<NodeSet>().get(SET).await?;
    let spec = json!({ "ansibleHost": "203.0.113.188" });
    let node: Node = serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec }))?;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    // Times of creation are whole seconds, and of the same age the node would be the owner.
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    while ns.api::<Node>().create(&dry, &node).await?.creation_timestamp()
        <= set.creation_timestamp()
    {
        tick.tick().await;
    }
    ns.create::<Node>(name, spec).await
}

#[tokio::test]
async fn a_node_of_somebody_else_keeps_its_name_and_holds_the_host_of_that_name_alone() -> Result<()>
{
    let (ns, own) = World::with_host("nodes-foreign", "e2e-own", "203.0.113.186").await?;
    let other = ns.host_like(&own, "e2e-foreign", "203.0.113.187");
    described(&ns, &[&own]).await?;
    undeployed(&ns, &own).await?;
    let foreign = younger(&ns, &other.name).await?;
    with_entry(&ns, &other, true).await?;
    let node = format!("OpenStackDataPlaneNode {}", other.name);
    ns.reports::<NodeSet>(SET, ACCEPTED, "NodeNotOurs", &[node.as_str()], SOON).await?;
    deploy(&ns, "first", json!({})).await?;
    done(&ns, "first").await?;
    assert_eq!((own.visits().len(), other.visits().len()), (1, 0));
    let kept = ns.api::<Node>().get(&other.name).await?;
    assert_eq!((kept.uid(), kept.spec), (foreign.uid(), foreign.spec));

    ns.remove::<Node>(&other.name).await?;
    undeployed(&ns, &other).await?;
    let is_accepted = |it: &NodeSet| it.conditions().iter().all(|it| it.type_ != ACCEPTED);
    ns.wait::<NodeSet>(SET, "with all of its nodes", SOON, is_accepted).await?;
    assert_eq!(other.visits().len(), 0, "the node ran nothing");
    deploy(&ns, "second", json!({})).await?;
    done(&ns, "second").await?;
    ready(&ns, &other).await?;
    ns.done().await
}

#[tokio::test]
async fn a_node_that_a_quota_refuses_is_told_in_the_api_servers_words_and_holds_no_other()
-> Result<()> {
    let (ns, first) = World::with_host("nodes-quota", "e2e-quota-0", "203.0.113.203").await?;
    let second = ns.host_like(&first, "e2e-quota-1", "203.0.113.204");
    ns.limit(COUNTED, 1).await?;
    described(&ns, &[&first, &second]).await?;
    // Both nodes are asked for together, and either may be the one that there is room for.
    let made = ns.wait_any::<Node>(SOON, "a node", |_| true).await?;
    let is_first = made.name_any() == first.name;
    let (first, second) = if is_first { (first, second) } else { (second, first) };
    undeployed(&ns, &first).await?;
    let is_told = |it: &NodeSet| {
        let refused = it.conditions().iter().find(|it| it.type_ == ACCEPTED);
        refused.is_some_and(|it| it.message.contains("exceeded quota: "))
    };
    ns.wait::<NodeSet>(SET, "with the API server's words", SOON, is_told).await?;
    deploy(&ns, "first", json!({})).await?;
    done(&ns, "first").await?;
    assert_eq!((first.visits().len(), second.visits().len()), (1, 0));

    // It is tried again with the next change of the node set.
    ns.allow().await?;
    ns.annotate::<NodeSet>(SET, "example.org/note", "there is room").await?;
    undeployed(&ns, &second).await?;
    ns.done().await
}

#[tokio::test]
async fn a_mark_of_another_manager_is_taken_back_where_the_entry_stands() -> Result<()> {
    let (ns, host) = World::with_host("nodes-mark", "e2e-mark", "203.0.113.206").await?;
    described(&ns, &[&host]).await?;
    let before = undeployed(&ns, &host).await?;
    ns.merge::<Node>(&host.name, json!({ "spec": { "leaving": true } })).await?;
    let is_back = |it: &Node| it.spec.leaving == Some(false);
    let after = ns.wait::<Node>(&host.name, "without the mark", SOON, is_back).await?;
    assert_eq!(after.uid(), before.uid(), "it is no other node");
    ns.done().await
}

#[tokio::test]
async fn nodes_go_with_their_node_set_however_it_is_deleted() -> Result<()> {
    let (ns, host) = World::with_host("nodes-cascade", "e2e-cascade", "203.0.113.189").await?;
    described(&ns, &[&host]).await?;
    let spec = serde_json::to_value(ns.api::<NodeSet>().get(SET).await?.spec)?;
    for policy in
        [PropagationPolicy::Background, PropagationPolicy::Foreground, PropagationPolicy::Orphan]
    {
        let node = undeployed(&ns, &host).await?;
        ensure!(node.owner_references().is_empty(), "{:?}", node.owner_references());
        let mode = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        ns.api::<NodeSet>().delete(SET, &mode).await?;
        ns.gone::<NodeSet>(SET, SOON).await?;
        ns.gone::<Node>(&host.name, SOON).await?;
        ns.create::<NodeSet>(SET, spec.clone()).await?;
    }
    assert_eq!(host.visits().len(), 0, "nothing ran");
    ns.done().await
}
