//! A redeployment of a host of the demo, requested by a user without any change.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use api::ansibleee::{AnsibleEe, JobStatus};
use api::dataplane::Node;
use api::nova::ExternalCompute;
use e2e::demo::{self, Demo, conditions};
use e2e::holds;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{Alone, any_host};

/// The services of these runs.
fn services(runs: &[AnsibleEe]) -> BTreeSet<String> {
    let service = |it: &AnsibleEe| it.labels().get("edpm.openstack.org/service").cloned();
    runs.iter().filter_map(service).collect()
}

/// Returns all runs on a host that are left.
async fn runs_on(demo: &Demo, host: &str) -> Result<Vec<AnsibleEe>> {
    let mut runs = demo.ns.list::<AnsibleEe>().await?;
    runs.retain(|it| it.spec.hosts.iter().any(|it| it.name == host));
    Ok(runs)
}

#[tokio::test]
async fn a_second_deployment_of_the_same_inputs_changes_nothing() -> Result<()> {
    let Alone { host, _lock, .. } = any_host().await;
    let demo = Demo::ready_on(host).await?;
    // After an upgrade the first deployment applies what is new in this release.
    demo.set_present_runner(host).await?;
    redeploy(&demo, host).await?;
    let before = runs_on(&demo, host).await?;
    let known: BTreeSet<_> = before.iter().filter_map(ResourceExt::uid).collect();
    let containers = demo.containers(host).await?;
    redeploy(&demo, host).await?;
    let mut runs = runs_on(&demo, host).await?;
    runs.retain(|it| !known.contains(&it.uid().unwrap_or_default()));
    assert_eq!(services(&runs), services(&before), "every service ran again");
    for run in &runs {
        let (name, status) = (run.name_any(), run.status.as_ref().context("a run has a status")?);
        assert_eq!(status.job_status, Some(JobStatus::Succeeded), "{name}");
        assert_eq!(status.hosts.len(), 1, "{name}");
        assert_eq!(status.hosts[0].changed, Some(0), "{name}");
    }
    assert!(containers.contains("nova_compute") && containers.contains("libvirt"), "{containers}");
    assert_eq!(demo.containers(host).await?, containers, "containers of {host}");
    demo.ns.merge::<Node>(host, annotate(None)).await?;
    demo.settled_on(host).await
}

/// Returns the change that requests another deployment of all services, or takes the request back.
pub(crate) fn annotate(value: Option<&str>) -> Value {
    json!({ "metadata": { "annotations": { "dataplane.openstack.org/redeploy": value } } })
}

/// Deploys all services on a host again, and waits for the end.
async fn redeploy(demo: &Demo, host: &str) -> Result<()> {
    let compute = demo.ns.api::<ExternalCompute>().get(host).await?;
    let instance = compute.status.and_then(|it| it.host_instance);
    let node = demo.ns.api::<Node>().get(host).await?;
    demo.ns.merge::<Node>(host, annotate(Some(&demo::fresh(&node)))).await?;
    // The compute follows the node's instance, so a different instance means that the change has
    // arrived.
    let has_heard = |it: &ExternalCompute| {
        it.status.as_ref().is_some_and(|it| it.host_instance != instance)
            && holds(conditions(it), "Ready")
            && holds(conditions(it), "UpToDate")
    };
    demo.compute(host, "deployed again", has_heard).await?;
    demo.settled_on(host).await
}
