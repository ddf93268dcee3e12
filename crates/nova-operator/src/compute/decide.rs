//! The judgement on a compute: its files, its attempts, its runs, and what its status says.

use std::collections::BTreeMap;
use std::time::Duration;

use common::api::nova::ConfigFile;
use common::conditions::{Finding, Severity};
use common::engine::chain::{self, Chain, Need};
use common::engine::shards::shards;
use common::engine::{Host, Run, State, Wanted, build as engine, tidy};
use common::plan::{Plan, Step, Write};
use common::refusal::{self, Refusal, WRITES_ACCEPTED};
use jiff::Timestamp;
use kube::ResourceExt;

use crate::annotations::REDEPLOY;
use crate::compute::build::{LIBVIRT, NOVA, NOVA_REGISTERED, reach, recipe, ssh};
use crate::compute::inputs::{self, Inputs};
use crate::compute::observe::Observed;
use crate::compute::waits;
use crate::compute::{config, status, warnings};

/// A look without a cause, for whatever no watch tells.
const RESYNC: Duration = Duration::from_mins(15);

/// Everything that was judged of a compute.
pub struct Judged {
    /// Whether every input is there.
    pub input: Finding,
    /// Whether the node can be used.
    pub node: Finding,
    /// Whether the cell can be used.
    pub cell: Finding,
    /// Whether the files are rendered.
    pub config: Finding,
    /// What is surprising in the human's options.
    pub warnings: Finding,
    /// What is said of a refused write, if there was one.
    pub refusal: Option<Finding>,
    /// Whether runs are wanted at all.
    pub deploy: bool,
    /// All inputs, where they are complete.
    pub inputs: Option<Inputs>,
    /// The files, where they are rendered.
    pub files: Vec<ConfigFile>,
    /// Where the host stands.
    pub chain: Chain,
}

/// Judges a compute.
///
/// # Guarantees
/// The files are written before the attempt that needs them, and the attempt stands in the status
/// before the run that carries it is created.
pub fn decide(seen: &Observed, now: Timestamp) -> Plan {
    plan(seen, None, now)
}

/// What is told when a write was refused: the same judgement, with that said.
pub fn refused(seen: &Observed, refusal: &Refusal, now: Timestamp) -> Plan {
    let mut plan = plan(seen, Some(refusal), now);
    plan.steps.retain(|it| matches!(it.write, Write::Status { .. }));
    plan
}

fn plan(seen: &Observed, refusal: Option<&Refusal>, now: Timestamp) -> Plan {
    let mut plan = Plan { look_again: Some(RESYNC), ..Plan::default() };
    if seen.compute.metadata.deletion_timestamp.is_some() {
        return plan;
    }
    let runs: Vec<Run<'_>> = seen.runs.iter().filter_map(|it| Run::of(it)).collect();
    let (mut judged, rendering) = judge(seen, &runs, now);
    let later = after_status(seen, &judged, &runs);
    judged.refusal = refusal_finding(seen, refusal, !later.is_empty());
    plan.steps.extend(rendering);
    plan.steps.extend(status::step(seen, &judged, now));
    plan.steps.extend(later);
    if let State::Failed { retry_at: Some(at), .. } = &judged.chain.state {
        plan.look_again_at(*at, now);
    }
    plan
}

