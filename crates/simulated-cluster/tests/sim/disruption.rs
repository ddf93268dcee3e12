//! Hosts in service that are deployed only once another operator allows it on their nodes; the test
//! writes there as the operator of a service does.

use anyhow::{Context as _, Result, ensure};
use api::dataplane::{Deployment, DisruptionTarget, HostState, Node};
use e2e::journey::{RUN, SSH_SECRET};
use e2e::{Namespace, says};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use simulated_cluster::{Behaviour, Host};

use crate::deployment::{deploy, done, node_set};
use crate::world::World;

/// The operator of a service that this project does not know: its conditions' prefix, which is its
/// field manager too.
const OPERATOR: &str = "example.org";

/// Writes the operator's entry on the node of a host, with the target that may disturb it.
async fn allow(ns: &Namespace, host: &Host, target: Option<&DisruptionTarget>) -> Result<()> {
    let mut entry = json!({ "name": OPERATOR, "holds": true });
    if let Some(DisruptionTarget { deployment, number }) = target {
        entry["allowed"] = json!({ "deployment": deployment, "number": number });
    }
    let status = json!({
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneNode",
        "status": { "disruption": { "holders": [entry] } },
    });
    let (manager, patch) = (PatchParams::apply(OPERATOR), Patch::Apply(&status));
    ns.api::<Node>().patch_status(&host.name, &manager, &patch).await?;
    Ok(())
}

fn state(node: &Node) -> Option<HostState> {
    Some(node.status.as_ref()?.deployment.as_ref()?.state)
}

/// Waits until the node says that the deployment waits to disturb its host, and returns the target.
async fn targeted(ns: &Namespace, host: &Host, uid: &str) -> Result<DisruptionTarget> {
    let is_it = |it: &Node| it.disruption_target().is_some_and(|it| it.deployment == uid);
    let node = ns.wait::<Node>(&host.name, "awaited", RUN, is_it).await?;
    node.disruption_target().cloned().context("no target")
}

/// Waits until a host is deployed and no deployment waits for it.
async fn is_free(ns: &Namespace, host: &Host, uid: &str) -> Result<()> {
    let is_it = |it: &Node| {
        let last = it.status.as_ref().and_then(|it| it.deployment.as_ref());
        let is_done = last.is_some_and(|it| it.uid == uid && it.state == HostState::Deployed);
        is_done && it.disruption_target().is_none()
    };
    ns.wait::<Node>(&host.name, "done", RUN, is_it).await.map(drop)
}

async fn untargeted(ns: &Namespace, hosts: &[&Host]) -> Result<()> {
    for host in hosts {
        let node = ns.api::<Node>().get(&host.name).await?;
        ensure!(node.disruption_target().is_none(), "{} is awaited too", host.name);
    }
    Ok(())
}

#[tokio::test]
async fn hosts_are_deployed_one_after_the_other_as_their_nodes_allow_it() -> Result<()> {
    let (ns, first) = World::with_host("disruption", "e2e-drain-0", "192.168.122.236").await?;
    let second = ns.host_like(&first, "e2e-drain-1", "192.168.122.237");
    let third = ns.host_like(&first, "e2e-drain-2", "192.168.122.238");
    let hosts = [&first, &second, &third];
    ns.secret(SSH_SECRET, &[("ssh-privatekey", &first.ssh_secret()[0].1)]).await?;
    node_set(&ns, &hosts, &["one"]).await?;
    deploy(&ns, "first", json!({})).await?;
    done(&ns, "first").await?;
    for host in hosts {
        // A host is in service once its node says so.
        let is_deployed = |it: &Node| state(it) == Some(HostState::Deployed);
        ns.wait::<Node>(&host.name, "in service", RUN, is_deployed).await?;
        allow(&ns, host, None).await?;
    }

    deploy(&ns, "second", json!({ "maxUnavailable": 1, "backoffLimit": 0 })).await?;
    let uid = ns.api::<Deployment>().get("second").await?.uid().context("no UID")?;
    let target = targeted(&ns, &first, &uid).await?;
    let words = [first.name.as_str(), OPERATOR];
    let waits = |it: &Deployment| says(it.conditions(), "Ready", "AwaitingDisruption", &words);
    ns.wait::<Deployment>("second", "waiting for the first host", RUN, waits).await?;
    untargeted(&ns, &[&second, &third]).await?;
    assert_eq!(first.visits().len(), 1, "nothing ran on it yet");
    // What was allowed to an earlier target allows nothing.
    let earlier = DisruptionTarget { number: target.number - 1, ..target.clone() };
    allow(&ns, &first, Some(&earlier)).await?;
    ns.wait::<Deployment>("second", "waiting for the first host", RUN, waits).await?;
    assert_eq!(first.visits().len(), 1, "nothing ran on it yet");

    // It is deployed, and the next one waits as long as it is unavailable.
    allow(&ns, &first, Some(&target)).await?;
    is_free(&ns, &first, &uid).await?;
    let variables = &first.visits()[1].files["/runner/env/extravars"];
    ensure!(variables.contains(r#""edpm_reboot_drained":true"#), "{variables}");
    let words = ["2 of 3 hosts wait for their turn"];
    ns.reports::<Deployment>("second", "Ready", "Requested", &words, RUN).await?;
    untargeted(&ns, &[&second, &third]).await?;
    assert_eq!(second.visits().len(), 1);

    // A failure stops it before the third host, whatever is allowed there.
    second.behave("one", Behaviour::failed("Nothing forbids it", "non-zero return code"));
    allow(&ns, &first, None).await?;
    let target = targeted(&ns, &second, &uid).await?;
    allow(&ns, &second, Some(&target)).await?;
    let words = [second.name.as_str(), "Nothing forbids it", "1 of 3 hosts were left as they are"];
    ns.reports::<Deployment>("second", "Ready", "BackoffLimitExceeded", &words, RUN).await?;
    assert_eq!(third.visits().len(), 1, "it was not begun with");

    // The correction goes to the host that failed, which is allowed anew for it.
    second.behave("one", Behaviour::Done);
    deploy(&ns, "third", json!({ "maxUnavailable": 1 })).await?;
    let uid = ns.api::<Deployment>().get("third").await?.uid().context("no UID")?;
    targeted(&ns, &second, &uid).await?;
    allow(&ns, &second, None).await?;
    for host in [&second, &first, &third] {
        let target = targeted(&ns, host, &uid).await?;
        allow(&ns, host, Some(&target)).await?;
        is_free(&ns, host, &uid).await?;
        allow(&ns, host, None).await?;
    }
    done(&ns, "third").await?;
    ns.done().await
}
