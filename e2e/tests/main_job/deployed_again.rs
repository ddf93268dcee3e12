//! A redeployment of a host of the demo, requested by a user without any change.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use api::ansibleee::{AnsibleEe, JobStatus};
use api::dataplane::Node;
use api::nova::ExternalCompute;
use e2e::demo::{self, Demo};
use e2e::holds;
use futures::future::LocalBoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use kube::ResourceExt;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};

use crate::{Alone, any_host};

/// The services of these runs.
fn services(runs: &[AnsibleEe]) -> BTreeSet<String> {
    let service = |it: &AnsibleEe| it.labels().get("edpm.openstack.org/service").cloned();
    runs.iter().filter_map(service).collect()
}

/// Returns the runs on a host that are created while `work` is under way, as they were last.
///
/// The API does not have them all at its end: a run goes once another host of its role was deployed.
async fn runs_during(
    demo: &Demo,
    host: &str,
    work: LocalBoxFuture<'_, Result<()>>,
) -> Result<Vec<AnsibleEe>> {
    let uids = |runs: Vec<AnsibleEe>| runs.iter().map(ResourceExt::uid).collect::<BTreeSet<_>>();
    let known = uids(demo.ns.list().await?);
    let watching = watcher(demo.ns.api::<AnsibleEe>(), watcher::Config::default());
    let touched = watching.default_backoff().touched_objects().boxed_local();
    let mut events = touched.take_until(work);
    let mut runs = BTreeMap::new();
    while let Some(event) = events.next().await {
        // The watch begins again after an error.
        let Ok(run) = event else { continue };
        runs.insert(run.uid(), run);
    }
    events.take_result().context("the watch ended")??;
    // The last events may still be on their way.
    runs.extend(demo.ns.list::<AnsibleEe>().await?.into_iter().map(|it| (it.uid(), it)));
    runs.retain(|uid, it| !known.contains(uid) && it.spec.hosts.iter().any(|it| it.name == host));
    Ok(runs.into_values().collect())
}

#[tokio::test]
async fn a_second_deployment_of_the_same_inputs_changes_nothing() -> Result<()> {
    let Alone { host, _lock, .. } = any_host().await;
    let demo = Demo::ready_on(host).await?;
    // After an upgrade the first deployment applies what is new in this release.
    demo.set_present_runner(host).await?;
    let before = runs_during(&demo, host, redeploy(&demo, host).boxed_local()).await?;
    let containers = demo.containers(host).await?;
    let runs = runs_during(&demo, host, redeploy(&demo, host).boxed_local()).await?;
    assert!(!runs.is_empty(), "nothing ran again");
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
            && holds(it.conditions(), "Ready")
            && holds(it.conditions(), "UpToDate")
    };
    demo.compute(host, "deployed again", has_heard).await?;
    demo.settled_on(host).await
}
