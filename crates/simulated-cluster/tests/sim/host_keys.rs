//! Host keys that are not configured: learned at first contact, and from then on the only ones
//! accepted.

use anyhow::{Context as _, Result};
use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, Role};
use e2e::journey::{self, ROLE, SSH_SECRET, node_reports, ready};
use e2e::{Namespace, SOON};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use simulated_cluster::Host;

use crate::journey::trace;
use crate::world::World;

const ACCEPT: &str = "dataplane.openstack.org/accept-host-key";

/// Creates a Secret that gives access to the host and has no known hosts.
async fn unknown_hosts(ns: &Namespace, host: &Host) -> Result<()> {
    let content = host.ssh_secret();
    let (_, key) = content.iter().find(|it| it.0 == "ssh-privatekey").context("no key")?;
    ns.secret(SSH_SECRET, &[("ssh-privatekey", key)]).await
}

async fn accept(ns: &Namespace, host: &Host, fingerprint: &str) -> Result<()> {
    ns.annotate::<Node>(&host.name, ACCEPT, fingerprint).await.map(drop)
}

/// Changes an input, so that every host of the role is redeployed.
async fn greet(ns: &Namespace, greeting: &str) -> Result<()> {
    let vars = json!({ "ansibleVars": { "greeting": greeting } });
    ns.merge::<Role>(ROLE, json!({ "spec": { "nodeTemplate": vars } })).await.map(drop)
}

fn host_key(node: &Node) -> Option<&str> {
    node.status.as_ref()?.host_key.as_deref()
}

/// Waits until the role's inventory has exactly this line.
async fn known(ns: &Namespace, host: &Host, key: &str) -> Result<()> {
    let line = format!("{} {key}\n", host.address);
    let has_line =
        |it: &ConfigMap| it.data.as_ref().and_then(|it| it.get("known_hosts")) == Some(&line);
    let name = format!("dataplanerole-{ROLE}");
    ns.wait::<ConfigMap>(&name, "the host's key", SOON, has_line).await.map(drop)
}

#[tokio::test]
async fn a_key_is_learned_kept_refused_when_it_changes_and_replaced_when_it_is_accepted()
-> Result<()> {
    let (ns, host) = World::with_host("host-keys", "e2e-host-keys", "192.168.122.180").await?;
    unknown_hosts(&ns, &host).await?;
    crate::journey::deploy(&ns, &[&host]).await?;
    let learned = host.host_key();
    assert_eq!(host_key(&ready(&ns, &host.name).await?), Some(learned.as_str()));
    known(&ns, &host, &learned).await?;
    assert_eq!(trace(&host), ["hello"]);
    let is_asking = |it: &AnsibleEe| it.spec.hosts.iter().any(|it| it.scan_host_key.is_some());
    assert!(ns.list::<AnsibleEe>().await?.iter().all(is_asking), "the only run asks");

    // The next run relies on what was learned.
    greet(&ns, "again").await?;
    ready(&ns, &host.name).await?;
    assert_eq!(trace(&host), ["hello", "again"]);
    let runs = ns.list::<AnsibleEe>().await?;
    assert!(runs.iter().any(|it| !is_asking(it)), "a known key is not asked for");

    // Another host key: nothing runs there, and the command that accepts it is reported.
    host.rekey();
    let before = trace(&host).len();
    let since = || trace(&host).split_off(before);
    let fingerprint = host.fingerprint();
    greet(&ns, "changed").await?;
    let command = format!("openstackdataplanenode/{} {ACCEPT}={fingerprint}", host.name);
    node_reports(&ns, &host.name, "HostKeyMismatch", &["host key", &command]).await?;
    assert_eq!(since(), [""; 0], "nobody got in");
    assert_eq!(host_key(&ns.api::<Node>().get(&host.name).await?), Some(learned.as_str()));

    // A fingerprint that is not the host's changes nothing.
    let wrong = format!("SHA256:{}", "A".repeat(43));
    accept(&ns, &host, &wrong).await?;
    let is_tried = |it: &Node| {
        let services = it.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default();
        services.iter().any(|it| it.failures >= 2)
    };
    ns.wait::<Node>(&host.name, "refused again", journey::RUN, is_tried).await?;
    assert_eq!(since(), [""; 0]);
    assert_eq!(host_key(&ns.api::<Node>().get(&host.name).await?), Some(learned.as_str()));

    accept(&ns, &host, &fingerprint).await?;
    let node = ready(&ns, &host.name).await?;
    let present = host.host_key();
    assert_ne!(present, learned);
    assert_eq!(host_key(&node), Some(present.as_str()));
    known(&ns, &host, &present).await?;
    assert_eq!(since(), ["changed"]);
    ns.done().await
}

#[tokio::test]
async fn a_human_who_names_the_host_later_wins_and_nothing_runs_for_it() -> Result<()> {
    let (ns, host) = World::with_host("known-later", "e2e-known-later", "192.168.122.181").await?;
    unknown_hosts(&ns, &host).await?;
    crate::journey::deploy(&ns, &[&host]).await?;
    ready(&ns, &host.name).await?;
    crate::journey::ssh_secret(&ns, &host).await?;
    let is_given = |it: &Node| host_key(it).is_none();
    ns.wait::<Node>(&host.name, "no learned key", SOON, is_given).await?;
    let has_none =
        |it: &ConfigMap| it.data.iter().flatten().all(|(key, _)| key.as_str() != "known_hosts");
    ns.wait::<ConfigMap>(&format!("dataplanerole-{ROLE}"), "no key", SOON, has_none).await?;
    ready(&ns, &host.name).await?;
    assert_eq!(trace(&host), ["hello"]);
    ns.done().await
}

#[tokio::test]
async fn an_accepted_fingerprint_decides_at_first_contact() -> Result<()> {
    let (ns, host) = World::with_host("pinned-key", "e2e-pinned-key", "192.168.122.182").await?;
    unknown_hosts(&ns, &host).await?;
    crate::journey::deploy(&ns, &[]).await?;
    let spec = json!({ "role": ROLE, "hostName": host.name, "ansibleHost": host.address });
    let wrong = format!("SHA256:{}", "A".repeat(43));
    let metadata = json!({ "annotations": { ACCEPT: wrong } });
    ns.create_with::<Node>(&host.name, spec, metadata).await?;
    let fingerprint = host.fingerprint();
    node_reports(&ns, &host.name, "HostKeyMismatch", &[&format!("{ACCEPT}={fingerprint}")]).await?;
    assert_eq!(trace(&host), [""; 0]);
    accept(&ns, &host, &fingerprint).await?;
    let node = ready(&ns, &host.name).await?;
    assert_eq!(host_key(&node), Some(host.host_key().as_str()));
    assert_eq!(trace(&host), ["hello"]);
    ns.done().await
}
