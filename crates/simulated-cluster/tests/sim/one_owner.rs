//! Several nodes at one address: one of them owns the host, and the others change nothing on it.

use anyhow::{Result, ensure};
use api::conditions::find;
use api::dataplane::Node;
use e2e::journey::{node, ready};
use e2e::{SOON, eventually};
use serde_json::json;

use crate::journey::{deploy, deploy_to, ssh_secret, trace};
use crate::world::World;

#[tokio::test]
async fn a_second_node_at_an_address_waits_and_goes_without_a_trace_on_the_host() -> Result<()> {
    let (ns, host) = World::with_host("one-owner", "e2e-first", "192.168.122.230").await?;
    deploy_to(&ns, &host).await?;
    ready(&ns, &host.name).await?;

    // Another spelling of the address.
    node(&ns, "e2e-second", "::ffff:192.168.122.230").await?;
    let words = ["OpenStackDataPlaneNode e2e-first", "address 192.168.122.230"];
    ns.reports::<Node>("e2e-second", "InputReady", "HostTaken", &words, SOON).await?;
    ns.removed::<Node>("e2e-second", SOON).await?;
    ready(&ns, &host.name).await?;
    assert_eq!(trace(&host), ["hello"]);
    ns.done().await
}

#[tokio::test]
async fn a_host_that_another_namespace_has_deployed_is_taken_and_its_owner_is_not_told()
-> Result<()> {
    let (first, host) = World::with_host("owner-theirs", "e2e-theirs", "192.168.122.231").await?;
    deploy_to(&first, &host).await?;
    ready(&first, &host.name).await?;

    let second = World::new("owner-mine").await?;
    ssh_secret(&second, &host).await?;
    deploy(&second, &[]).await?;
    node(&second, "e2e-mine", "192.168.122.231").await?;
    let refused =
        second.reports::<Node>("e2e-mine", "InputReady", "HostTaken", &["e2e-mine"], SOON).await?;
    let text = find(refused.conditions(), "InputReady").map(|it| it.message.as_str());
    let text = text.unwrap_or_default();
    assert!(!text.contains("theirs"), "{text}");
    assert_eq!(trace(&host), ["hello"]);

    // The previous owner releases it.
    first.removed::<Node>(&host.name, SOON).await?;
    ready(&second, "e2e-mine").await?;
    assert_eq!(trace(&host), ["hello", "hello"]);
    first.done().await?;
    second.done().await
}

/// Returns what kubectl prints for a node in a dry run: the object is accepted, and not created.
async fn told(ns: &World, name: &str, address: &str) -> Result<(bool, String)> {
    let node = json!({
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneNode",
        "metadata": { "name": name, "namespace": ns.name },
        "spec": { "ansibleHost": address },
    });
    ns.kubectl(&["create", "--dry-run=server", "-f", "-"], &node.to_string()).await
}

#[tokio::test]
async fn kubectl_is_warned_of_a_host_that_another_object_has_and_nothing_is_refused() -> Result<()>
{
    let ns = World::new("host-warning").await?;
    node(&ns, "e2e-has-it", "192.168.122.231").await?;
    let words = ["Warning: spec: Host e2e-wants-it", "OpenStackDataPlaneNode e2e-has-it", "older"];
    eventually("there is a warning", async || {
        let (is_accepted, said) = told(&ns, "e2e-wants-it", "::ffff:192.168.122.231").await?;
        ensure!(is_accepted, "{said}");
        Ok(words.iter().all(|it| said.contains(it)))
    })
    .await?;
    let (is_accepted, said) = told(&ns, "e2e-other", "192.168.122.232").await?;
    assert!(is_accepted && !said.contains("Warning"), "{said}");
    ns.done().await
}
