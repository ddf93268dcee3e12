//! The decisions on a compute that a service of type nova deploys: its host is looked after, and nothing
//! runs there but the restoration of a lost identity.

use api::conditions::{self, ConditionDraft, READY};
use api::dataplane::{Node, RunState, SeenDeployment, ServiceRun};
use api::nova::{ExternalCompute, ExternalComputeStatus};
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::conditions::DEPLOYMENT_READY;
use nova_config::services::{NOVA_RESTORE, NOVA_TYPE};
use operator_core::keyed::Digest;
use operator_core::plan::{Plan, Step, Target, status_step};
use operator_core::rejected_write::{self, RejectedWrite};
use operator_core::run_engine::host_guests::with_look;
use operator_core::run_engine::outcome::FailureReason;
use operator_core::run_engine::run_template::{Play, RunTemplate};
use operator_core::run_engine::service_sequence::{NeededRun, ServiceSequence};
use operator_core::run_engine::{DesiredService, Run, SequenceState, last_run, run_gc};
use serde_json::json;

use crate::compute::deploy::build::{connection, plain_run_template};
use crate::compute::deploy::decide::{finalizer_step, withdrawn};
use crate::compute::deploy::drain::{self, HostDrain};
use crate::compute::deploy::evaluate::sequence;
use crate::compute::deploy::health::Health;
use crate::compute::deploy::host_facts::HostFacts;
use crate::compute::deploy::inputs::desired_service;
use crate::compute::deploy::observed::Observed;
use crate::compute::deploy::{identity, nova_matches, preconditions, repair};
use crate::compute::host_layout::layout;
use crate::compute_status::registration::{proof, recorded_proof};
use crate::nova::drain::order::OrderOfHost;
use crate::nova::identity::Identity;
use crate::reasons;
use crate::requested::mounted_cell::NovaServices;

/// The operator's own play, which looks for guests first.
const PLAY: &str = include_str!("../../../plays/nova-restore.yaml");

/// What follows from what was observed.
struct Evaluation<'a> {
    /// The run that restores the identity of the host, where it has lost it.
    restoration: ServiceSequence,
    /// The records of the compute.
    services: Vec<ServiceRun>,
    /// The identity of the host in nova that is recorded now.
    recorded: Identity,
    /// What is requested for the servers of the host.
    drain: HostDrain<'a>,
    /// What nova's API says.
    health: Health,
    /// Whether the cell can be used.
    cell: ConditionDraft,
    /// Whether the services of the node have no other cell.
    cell_matches: ConditionDraft,
    /// What is known of the audits of the host; `None` where none are requested.
    in_sync: Option<ConditionDraft>,
    /// That repairs are asked for, which repair nothing; `None` where none are.
    no_repair: Option<ConditionDraft>,
    /// The condition for a rejected write, or `None` without one.
    rejection: Option<ConditionDraft>,
}

/// Returns the plan for a compute that stays, with the order about its host.
///
/// # Guarantees
/// The attempt of a run is recorded in the status before the run is created.
pub fn decide(
    seen: &Observed,
    rejected: Option<&RejectedWrite>,
    now: Timestamp,
) -> Plan<OrderOfHost> {
    let mut plan = Plan::with_resync();
    let runs = seen.runs.iter().filter_map(|it| Run::of(it));
    let runs: Vec<Run<'_>> = runs.filter(|it| it.service == NOVA_RESTORE).collect();
    let host = HostFacts::resolve(seen);
    let mut evaluated = evaluate(seen, &host, &runs, now);
    plan.orders.extend(drain::order(&host, &evaluated.drain));
    let later = after_status(&host, &evaluated, &runs);
    evaluated.rejection =
        rejected_write::condition(rejected, seen.compute.conditions(), !later.is_empty());
    plan.steps.extend(withdrawn(&host, &evaluated.drain, &evaluated.restoration, true, &runs));
    // A compute that is let go, because nova's API is not read, is held by nothing.
    let will_run = evaluated.restoration.needed_run().is_some();
    plan.steps.extend(finalizer_step(&host, will_run).filter(|_| host.uses_nova));
    plan.steps.extend(status(&host, &evaluated, now));
    plan.steps.extend(later);
    let overdue = seen.audited.overdue_at(&seen.compute).filter(|it| *it > now);
    let times = [evaluated.health.changes_at, evaluated.restoration.retry_at(), overdue];
    for at in times.into_iter().flatten() {
        plan.requeue_at(at, now);
    }
    plan
}

/// Returns the node's record of the service of type nova that has deployed the compute, or is to.
fn record<'a>(node: &'a Node, nova: &NovaServices) -> Option<&'a ServiceRun> {
    let services = &node.status.as_ref()?.services;
    let named = |name: &String| services.iter().find(|it| it.name == *name);
    let deployed = nova.deployed.as_ref().and_then(named);
    deployed.or_else(|| named(&nova.listed.as_ref()?.service))
}

