//! The cost of many hosts, on a simulated cluster whose runs take no time: requests, processor time,
//! memory, and how old the status of the role or node set becomes.

mod manifests;
mod meter;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use meter::{Meter, Phase};

use super::audit::n_writes;
use super::process::OPERATORS;
use crate::images::sources::{self, Profile};
use crate::{controlplane, lab, paths, sh, sim, sources as source_files};

/// The hosts of one batch, which share the runs.
const BATCH: usize = 50;
/// The most hosts of a node set.
const NODE_SET: usize = 500;
/// The resource of nodes.
const NODES: &str = "openstackdataplanenodes";
/// The writes to the node of a node set's host in its first deployment: it is created, described, begun
/// and ended, and its host has shown its key.
const NODE_WRITES: u64 = 5;
/// One of so many hosts may need a further one: where both controllers write its node, one is refused.
const CONFLICT_EVERY: u64 = 10;
/// How long a deployment that is over may still be held.
const RELEASE: Duration = Duration::from_secs(30);
/// The period after everything is ready in which nothing may be written.
const REST: Duration = Duration::from_secs(30);

/// How hosts are described.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(super) enum Road {
    /// A role, and then a node for each host.
    Role,
    /// A node set and its deployment.
    NodeSet,
}

/// The hosts of a measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fleet {
    pub(super) road: Road,
    pub(super) nodes: usize,
}

/// Measures the first deployment of the hosts, and the rest after it.
///
/// The programs are the simulated cluster's and the operators' in this directory; without it the
/// operators are compiled as users get them.
pub(super) fn measure(fleet: Fleet, programs: Option<&Path>, json: Option<&Path>) -> Result<()> {
    let most = fleet.road.most();
    ensure!(fleet.nodes <= most, "{} hosts: there are {most} at most", fleet.nodes);
    let _lock = sh::lock("bench")?;
    let programs = match programs {
        Some(folder) => std::path::absolute(folder)?,
        None => compile()?,
    };
    let folder = std::path::absolute(paths::target().join("bench/cluster"))?;
    let measured = start(&programs, &folder).and_then(|(env, cluster)| {
        let mut meter = Meter::new(&env.audit_log, cluster.process.pid, fleet.road.objects())?;
        deploy(fleet, &env, &mut meter)?;
        Ok(meter.phases)
    });
    sim::stop(&folder)?;
    let phases = measured?;
    println!("\n{}", report::table(&phases));
    if let Some(path) = json {
        super::write(path, &report::as_json(fleet, &phases))?;
    }
    judge(fleet, &phases)
}

/// Compiles the simulated cluster, and the operators as released, into one directory.
fn compile() -> Result<PathBuf> {
    let folder = std::path::absolute(paths::target().join("bench/programs"))?;
    let cluster = sim::compile()?;
    sh::step("compile and optimize the operators", || {
        let target = std::path::absolute(paths::compiled())?;
        sources::compile(&paths::repo(), Profile::Release, &target, &sources::emptied(&folder)?)
    })?;
    fs::copy(&cluster, folder.join(sim::PROGRAM))
        .with_context(|| format!("copy {}", cluster.display()))?;
    Ok(folder)
}

/// Starts a simulated cluster with an audit log.
fn start(programs: &Path, folder: &Path) -> Result<(lab::Env, sim::Cluster)> {
    let program = programs.join(sim::PROGRAM);
    ensure!(program.is_file(), "there is no {}", program.display());
    let (policy, audit_log) =
        (folder.with_file_name("audit-policy.yaml"), folder.with_file_name("audit.log"));
    sh::write_if_changed(&policy, lab::AUDIT_POLICY)?;
    fs::write(&audit_log, "")?;
    let cluster = sim::start(&program, folder, |command| {
        command.arg("--at-once").arg("--audit-policy").arg(&policy);
        command.arg("--audit-log").arg(&audit_log);
    })?;
    let env = lab::Env {
        kubeconfig: cluster.kubeconfig.clone(),
        bin: cluster.bin.clone(),
        registry: String::new(),
        plain_http: true,
        audit_log,
    };
    Ok((env, cluster))
}

