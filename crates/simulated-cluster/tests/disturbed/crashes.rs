//! Operators killed at the worst moments: the outcome is the same, and every run reached the host
//! once.
//!
//! The moments are states of the API server, never times: an AnsibleEE without a Job, a Job that
//! runs, a Job that is complete but not yet reported.

use anyhow::{Context as _, Result};
use api::ansibleee::{AnsibleEe, JobStatus};
use api::dataplane::{Node, RunState};
use api::nova::ExternalCompute;
use e2e::journey::{RUN, SERVICE, ready};
use e2e::{Namespace, says};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use operator_core::run_engine::run::SERVICE_LABEL;
use simulated_cluster::{Host, Operator};

use crate::computes::{self, is_settled, of_nova};
use crate::own::{Own, PATIENCE};

/// Requests one more run, and returns its AnsibleEE as soon as `holds` is true of it.
async fn redeploy(
    ns: &Namespace,
    host: &Host,
    value: &str,
    holds: impl Fn(&AnsibleEe) -> bool,
) -> Result<AnsibleEe> {
    let known: Vec<String> =
        ns.list::<AnsibleEe>().await?.iter().map(ResourceExt::name_any).collect();
    ns.annotate::<Node>(&host.name, "dataplane.openstack.org/redeploy", value).await?;
    ns.wait_any(RUN, "the new run", |it: &AnsibleEe| !known.contains(&it.name_any()) && holds(it))
        .await
}

/// Runs an action while no Job can be created, so that the state before the Job lasts until the
/// action is done.
async fn without_jobs<T>(ns: &Namespace, work: impl Future<Output = Result<T>>) -> Result<T> {
    ns.forbid("count/jobs.batch").await?;
    let done = work.await;
    ns.allow().await?;
    done
}

fn is_refused(run: &AnsibleEe) -> bool {
    says(run.conditions(), "JobReady", "JobRefused", &[])
}

fn is_running(run: &AnsibleEe) -> bool {
    run.status.as_ref().and_then(|it| it.job_status) == Some(JobStatus::Running)
}

#[tokio::test]
async fn killed_while_a_run_has_no_job_yet() -> Result<()> {
    let (own, host) = Own::deployed("no-job").await?;
    without_jobs(&own, async {
        redeploy(&own, &host, "a", is_refused).await?;
        own.replace(&[Operator::AnsibleEe, Operator::DataPlane]).await
    })
    .await?;
    own.ends_well(&host, 2).await
}

#[tokio::test]
async fn killed_while_a_job_runs() -> Result<()> {
    let (own, host) = Own::deployed("job-runs").await?;
    host.hold(SERVICE);
    let run = redeploy(&own, &host, "b", is_running).await?;
    let job = run.status.and_then(|it| it.job).context("a running run names its Job")?;
    let active = own.api::<Job>().get(&job.name).await?.status.and_then(|it| it.active);
    assert_eq!(active, Some(1), "the Job runs");
    own.replace(&Operator::ALL).await?;
    host.release();
    own.ends_well(&host, 2).await
}

#[tokio::test]
async fn killed_when_a_job_is_complete_and_nobody_has_written_so() -> Result<()> {
    let (own, host) = Own::deployed("job-done").await?;
    host.hold(SERVICE);
    let run = redeploy(&own, &host, "c", is_running).await?;
    own.sim.operators.stop(Operator::AnsibleEe)?;
    host.release();
    let job = run.status.clone().and_then(|it| it.job).context("a running run names its Job")?;
    let is_complete = |it: &Job| {
        let conditions = it.status.as_ref().and_then(|it| it.conditions.as_ref());
        conditions.into_iter().flatten().any(|it| it.type_ == "Complete" && it.status == "True")
    };
    own.wait::<Job>(&job.name, "complete", RUN, is_complete).await?;
    let run = own.api::<AnsibleEe>().get(&run.name_any()).await?;
    assert!(is_running(&run), "the end was written before the kill");
    own.replace(&[Operator::AnsibleEe]).await?;
    own.ends_well(&host, 2).await
}

