//! The decisions on a compute: its files, its attempts, its runs and its status.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::annotations::REDEPLOY;
use operator_core::finalizers::add_finalizer;
use operator_core::plan::{Plan, Step};
use operator_core::rejected_write::{self, RejectedWrite};
use operator_core::run_engine::batches::batches;
use operator_core::run_engine::service_sequence::{NeededRun, ServiceSequence};
use operator_core::run_engine::{Run, SequenceState, build as engine, run_gc};

use crate::compute::credentials::observed::HeldObject;
use crate::compute::deploy::build::{Attempt, connection, run_template};
use crate::compute::deploy::drain::{self, HostDrain};
use crate::compute::deploy::evaluate::{Evaluation, evaluate};
use crate::compute::deploy::host_facts::HostFacts;
use crate::compute::deploy::identity::is_forbidden;
use crate::compute::deploy::inputs::{INSTANCE_INPUT, REDEPLOY_INPUT};
use crate::compute::deploy::observed::Observed;
use crate::compute::deploy::resolve::{Resolved, resolve};
use crate::compute::deploy::status;
use crate::compute_status::registration::is_recorded;
use crate::finalizers;
use crate::nova::drain::order::OrderOfHost;
use crate::requested::cell_immutability::has_run;

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
    let resolved = resolve(seen);
    let mut evaluated = evaluate(seen, &resolved, &runs, now);
    plan.orders.extend(drain::order(&resolved.host, &evaluated.drain));
    let held = seen.held.objects.iter();
    let held = held.filter(|it| evaluated.credentials.contains(&it.credential));
    // The host may log in with them from now on.
    let mut later: Vec<Step> = held.filter_map(HeldObject::hold).collect();
    later.extend(Pass { resolved: &resolved, evaluated: &evaluated }.after_status(&runs));
    evaluated.rejection =
        rejected_write::condition(rejected, seen.compute.conditions(), !later.is_empty());
    plan.independent.extend(resolved.certificate.steps.iter().cloned());
    // Its deployment may be disabled, or its host not drained any more.
    let may_run = resolved.deploy && !evaluated.drain.forbids_runs();
    let (host, drain) = (&resolved.host, &evaluated.drain);
    plan.steps.extend(withdrawn(host, drain, &evaluated.sequence, may_run, &runs));
    plan.steps.extend(finalizer_step(host, evaluated.sequence.needed_run().is_some()));
    let status = status::step(&resolved, &evaluated, now);
    plan.steps.extend(evaluated.files.step);
    if let Some(status) = status {
        plan.steps.extend(evaluated.files.renewing.map(|it| it.step));
        plan.steps.push(status);
    }
    plan.steps.extend(later);
    if resolved.certificate.lacks_issuer {
        // No watch reports the arrival of cert-manager.
        plan.requeue_in(CRD_POLL_INTERVAL);
    }
    let overdue = seen.audited.overdue_at(&seen.compute).filter(|it| *it > now);
    let retry_at = evaluated.sequence.retry_at();
    for at in [evaluated.health.changes_at, overdue, retry_at].into_iter().flatten() {
        plan.requeue_at(at, now);
    }
    let has_failed = matches!(evaluated.sequence.state, SequenceState::Failed { .. });
    if retry_at.is_none() && evaluated.blocked.is_some() && has_failed {
        // A retry that waits for a slot: no watch event reports a free slot in time.
        plan.requeue_in(SLOT_RETRY_INTERVAL);
    }
    plan
}

/// A compute with runs gets the finalizer, so that its host is cleaned up before it is deleted. A
/// compute that the operator created has it from its creation on.
pub fn finalizer_step(host: &HostFacts<'_>, will_run: bool) -> Option<Step> {
    let because = "its host must be cleaned before it goes";
    (will_run || has_run(host.compute, !host.sources.runs.is_empty()))
        .then(|| add_finalizer(host.compute, finalizers::COMPUTE, because))?
}

/// Deletes queued runs whose inputs have changed, that may not run any more, or that may not restore the
/// identity of the host any more.
pub fn withdrawn(
    host: &HostFacts<'_>,
    drain: &HostDrain<'_>,
    sequence: &ServiceSequence,
    may_run: bool,
    runs: &[Run<'_>],
) -> Vec<Step> {
    let host = &host.compute.spec.dataplane_node_name;
    let needs = |run: &Run<'_>, name: &str| {
        let is_wanted = may_run && name == host && sequence.wants(run, name);
        is_wanted && !is_forbidden(drain.progress, run.object)
    };
    run_gc::withdrawn(runs, needs)
}

/// A resolved compute, and how far its runs are.
struct Pass<'a> {
    resolved: &'a Resolved<'a>,
    evaluated: &'a Evaluation<'a>,
}

impl Pass<'_> {
    /// Returns the steps for the run that is needed now, and those that delete superseded runs.
    fn after_status(&self, runs: &[Run<'_>]) -> Vec<Step> {
        let need = self.evaluated.sequence.needed_run();
        let need = need.filter(|_| !self.evaluated.waits_for_drain);
        let mut steps = need.map(|it| self.new_run(it)).unwrap_or_default();
        let compute = self.resolved.host.compute;
        let recorded = [(compute.spec.dataplane_node_name.as_str(), compute.services())];
        steps.extend(run_gc::superseded(runs, &recorded.into()));
        steps
    }

    /// Whether a process that runs with the right files is to be restarted: a redeploy of the compute
    /// or a repair was requested since the last deployment, or it is not known to have registered. A
    /// redeploy of its node alone does not restart it, unless that repairs the host.
    fn restarts(&self) -> bool {
        let compute = self.resolved.host.compute;
        let deployed = compute.status.as_ref().map(|it| &it.deployed_inputs);
        let present = self.resolved.inputs.as_ref().map(|it| &it.all);
        let has_changed = |name: &str| {
            let present = present.and_then(|it| Some(it.get(name)?.text()));
            present.as_ref() != deployed.and_then(|it| it.get(name))
        };
        let repairs = self.resolved.repair.due.is_some();
        let may_ask = repairs || compute.annotations().contains_key(REDEPLOY);
        (may_ask && has_changed(REDEPLOY_INPUT))
            || (repairs && has_changed(INSTANCE_INPUT))
            || !is_recorded(compute, &self.evaluated.sequence.services)
    }

    fn new_run(&self, need: &NeededRun) -> Vec<Step> {
        let HostFacts { compute, node, ssh, .. } = self.resolved.host;
        let host = compute.spec.dataplane_node_name.clone();
        let (restarts, drain) = (self.restarts(), &self.evaluated.drain);
        let files = &self.evaluated.files.listed;
        let attempt = Attempt { service: &need.service, files, drain, restarts };
        let template = run_template(self.resolved, attempt);
        let was_key_refused = self.evaluated.sequence.was_key_refused();
        let connection = connection(compute, node, ssh, was_key_refused);
        let connection = BTreeMap::from([(host.clone(), connection)]);
        let needs = BTreeMap::from([(host, need.clone())]);
        let batches = batches(needs, 1, &BTreeSet::new());
        batches.iter().map(|it| engine::run(&template, it, &connection)).collect()
    }
}
