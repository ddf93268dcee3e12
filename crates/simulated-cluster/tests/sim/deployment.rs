//! A deployment of a node set: each service once, failures affect only their host, and no
//! deployment ends by accident.

use anyhow::{Context as _, Result};
use api::ansibleee::{AnsibleEe, JobStatus};
use api::dataplane::{Deployment, DeploymentStatus, Node, NodeSet, RunState, Service};
use e2e::journey::{RUN, SSH_SECRET};
use e2e::{Namespace, SOON, holds, says};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::DeleteParams;
use operator_core::run_engine::run::SERVICE_LABEL;
use serde_json::{Value, json};
use simulated_cluster::{Behaviour, Host, Visit};

use crate::journey;
use crate::world::World;

pub(crate) const SET: &str = "compute";

/// Simulates a play that writes its service's name, and another text when run with that tag; the
/// service `slow` writes that it waits, and ends when it is released.
const PLAYBOOK: &str = "- hosts: all\n  tasks: []\n";

/// Returns what the plays have written on a host.
fn trace(host: &Host) -> Vec<String> {
    host.visits().iter().flat_map(written).collect()
}

fn written(visit: &Visit) -> Vec<String> {
    let service = visit.service.as_str();
    let command = visit.files.get("/runner/env/cmdline").map(String::as_str).unwrap_or_default();
    let tagged = format!("{service} tagged");
    match service {
        "slow" => vec!["waits".to_owned()],
        _ if !visit.is_done => Vec::new(),
        _ if command.contains("--tags 'tagged'") => vec![tagged],
        _ => vec![service.to_owned(), tagged],
    }
}

/// Creates a node set of the hosts, with services of those names.
pub(crate) async fn node_set(ns: &Namespace, hosts: &[&Host], services: &[&str]) -> Result<()> {
    for service in services {
        ns.create::<Service>(service, json!({ "playbookContents": PLAYBOOK })).await?;
    }
    ns.create::<NodeSet>(SET, journey::node_set(hosts, services)).await.map(drop)
}

/// Creates a deployment of the node set.
pub(crate) async fn deploy(ns: &Namespace, name: &str, mut spec: Value) -> Result<()> {
    spec["nodeSets"] = json!([SET]);
    ns.create::<Deployment>(name, spec).await.map(drop)
}

/// Returns what makes a deployment one of a single service to a single host.
fn of_one(host: &Host, service: &str) -> Value {
    json!({ "ansibleLimit": host.name, "servicesOverride": [service] })
}

pub(crate) async fn done(ns: &Namespace, name: &str) -> Result<DeploymentStatus> {
    let deployment = ns.good::<Deployment>(name, &["Ready"], RUN).await?;
    deployment.status.context("a deployment that is ready has a status")
}

/// Returns how each service of a host stands, by the host's node.
async fn services(ns: &Namespace, host: &Host) -> Result<Vec<(String, RunState)>> {
    let node = ns.api::<Node>().get(&host.name).await?;
    let services = node.status.map(|it| it.services).unwrap_or_default();
    Ok(services.into_iter().map(|it| (it.name, it.state)).collect())
}

/// Waits until a run of the service is at work, and returns it.
pub(crate) async fn at_work(ns: &Namespace, service: &str) -> Result<AnsibleEe> {
    let is_it = |it: &AnsibleEe| {
        let state = it.status.as_ref().and_then(|it| it.job_status);
        it.labels().get(SERVICE_LABEL).is_some_and(|it| it == service)
            && state == Some(JobStatus::Running)
    };
    ns.wait_any(RUN, &format!("{service} at work"), is_it).await
}

/// Waits until the deployment waits for another one with a host of its own, which it names.
async fn waits_for(ns: &Namespace, name: &str, other: &str) -> Result<()> {
    let words = [other, SET, "Delete it to go on without"];
    ns.reports::<Deployment>(name, "SetupReady", "DeploymentUnderWay", &words, SOON).await.map(drop)
}