/// The run that is needed now, and those that nobody needs any more.
fn after_status(seen: &Observed, judged: &Judged, runs: &[Run<'_>]) -> Vec<Step> {
    let mut steps = match &judged.chain.state {
        State::NeedsRun(need) => new_run(seen, need, &judged.files),
        State::Done | State::OutOfDate | State::InRun { .. } | State::Failed { .. } => vec![],
    };
    let recorded = seen.compute.status.as_ref().map(|it| it.services.as_slice());
    let host = seen.compute.spec.dataplane_node_name.as_str();
    let recorded = BTreeMap::from([(host, recorded.unwrap_or_default())]);
    steps.extend(tidy::superseded(runs, &recorded));
    steps
}

/// What is said of a refused write: of this one, or of the last one for as long as writes are still
/// to be made after the status. Those before it have succeeded when it is written.
fn refusal_finding(
    seen: &Observed,
    refusal: Option<&Refusal>,
    is_waiting: bool,
) -> Option<Finding> {
    let status = seen.compute.status.as_ref();
    let previous = status.map(|it| it.conditions.as_slice()).unwrap_or_default();
    match refusal {
        Some(refusal) => Some(refusal.finding(WRITES_ACCEPTED, previous)),
        None if is_waiting => refusal::told(previous),
        None => None,
    }
}

fn judge(seen: &Observed, runs: &[Run<'_>], now: Timestamp) -> (Judged, Option<Step>) {
    let (input, complete) = waits::input(seen);
    let config = config::finding(&seen.compute, complete.as_ref());
    let usable = complete.filter(|_| config.holds());
    let of_services = usable.as_ref().map(|it| inputs::of(seen, it));
    let (files, rendering) = match (&usable, &of_services) {
        (Some(complete), Some(inputs)) => config::files(seen, complete, &inputs.nova),
        _ => (recorded_files(seen), None),
    };
    let deploy = deploy(seen);
    let may_run = deploy
        && usable.is_some()
        && input.holds()
        && waits::is_node_usable(seen)
        && waits::is_cell_usable(seen);
    let wanted = match &of_services {
        Some(inputs) => wanted(inputs),
        None => unknown(seen, config.severity == Some(Severity::Error)),
    };
    let chain = chain(seen, runs, &wanted, may_run, now);
    let judged = Judged {
        input,
        node: waits::node(seen),
        cell: waits::cell(seen),
        config,
        warnings: warnings::finding(seen),
        refusal: None,
        deploy,
        inputs: of_services.map(|it| it.union()),
        files,
        chain,
    };
    (judged, rendering)
}

/// The compute's own field follows the node's; a compute that a human made may leave it out.
fn deploy(seen: &Observed) -> bool {
    let of_node = || seen.node.as_ref().and_then(|it| it.status.as_ref()?.deploy);
    seen.compute.spec.deploy.or_else(of_node).unwrap_or(false)
}

fn recorded_files(seen: &Observed) -> Vec<ConfigFile> {
    seen.compute.status.as_ref().map(|it| it.config_files.clone()).unwrap_or_default()
}

/// The services in order. Whoever asks depends on both others: what restarts is to register again.
fn wanted(inputs: &inputs::OfServices) -> Vec<Wanted> {
    let hashes = [
        (LIBVIRT, inputs::hash(LIBVIRT, &[&inputs.libvirt])),
        (NOVA, inputs::hash(NOVA, &[&inputs.nova])),
        (NOVA_REGISTERED, inputs::hash(NOVA_REGISTERED, &[&inputs.libvirt, &inputs.nova])),
    ];
    hashes
        .into_iter()
        .map(|(service, hash)| Wanted {
            service: service.to_owned(),
            run_hash: hash.clone(),
            hash,
            group: String::new(),
        })
        .collect()
}

/// What cannot be told at present is taken to be as it was: a Secret that is gone, or a cell, makes
/// nothing undone that was deployed. Options that cannot be read are a change that waits.
fn unknown(seen: &Observed, has_bad_config: bool) -> Vec<Wanted> {
    let recorded = seen.compute.status.as_ref().map(|it| it.services.as_slice());
    [LIBVIRT, NOVA, NOVA_REGISTERED]
        .into_iter()
        .map(|service| {
            let record = recorded.unwrap_or_default().iter().find(|it| it.name == service);
            let hash = match record {
                Some(record) if !has_bad_config || service == LIBVIRT => record.hash.clone(),
                _ => "unknown".to_owned(),
            };
            Wanted {
                service: service.to_owned(),
                run_hash: hash.clone(),
                hash,
                group: String::new(),
            }
        })
        .collect()
}

fn chain(
    seen: &Observed,
    runs: &[Run<'_>],
    wanted: &[Wanted],
    may_run: bool,
    now: Timestamp,
) -> Chain {
    let compute = &seen.compute;
    let recorded = compute.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default();
    let (ssh_secret, ssh_version) = ssh(seen);
    let redeploy = format!(
        "kubectl annotate --overwrite -n {} novaexternalcompute/{} {REDEPLOY}=\"$(date +%s)\"",
        compute.namespace().unwrap_or_default(),
        compute.name_any()
    );
    let host = Host {
        name: &compute.spec.dataplane_node_name,
        wanted,
        recorded,
        may_run,
        ssh_key: (&ssh_secret, &ssh_version),
        redeploy: &redeploy,
    };
    chain::judge(&host, runs, now)
}

fn new_run(seen: &Observed, need: &Need, files: &[ConfigFile]) -> Vec<Step> {
    let host = seen.compute.spec.dataplane_node_name.clone();
    let recipe = recipe(seen, &need.service, files);
    let reach = BTreeMap::from([(host.clone(), reach(seen))]);
    let needs = BTreeMap::from([(host, need.clone())]);
    shards(needs, 1).iter().map(|it| engine::run(&recipe, it, &reach)).collect()
}
