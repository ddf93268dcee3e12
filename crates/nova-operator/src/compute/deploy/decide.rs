//! The decisions on a compute: its files, its attempts, its runs and its status.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::conditions::Severity;
use api::dataplane::{RunState, ServiceRun};
use api::nova::ConfigFile;
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::annotations::REDEPLOY;
use nova_config::services::{LIBVIRT, NOVA, NOVA_REGISTERED};
use operator_core::finalizers::add_finalizer;
use operator_core::keyed::Digest;
use operator_core::plan::{Plan, Step};
use operator_core::rejected_write::{self, RejectedWrite};
use operator_core::run_engine::batches::batches;
use operator_core::run_engine::retry::Retries;
use operator_core::run_engine::service_sequence::{self, NeededRun, ServiceSequence, UNKNOWN};
use operator_core::run_engine::{
    DesiredService, Host, Run, SequenceState, build as engine, run_gc,
};

use crate::compute::credentials::observed::HeldObject;
use crate::compute::deploy::build::{connection, run_template, ssh, trust};
use crate::compute::deploy::config::{Files, Purpose};
use crate::compute::deploy::evaluation::Evaluation;
use crate::compute::deploy::health::Health;
use crate::compute::deploy::host_drain::HostDrain;
use crate::compute::deploy::inputs;
use crate::compute::deploy::inputs::{INSTANCE_INPUT, REDEPLOY_INPUT};
use crate::compute::deploy::messages::way_to_deploy;
use crate::compute::deploy::observed::Observed;
use crate::compute::deploy::preconditions::{is_cell_usable, is_node_usable};
use crate::compute::deploy::{
    config, host_order, identity, libvirt_tls, nova_matches, preconditions, repair, status,
    warnings,
};
use crate::compute_status::deployed_files::nova;
use crate::compute_status::registration::is_recorded;
use crate::finalizers;
use crate::nova::drain::order::OrderOfHost;
use crate::requested::cell_immutability::has_run;
use crate::rollout::deploy_strategy::deploys;

/// How long until a compute looks again for a kind that the cluster lacks.
const CRD_POLL_INTERVAL: Duration = Duration::from_mins(1);
/// How long a failed compute waits before it requests a slot for a retry again.
const SLOT_RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Returns the plan for a compute that the operator deploys and that stays, with the order about its host.
///
/// # Guarantees
/// The files are written before the attempt that needs them, and the attempt is recorded in the
/// status, and what its host then logs in with is held, before its run is created. The order follows
/// from what is recorded already.
pub fn decide(
    seen: &Observed,
    rejected: Option<&RejectedWrite>,
    now: Timestamp,
) -> Plan<OrderOfHost> {
    let mut plan = Plan::with_resync();
    let runs: Vec<Run<'_>> = seen.runs.iter().filter_map(|it| Run::of(it)).collect();
    let (mut evaluated, rendering) = evaluate(seen, &runs, now);
    plan.orders.extend(host_order::order(seen, &evaluated.drain));
    let mut later = holds(seen, &evaluated);
    later.extend(after_status(seen, &evaluated, &runs));
    evaluated.rejection =
        rejected_write::condition(rejected, seen.compute.conditions(), !later.is_empty());
    let is_usable = is_node_usable(seen, &evaluated.node);
    plan.independent.extend(libvirt_tls::steps(seen, is_usable));
    // Its deployment may be disabled, or its host not drained any more.
    let may_run = evaluated.deploy && !evaluated.drain.forbids_runs(seen);
    plan.steps.extend(withdrawn(seen, &evaluated.sequence, may_run, &runs));
    plan.steps.extend(finalizer_step(seen, evaluated.sequence.needed_run().is_some()));
    plan.steps.extend(rendering);
    if let Some(status) = status::step(seen, &evaluated, now) {
        plan.steps.extend(evaluated.renewing.map(|it| it.step));
        plan.steps.push(status);
    }
    plan.steps.extend(later);
    if libvirt_tls::wanted(seen).is_some() && !seen.certificate.issued.is_served {
        // No watch reports the arrival of cert-manager.
        plan.requeue_in(CRD_POLL_INTERVAL);
    }
    if let Some(at) = evaluated.health.changes_at {
        plan.requeue_at(at, now);
    }
    if let Some(at) = seen.audited.overdue_at(&seen.compute).filter(|it| *it > now) {
        plan.requeue_at(at, now);
    }
    if let Some(at) = evaluated.sequence.retry_at() {
        plan.requeue_at(at, now);
    } else if evaluated.blocked.is_some()
        && matches!(evaluated.sequence.state, SequenceState::Failed { .. })
    {
        // A retry that waits for a slot: no watch event reports a free slot in time.
        plan.requeue_in(SLOT_RETRY_INTERVAL);
    }
    plan
}

