//! The cost of a Deployment of a node set with 100 hosts and six services. Its pods are never
//! scheduled; the bench writes their success into their status.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::audit::{Audit, Requests};
use crate::demo::facts::condition;
use crate::{controlplane, demo, lab, paths, sh};

const NAMESPACE: &str = "edpm-bench";
const NAME: &str = "bench";
const SSH_SECRET: &str = "bench-ssh";
/// A key in a form that ssh reads; no host accepts it.
const PRIVATE_KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\n\
    b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABbm8gb25lJ3M=\n\
    -----END OPENSSH PRIVATE KEY-----\n";
const HOSTS: usize = 100;
const SERVICES: usize = 6;
/// The number of hosts in one run.
const SHARD: usize = 50;
/// The timeout for the deployment.
const DEPLOYMENT: Duration = Duration::from_mins(5);
/// The period without writes afterwards.
const REST: Duration = Duration::from_secs(30);

/// Measures one Deployment from its creation to its end, and the rest after it.
pub(super) fn measure(env: &lab::Env, audit: &Audit) -> Result<()> {
    sh::step("a node set of 100 hosts", || prepare(env))?;
    let start = audit.position()?;
    let clock = std::time::Instant::now();
    controlplane::apply(env, &deployment())?;
    sh::step("deploy six services on 100 hosts", || {
        sh::wait_for("the Deployment is Ready", DEPLOYMENT, || {
            complete(env)?;
            let object = demo::get(env, NAMESPACE, "openstackdataplanedeployment", NAME)?;
            let ready = condition(&object, "Ready");
            ensure!(ready["status"] == "True", "{}: {}", ready["reason"], ready["message"]);
            let object = demo::get(env, NAMESPACE, "openstackdataplanenodeset", NAME)?;
            let ready = condition(&object, "Ready");
            ensure!(ready["status"] == "True", "{}: {}", ready["reason"], ready["message"]);
            Ok(())
        })
    })?;
    let seconds = clock.elapsed().as_secs_f64();
    let end = audit.position()?;
    let work = audit.requests(NAMESPACE, start, end)?;
    let rest = sh::step("rest", || {
        // A fixed period is measured, so this sleeps instead of waiting for a condition.
        std::thread::sleep(REST);
        audit.requests(NAMESPACE, end, audit.position()?)
    })?;
    let report = json!({
        "seconds": seconds, "work": work.as_json(), "rest": rest.as_json(),
        "writes": work.n_writes(), "limit": limit(),
    });
    super::write(&paths::target().join("bench/node-set.json"), &report)?;
    println!("{}", serde_json::to_string_pretty(&report)?);
    judge(&work, &rest)?;
    let mut delete = env.kubectl();
    sh::run(delete.args(["delete", "namespace", NAMESPACE, "--wait=false"])).map(drop)
}

/// Returns the limit of writes: the minimum plus a tenth. The minimum is four for the node set, and
/// for each batch five per service and two of its own.
fn limit() -> u64 {
    let shards = HOSTS.div_ceil(SHARD);
    let least = 4 + shards * (5 * SERVICES + 2);
    (least + least / 10) as u64
}

fn judge(work: &Requests, rest: &Requests) -> Result<()> {
    let mut wrong = super::unseen(work, "work");
    wrong.extend(super::unseen(rest, "rest"));
    wrong.extend(rest.unexpected_at_rest());
    let (found, limit) = (work.n_writes(), limit());
    if found > limit {
        wrong.push(format!("{found} writes, and {limit} are allowed"));
    }
    if found < (SERVICES * HOSTS.div_ceil(SHARD)) as u64 {
        wrong.push(format!("only {found} writes were seen, so nothing was measured"));
    }
    wrong.extend(work.lists());
    if !wrong.is_empty() {
        bail!("limits are exceeded:\n  {}", wrong.join("\n  "));
    }
    println!("All limits of the second road hold.");
    Ok(())
}

/// Creates everything but the Deployment in a namespace of its own, after removing that of an
/// earlier bench.
fn prepare(env: &lab::Env) -> Result<()> {
    let mut delete = env.kubectl();
    sh::run(delete.args(["delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=true"]))?;
    controlplane::apply(env, &objects())?;
    sh::wait_for("the node set is set up, and its services are judged", DEPLOYMENT, || {
        let object = demo::get(env, NAMESPACE, "openstackdataplanenodeset", NAME)?;
        let ready = condition(&object, "SetupReady");
        ensure!(ready["status"] == "True", "{}: {}", ready["reason"], ready["message"]);
        for service in services() {
            let object = demo::get(env, NAMESPACE, "openstackdataplaneservice", &service)?;
            ensure!(!object["status"].is_null(), "{service} has no status");
        }
        Ok(())
    })
}

