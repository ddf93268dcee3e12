//! Runs created by a user, and how each can fail. Their messages from Ansible and its callback are
//! those that the suites with real Ansible recorded.

use anyhow::{Context as _, Result, bail};
use api::ansibleee::AnsibleEe;
use e2e::Namespace;
use e2e::diagnosis::{self, PATIENCE, job_ends};
use e2e::faults::{Fault, runs::FAULTS};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use simulated_cluster::{Fate, Matching};

use super::scene::{pod_runs, pod_waits};
use crate::world::simulation;

const INVENTORY: &str =
    "all: {hosts: {a: {ansible_connection: local}, b: {ansible_connection: local}}}";
const PLAYBOOK: &str = "- hosts: all\n  tasks: []\n";
/// An image that no registry has, and containerd's message about it.
const IMAGE: &str = "192.168.120.1:5000/edpm/no-such-image:1";
const NOT_FOUND: &str = "rpc error: code = NotFound desc = failed to pull and unpack image \
    \"192.168.120.1:5000/edpm/no-such-image:1\": failed to resolve image: \
    192.168.120.1:5000/edpm/no-such-image:1: not found";

#[tokio::test]
async fn how_a_run_by_hand_failed_is_told_on_it() -> Result<()> {
    simulation().await?;
    diagnosis::judge(FAULTS, before, inject).await
}

/// A failed task of one host.
fn failure(host: &str, task: &str, message: &str) -> Value {
    json!({
        "host": host, "play": "By hand", "task": task, "message": message,
        "path": "/runner/project/playbook.yaml:5",
    })
}

/// Returns how the run of each fault ends.
fn fate(fault: &str) -> Fate {
    let told = |code: i32, hosts: &str, failures: Value| {
        let message = json!({ "v": 1, "hosts": hosts, "changed": [0, 0], "failures": failures });
        Fate::Ends { code, message: message.to_string() }
    };
    let silent = |code: i32| Fate::Ends { code, message: String::new() };
    match fault {
        "by-hand-task-failed" => told(2, "of", json!([failure("b", "Break", "broken")])),
        "by-hand-output-hidden" => {
            let hidden = |host: &str| failure(host, "Sign in", "(hidden by no_log)");
            told(2, "ff", json!([hidden("a"), hidden("b")]))
        }
        "by-hand-playbook-invalid" => silent(4),
        "by-hand-playbook-not-found" => silent(1),
        "by-hand-limit-without-host" => Fate::NoHostMatched,
        "by-hand-hosts-not-matched" => told(0, "nn", json!([])),
        "by-hand-deadline" | "by-hand-job-deleted" => Fate::Hangs,
        "by-hand-image-not-pulled" => Fate::ImagePull(NOT_FOUND.to_owned()),
        _ => Fate::Play,
    }
}

/// Returns the spec of each fault's run.
fn wanted(fault: &str) -> Result<Value> {
    let from = json!({ "configMapKeyRef": { "name": "settings", "key": "colour" } });
    let more = match fault {
        "by-hand-playbook-not-found" => return Ok(json!({ "playbook": "nowhere.yml" })),
        "by-hand-limit-without-host" => json!({ "cmdLine": "--limit elsewhere" }),
        // The run is described once before it ends, which takes a while on a busy machine.
        "by-hand-deadline" => json!({ "activeDeadlineSeconds": 30 }),
        "by-hand-image-not-pulled" => json!({ "image": IMAGE }),
        "by-hand-environment-missing" => {
            json!({ "env": [{ "name": "COLOUR", "valueFrom": from }] })
        }
        "by-hand-account-not-allowed" => json!({ "serviceAccountName": "default" }),
        "by-hand-task-failed"
        | "by-hand-output-hidden"
        | "by-hand-playbook-invalid"
        | "by-hand-hosts-not-matched"
        | "by-hand-job-refused"
        | "by-hand-job-deleted" => json!({}),
        other => bail!("nobody makes {other}"),
    };
    let mut spec = more;
    spec["playbookContents"] = json!(PLAYBOOK);
    Ok(spec)
}

/// Creates the run; its addresses are distinct from those of other faults.
async fn create(ns: &Namespace, fault: &Fault) -> Result<()> {
    let host = |name: &str| json!({ "name": name, "address": format!("{}-{name}:22", fault.name) });
    let player = &simulation().await?.player;
    player.decide(Matching::all(&ns.name), fate(fault.name));
    let mut spec = wanted(fault.name)?;
    spec["inventory"] = json!(INVENTORY);
    spec["backoffLimit"] = json!(0);
    spec["hosts"] = json!([host("a"), host("b")]);
    ns.create::<AnsibleEe>("run", spec).await.map(drop)
}

/// When the fault is the end of a run, the run is created before; one that fails sooner is not.
async fn before(ns: &Namespace, fault: &Fault) -> Result<()> {
    match fault.name {
        "by-hand-account-not-allowed"
        | "by-hand-image-not-pulled"
        | "by-hand-environment-missing" => Ok(()),
        "by-hand-job-refused" => ns.forbid("count/jobs.batch").await,
        "by-hand-job-deleted" => {
            create(ns, fault).await?;
            pod_runs(ns).await.map(drop)
        }
        _ => create(ns, fault).await,
    }
}

async fn inject(ns: &Namespace, fault: &Fault) -> Result<()> {
    match fault.name {
        "by-hand-account-not-allowed" | "by-hand-job-refused" => create(ns, fault).await,
        "by-hand-image-not-pulled" => {
            create(ns, fault).await?;
            pod_waits(ns, &["ErrImagePull", "ImagePullBackOff"]).await
        }
        "by-hand-environment-missing" => {
            create(ns, fault).await?;
            pod_waits(ns, &["CreateContainerConfigError"]).await
        }
        "by-hand-job-deleted" => {
            let jobs = ns.list::<Job>().await?;
            let job = jobs.first().context("no Job")?.name_any();
            ns.api::<Job>().delete(&job, &DeleteParams::background()).await?;
            for pod in ns.list::<Pod>().await? {
                ns.gone::<Pod>(&pod.name_any(), PATIENCE).await?;
            }
            Ok(())
        }
        _ => job_ends(ns).await,
    }
}
