//! Pods of runs that Kubernetes refuses: told within a minute, in the API server's words, on the run
//! and on what the user looks at.

use anyhow::Result;
use api::ansibleee::AnsibleEe;
use api::dataplane::{Deployment, Node, Role};
use e2e::journey::{ROLE, RUN, SSH_SECRET, ready};
use e2e::{Namespace, says};
use k8s_openapi::api::core::v1::LimitRange;
use serde_json::json;

use crate::deployment;
use crate::journey::deploy_to;
use crate::world::World;

/// A namespace in which containers must name their processors, as a quota of platform teams demands.
async fn with_quota(test: &str) -> Result<World> {
    let ns = World::new(test).await?;
    // The chart's runner has a request and a limit of memory alone.
    ns.forbid("requests.cpu").await?;
    Ok(ns)
}

async fn told_on_run(ns: &Namespace, words: &[&str]) -> Result<()> {
    let is_told = |it: &AnsibleEe| says(it.conditions(), "JobReady", "PodRefused", words);
    ns.wait_any(RUN, "a run that says why it has no pod", is_told).await.map(drop)
}

const QUOTA: [&str; 3] = ["must specify requests.cpu", "runner.resources", "keeps trying"];

#[tokio::test]
async fn a_quota_that_refuses_pods_is_told_on_run_node_and_role_until_it_goes() -> Result<()> {
    let ns = with_quota("refused-pod").await?;
    let host = ns.host("refused-pod", "203.0.113.171");
    deploy_to(&ns, &host).await?;
    told_on_run(&ns, &QUOTA).await?;
    ns.reports::<Node>(&host.name, "Ready", "RunBlocked", &QUOTA, RUN).await?;
    let of_role = |it: &Role| {
        let all = it.conditions();
        all.iter().any(|it| it.type_ == "Ready" && it.message.contains("must specify requests.cpu"))
    };
    ns.wait::<Role>(ROLE, "told", RUN, of_role).await?;
    ns.allow().await?;
    ready(&ns, &host.name).await?;
    ns.done().await
}

#[tokio::test]
async fn a_least_size_of_containers_that_refuses_pods_is_told_on_the_deployment() -> Result<()> {
    let ns = World::new("refused-pod-set").await?;
    let limits = json!([{ "type": "Container", "min": { "memory": "128Mi" } }]);
    ns.create::<LimitRange>("floor", json!({ "limits": limits })).await?;
    let host = ns.host("refused-pod-set", "203.0.113.172");
    let key = &host.ssh_secret()[0].1;
    ns.secret(SSH_SECRET, &[("ssh-privatekey", key)]).await?;
    deployment::node_set(&ns, &[&host], &["one"]).await?;
    deployment::deploy(&ns, "edpm", json!({})).await?;
    let words = ["minimum memory usage per Container is 128Mi", "runner.resources"];
    told_on_run(&ns, &words).await?;
    ns.reports::<Deployment>("edpm", "DeploymentReady", "RunBlocked", &words, RUN).await?;
    ns.done().await
}
