//! A redeployment of the demo's hosts, requested by a user without any change.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use api::ansibleee::{AnsibleEe, JobStatus};
use api::dataplane::Role;
use api::nova::ExternalCompute;
use e2e::demo::{self, Demo, HOSTS, conditions};
use e2e::holds;
use kube::ResourceExt;
use serde_json::{Value, json};

/// Each service with each of its hosts.
fn pairs(runs: &[AnsibleEe]) -> BTreeSet<(String, String)> {
    let service = |it: &AnsibleEe| it.labels().get("edpm.openstack.org/service").cloned();
    let of = |it: &AnsibleEe| {
        let service = service(it).unwrap_or_default();
        it.spec.hosts.iter().map(move |it| (service.clone(), it.name.clone())).collect::<Vec<_>>()
    };
    runs.iter().flat_map(of).collect()
}

#[tokio::test]
async fn a_second_deployment_of_the_same_inputs_changes_nothing() -> Result<()> {
    let demo = Demo::ready().await?;
    // After an upgrade the first deployment applies what is new in this release.
    redeploy(&demo).await?;
    let before = demo.ns.list::<AnsibleEe>().await?;
    let known: BTreeSet<_> = before.iter().filter_map(ResourceExt::uid).collect();
    let mut containers = Vec::new();
    for host in HOSTS {
        containers.push(demo.containers(host).await?);
    }
    redeploy(&demo).await?;
    let mut runs = demo.ns.list::<AnsibleEe>().await?;
    runs.retain(|it| !known.contains(&it.uid().unwrap_or_default()));
    assert_eq!(pairs(&runs), pairs(&before), "every service ran again on every host");
    for run in &runs {
        let (name, status) = (run.name_any(), run.status.as_ref().context("a run has a status")?);
        assert_eq!(status.job_status, Some(JobStatus::Succeeded), "{name}");
        assert_eq!(status.hosts.len(), run.spec.hosts.len(), "{name}");
        for host in &status.hosts {
            assert_eq!(host.changed, Some(0), "{name} on {}", host.name);
        }
    }
    for (host, before) in HOSTS.iter().zip(containers) {
        assert!(before.contains("nova_compute") && before.contains("libvirt"), "{before}");
        assert_eq!(demo.containers(host).await?, before, "containers of {host}");
    }
    demo.ns.merge::<Role>("edpm-compute", annotate(None)).await?;
    demo.settled().await
}

fn annotate(value: Option<&str>) -> Value {
    json!({ "metadata": { "annotations": { "dataplane.openstack.org/redeploy": value } } })
}

/// Deploys all services on both hosts again, and waits for the end.
async fn redeploy(demo: &Demo) -> Result<()> {
    let mut instances = Vec::new();
    for host in HOSTS {
        let compute = demo.ns.api::<ExternalCompute>().get(host).await?;
        instances.push(compute.status.and_then(|it| it.host_instance));
    }
    let role = demo.ns.api::<Role>().get("edpm-compute").await?;
    demo.ns.merge::<Role>("edpm-compute", annotate(Some(&demo::fresh(&role)))).await?;
    for (host, instance) in HOSTS.iter().zip(instances) {
        // The compute follows the node's instance, so a different instance means that the change
        // has arrived.
        let has_heard = |it: &ExternalCompute| {
            it.status.as_ref().is_some_and(|it| it.host_instance != instance)
                && holds(conditions(it), "Ready")
                && holds(conditions(it), "UpToDate")
        };
        demo.compute(host, "deployed again", has_heard).await?;
    }
    demo.settled().await
}