/// Returns the steps that hold what the host may log in with from now on.
fn holds(seen: &Observed, evaluated: &Evaluation) -> Vec<Step> {
    let used = status::credentials(seen, evaluated);
    let held = seen.held.objects.iter().filter(|it| used.contains(&it.credential));
    held.filter_map(HeldObject::hold).collect()
}

/// A compute with runs gets the finalizer, so that its host is cleaned up before it is deleted. A
/// compute that the operator created has it from its creation on.
pub fn finalizer_step(seen: &Observed, will_run: bool) -> Option<Step> {
    let because = "its host must be cleaned before it goes";
    (will_run || has_run(&seen.compute, !seen.runs.is_empty()))
        .then(|| add_finalizer(&*seen.compute, finalizers::COMPUTE, because))?
}

/// Deletes queued runs whose inputs have changed, that may not run any more, or that may not restore the
/// identity of the host any more.
pub fn withdrawn(
    seen: &Observed,
    sequence: &ServiceSequence,
    may_run: bool,
    runs: &[Run<'_>],
) -> Vec<Step> {
    let host = &seen.compute.spec.dataplane_node_name;
    let needs = |run: &Run<'_>, name: &str| {
        let is_wanted = may_run && name == host && sequence.wants(run, name);
        is_wanted && !identity::is_forbidden(seen, run.object)
    };
    run_gc::withdrawn(runs, needs)
}

