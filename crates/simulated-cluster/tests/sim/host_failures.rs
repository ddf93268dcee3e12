//! What can go wrong between a run and its host: told on the node, and healed as promised.

use std::time::Duration;

use anyhow::{Context as _, Result};
use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::{Node, Service};
use e2e::journey::{SERVICE, SSH_SECRET, ready, told};
use kube::ResourceExt;
use serde_json::json;
use simulated_cluster::{Behaviour, Fate, Matching};

use crate::journey::{deploy, ssh_secret, trace};
use crate::world::World;

const SOON: Duration = Duration::from_mins(1);

#[tokio::test]
async fn an_unreachable_host_is_tried_again_until_it_answers() -> Result<()> {
    let world = World::new("unreachable").await?;
    let host = world.host("unreachable", "192.0.2.10");
    host.stop();
    ssh_secret(&world, &host).await?;
    deploy(&world, &[&host]).await?;
    let words = [host.address.as_str(), "tried again by itself"];
    told(&world, &host.name, "HostUnreachable", &words).await?;
    host.boot();
    ready(&world, &host.name).await?;
    assert_eq!(trace(&host), ["hello"]);
    world.done().await
}

#[tokio::test]
async fn a_refused_key_heals_as_soon_as_the_secret_is_corrected() -> Result<()> {
    let world = World::new("refused-key").await?;
    let host = world.host("refused-key", "192.0.2.11");
    let known_hosts = &host.ssh_secret()[1].1;
    world.secret(SSH_SECRET, &[("ssh-privatekey", "wrong"), ("known_hosts", known_hosts)]).await?;
    deploy(&world, &[&host]).await?;
    told(&world, &host.name, "KeyRefused", &["refuses the ssh key", "ssh-privatekey"]).await?;
    ssh_secret(&world, &host).await?;
    ready(&world, &host.name).await?;
    world.done().await
}

#[tokio::test]
async fn a_changed_host_key_stops_the_run_until_it_is_accepted() -> Result<()> {
    let world = World::new("host-key").await?;
    let host = world.host("host-key", "192.0.2.12");
    let (key, wrong) = (host.ssh_secret()[0].1.clone(), host.wrong_known_hosts());
    world.secret(SSH_SECRET, &[("ssh-privatekey", &key), ("known_hosts", &wrong)]).await?;
    deploy(&world, &[&host]).await?;
    told(&world, &host.name, "HostKeyMismatch", &["host key", "known_hosts"]).await?;
    assert_eq!(trace(&host), [""; 0]);
    ssh_secret(&world, &host).await?;
    ready(&world, &host.name).await?;
    world.done().await
}

#[tokio::test]
async fn a_failed_task_is_told_with_its_place_and_runs_again_on_request() -> Result<()> {
    let world = World::new("failed-task").await?;
    let host = world.host("failed-task", "192.0.2.13");
    host.behave(SERVICE, Behaviour::failed("Nothing forbids it", "non-zero return code"));
    ssh_secret(&world, &host).await?;
    deploy(&world, &[&host]).await?;
    let words = ["task 'Nothing forbids it'", "playbook.yaml:", "dataplane.openstack.org/redeploy"];
    told(&world, &host.name, "TaskFailed", &words).await?;
    host.behave(SERVICE, Behaviour::Done);
    let redeploy = json!({ "dataplane.openstack.org/redeploy": "1" });
    world.merge::<Node>(&host.name, json!({ "metadata": { "annotations": redeploy } })).await?;
    ready(&world, &host.name).await?;
    assert_eq!(trace(&host), ["hello"]);
    world.done().await
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_named_and_replaced() -> Result<()> {
    let world = World::new("image").await?;
    let host = world.host("image", "192.0.2.14");
    ssh_secret(&world, &host).await?;
    deploy(&world, &[&host]).await?;
    ready(&world, &host.name).await?;
    let runs = world.list::<AnsibleEe>().await?;
    let image = "registry.example.org/no-such-image:1";
    let words = format!("failed to resolve image: {image}: not found");
    let pulled = Matching::image(&world.name, image);
    world.sim.player.decide(pulled, Fate::ImagePull(words));
    let spec = json!({ "openStackAnsibleEERunnerImage": image, "edpmServiceType": "other" });
    world.merge::<Service>(SERVICE, json!({ "spec": spec })).await?;
    told(&world, &host.name, "ImagePullFailed", &["no-such-image"]).await?;
    world
        .merge::<Service>(SERVICE, json!({ "spec": { "openStackAnsibleEERunnerImage": null } }))
        .await?;
    ready(&world, &host.name).await?;
    assert_eq!(trace(&host), ["hello", "hello"]);
    let superseded = runs.first().context("no run")?;
    world.gone::<AnsibleEe>(&superseded.name_any(), SOON).await?;
    world.done().await
}
