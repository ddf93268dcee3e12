//! Evaluates a compute: how far its deployment is, from which the steps and the status are derived.

use api::conditions::ConditionDraft;
use api::dataplane::{RunState, ServiceRun};
use api::nova::Credential;
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::services::{LIBVIRT, NOVA};
use operator_core::run_engine::retry::Retries;
use operator_core::run_engine::service_sequence::{self, ServiceSequence};
use operator_core::run_engine::{DesiredService, Host, Run, SequenceState};

use crate::compute::credentials::decide::{Stage, used};
use crate::compute::deploy::build::{ssh, trust};
use crate::compute::deploy::config::{self, Files, Purpose};
use crate::compute::deploy::drain::HostDrain;
use crate::compute::deploy::health::Health;
use crate::compute::deploy::host_facts::HostFacts;
use crate::compute::deploy::observed::Observed;
use crate::compute::deploy::resolve::Resolved;
use crate::compute::deploy::{inputs, nova_matches};
use crate::compute_status::deployed_files::nova;
use crate::nova::identity::Identity;
use crate::rollout::blocked_rollout::BlockedRollout;

/// The evaluation of a compute.
pub struct Evaluation<'a> {
    /// The condition for a rejected write, or `None` without one.
    pub rejection: Option<ConditionDraft>,
    /// The files, rendered or as they are recorded where they cannot be rendered.
    pub files: Files,
    /// The state of the service sequence.
    pub sequence: ServiceSequence,
    /// The identity of the host in nova that is recorded now.
    pub recorded: Identity,
    /// What nova's API says.
    pub health: Health,
    /// What is known of the audits of the host; `None` where none are requested.
    pub in_sync: Option<ConditionDraft>,
    /// What keeps the identity of the host from being free, or `None`.
    pub identity: Option<ConditionDraft>,
    /// What is requested for the servers of the host.
    pub drain: HostDrain<'a>,
    /// Whether the run that is needed waits until the host is drained.
    pub waits_for_drain: bool,
    /// Why the rollout blocks a deployment for which nothing is missing, or `None`.
    pub blocked: Option<BlockedRollout>,
    /// What the host may log in with from now on.
    pub credentials: Vec<Credential>,
}

/// Evaluates a resolved compute.
pub fn evaluate<'a>(
    seen: &'a Observed,
    resolved: &Resolved<'_>,
    runs: &[Run<'_>],
    now: Timestamp,
) -> Evaluation<'a> {
    let Resolved { host, desired, .. } = resolved;
    let compute = host.compute;
    let drain = HostDrain::resolve(host, seen.drain.as_ref());
    let is_held = host.missed.is_held(drain.progress, desired);
    let sequence = sequence(host, runs, (compute.services(), desired), now);
    let sequence = if resolved.may_run && !is_held { sequence } else { sequence.held() };
    // Why a run that is possible now has to wait.
    let blocked = sequence.needed_run().and_then(|_| seen.slot.blocked()).cloned();
    let sequence = if blocked.is_some() { sequence.held() } else { sequence };
    let recorded = nova_matches::to_record(host.sources, &sequence.services, now);
    let redeploy = resolved.repair.command(compute, &host.way_to_deploy);
    // The attempt is recorded before the drain begins, so that its host counts as unavailable.
    let waits_for_drain = sequence.needed_run().is_some() && drain.waits();
    Evaluation {
        rejection: None,
        files: files(seen, resolved, !waits_for_drain && brings_files(&sequence)),
        credentials: credentials(seen, &sequence, resolved.inputs.is_some()),
        health: Health::of(host, &drain, (&recorded, &sequence.services), now),
        in_sync: seen.audited.condition(compute, &redeploy, now),
        identity: host.missed.condition(drain.progress),
        sequence,
        recorded,
        drain,
        waits_for_drain,
        blocked,
    }
}

/// Returns the files; `is_attempt` is whether an attempt is to bring them to the host.
fn files(seen: &Observed, resolved: &Resolved<'_>, is_attempt: bool) -> Files {
    let Some(known) = resolved.inputs.as_ref().filter(|_| resolved.config.holds()) else {
        let recorded = seen.compute.status.as_ref().map(|it| it.config_files.clone());
        return Files::unchanged(recorded.unwrap_or_default());
    };
    let hash = inputs::hash(NOVA, &[&known.services.nova]);
    let purpose = Purpose { inputs: &hash, is_attempt };
    config::files(seen, &known.config, &known.services.nova, purpose)
}

/// Whether an attempt begins, or goes on, that has yet to bring the files to the host.
fn brings_files(sequence: &ServiceSequence) -> bool {
    let Some(need) = sequence.needed_run() else { return false };
    let is_due = nova(&sequence.services).is_some_and(|it| it.state != RunState::Succeeded);
    is_due && [LIBVIRT, NOVA].contains(&need.service.as_str())
}

/// Returns what the host may log in with from now on.
fn credentials(seen: &Observed, sequence: &ServiceSequence, is_known: bool) -> Vec<Credential> {
    let recorded = seen.compute.status.as_ref().map(|it| it.credentials.as_slice());
    let recorded = recorded.unwrap_or_default();
    let has_attempts = !sequence.services.is_empty();
    let stage = match sequence.state {
        SequenceState::NeedsRun(_) => Stage::Begins,
        // Of unknown inputs it is only assumed that they are the deployed ones.
        SequenceState::Done if is_known => Stage::Done,
        // A release before has deployed it, and recorded nothing.
        _ if recorded.is_empty() && has_attempts => Stage::Begins,
        SequenceState::Done
        | SequenceState::OutOfDate
        | SequenceState::InRun { .. }
        | SequenceState::Failed { .. } => Stage::Between,
    };
    used(recorded, &seen.held.present, stage, seen.cell.as_deref())
}

/// Returns the service sequence of a host, of services as they are recorded and as they are desired.
pub fn sequence(
    facts: &HostFacts<'_>,
    runs: &[Run<'_>],
    (recorded, desired): (&[ServiceRun], &[DesiredService]),
    now: Timestamp,
) -> ServiceSequence {
    let compute = facts.compute;
    let (ssh_secret, ssh_version) = ssh(compute, facts.ssh);
    let (namespace, trust) = (compute.namespace().unwrap_or_default(), trust(facts.node));
    let host = Host {
        name: &compute.spec.dataplane_node_name,
        desired,
        recorded,
        has_moved: false,
        records_begin: true,
        ssh_key: (&ssh_secret, &ssh_version),
        trust: &trust,
        namespace: Some(&namespace),
        retries: Retries::Healing(&facts.way_to_deploy),
    };
    service_sequence::evaluate(&host, runs, now)
}
