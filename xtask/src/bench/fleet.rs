//! The cost of many hosts, on a simulated cluster whose runs take no time: requests, processor time,
//! memory, and how old the statuses become that sum up the hosts.

pub(crate) mod check;
mod control;
mod least;
mod manifests;
mod meter;
mod operation;
mod report;
mod step;
mod wait;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum as _;
use manifests::NODES;
use meter::{Meter, Phase, work_at_rest};
use operation::Operation;
use step::Step;

use super::audit::n_writes;
use crate::images::sources::{self, Profile};
use crate::{lab, paths, sh, sim, sources as source_files};

/// The writes to the node of a node set's host in its first deployment: it is created, described, begun
/// and ended.
const NODE_WRITES: u64 = 4;
/// One of so many hosts may need a further one: where both controllers write its node, one is refused.
const CONFLICT_EVERY: u64 = 4;
/// The seconds between two readings of nova's API.
const NOVA_INTERVAL: u8 = 5;

/// What is measured of how many hosts.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Measure that many hosts on a simulated cluster instead.
    #[arg(long, value_name = "N", requires = "road")]
    #[arg(conflicts_with_all = ["write_baseline", "audit_log", "kubeconfig", "registry"])]
    nodes: Option<usize>,
    /// How these hosts are described.
    #[arg(long, requires = "nodes")]
    road: Option<Road>,
    /// Create the nodes before their role.
    #[arg(long, requires = "nodes")]
    nodes_first: bool,
    /// The steps that are measured after the first deployment; all of them when none is named.
    #[arg(long, value_delimiter = ',', requires = "nodes")]
    phases: Vec<Step>,
    /// The seconds of the step `idle`.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "nodes")]
    idle: u64,
    /// Write the figures of these hosts into a file as well.
    #[arg(long, value_name = "FILE", requires = "nodes")]
    json: Option<PathBuf>,
    /// Write the tables into a file as well.
    #[arg(long, value_name = "FILE", requires = "nodes")]
    markdown: Option<PathBuf>,
}

/// How hosts are described.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(super) enum Road {
    /// A role, and a node for each host.
    Role,
    /// Node sets of at most 500 hosts, and a deployment for every five of them.
    NodeSet,
    /// A role whose nodes have computes, with a nova that answers.
    Compute,
}

/// The hosts of a measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fleet {
    road: Road,
    nodes: usize,
    /// Whether nodes are created before their role.
    nodes_first: bool,
}

impl Options {
    /// Returns the hosts that are asked for.
    pub(super) fn fleet(&self) -> Option<Fleet> {
        let (nodes, road) = self.nodes.zip(self.road)?;
        Some(Fleet { road, nodes, nodes_first: self.nodes_first })
    }
}

/// Measures the steps that are asked for, and prints and writes the figures.
///
/// The programs are the simulated cluster's and the operators' in this directory; without it the
/// operators are compiled as users get them.
pub(super) fn main(fleet: Fleet, options: &Options, programs: Option<&Path>) -> Result<()> {
    let steps = Step::chosen(&options.phases, fleet.road);
    fleet.check(&steps)?;
    let programs = match programs {
        Some(folder) => std::path::absolute(folder)?,
        None => compile()?,
    };
    let (phases, ended) = measure(fleet, &steps, Duration::from_secs(options.idle), &programs)?;
    let tables = report::markdown(fleet, &phases);
    println!("\n{tables}");
    if let Some(path) = &options.markdown {
        sh::write_if_changed(path, &tables)?;
    }
    if let Some(path) = &options.json {
        super::write(path, &report::as_json(fleet, &phases))?;
    }
    ended?;
    judge(fleet, &phases)?;
    println!("All limits hold.");
    Ok(())
}