fn objects() -> String {
    let mut known_hosts = String::new();
    let mut nodes = serde_json::Map::new();
    for idx in 0..HOSTS {
        // Addresses of the documentation network; no pod runs that could connect to them.
        let address = format!("192.0.2.{}", idx + 1);
        let _ = writeln!(known_hosts, "{address} ssh-ed25519 AAAA");
        let ansible = json!({ "ansibleHost": address });
        nodes.insert(
            format!("bench-{idx:03}"),
            json!({ "hostName": format!("bench-{idx:03}"), "ansible": ansible }),
        );
    }
    let mut objects = vec![
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } }),
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": SSH_SECRET, "namespace": NAMESPACE },
            "stringData": { "ssh-privatekey": PRIVATE_KEY, "known_hosts": known_hosts },
        }),
    ];
    objects.extend(services().into_iter().map(|name| {
        let spec = json!({ "playbookContents": "- hosts: all\n  gather_facts: false\n" });
        dataplane("OpenStackDataPlaneService", &name, &spec)
    }));
    let template =
        json!({ "ansibleSSHPrivateKeySecret": SSH_SECRET, "ansible": { "ansibleUser": "nobody" } });
    let node_set = json!({
        "preProvisioned": true, "tlsEnabled": false, "services": services(),
        "nodeTemplate": template, "nodes": nodes,
    });
    objects.push(dataplane("OpenStackDataPlaneNodeSet", NAME, &node_set));
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    texts.join("\n---\n")
}

fn services() -> Vec<String> {
    (0..SERVICES).map(|it| format!("bench-{it}")).collect()
}

fn dataplane(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "dataplane.openstack.org/v1beta1", "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec,
    })
}

/// The Deployment; its node selector matches no node.
fn deployment() -> String {
    let spec = json!({ "nodeSets": [NAME], "ansibleJobNodeSelector": { "bench": "nowhere" } });
    dataplane("OpenStackDataPlaneDeployment", NAME, &spec).to_string()
}

/// Sets each pending pod's status to success on all its hosts.
fn complete(env: &lab::Env) -> Result<()> {
    let mut pods = list(env, "pods")?;
    pods.retain(|it| it["status"]["phase"] == "Pending");
    if pods.is_empty() {
        return Ok(());
    }
    let runs = list(env, "openstackansibleees")?;
    for pod in &pods {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let job = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"].as_str();
        let job = job.context("a pod without a Job")?;
        let Some(run) = runs.iter().find(|it| it["status"]["job"]["name"] == job) else {
            continue;
        };
        let n_hosts = run["spec"]["hosts"].as_array().map_or(0, Vec::len);
        let status = json!({ "status": ended(pod, n_hosts) }).to_string();
        let mut patch = env.kubectl();
        patch.args(["-n", NAMESPACE, "patch", "pod", name, "--subresource=status"]);
        sh::run(patch.args(["--type=merge", "-p", &status]))?;
    }
    Ok(())
}

/// Returns the status of a pod whose containers have all succeeded, the last one with a result.
fn ended(pod: &Value, n_hosts: usize) -> Value {
    let message = json!({ "v": 1, "hosts": "o".repeat(n_hosts), "changed": [], "failures": [] });
    let time = "2026-01-01T00:00:00Z";
    let of = |field: &str, message: &str| -> Vec<Value> {
        let containers = pod["spec"][field].as_array().into_iter().flatten();
        let ended = |it: &Value| {
            let terminated = json!({
                "exitCode": 0, "reason": "Completed", "message": message,
                "startedAt": time, "finishedAt": time,
            });
            json!({
                "name": it["name"], "image": it["image"], "imageID": "", "ready": false,
                "restartCount": 0, "state": { "terminated": terminated },
            })
        };
        containers.map(ended).collect()
    };
    json!({
        "phase": "Succeeded",
        "initContainerStatuses": of("initContainers", ""),
        "containerStatuses": of("containers", &message.to_string()),
    })
}

fn list(env: &lab::Env, kind: &str) -> Result<Vec<Value>> {
    let mut get = env.kubectl();
    let text = sh::run(get.args(["-n", NAMESPACE, "get", kind, "-o", "json"]))?;
    let list: Value = serde_json::from_str(&text)?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_a_tenth_more_than_the_least() {
        assert_eq!(limit(), 74, "1.1 × (4 + 2 × (5 × 6 + 2)), rounded down");
    }
}
