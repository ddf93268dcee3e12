//! Hosts in service that are deployed only once a report about their node set lists them; the test
//! writes it as the operator of a service does.

use anyhow::{Context as _, Result, ensure};
use api::dataplane::{Deployment, HostReadiness, HostState, NodeSet, NodeSetHost};
use e2e::journey::{RUN, SSH_SECRET};
use e2e::{Namespace, says};
use kube::ResourceExt;
use serde_json::json;
use simulated_cluster::{Behaviour, Host};

use crate::deployment::{SET, conditions, deploy, done, n_done, node_set};
use crate::world::World;

const REPORT: &str = "compute-drain";

/// Changes entries of the report: each host with the deployment that may disturb it.
async fn report(ns: &Namespace, entries: &[(&Host, Option<&str>)]) -> Result<()> {
    let entry = |(host, uid): &(&Host, Option<&str>)| (host.name.clone(), json!(uid));
    let entries: serde_json::Map<_, _> = entries.iter().map(entry).collect();
    let change = json!({ "spec": { "disruptionAllowed": entries } });
    ns.merge::<HostReadiness>(REPORT, change).await?;
    Ok(())
}

fn entry<'a>(set: &'a NodeSet, host: &Host) -> Option<&'a NodeSetHost> {
    set.status.as_ref()?.hosts.iter().find(|it| it.name == host.name)
}

/// Waits until the node set says that the deployment waits to disturb the host, and no other one.
async fn targeted(ns: &Namespace, host: &Host, uid: &str) -> Result<()> {
    let is_it = |it: &NodeSet| {
        let hosts = it.status.iter().flat_map(|it| &it.hosts);
        let targets = hosts.filter_map(|it| Some((&it.name, it.disruption_target.as_deref()?)));
        targets.eq([(&host.name, uid)])
    };
    ns.wait::<NodeSet>(SET, &format!("waiting at {}", host.name), RUN, is_it).await?;
    Ok(())
}

#[tokio::test]
async fn hosts_are_deployed_one_after_the_other_as_a_report_lists_them() -> Result<()> {
    let ns = World::new("disruption").await?;
    let first = ns.host("e2e-drain-0", "192.168.122.236");
    let second = ns.host_like(&first, "e2e-drain-1", "192.168.122.237");
    let third = ns.host_like(&first, "e2e-drain-2", "192.168.122.238");
    ns.secret(SSH_SECRET, &[("ssh-privatekey", &first.ssh_secret()[0].1)]).await?;
    node_set(&ns, &[&first, &second, &third], &["one"]).await?;
    deploy(&ns, "first", json!({})).await?;
    done(&ns, "first").await?;
    // A host is in service once its node set says so.
    let are_deployed = |it: &NodeSet| {
        let mut hosts = it.status.iter().flat_map(|it| &it.hosts);
        hosts.all(|it| it.state == HostState::Deployed && it.hash.is_some())
    };
    ns.wait::<NodeSet>(SET, "in service", RUN, are_deployed).await?;
    let spec = json!({
        "nodeSet": SET, "conditionType": "example.org/Drained", "disruptionAllowed": {},
    });
    ns.create::<HostReadiness>(REPORT, spec).await?;

    deploy(&ns, "second", json!({ "maxUnavailable": 1, "backoffLimit": 0 })).await?;
    let uid = ns.api::<Deployment>().get("second").await?.uid().context("no UID")?;
    targeted(&ns, &first, &uid).await?;
    let words = [first.name.as_str(), REPORT, "example.org/Drained", "kubectl describe"];
    let waits = |it: &Deployment| says(conditions(it), "Ready", "AwaitingDisruption", &words);
    ns.wait::<Deployment>("second", "waiting for the first host", RUN, waits).await?;
    assert_eq!(first.visits().len(), 1, "nothing ran on it yet");

    // It is deployed, and the next one waits as long as it is listed.
    report(&ns, &[(&first, Some(&uid))]).await?;
    let words = ["2 of 3 hosts wait for their turn"];
    let is_there = |it: &Deployment| {
        let n_done = it.status.as_ref().and_then(|it| n_done(it, &first));
        n_done == Some(1) && says(conditions(it), "Ready", "Requested", &words)
    };
    ns.wait::<Deployment>("second", "at the second host", RUN, is_there).await?;
    let variables = &first.visits()[1].files["/runner/env/extravars"];
    ensure!(variables.contains(r#""edpm_reboot_drained":true"#), "{variables}");
    let is_free = |it: &NodeSet| {
        let here = entry(it, &first);
        here.is_some_and(|it| it.state == HostState::Deployed && it.disruption_target.is_none())
            && entry(it, &second).is_some_and(|it| it.disruption_target.is_none())
    };
    ns.wait::<NodeSet>(SET, "done with the first host", RUN, is_free).await?;
    assert_eq!(second.visits().len(), 1);

    // A failure stops it before the third host, whatever the report lists.
    second.behave("one", Behaviour::failed("Nothing forbids it", "non-zero return code"));
    report(&ns, &[(&first, None)]).await?;
    targeted(&ns, &second, &uid).await?;
    report(&ns, &[(&second, Some(&uid)), (&third, Some(&uid))]).await?;
    let words = [second.name.as_str(), "Nothing forbids it", "1 of 3 hosts were left as they are"];
    let is_over = |it: &Deployment| says(conditions(it), "Ready", "BackoffLimitExceeded", &words);
    ns.wait::<Deployment>("second", "given up", RUN, is_over).await?;
    assert_eq!(third.visits().len(), 1, "it was not begun with");

    // The correction goes to the host that failed, which is listed anew for it.
    second.behave("one", Behaviour::Done);
    deploy(&ns, "third", json!({ "maxUnavailable": 1 })).await?;
    let uid = ns.api::<Deployment>().get("third").await?.uid().context("no UID")?;
    targeted(&ns, &second, &uid).await?;
    report(&ns, &[(&second, None), (&third, None)]).await?;
    for host in [&second, &first, &third] {
        targeted(&ns, host, &uid).await?;
        report(&ns, &[(host, Some(&uid))]).await?;
        let is_done = |it: &NodeSet| {
            entry(it, host)
                .is_some_and(|it| it.state == HostState::Deployed && it.disruption_target.is_none())
        };
        ns.wait::<NodeSet>(SET, &format!("done with {}", host.name), RUN, is_done).await?;
        report(&ns, &[(host, None)]).await?;
    }
    done(&ns, "third").await?;
    ns.done().await
}