/// Measures each step alone, on a cluster of its own. Returns what was measured, and whether all steps
/// were: those before a failure have taken long.
fn measure(
    fleet: Fleet,
    steps: &[Step],
    idle: Duration,
    programs: &Path,
) -> Result<(Vec<Phase>, Result<()>)> {
    let _lock = sh::lock("bench")?;
    let folder = std::path::absolute(paths::target().join("bench/cluster"))?;
    let measured = start(fleet.road, programs, &folder).and_then(|(env, cluster)| {
        let mut meter = Meter::new(&env.audit_log, cluster.process.pid, fleet.road.sums())?;
        let services = source_files::files("crates/dataplane-operator/services", ".yaml")?;
        let mut operation = Operation::new(fleet, &env, socket(&folder))?;
        let ended = steps.iter().copied().try_for_each(|step| {
            operation.prepare(step)?;
            let least = least::of(fleet, step, services.len());
            let work = || operation.carry_out(step, idle);
            meter.measure(step.name(), least, step.quiet(), work)
        });
        Ok((meter.phases, ended))
    });
    sim::stop(&folder)?;
    measured
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

/// Returns where the cluster of that directory takes orders.
fn socket(folder: &Path) -> PathBuf {
    folder.join("control")
}

/// Starts a simulated cluster with an audit log.
fn start(road: Road, programs: &Path, folder: &Path) -> Result<(lab::Env, sim::Cluster)> {
    let program = programs.join(sim::PROGRAM);
    ensure!(program.is_file(), "there is no {}", program.display());
    let (policy, audit_log) =
        (folder.with_file_name("audit-policy.yaml"), folder.with_file_name("audit.log"));
    sh::write_if_changed(&policy, lab::AUDIT_POLICY)?;
    fs::write(&audit_log, "")?;
    let cluster = sim::start(&program, folder, |command| {
        command.arg("--at-once").arg("--audit-policy").arg(&policy);
        command.arg("--audit-log").arg(&audit_log).arg("--control").arg(socket(folder));
        if road == Road::Compute {
            command.args(["--set", "nova.api.enabled=true", "--set"]);
            command.arg(format!("nova.api.interval={NOVA_INTERVAL}"));
        }
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

/// Checks that something was measured, that nodes of a node set are not written too often, and that
/// nothing is written or read at rest, nor written after a restart.
fn judge(fleet: Fleet, phases: &[Phase]) -> Result<()> {
    let Some(first) = phase_of(phases, Step::First) else { bail!("nothing was measured") };
    ensure!(first.n_writes() > 0, "the audit log has no write of an operator");
    let mut wrong: Vec<String> =
        phase_of(phases, Step::Idle).map(|it| work_at_rest(&it.requests)).unwrap_or_default();
    let n_restarted = phase_of(phases, Step::Restart).map(Phase::n_writes).unwrap_or_default();
    if n_restarted > 0 {
        wrong.push(format!("{n_restarted} writes after a restart"));
    }
    let (n_written, n_hosts) = (writes_to_nodes(first), fleet.nodes as u64);
    let most = NODE_WRITES * n_hosts + n_hosts / CONFLICT_EVERY;
    if fleet.road == Road::NodeSet && n_written > most {
        wrong.push(format!("{n_written} writes to nodes, where {most} are due at most"));
    }
    ensure!(wrong.is_empty(), "limits are exceeded:\n  {}", wrong.join("\n  "));
    Ok(())
}

/// Returns what a step has cost; `None` when it was not measured.
fn phase_of(phases: &[Phase], step: Step) -> Option<&Phase> {
    let name = step.name();
    phases.iter().find(|it| it.name == name)
}

/// Returns how often dataplane-operator wrote nodes and their statuses.
fn writes_to_nodes(phase: &Phase) -> u64 {
    let is_about = |it: &str| it.split([' ', '/']).nth(1) == Some(NODES);
    let mut requests = phase.requests.of("dataplane-operator");
    requests.retain(|it, _| is_about(it));
    n_writes(&requests)
}

impl Road {
    /// Returns its name as on the command line.
    fn name(self) -> String {
        self.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns the resources of the objects whose status sums up the hosts.
    fn sums(self) -> &'static [&'static str] {
        match self {
            Self::Role => &[manifests::ROLES],
            Self::NodeSet => &[manifests::DEPLOYMENTS, manifests::NODE_SETS],
            Self::Compute => &[manifests::CELLS, manifests::ROLES],
        }
    }

    /// Returns the resources of the objects that are there once for each host.
    fn hosts(self) -> &'static [&'static str] {
        match self {
            Self::Role | Self::NodeSet => &[NODES],
            Self::Compute => &[NODES, manifests::COMPUTES],
        }
    }
}

impl Fleet {
    /// Returns an error when it cannot be measured like that.
    fn check(self, steps: &[Step]) -> Result<()> {
        let (n, most) = (self.nodes, manifests::MOST);
        ensure!((1..=most).contains(&n), "{n} hosts: there are one to {most}");
        let is_set = self.road == Road::NodeSet;
        ensure!(!(is_set && self.nodes_first), "a node set makes its nodes itself");
        let road = self.road.name();
        if let Some(step) = steps.iter().find(|it| !it.is_of(self.road)) {
            bail!("there is no step {} on the road {road}", step.name());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Fleet = Fleet { road: Road::NodeSet, nodes: 1, nodes_first: false };

    #[test]
    fn nothing_but_leases_watches_and_events_may_follow_the_deployment() {
        let phase = |step: Step, requests: &[(&str, &str)]| Phase::of(&step.name(), requests);
        let work = phase(Step::First, &[("patch", "secrets"), ("list", "secrets")]);
        let rest = [("update", "leases"), ("watch", "jobs"), ("patch", "events"), ("get", "")];
        let judge = |it: &[Phase]| judge(Fleet { road: Road::Role, ..ONE }, it);
        judge(&[work.clone(), phase(Step::Idle, &rest)]).unwrap();
        let read = phase(Step::Idle, &[("get", "secrets")]);
        let error = judge(&[work.clone(), read]).unwrap_err().to_string();
        assert!(error.ends_with("at rest: dataplane-operator: 1 × get secrets"), "{error}");
        judge(&[work.clone(), phase(Step::Restart, &[("list", "secrets")])]).unwrap();
        let written = phase(Step::Restart, &[("patch", "secrets")]);
        let error = judge(&[work, written]).unwrap_err().to_string();
        assert!(error.ends_with("1 writes after a restart"), "{error}");
        assert!(judge(&[phase(Step::First, &rest)]).is_err(), "nothing was measured");
        assert!(judge(&[]).is_err());
    }

    #[test]
    fn nodes_of_a_node_set_that_are_written_too_often_are_reported() {
        let judge = |requests: &[(&str, &str)]| judge(ONE, &[Phase::of("first", requests)]);
        let mut requests = vec![("create", NODES), ("get", NODES), ("patch", manifests::NODE_SETS)];
        requests.extend([("patch", "openstackdataplanenodes/status"); 3]);
        judge(&requests).unwrap();
        requests.push(("patch", NODES));
        let error = judge(&requests).unwrap_err().to_string();
        assert!(error.ends_with("5 writes to nodes, where 4 are due at most"), "{error}");
    }

    #[test]
    fn what_a_road_does_not_have_is_refused() {
        let check = |fleet: Fleet, steps: &[Step]| fleet.check(steps);
        check(ONE, &[Step::First]).unwrap();
        assert!(check(Fleet { nodes: 0, ..ONE }, &[]).is_err());
        assert!(check(Fleet { nodes: manifests::MOST + 1, ..ONE }, &[]).is_err());
        assert!(check(Fleet { nodes_first: true, ..ONE }, &[]).is_err());
        let error = check(ONE, &[Step::First, Step::Drain]).unwrap_err().to_string();
        assert_eq!(error, "there is no step drain on the road node-set");
        check(Fleet { road: Road::Compute, nodes: 5, nodes_first: true }, &[Step::Drain]).unwrap();
    }
}
