//! What can go wrong between a run and its host: told on the node, and healed as promised.

use std::time::Duration;

use anyhow::{Context as _, Result};
use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::{Node, Service};
use e2e::journey::{self, SERVICE, SSH_SECRET, ready, told, trace};
use e2e::{Host, Namespace};
use kube::ResourceExt;
use serde_json::json;

const SOON: Duration = Duration::from_secs(15);

#[tokio::test]
async fn an_unreachable_host_is_tried_again_until_it_answers() -> Result<()> {
    let ns = Namespace::new("unreachable").await?;
    let mut host = Host::prepare(&ns.client, "e2e-unreachable", "192.168.122.160").await?;
    journey::ssh_secret(&ns, &host).await?;
    journey::deploy(&ns, &[&host]).await?;
    let words = [host.address.as_str(), "tried again by itself"];
    told(&ns, &host.name, "HostUnreachable", &words).await?;
    host.boot().await?;
    ready(&ns, &host.name).await?;
    assert_eq!(trace(&host).await?, ["hello"]);
    host.stop().await?;
    ns.done().await
}

#[tokio::test]
async fn a_refused_key_heals_as_soon_as_the_secret_is_corrected() -> Result<()> {
    let ns = Namespace::new("refused-key").await?;
    let host = Host::start(&ns.client, "e2e-refused-key", "192.168.122.161").await?;
    let known_hosts = &host.ssh_secret()?[1].1;
    let wrong = host.refused_key()?;
    ns.secret(SSH_SECRET, &[("ssh-privatekey", &wrong), ("known_hosts", known_hosts)]).await?;
    journey::deploy(&ns, &[&host]).await?;
    told(&ns, &host.name, "KeyRefused", &["refuses the ssh key", "ssh-privatekey"]).await?;
    journey::ssh_secret(&ns, &host).await?;
    ready(&ns, &host.name).await?;
    host.stop().await?;
    ns.done().await
}

#[tokio::test]
async fn a_changed_host_key_stops_the_run_until_it_is_accepted() -> Result<()> {
    let ns = Namespace::new("host-key").await?;
    let host = Host::start(&ns.client, "e2e-host-key", "192.168.122.162").await?;
    let key = &host.ssh_secret()?[0].1;
    let wrong = host.wrong_known_hosts()?;
    ns.secret(SSH_SECRET, &[("ssh-privatekey", key), ("known_hosts", &wrong)]).await?;
    journey::deploy(&ns, &[&host]).await?;
    told(&ns, &host.name, "HostKeyMismatch", &["host key", "known_hosts"]).await?;
    assert_eq!(trace(&host).await?, [""; 0]);
    journey::ssh_secret(&ns, &host).await?;
    ready(&ns, &host.name).await?;
    host.stop().await?;
    ns.done().await
}

#[tokio::test]
async fn a_failed_task_is_told_with_its_place_and_runs_again_on_request() -> Result<()> {
    let ns = Namespace::new("failed-task").await?;
    let host = Host::start(&ns.client, "e2e-failed-task", "192.168.122.163").await?;
    host.ssh("touch forbidden").await?;
    journey::ssh_secret(&ns, &host).await?;
    journey::deploy(&ns, &[&host]).await?;
    let words = ["task 'Nothing forbids it'", "playbook.yaml:", "dataplane.openstack.org/redeploy"];
    told(&ns, &host.name, "TaskFailed", &words).await?;
    host.ssh("rm forbidden").await?;
    let redeploy = json!({ "dataplane.openstack.org/redeploy": "1" });
    ns.merge::<Node>(&host.name, json!({ "metadata": { "annotations": redeploy } })).await?;
    ready(&ns, &host.name).await?;
    assert_eq!(trace(&host).await?, ["hello"]);
    host.stop().await?;
    ns.done().await
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_named_and_replaced() -> Result<()> {
    let ns = Namespace::new("image").await?;
    let host = Host::start(&ns.client, "e2e-image", "192.168.122.164").await?;
    journey::ssh_secret(&ns, &host).await?;
    journey::deploy(&ns, &[&host]).await?;
    ready(&ns, &host.name).await?;
    let runs = ns.list::<AnsibleEe>().await?;
    let image = "192.168.120.1:5000/edpm/no-such-image:1";
    let spec = json!({ "openStackAnsibleEERunnerImage": image, "edpmServiceType": "other" });
    ns.merge::<Service>(SERVICE, json!({ "spec": spec })).await?;
    told(&ns, &host.name, "ImagePullFailed", &["no-such-image"]).await?;
    ns.merge::<Service>(SERVICE, json!({ "spec": { "openStackAnsibleEERunnerImage": null } }))
        .await?;
    ready(&ns, &host.name).await?;
    assert_eq!(trace(&host).await?, ["hello", "hello"]);
    let superseded = runs.first().context("no run")?;
    ns.gone::<AnsibleEe>(&superseded.name_any(), SOON).await?;
    host.stop().await?;
    ns.done().await
}