/// Returns the attempt of the last deployment on the host of a node, if that has ended well; `None` else.
pub fn last_deployed(node: &Node, nova: &NovaServices) -> Option<SeenDeployment> {
    if let Some(last) = &node.status.as_ref()?.deployment {
        return last.succeeded();
    }
    // A role has no deployments.
    let last = record(node, nova).filter(|it| it.state == RunState::Succeeded)?;
    Some(SeenDeployment { deployment: last.hash.clone(), attempt: last.attempt })
}

fn evaluate<'a>(
    seen: &'a Observed,
    host: &HostFacts<'_>,
    runs: &[Run<'_>],
    now: Timestamp,
) -> Evaluation<'a> {
    let drain = HostDrain::resolve(host, seen.drain.as_ref());
    let restoration = restoration(host, &drain, runs, now);
    let present = host.node.and_then(|it| record(it, &seen.nova));
    // What is recorded stays where the node has lost its status.
    let repeated = present.or_else(|| recorded_proof(host.compute)).cloned();
    let services: Vec<ServiceRun> =
        repeated.into_iter().chain(restoration.services.clone()).collect();
    let recorded = nova_matches::to_record(host.sources, &services, now);
    Evaluation {
        cell: preconditions::cell(seen).condition,
        cell_matches: preconditions::cell_matches(seen),
        in_sync: seen.audited.condition(host.compute, &host.way_to_deploy, now),
        no_repair: repair::not_possible(seen),
        health: Health::of(host, &drain, (&recorded, &services), now),
        restoration,
        services,
        recorded,
        drain,
        rejection: None,
    }
}

