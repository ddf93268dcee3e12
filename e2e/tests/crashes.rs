//! Operators killed at the worst moments: the same end, and every run happened once on the host.
//!
//! The moments are states of the API server, never times: an AnsibleEE without a Job, a Job that
//! runs, a Job that is complete while nobody has written so.

use std::time::Duration;

use anyhow::{Context as _, Result};
use common::api::ansibleee::{AnsibleEe, JobStatus};
use common::api::dataplane::{Node, RunState};
use common::api::nova::ExternalCompute;
use common::engine::run::SERVICE_LABEL;
use e2e::demo::{DEPLOYMENT, Demo, HOSTS};
use e2e::journey::{self, RUN, ready, trace};
use e2e::operator::{self, Killed};
use e2e::{Host, Namespace, says};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;
use tokio::sync::Mutex;

/// These tests stop the operators that all tests share, so they take turns.
static TURN: Mutex<()> = Mutex::const_new(());

/// A host with its role, deployed once.
async fn deployed(test: &str, address: &str) -> Result<(Namespace, Host)> {
    let ns = Namespace::new(test).await?;
    let host = Host::start(&ns.client, &format!("e2e-{test}"), address).await?;
    journey::ssh_secret(&ns, &host).await?;
    journey::deploy(&ns, &[&host]).await?;
    ready(&ns, &host.name).await?;
    Ok((ns, host))
}

/// Asks for one more run, and returns its AnsibleEE as soon as `holds`.
async fn redeploy(
    ns: &Namespace,
    host: &Host,
    value: &str,
    holds: impl Fn(&AnsibleEe) -> bool,
) -> Result<AnsibleEe> {
    let known: Vec<String> =
        ns.list::<AnsibleEe>().await?.iter().map(ResourceExt::name_any).collect();
    let annotations = json!({ "dataplane.openstack.org/redeploy": value });
    ns.merge::<Node>(&host.name, json!({ "metadata": { "annotations": annotations } })).await?;
    ns.wait_any(RUN, "the new run", |it: &AnsibleEe| !known.contains(&it.name_any()) && holds(it))
        .await
}

/// Does something while no Job can be created: the state before it lasts until that is done.
async fn without_jobs<T>(ns: &Namespace, work: impl Future<Output = Result<T>>) -> Result<T> {
    ns.create::<ResourceQuota>("no-jobs", json!({ "hard": { "count/jobs.batch": "0" } })).await?;
    let done = work.await;
    ns.api::<ResourceQuota>().delete("no-jobs", &DeleteParams::default()).await?;
    done
}

fn is_refused(run: &AnsibleEe) -> bool {
    let conditions = run.status.as_ref().map(|it| it.conditions.as_slice());
    says(conditions.unwrap_or_default(), "JobReady", "JobRefused", &[])
}

fn is_running(run: &AnsibleEe) -> bool {
    run.status.as_ref().and_then(|it| it.job_status) == Some(JobStatus::Running)
}

async fn kill(ns: &Namespace, names: &[&str]) -> Result<Vec<Killed>> {
    let mut killed = vec![];
    for name in names {
        killed.push(operator::kill(&ns.client, name).await?);
    }
    Ok(killed)
}

/// Waits for the end of the story: the operators are back, the host is ready again, and one more
/// line was written.
async fn ends_well(ns: Namespace, host: Host, lines: usize, killed: Vec<Killed>) -> Result<()> {
    for it in killed {
        it.is_back().await?;
    }
    ready(&ns, &host.name).await?;
    assert_eq!(trace(&host).await?.len(), lines, "runs counted on the host");
    host.stop().await?;
    ns.done().await
}

#[tokio::test]
async fn killed_while_a_run_has_no_job_yet() -> Result<()> {
    let _turn = TURN.lock().await;
    let (ns, host) = deployed("no-job", "192.168.122.170").await?;
    let killed = without_jobs(&ns, async {
        redeploy(&ns, &host, "a", is_refused).await?;
        kill(&ns, &["ansibleee-operator", "dataplane-operator"]).await
    })
    .await?;
    ends_well(ns, host, 2, killed).await
}

#[tokio::test]
async fn killed_while_a_job_runs() -> Result<()> {
    let _turn = TURN.lock().await;
    let (ns, host) = deployed("job-runs", "192.168.122.171").await?;
    let run = redeploy(&ns, &host, "b", is_running).await?;
    let job = run.status.and_then(|it| it.job).context("a running run names its Job")?;
    let active = ns.api::<Job>().get(&job.name).await?.status.and_then(|it| it.active);
    assert_eq!(active, Some(1), "the Job runs");
    let killed = kill(&ns, &["ansibleee-operator", "dataplane-operator", "nova-operator"]).await?;
    ends_well(ns, host, 2, killed).await
}

