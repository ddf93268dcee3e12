//! Failures between a run and its host: reported on the node, and recovered from as documented.

use anyhow::{Context as _, Result};
use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, Service};
use e2e::journey::{RUN, SERVICE, SSH_SECRET, node_reports, ready};
use e2e::{SOON, says};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use simulated_cluster::{Behaviour, Fate, Matching, PRIVATE_KEY};

use crate::journey::{deploy, deploy_to, ssh_secret, trace};
use crate::world::World;

#[tokio::test]
async fn an_unreachable_host_is_tried_again_until_it_answers() -> Result<()> {
    let (world, host) = World::with_host("unreachable", "unreachable", "192.0.2.10").await?;
    host.stop();
    deploy_to(&world, &host).await?;
    let words = [host.address.as_str(), "retried automatically"];
    node_reports(&world, &host.name, "HostUnreachable", &words).await?;
    host.boot();
    ready(&world, &host.name).await?;
    assert_eq!(trace(&host), ["hello"]);
    world.done().await
}

#[tokio::test]
async fn a_refused_key_heals_as_soon_as_the_secret_is_corrected() -> Result<()> {
    let (world, host) = World::with_host("refused-key", "refused-key", "192.0.2.11").await?;
    let known_hosts = &host.ssh_secret()[1].1;
    world
        .secret(SSH_SECRET, &[("ssh-privatekey", PRIVATE_KEY), ("known_hosts", known_hosts)])
        .await?;
    deploy(&world, &[&host]).await?;
    node_reports(&world, &host.name, "KeyRefused", &["refuses the ssh key", "ssh-privatekey"])
        .await?;
    ssh_secret(&world, &host).await?;
    ready(&world, &host.name).await?;
    world.done().await
}

#[tokio::test]
async fn a_changed_host_key_stops_the_run_until_it_is_accepted() -> Result<()> {
    let (world, host) = World::with_host("host-key", "host-key", "192.0.2.12").await?;
    let (key, wrong) = (host.ssh_secret()[0].1.clone(), host.wrong_known_hosts());
    world.secret(SSH_SECRET, &[("ssh-privatekey", &key), ("known_hosts", &wrong)]).await?;
    deploy(&world, &[&host]).await?;
    node_reports(&world, &host.name, "HostKeyMismatch", &["host key", "known_hosts"]).await?;
    assert_eq!(trace(&host), [""; 0]);
    ssh_secret(&world, &host).await?;
    ready(&world, &host.name).await?;
    world.done().await
}