/// Returns the steps for the run that is needed now, and those that delete superseded runs.
fn after_status(seen: &Observed, evaluated: &Evaluation, runs: &[Run<'_>]) -> Vec<Step> {
    let need = evaluated.sequence.needed_run().filter(|_| !evaluated.waits_for_drain);
    let mut steps = need.map(|it| new_run(seen, it, evaluated)).unwrap_or_default();
    let host = seen.compute.spec.dataplane_node_name.as_str();
    steps.extend(run_gc::superseded(runs, &BTreeMap::from([(host, seen.compute.services())])));
    steps
}

fn evaluate(seen: &Observed, runs: &[Run<'_>], now: Timestamp) -> (Evaluation, Option<Step>) {
    let drain = HostDrain::resolve(seen);
    let (input, complete) = preconditions::input(seen);
    let (node, cell) = (preconditions::node(seen), preconditions::cell(seen));
    let mut config = config::condition(&seen.compute, complete.as_ref());
    let is_untried = preconditions::is_untried(seen);
    let usable = complete.filter(|_| config.holds() && !is_untried);
    let of_services = usable.as_ref().map(|it| inputs::service_inputs(seen, it));
    if let Some(found) = config::of_others(seen).filter(|_| config.holds()) {
        config = found;
    }
    let deploy = deploys(&seen.compute, seen.node.as_deref());
    let is_bad = config.severity == Some(Severity::Error);
    let desired = of_services.as_ref().map_or_else(|| unknown(seen, is_bad), desired_services);
    let is_complete = usable.is_some() && config.holds() && input.holds();
    let is_usable = is_node_usable(seen, &node) && is_cell_usable(seen, &cell);
    let may_run = deploy && is_complete && is_usable && !identity::is_held(seen, &desired);
    let sequence = sequence(seen, runs, (seen.compute.services(), &desired), now);
    let sequence = if may_run { sequence } else { sequence.held() };
    // Why a run that is possible now has to wait.
    let blocked = sequence.needed_run().and_then(|_| seen.slot.blocked()).cloned();
    let sequence = if blocked.is_some() { sequence.held() } else { sequence };
    let recorded = nova_matches::to_record(seen.identity_sources(), &sequence.services, now);
    let health = Health::of(seen, &drain, (&recorded, &sequence.services), now);
    // The attempt is recorded before the drain begins, so that its host counts as unavailable.
    let waits_for_drain = sequence.needed_run().is_some() && drain.waits(seen);
    let rendered = match (&usable, &of_services) {
        (Some(complete), Some(inputs)) if config.holds() => {
            let is_attempt = !waits_for_drain && brings_files(&sequence);
            let hash = inputs::hash(NOVA, &[&inputs.nova]);
            let purpose = Purpose { inputs: &hash, is_attempt };
            config::files(seen, complete, &inputs.nova, purpose)
        }
        _ => Files::unchanged(recorded_files(seen)),
    };
    let evaluated = Evaluation {
        input,
        node,
        cell,
        config,
        warnings: warnings::condition(seen),
        rejection: None,
        deploy,
        inputs: of_services.map(|it| it.union()),
        files: rendered.listed,
        changed_files: rendered.changed,
        renewing: rendered.renewing,
        desired,
        sequence,
        recorded,
        health,
        in_sync: seen.audited.condition(&seen.compute, &repair::command(seen), now),
        identity: identity::condition(seen),
        drain,
        waits_for_drain,
        blocked,
        is_untried,
    };
    (evaluated, rendered.step)
}

/// Whether an attempt begins, or goes on, that has yet to bring the files to the host.
fn brings_files(sequence: &ServiceSequence) -> bool {
    let Some(need) = sequence.needed_run() else { return false };
    let is_due = nova(&sequence.services).is_some_and(|it| it.state != RunState::Succeeded);
    is_due && [LIBVIRT, NOVA].contains(&need.service.as_str())
}

fn recorded_files(seen: &Observed) -> Vec<ConfigFile> {
    seen.compute.status.as_ref().map(|it| it.config_files.clone()).unwrap_or_default()
}

/// Returns the services in order. The registration check depends on both others: a service that
/// restarts has to register again.
fn desired_services(inputs: &inputs::OfServices) -> Vec<DesiredService> {
    let hashes = [
        (LIBVIRT, inputs::hash(LIBVIRT, &[&inputs.libvirt])),
        (NOVA, inputs::hash(NOVA, &[&inputs.nova])),
        (NOVA_REGISTERED, inputs::hash(NOVA_REGISTERED, &[&inputs.libvirt, &inputs.nova])),
    ];
    hashes.into_iter().map(|(service, hash)| desired_service(service, hash)).collect()
}

/// Returns a service with the hash that it is to have on the host.
pub fn desired_service(service: &str, hash: Digest) -> DesiredService {
    let (service, run_hash, group) = (service.to_owned(), hash.clone(), String::new());
    DesiredService { service, run_hash, hash, group }
}

/// Assumes recorded hashes while inputs are unknown: a Secret or a cell that is missing does not
/// outdate a deployment. An invalid configuration is a pending change.
fn unknown(seen: &Observed, has_bad_config: bool) -> Vec<DesiredService> {
    [LIBVIRT, NOVA, NOVA_REGISTERED]
        .into_iter()
        .map(|service| {
            let record = seen.compute.services().iter().find(|it| it.name == service);
            let hash = Digest::from(match record {
                Some(record) if !has_bad_config || service == LIBVIRT => record.hash.clone(),
                _ => UNKNOWN.to_owned(),
            });
            desired_service(service, hash)
        })
        .collect()
}

/// Returns the service sequence of the host, of services as they are recorded and as they are desired.
pub fn sequence(
    seen: &Observed,
    runs: &[Run<'_>],
    (recorded, desired): (&[ServiceRun], &[DesiredService]),
    now: Timestamp,
) -> ServiceSequence {
    let compute = &seen.compute;
    let (ssh_secret, ssh_version) = ssh(compute, seen.ssh.as_ref());
    let (namespace, node) =
        (compute.namespace().unwrap_or_default(), &compute.spec.dataplane_node_name);
    let redeploy = way_to_deploy(compute, seen.node.as_deref());
    let trust = trust(seen.node.as_deref());
    let host = Host {
        name: node,
        desired,
        recorded,
        has_moved: false,
        ssh_key: (&ssh_secret, &ssh_version),
        trust: &trust,
        namespace: Some(&namespace),
        retries: Retries::Healing(&redeploy),
    };
    service_sequence::evaluate(&host, runs, now)
}

/// Whether a process that runs with the right files is to be restarted: a redeploy of the compute
/// or a repair was requested since the last deployment, or it is not known to have registered. A
/// redeploy of its node alone does not restart it, unless that repairs the host.
fn restarts(seen: &Observed, evaluated: &Evaluation) -> bool {
    let status = seen.compute.status.as_ref();
    let has_changed = |name: &str| {
        let deployed = status.and_then(|it| it.deployed_inputs.get(name).cloned());
        let present = evaluated.inputs.as_ref().and_then(|it| Some(it.get(name)?.text()));
        present != deployed
    };
    let repairs = repair::due(seen).is_some();
    let may_ask = repairs || seen.compute.annotations().contains_key(REDEPLOY);
    (may_ask && has_changed(REDEPLOY_INPUT))
        || (repairs && has_changed(INSTANCE_INPUT))
        || !is_recorded(&seen.compute, &evaluated.sequence.services)
}

fn new_run(seen: &Observed, need: &NeededRun, evaluated: &Evaluation) -> Vec<Step> {
    let (compute, node) = (&seen.compute, seen.node.as_deref());
    let host = compute.spec.dataplane_node_name.clone();
    let template = run_template(seen, &need.service, evaluated, restarts(seen, evaluated));
    let was_key_refused = evaluated.sequence.was_key_refused();
    let connection = connection(compute, node, seen.ssh.as_ref(), was_key_refused);
    let connection = BTreeMap::from([(host.clone(), connection)]);
    let needs = BTreeMap::from([(host, need.clone())]);
    batches(needs, 1, &BTreeSet::new())
        .iter()
        .map(|it| engine::run(&template, it, &connection))
        .collect()
}