#[tokio::test]
async fn killed_when_a_job_is_complete_and_nobody_has_written_so() -> Result<()> {
    let _turn = TURN.lock().await;
    let (ns, host) = deployed("job-done", "192.168.122.172").await?;
    let run = redeploy(&ns, &host, "c", is_running).await?;
    let stopped = operator::stop(&ns.client, "ansibleee-operator").await?;
    let job = run.status.clone().and_then(|it| it.job).context("a running run names its Job")?;
    let is_complete = |it: &Job| {
        let conditions = it.status.as_ref().and_then(|it| it.conditions.as_ref());
        conditions.into_iter().flatten().any(|it| it.type_ == "Complete" && it.status == "True")
    };
    ns.wait::<Job>(&job.name, "complete", Duration::from_mins(2), is_complete).await?;
    let run = ns.api::<AnsibleEe>().get(&run.metadata.name.unwrap_or_default()).await?;
    assert!(is_running(&run), "the end was written before the kill");
    let killed = stopped.kill().await?;
    ends_well(ns, host, 2, vec![killed]).await
}

#[tokio::test]
async fn dataplane_operator_killed_when_a_run_has_ended_and_no_node_says_so() -> Result<()> {
    const VICTIM: &str = "dataplane-operator";
    let _turn = TURN.lock().await;
    let (ns, host) = deployed("run-done", "192.168.122.173").await?;
    let run = redeploy(&ns, &host, "d", is_running).await?;
    let stopped = operator::stop(&ns.client, VICTIM).await?;
    let has_ended = |it: &AnsibleEe| {
        it.status.as_ref().and_then(|it| it.job_status) == Some(JobStatus::Succeeded)
    };
    ns.wait::<AnsibleEe>(&run.name_any(), "succeeded", RUN, has_ended).await?;
    let node = ns.api::<Node>().get(&host.name).await?.status.unwrap_or_default();
    let is_done = node.services.iter().all(|it| it.state == RunState::Succeeded);
    assert!(!is_done, "the end was written before the kill");
    let killed = stopped.kill().await?;
    ends_well(ns, host, 2, vec![killed]).await
}

/// Waits for the run of a compute's service that was not there before, as soon as `holds`.
async fn next_run(
    demo: &Demo,
    known: &[String],
    service: &str,
    holds: impl Fn(&AnsibleEe) -> bool,
) -> Result<AnsibleEe> {
    let is_it = |it: &AnsibleEe| {
        !known.contains(&it.name_any())
            && it.labels().get(SERVICE_LABEL).is_some_and(|it| it == service)
            && holds(it)
    };
    demo.ns.wait_any(DEPLOYMENT, &format!("the new run of {service}"), is_it).await
}

/// How a service stands in the compute's own status.
async fn recorded(demo: &Demo, host: &str, service: &str) -> Result<Option<RunState>> {
    let status = demo.ns.api::<ExternalCompute>().get(host).await?.status;
    let services = status.map(|it| it.services).unwrap_or_default();
    Ok(services.iter().find(|it| it.name == service).map(|it| it.state))
}

/// Each of the three runs of one deployment meets one of the three states.
#[tokio::test]
async fn nova_operator_killed_amid_its_own_runs() -> Result<()> {
    const VICTIM: &str = "nova-operator";
    let _turn = TURN.lock().await;
    let demo = Demo::ready().await?;
    let [host, other] = HOSTS;
    let (began, other_began) = (demo.now(host).await?, demo.now(other).await?);
    let known: Vec<String> =
        demo.ns.list::<AnsibleEe>().await?.iter().map(ResourceExt::name_any).collect();

    let (before, killed) = without_jobs(&demo.ns, async {
        let before = demo.ask(host).await?;
        next_run(&demo, &known, "libvirt", is_refused).await?;
        // Its successor begins the next run, below.
        let killed = operator::kill(&demo.ns.client, VICTIM).await?;
        Ok((before, killed))
    })
    .await?;
    killed.is_back().await?;

    next_run(&demo, &known, "nova", is_running).await?;
    operator::kill(&demo.ns.client, VICTIM).await?.is_back().await?;

    let last = "nova-registered";
    let run = next_run(&demo, &known, last, is_running).await?;
    let stopped = operator::stop(&demo.ns.client, VICTIM).await?;
    let has_succeeded = |it: &AnsibleEe| {
        it.status.as_ref().and_then(|it| it.job_status) == Some(JobStatus::Succeeded)
    };
    demo.ns.wait::<AnsibleEe>(&run.name_any(), "succeeded", RUN, has_succeeded).await?;
    let state = recorded(&demo, host, last).await?;
    assert_ne!(state, Some(RunState::Succeeded), "the end was written before the kill");
    stopped.kill().await?.is_back().await?;

    demo.answered(&before).await?;
    assert_eq!(demo.runs(host, &began).await?, [1; 3], "runs counted on {host}");
    assert_eq!(demo.runs(other, &other_began).await?, [0; 3], "runs counted on {other}");
    demo.settled().await
}