#[tokio::test]
async fn a_failed_task_is_told_with_its_place_and_runs_again_on_request() -> Result<()> {
    let (world, host) = World::with_host("failed-task", "failed-task", "192.0.2.13").await?;
    host.behave(SERVICE, Behaviour::failed("Nothing forbids it", "non-zero return code"));
    deploy_to(&world, &host).await?;
    let words = ["task 'Nothing forbids it'", "playbook.yaml:", "dataplane.openstack.org/redeploy"];
    node_reports(&world, &host.name, "TaskFailed", &words).await?;
    host.behave(SERVICE, Behaviour::Done);
    world.annotate::<Node>(&host.name, "dataplane.openstack.org/redeploy", "1").await?;
    ready(&world, &host.name).await?;
    assert_eq!(trace(&host), ["hello"]);
    world.done().await
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_named_and_replaced() -> Result<()> {
    let (world, host) = World::with_host("image", "image", "192.0.2.14").await?;
    deploy_to(&world, &host).await?;
    ready(&world, &host.name).await?;
    let runs = world.list::<AnsibleEe>().await?;
    let image = "registry.example.org/no-such-image:1";
    let words = format!("failed to resolve image: {image}: not found");
    let pulled = Matching::image(&world.name, image);
    world.sim.player.decide(pulled, Fate::ImagePull(words));
    let spec = json!({ "openStackAnsibleEERunnerImage": image, "edpmServiceType": "other" });
    world.merge::<Service>(SERVICE, json!({ "spec": spec })).await?;
    node_reports(&world, &host.name, "ImagePullFailed", &["no-such-image"]).await?;
    world
        .merge::<Service>(SERVICE, json!({ "spec": { "openStackAnsibleEERunnerImage": null } }))
        .await?;
    ready(&world, &host.name).await?;
    assert_eq!(trace(&host), ["hello", "hello"]);
    let superseded = runs.first().context("no run")?;
    world.gone::<AnsibleEe>(&superseded.name_any(), SOON).await?;
    world.done().await
}

/// Pods that end without Ansible's own report: what the node reports, and that it is deployed
/// afterwards.
#[tokio::test]
async fn a_pod_that_ends_without_a_result_is_told_with_its_cause_and_deployed_again() -> Result<()>
{
    let ends = |code, message: &str| Fate::Ends { code, message: message.to_owned() };
    let evicted = Fate::Evicted("The node was low on resource: memory.".to_owned());
    let cases = [
        ("evicted", evicted, "PodEvicted", "low on resource: memory"),
        ("killed", ends(137, ""), "PodEvicted", "exit code 137"),
        ("memory", Fate::OutOfMemory, "ResultUnknown", "raise spec.resources"),
        ("silent", ends(0, ""), "ResultUnknown", "reported no result"),
        ("cut", ends(2, "{\"hosts\":{\"pod-cut"), "ResultUnknown", "exit code 2"),
    ];
    let told = cases.into_iter().enumerate().map(|(idx, (name, fate, reason, words))| {
        let address = format!("192.0.2.{}", 130 + idx);
        async move {
            let told = ends_without_a_result(name, &address, fate, (reason, words)).await;
            told.context(name)
        }
    });
    futures::future::try_join_all(told).await.map(drop)
}

async fn ends_without_a_result(
    name: &str,
    address: &str,
    fate: Fate,
    (reason, words): (&str, &str),
) -> Result<()> {
    let world = World::new(&format!("pod-{name}")).await?;
    let host = world.host(&format!("pod-{name}"), address);
    world.sim.player.decide(Matching::all(&world.name), fate);
    deploy_to(&world, &host).await?;
    node_reports(&world, &host.name, reason, &[words]).await?;
    world.sim.player.decide(Matching::all(&world.name), Fate::Play);
    if reason != "PodEvicted" {
        world.annotate::<Node>(&host.name, "dataplane.openstack.org/redeploy", "1").await?;
    }
    ready(&world, &host.name).await?;
    world.done().await
}

#[tokio::test]
async fn a_host_stays_reserved_for_a_run_whose_worker_is_lost_until_its_pod_is_gone() -> Result<()>
{
    let (world, host) = World::with_host("worker-lost", "worker-lost", "192.0.2.135").await?;
    world.sim.player.decide(Matching::all(&world.name), Fate::WorkerLost);
    deploy_to(&world, &host).await?;
    let is_at_work =
        |it: &Pod| it.status.as_ref().is_some_and(|it| it.phase.as_deref() == Some("Running"));
    world.wait_any::<Pod>(RUN, "at work", is_at_work).await?;
    // As Kubernetes deletes the pods of unresponsive workers.
    delete(&world, 1).await?;
    let is_lost = |it: &AnsibleEe| {
        let words = ["out-of-service=nodeshutdown:NoExecute"];
        says(it.conditions(), "Ready", "RunnerLost", &words)
    };
    world.wait_any::<AnsibleEe>(RUN, "lost", is_lost).await?;
    // From now on a run that reaches the host finds the lost pod in the ledger.
    world.sim.player.decide(Matching::all(&world.name), Fate::Play);
    world.annotate::<Node>(&host.name, "dataplane.openstack.org/redeploy", "1").await?;
    assert_eq!(host.visits().len(), 0);
    // As the pod garbage collector does when the worker has the taint.
    let disrupted = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
        "message": "PodGC: node is out of service",
    });
    let failed = json!({ "status": { "phase": "Failed", "conditions": [disrupted] } });
    for pod in world.list::<Pod>().await? {
        let patch = Patch::Strategic(&failed);
        world.api::<Pod>().patch_status(&pod.name_any(), &PatchParams::default(), &patch).await?;
    }
    delete(&world, 0).await?;
    ready(&world, &host.name).await?;
    assert_eq!(host.visits().len(), 1, "the lost run never came to the host");
    world.done().await
}

/// Deletes all pods with that grace period in seconds.
async fn delete(world: &World, grace: u32) -> Result<()> {
    for pod in world.list::<Pod>().await? {
        let params = DeleteParams::default().grace_period(grace);
        world.api::<Pod>().delete(&pod.name_any(), &params).await?;
    }
    Ok(())
}