/// Deploys the hosts, and rests.
fn deploy(fleet: Fleet, env: &lab::Env, meter: &mut Meter) -> Result<()> {
    controlplane::apply(env, &manifests::prerequisites())?;
    let default_services = source_files::files("crates/dataplane-operator/services", ".yaml")?;
    let least = fleet.least_writes(default_services.len());
    meter.measure("first deployment", Some(least), || {
        let mut create = env.kubectl();
        create.args(["create", "--filename=-"]);
        sh::run_with_input(&mut create, manifests::of(fleet).as_bytes())?;
        wait_until_ready(fleet, env)
    })?;
    meter.measure("rest", Some(0), || {
        // A fixed period is measured, so this sleeps instead of waiting for a condition.
        std::thread::sleep(REST);
        Ok(())
    })
}

/// Waits until every host is ready, and what sums them up, and until nothing holds the deployment.
fn wait_until_ready(fleet: Fleet, env: &lab::Env) -> Result<()> {
    // Several times of what hosts of a role need on two busy cores.
    let within = 300 + fleet.nodes;
    let (all, ready) =
        (format!("jsonpath={{.status.readyNodes}}={}", fleet.nodes), "condition=Ready".to_owned());
    for resource in fleet.road.objects() {
        let object = format!("{resource}/{}", manifests::NAME);
        // A deployment counts no hosts; the others are ready before they have any.
        let counts = (*resource != manifests::DEPLOYMENTS).then_some(&all);
        for condition in counts.into_iter().chain([&ready]) {
            let mut wait = kubectl(env);
            wait.arg("wait").arg(&object).arg(format!("--for={condition}"));
            sh::run(wait.arg(format!("--timeout={within}s"))).map_err(|error| {
                let mut get = kubectl(env);
                get.args(["get", &object, "-o", "jsonpath={.status.conditions}"]);
                error.context(sh::run(&mut get).unwrap_or_default())
            })?;
        }
    }
    if fleet.road == Road::NodeSet { wait_until_released(env) } else { Ok(()) }
}

/// Waits until the deployment has lost its finalizer, once the node set has recorded its end.
fn wait_until_released(env: &lab::Env) -> Result<()> {
    sh::wait_for("the deployment is held", RELEASE, || {
        let object = format!("{}/{}", manifests::DEPLOYMENTS, manifests::NAME);
        let mut get = kubectl(env);
        get.args(["get", &object, "-o", "jsonpath={.metadata.finalizers}"]);
        let finalizers = sh::run(&mut get)?;
        ensure!(finalizers.trim().is_empty(), "finalizers {finalizers}");
        Ok(())
    })
}

fn kubectl(env: &lab::Env) -> Command {
    let mut kubectl = env.kubectl();
    kubectl.args(["--namespace", manifests::NAMESPACE]);
    kubectl
}

/// Checks that something was measured, that nodes of a node set are not written too often, and that
/// nothing was written or read at rest. Events count several runs, and may be written later; kinds of
/// others that are not there are looked for each minute.
fn judge(fleet: Fleet, phases: &[Phase]) -> Result<()> {
    let Some((rest, before)) = phases.split_last() else { bail!("nothing was measured") };
    let writes = |it: &Phase| OPERATORS.iter().map(|of| n_writes(&it.requests.of(of))).sum::<u64>();
    ensure!(
        before.iter().map(writes).sum::<u64>() > 0,
        "the audit log has no write of an operator"
    );
    let mut wrong = rest.requests.unexpected_at_rest();
    wrong.retain(|it| !it.ends_with(" events") && !it.ends_with(" get "));
    let n_written: u64 = before.iter().map(writes_to_nodes).sum();
    let n_hosts = fleet.nodes as u64;
    let most = NODE_WRITES * n_hosts + n_hosts / CONFLICT_EVERY;
    if fleet.road == Road::NodeSet && n_written > most {
        wrong.push(format!("{n_written} writes to nodes, where {most} are due at most"));
    }
    ensure!(wrong.is_empty(), "limits are exceeded:\n  {}", wrong.join("\n  "));
    println!("All limits hold.");
    Ok(())
}