#[tokio::test]
async fn dataplane_operator_killed_when_a_run_has_ended_and_no_node_says_so() -> Result<()> {
    let (own, host) = Own::deployed("run-done").await?;
    host.hold(SERVICE);
    let run = redeploy(&own, &host, "d", is_running).await?;
    own.sim.operators.stop(Operator::DataPlane)?;
    host.release();
    let has_ended = |it: &AnsibleEe| {
        it.status.as_ref().and_then(|it| it.job_status) == Some(JobStatus::Succeeded)
    };
    own.wait::<AnsibleEe>(&run.name_any(), "succeeded", RUN, has_ended).await?;
    let node = own.api::<Node>().get(&host.name).await?.status.unwrap_or_default();
    let is_done = node.services.iter().all(|it| it.state == RunState::Succeeded);
    assert!(!is_done, "the end was written before the kill");
    own.replace(&[Operator::DataPlane]).await?;
    own.ends_well(&host, 2).await
}

/// Waits for a run of a compute's service that did not exist before, until `holds` is true of it.
async fn next_run(
    ns: &Namespace,
    known: &[String],
    service: &str,
    holds: impl Fn(&AnsibleEe) -> bool,
) -> Result<AnsibleEe> {
    let is_it = |it: &AnsibleEe| {
        !known.contains(&it.name_any())
            && it.labels().get(SERVICE_LABEL).is_some_and(|it| it == service)
            && holds(it)
    };
    ns.wait_any(PATIENCE, &format!("the new run of {service}"), is_it).await
}

/// Returns the state of a service in the compute's status.
async fn recorded(ns: &Namespace, host: &str, service: &str) -> Result<Option<RunState>> {
    let status = ns.api::<ExternalCompute>().get(host).await?.status;
    let services = status.map(|it| it.services).unwrap_or_default();
    Ok(services.iter().find(|it| it.name == service).map(|it| it.state))
}

/// Each of the three runs of one deployment is interrupted in one of the three states.
#[tokio::test]
async fn nova_operator_killed_amid_its_own_runs() -> Result<()> {
    let own = Own::start("amid").await?;
    let (host, other) = own.hosts("amid", "192.0.2.10", "other", "192.0.2.11");
    let _broker = computes::cell(&own, &own.sim).await?;
    computes::deploy(&own, &[&host, &other]).await?;
    let (before, others) = (of_nova(&host).len(), of_nova(&other));
    let n_visits = (host.visits().len(), other.visits().len());
    let known: Vec<String> =
        own.list::<AnsibleEe>().await?.iter().map(ResourceExt::name_any).collect();
    let instance = |it: &ExternalCompute| it.status.as_ref()?.host_instance.clone();
    let first = instance(&own.api::<ExternalCompute>().get(&host.name).await?);
    host.hold("nova");
    host.hold("nova-registered");

    without_jobs(&own, async {
        own.annotate::<ExternalCompute>(&host.name, "nova.openstack.org/redeploy", "1").await?;
        next_run(&own, &known, "libvirt", is_refused).await?;
        own.replace(&[Operator::Nova]).await
    })
    .await?;

    next_run(&own, &known, "nova", is_running).await?;
    own.replace(&[Operator::Nova]).await?;
    host.release();
    host.hold("nova-registered");

    let last = "nova-registered";
    let run = next_run(&own, &known, last, is_running).await?;
    own.sim.operators.stop(Operator::Nova)?;
    host.release();
    let has_succeeded = |it: &AnsibleEe| {
        it.status.as_ref().and_then(|it| it.job_status) == Some(JobStatus::Succeeded)
    };
    own.wait::<AnsibleEe>(&run.name_any(), "succeeded", RUN, has_succeeded).await?;
    let state = recorded(&own, &host.name, last).await?;
    assert_ne!(state, Some(RunState::Succeeded), "the end was written before the kill");
    own.replace(&[Operator::Nova]).await?;

    let is_done = |it: &ExternalCompute| instance(it) != first && is_settled(it);
    own.wait::<ExternalCompute>(&host.name, "deployed once more", PATIENCE, is_done).await?;
    assert_eq!(of_nova(&host)[before..], ["libvirt", "nova", last], "runs counted on the host");
    assert_eq!(of_nova(&other), others, "runs counted on the other host");
    let visits = (host.visits().len(), other.visits().len());
    assert_eq!(visits, (n_visits.0 + 3, n_visits.1), "no run was cut off");
    for it in [&host, &other] {
        computes::settled(&own, it).await?;
        ready(&own, &it.name).await?;
    }
    own.done()
}