/// Returns how far the restoration of the identity is, which is due once nova has nothing that uses it.
fn restoration(
    host: &HostFacts<'_>,
    drain: &HostDrain<'_>,
    runs: &[Run<'_>],
    now: Timestamp,
) -> ServiceSequence {
    let lost = host.missed.lost.clone().filter(|_| host.missed.recorded.is_some());
    let desired = lost.map(|it| desired_service(NOVA_RESTORE, Digest::from(it)));
    let desired: Vec<DesiredService> = desired.into_iter().collect();
    let recorded = host.compute.services().iter().filter(|it| it.name == NOVA_RESTORE);
    let recorded: Vec<ServiceRun> = recorded.cloned().collect();
    let sequence = sequence(host, runs, (&recorded, &desired), now);
    let may_run = host.missed.restores(drain.progress) && host.ssh.is_some();
    if may_run { sequence } else { sequence.held() }
}

/// Returns the steps for the run that is needed now, and those that delete superseded runs.
fn after_status(host: &HostFacts<'_>, evaluated: &Evaluation<'_>, runs: &[Run<'_>]) -> Vec<Step> {
    let compute = host.compute;
    let recorded = [(compute.spec.dataplane_node_name.as_str(), compute.services())];
    let need = evaluated.restoration.needed_run();
    let run = need.and_then(|it| new_run(host, it.clone(), &evaluated.restoration));
    run.into_iter().chain(run_gc::superseded(runs, &recorded.into())).collect()
}

/// Returns the step that creates the run which writes the recorded identity.
fn new_run(host: &HostFacts<'_>, need: NeededRun, restoration: &ServiceSequence) -> Option<Step> {
    let HostFacts { compute, node, .. } = *host;
    let play = Play::Contents(with_look(PLAY));
    let vars = [
        (identity::COMPUTE_ID.to_owned(), json!(host.missed.recorded?)),
        (identity::RESTORES.to_owned(), json!(true)),
    ];
    let template = RunTemplate {
        extra_vars: vars.into_iter().collect(),
        ..plain_run_template(compute, layout(compute, node, vec![]), play, NOVA_TYPE)
    };
    let was_key_refused = restoration.was_key_refused();
    let connection = connection(compute, node, host.ssh, was_key_refused);
    last_run::step(&template, &compute.spec.dataplane_node_name, need, connection)
}

/// Returns the step that writes the status, or `None` when the status is up to date.
fn status(host: &HostFacts<'_>, evaluated: &Evaluation<'_>, now: Timestamp) -> Option<Step> {
    let compute = host.compute;
    let observed = compute.status.as_ref();
    let generation = compute.metadata.generation;
    let drafts = conditions(host, evaluated);
    let before = observed.cloned().unwrap_or_default();
    let of_node = host.node.and_then(|it| it.status.as_ref());
    // Nova's records depend on the name, and the host is where it was last deployed.
    let (was, is) = (recorded_proof(compute), proof(compute, &evaluated.services));
    let is_as_deployed = was.is_some() && was.map(|it| &it.hash) == is.map(|it| &it.hash);
    let name = before.host_name.clone().filter(|_| was.is_some());
    let address = before.address.clone().filter(|_| is_as_deployed);
    let Identity { nova, service_id, compute_id } = evaluated.recorded.clone();
    let expected = ExternalComputeStatus {
        observed_generation: generation,
        conditions: conditions::merge_conditions(compute.conditions(), drafts, generation, now),
        host_name: name.or_else(|| of_node?.host_name.clone()).or(before.host_name),
        address: address.or_else(|| of_node?.address.clone()).or(before.address),
        compute_id,
        service_id,
        nova,
        services: evaluated.services.clone(),
        ..ExternalComputeStatus::default()
    };
    let target = Target::of::<ExternalCompute>(compute);
    let step = status_step(target, observed, &expected)?;
    Some(nova_matches::noticed(step, &host.recorded, &evaluated.recorded))
}

fn conditions(host: &HostFacts<'_>, evaluated: &Evaluation<'_>) -> Vec<ConditionDraft> {
    let (cell, deployment) = (&evaluated.cell, deployment(host, evaluated));
    let is_unknown = host.compute.spec.cell_name.is_empty();
    let mut blocking: Vec<ConditionDraft> =
        is_unknown.then(|| cell.clone()).into_iter().chain(evaluated.rejection.clone()).collect();
    blocking.push(deployment.clone());
    let good = reasons::compute::READY.condition(READY, format!("{}.", host.in_service));
    let summary = conditions::ready(&blocking, good);
    let problem = evaluated.health.problem(host).filter(|_| summary.holds());
    let ready = problem.unwrap_or(summary);
    let mut all = vec![cell.clone(), deployment, evaluated.cell_matches.clone()];
    all.extend(evaluated.rejection.clone());
    all.push(ready);
    all.extend(evaluated.health.conditions.iter().cloned());
    all.extend(evaluated.health.drained.clone());
    all.extend(evaluated.in_sync.clone());
    all.extend(evaluated.no_repair.clone());
    all
}

/// Returns how far the service is that deploys the compute, or the restoration of its host's identity.
fn deployment(host: &HostFacts<'_>, evaluated: &Evaluation<'_>) -> ConditionDraft {
    let Some(record) = proof(host.compute, &evaluated.services) else {
        let text = format!(
            "No service of type nova has been deployed on the host: {}.",
            host.way_to_deploy
        );
        return reasons::NOT_REQUESTED.condition(DEPLOYMENT_READY, text);
    };
    if let Some(restoring) = restoring(host, evaluated) {
        return restoring;
    }
    let name = &record.name;
    if record.state == RunState::Succeeded {
        let text = format!("OpenStackDataPlaneService {name} was deployed on the host.");
        return reasons::compute::DEPLOYED.condition(DEPLOYMENT_READY, text);
    }
    // The cause of the last failure stays visible during the next attempt.
    if let Some(word) = &record.reason {
        let text = record.message.clone().unwrap_or_default();
        return FailureReason::parse(word).reason().condition(DEPLOYMENT_READY, text);
    }
    let text = format!("OpenStackDataPlaneService {name} is being deployed on the host.");
    reasons::compute::DEPLOYING.condition(DEPLOYMENT_READY, text)
}

/// Returns how far the restoration of the identity is that the host has lost; `None` where it has lost
/// none, or it is not known which.
fn restoring(facts: &HostFacts<'_>, evaluated: &Evaluation<'_>) -> Option<ConditionDraft> {
    let missed = &facts.missed;
    let id = missed.recorded.filter(|_| missed.lost.is_some())?;
    if let Some(held) = missed.condition(evaluated.drain.progress) {
        return Some(held);
    }
    let host = &facts.compute.spec.dataplane_node_name;
    Some(match &evaluated.restoration.state {
        SequenceState::Done => {
            let text = format!(
                "Host {host} has its identity {id} again, and nova-compute has not been deployed since: \
                 {}.",
                facts.way_to_deploy
            );
            reasons::compute::IDENTITY_RESTORED.condition(DEPLOYMENT_READY, text)
        }
        SequenceState::Failed { reason, message, .. } => {
            reason.reason().condition(DEPLOYMENT_READY, message.clone())
        }
        SequenceState::OutOfDate | SequenceState::NeedsRun(_) | SequenceState::InRun { .. } => {
            let text = format!(
                "Host {host} has lost its identity {id}, which is written there again once nova has \
                 nothing that uses it; {} is then to be deployed.",
                facts.compute.name_any()
            );
            reasons::compute::RESTORING.condition(DEPLOYMENT_READY, text)
        }
    })
}