/// Returns how often dataplane-operator wrote nodes and their statuses.
fn writes_to_nodes(phase: &Phase) -> u64 {
    let is_about = |it: &str| it.split([' ', '/']).nth(1) == Some(NODES);
    let mut requests = phase.requests.of("dataplane-operator");
    requests.retain(|it, _| is_about(it));
    n_writes(&requests)
}

impl Road {
    /// Returns the most hosts that a measurement may have.
    fn most(self) -> usize {
        match self {
            Self::Role => manifests::ADDRESSES,
            Self::NodeSet => NODE_SET,
        }
    }

    /// Returns the resources of the objects whose status sums up the hosts.
    fn objects(self) -> &'static [&'static str] {
        match self {
            Self::Role => &[manifests::ROLES],
            Self::NodeSet => &[manifests::DEPLOYMENTS, manifests::NODE_SETS],
        }
    }
}

impl Fleet {
    /// Returns the least writes of a first deployment, Events apart: two for each default service;
    /// for each batch two, and five for each service; four for each node, and for the node set.
    fn least_writes(self, default_services: usize) -> u64 {
        let objects = match self.road {
            Road::Role => self.nodes,
            Road::NodeSet => self.nodes + 1,
        };
        let batches = self.nodes.div_ceil(BATCH);
        let runs = batches * (5 * manifests::SERVICES.len() + 2);
        (4 * objects + runs + 2 * default_services) as u64
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_least_writes_are_those_of_objects_batches_and_services() {
        let of = |road, nodes| Fleet { road, nodes }.least_writes(36);
        assert_eq!([of(Road::Role, 200), of(Road::Role, 5000)], [980, 22_772]);
        assert_eq!([of(Road::NodeSet, 200), of(Road::NodeSet, 201)], [984, 1015]);
    }

    #[test]
    fn nothing_but_leases_watches_and_events_may_follow_the_deployment() {
        let phase = |requests: &[(&str, &str)]| Phase::of("x", requests);
        let work = phase(&[("patch", "secrets"), ("list", "secrets")]);
        let rest = [("update", "leases"), ("watch", "jobs"), ("patch", "events"), ("get", "")];
        let judge = |it: &[Phase]| judge(Fleet { road: Road::Role, nodes: 1 }, it);
        judge(&[work.clone(), phase(&rest)]).unwrap();
        let error = judge(&[work.clone(), phase(&[("get", "secrets")])]).unwrap_err().to_string();
        assert!(error.ends_with("at rest: dataplane-operator: 1 × get secrets"), "{error}");
        assert!(judge(&[phase(&rest), phase(&rest)]).is_err(), "nothing was measured");
        assert!(judge(&[]).is_err());
    }

    #[test]
    fn nodes_of_a_node_set_that_are_written_too_often_are_reported() {
        let judge = |requests: &[(&str, &str)]| {
            let phases = [Phase::of("work", requests), Phase::of("rest", &[])];
            judge(Fleet { road: Road::NodeSet, nodes: 1 }, &phases)
        };
        let mut requests = vec![("create", NODES), ("get", NODES), ("patch", manifests::NODE_SETS)];
        requests.extend([("patch", "openstackdataplanenodes/status"); 4]);
        judge(&requests).unwrap();
        requests.push(("patch", NODES));
        let error = judge(&requests).unwrap_err().to_string();
        assert!(error.ends_with("6 writes to nodes, where 5 are due at most"), "{error}");
    }

    #[test]
    fn every_object_of_a_fleet_is_made_with_the_names_that_are_waited_for() {
        for (road, n_objects) in [(Road::Role, 4), (Road::NodeSet, 2)] {
            let text = manifests::of(Fleet { road, nodes: 3 });
            let objects: Vec<serde_json::Value> =
                text.split("\n---\n").map(|it| serde_json::from_str(it).unwrap()).collect();
            assert_eq!(objects.len(), n_objects);
            for resource in road.objects() {
                let is_it = |it: &&serde_json::Value| {
                    format!("{}s", it["kind"].as_str().unwrap()).to_lowercase() == *resource
                };
                let found = objects.iter().find(is_it).unwrap();
                assert_eq!(found["metadata"]["name"], json!(manifests::NAME));
            }
        }
    }
}
