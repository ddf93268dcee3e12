//! Runs that a human makes, and how each can fail. Their hosts are the runner pod itself.

use anyhow::{Context as _, Result, bail};
use common::api::ansibleee::AnsibleEe;
use e2e::faults::{Fault, runs::FAULTS};
use e2e::{Namespace, diagnosis};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::world::{PATIENCE, job_ends, no_more, pod_runs, pod_waits};

const INVENTORY: &str =
    "all: {hosts: {a: {ansible_connection: local}, b: {ansible_connection: local}}}";
const DEBUG: &str = "ansible.builtin.debug: {}";
const SLEEP: &str = "ansible.builtin.command: sleep 300";

#[tokio::test]
async fn how_a_run_by_hand_failed_is_told_on_it() -> Result<()> {
    diagnosis::judge(FAULTS, before, inject).await
}

/// A play over hosts with one task.
fn play(hosts: &str, name: &str, task: &str) -> String {
    format!(
        "- name: By hand\n  hosts: {hosts}\n  gather_facts: false\n  tasks:\n    \
         - name: {name}\n      {task}\n"
    )
}

/// What makes the run of each fault.
fn wanted(fault: &str) -> Result<Value> {
    let contents = |task: &str| play("all", "Work", task);
    let fine = contents(DEBUG);
    let broken = "ansible.builtin.fail: {msg: broken}\n      when: inventory_hostname == 'b'";
    let hidden = "ansible.builtin.command: 'false'\n      no_log: true";
    let from = json!({ "configMapKeyRef": { "name": "settings", "key": "colour" } });
    Ok(match fault {
        "by-hand-task-failed" => json!({ "playbookContents": play("all", "Break", broken) }),
        "by-hand-output-hidden" => json!({ "playbookContents": play("all", "Sign in", hidden) }),
        "by-hand-playbook-invalid" => {
            json!({ "playbookContents": fine.replace("tasks:", "taskz:") })
        }
        "by-hand-playbook-not-found" => json!({ "playbook": "nowhere.yml" }),
        "by-hand-limit-without-host" => {
            json!({ "playbookContents": fine, "cmdLine": "--limit elsewhere" })
        }
        "by-hand-hosts-not-matched" => {
            json!({ "playbookContents": play("elsewhere", "Work", DEBUG) })
        }
        "by-hand-deadline" => {
            json!({ "playbookContents": contents(SLEEP), "activeDeadlineSeconds": 15 })
        }
        "by-hand-image-not-pulled" => {
            let image = "192.168.120.1:5000/edpm/no-such-image:1";
            json!({ "playbookContents": fine, "image": image })
        }
        "by-hand-environment-missing" => {
            json!({ "playbookContents": fine, "env": [{ "name": "COLOUR", "valueFrom": from }] })
        }
        "by-hand-job-refused" => json!({ "playbookContents": fine }),
        "by-hand-job-deleted" => json!({ "playbookContents": contents(SLEEP) }),
        "by-hand-account-not-allowed" => {
            json!({ "playbookContents": fine, "serviceAccountName": "default" })
        }
        other => bail!("nobody makes {other}"),
    })
}

/// Makes the run; its addresses keep the runs of other faults apart from it.
async fn create(ns: &Namespace, fault: &Fault) -> Result<()> {
    let host = |name: &str| json!({ "name": name, "address": format!("{}-{name}:22", fault.name) });
    let mut spec = wanted(fault.name)?;
    spec["inventory"] = json!(INVENTORY);
    spec["backoffLimit"] = json!(0);
    spec["hosts"] = json!([host("a"), host("b")]);
    ns.create::<AnsibleEe>("run", spec).await.map(drop)
}

/// Where the fact is the end of a run, the run is there before; what fails sooner is not.
async fn before(ns: &Namespace, fault: &Fault) -> Result<()> {
    match fault.name {
        "by-hand-account-not-allowed"
        | "by-hand-image-not-pulled"
        | "by-hand-environment-missing" => Ok(()),
        "by-hand-job-refused" => no_more(ns, "count/jobs.batch").await,
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