#[tokio::test]
async fn a_deployment_runs_each_service_once_and_a_deleted_job_runs_nothing_again() -> Result<()> {
    let (ns, host) = World::with_host("deployment", "e2e-deployment", "192.168.122.200").await?;
    journey::ssh_secret(&ns, &host).await?;
    host.hold("slow");
    node_set(&ns, &[&host], &["one", "slow", "two"]).await?;
    deploy(&ns, "edpm", json!({})).await?;
    at_work(&ns, "slow").await?;
    // Finished runs may be deleted while the rest continues.
    let runs = ns.list::<AnsibleEe>().await?;
    let is_first = |it: &&AnsibleEe| it.labels().get(SERVICE_LABEL).is_some_and(|it| it == "one");
    let first = runs.iter().find(is_first).context("no run of the first service")?;
    let job = first.status.as_ref().and_then(|it| it.job.clone()).context("no Job")?;
    ns.api::<Job>().delete(&job.name, &DeleteParams::background()).await?;
    ns.gone::<Job>(&job.name, SOON).await?;
    ns.removed::<AnsibleEe>(&first.name_any(), SOON).await?;
    host.release();
    let status = done(&ns, "edpm").await?;
    assert_eq!(status.deployed, Some(true));
    let lines = trace(&host);
    assert_eq!(lines, ["one", "one tagged", "waits", "two", "two tagged"]);
    let set = ns.api::<NodeSet>().get(SET).await?;
    let hash = set.status.and_then(|it| it.config_hash).context("no configHash")?;
    assert_eq!(status.node_set_hashes.get(SET), Some(&hash));

    // Only some services, and of those only some tasks.
    let spec = json!({ "servicesOverride": ["two"], "ansibleTags": "tagged" });
    deploy(&ns, "partial", spec).await?;
    done(&ns, "partial").await?;
    assert_eq!(trace(&host).split_off(lines.len()), ["two tagged"]);
    ns.done().await
}

#[tokio::test]
async fn a_failing_service_ends_the_deployment_of_its_host_alone() -> Result<()> {
    let ns = World::new("deployment-fails").await?;
    let good = ns.host("e2e-deploy-good", "192.168.122.201");
    let bad = ns.host_like(&good, "e2e-deploy-bad", "192.168.122.202");
    bad.behave("one", Behaviour::failed("Nothing forbids it", "non-zero return code"));
    let key = &good.ssh_secret()[0].1;
    ns.secret(SSH_SECRET, &[("ssh-privatekey", key)]).await?;
    node_set(&ns, &[&good, &bad], &["one", "two"]).await?;
    deploy(&ns, "edpm", json!({ "backoffLimit": 1 })).await?;
    let words = [bad.name.as_str(), "Nothing forbids it", "create another"];
    let deployment =
        ns.reports::<Deployment>("edpm", "Ready", "BackoffLimitExceeded", &words, RUN).await?;
    ns.event("OpenStackDataPlaneDeployment", "edpm", "BackoffLimitExceeded").await?;
    let status = deployment.status.context("no status")?;
    let succeeded = ["one", "two"].map(|it| (it.to_owned(), RunState::Succeeded));
    assert_eq!(services(&ns, &good).await?, succeeded);
    let failed = [("one", RunState::Failed), ("two", RunState::Pending)];
    assert_eq!(services(&ns, &bad).await?, failed.map(|(name, state)| (name.to_owned(), state)));
    assert_eq!(status.deployed, None);
    assert_eq!(trace(&good), ["one", "one tagged", "two", "two tagged"]);
    assert_eq!(trace(&bad), [""; 0]);
    // Without these variables Ansible ends the play on all hosts when it fails on one.
    let variables = &good.visits()[0].files["/runner/env/extravars"];
    for variable in [r#""edpm_any_errors_fatal":false"#, r#""edpm_max_fail_percentage":100"#] {
        assert!(variables.contains(variable), "{variables}");
    }

    // Another deployment continues where this one failed.
    bad.behave("one", Behaviour::Done);
    deploy(&ns, "again", json!({ "ansibleLimit": bad.name })).await?;
    done(&ns, "again").await?;
    assert_eq!(trace(&bad), ["one", "one tagged", "two", "two tagged"]);
    assert_eq!(trace(&good).len(), 4);
    ns.done().await
}

#[tokio::test]
async fn a_deployment_that_runs_is_not_deleted_by_accident() -> Result<()> {
    let ns = World::new("deployment-delete").await?;
    let host = ns.host("e2e-deploy-delete", "192.168.122.203");
    journey::ssh_secret(&ns, &host).await?;
    host.hold("slow");
    node_set(&ns, &[&host], &["slow", "two"]).await?;
    deploy(&ns, "edpm", json!({})).await?;
    at_work(&ns, "slow").await?;
    ns.remove::<Deployment>("edpm").await?;
    let words = ["confirm-delete=true"];
    ns.reports::<Deployment>("edpm", "Ready", "DeletionNotConfirmed", &words, SOON).await?;
    let confirm = "dataplane.openstack.org/confirm-delete";
    ns.annotate::<Deployment>("edpm", confirm, "true").await?;
    ns.gone::<Deployment>("edpm", SOON).await?;
    // The run ends with the deployment, perhaps before it has written a line.
    let left = trace(&host);
    assert!(left.iter().all(|it| it == "waits"), "the second service did not begin: {left:?}");
    ns.done().await
}

#[tokio::test]
async fn of_two_deployments_with_a_common_host_the_younger_waits_until_the_older_has_run()
-> Result<()> {
    let (ns, first) = World::with_host("deployments", "e2e-deployments-0", "203.0.113.207").await?;
    let second = ns.host_like(&first, "e2e-deployments-1", "203.0.113.208");
    journey::ssh_secret(&ns, &first).await?;
    node_set(&ns, &[&first, &second], &["slow", "two"]).await?;
    first.hold("slow");
    // Of some tasks alone, so that the host is not ready in between.
    let mut partial = of_one(&first, "slow");
    partial["ansibleTags"] = json!("tagged");
    deploy(&ns, "older", partial).await?;
    at_work(&ns, "slow").await?;
    // Another host concerns neither of them.
    deploy(&ns, "beside", of_one(&second, "two")).await?;
    done(&ns, "beside").await?;
    deploy(&ns, "younger", json!({ "servicesOverride": ["two"] })).await?;
    waits_for(&ns, "younger", "older").await?;
    deploy(&ns, "youngest", of_one(&second, "two")).await?;
    waits_for(&ns, "youngest", "younger").await?;
    // What is deleted holds up no other one.
    ns.remove::<Deployment>("younger").await?;
    done(&ns, "youngest").await?;
    assert_eq!((trace(&first).len(), trace(&second).len()), (1, 4), "nothing ran beside a run");

    deploy(&ns, "last", json!({ "servicesOverride": ["two"] })).await?;
    waits_for(&ns, "last", "older").await?;
    first.release();
    done(&ns, "last").await?;
    assert_eq!(trace(&first), ["waits", "two", "two tagged"]);
    let two = ["two", "two tagged"];
    assert_eq!(trace(&second), [two, two, two].concat());
    ns.done().await
}

#[tokio::test]
async fn a_deployment_of_services_that_lack_nothing_makes_the_node_set_ready() -> Result<()> {
    let ns = World::new("deployment-staged").await?;
    let host = ns.host("e2e-deployment-staged", "192.168.122.71");
    journey::ssh_secret(&ns, &host).await?;
    node_set(&ns, &[&host], &["one", "two"]).await?;
    let sources = json!([{ "secretRef": { "name": "later" } }]);
    let lacks = json!({ "spec": { "caCerts": "authorities", "dataSources": sources } });
    ns.merge::<Service>("two", lacks).await?;
    let words = ["Secret later, named by OpenStackDataPlaneService two", "Secret authorities"];
    let is_told = |it: &NodeSet| {
        let conditions = it.conditions();
        says(conditions, "ServiceInputsReady", "DataSourceNotFound", &words)
            && holds(conditions, "InputReady")
    };
    ns.wait::<NodeSet>(SET, "what two lacks", SOON, is_told).await?;
    ns.event("OpenStackDataPlaneNodeSet", SET, "DataSourceNotFound").await?;

    deploy(&ns, "first", json!({ "servicesOverride": ["one"] })).await?;
    done(&ns, "first").await?;
    let is_ready = |it: &NodeSet| holds(it.conditions(), "Ready") && is_told(it);
    ns.wait::<NodeSet>(SET, "ready all the same", SOON, is_ready).await?;

    deploy(&ns, "second", json!({ "servicesOverride": ["two"] })).await?;
    ns.reports::<Deployment>("second", "InputReady", "DataSourceNotFound", &words, SOON).await?;
    for secret in ["later", "authorities"] {
        ns.secret(secret, &[("key", "x")]).await?;
    }
    done(&ns, "second").await?;
    assert_eq!(trace(&host), ["one", "one tagged", "two", "two tagged"]);
    ns.reports::<NodeSet>(SET, "ServiceInputsReady", "ServiceInputsComplete", &[], SOON).await?;
    ns.done().await
}
