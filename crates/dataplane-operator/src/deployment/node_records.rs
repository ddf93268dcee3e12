//! What a deployment records on the nodes of its hosts: its begin, each failure and retry, and its end.
//!
//! Successes in the middle are recorded with the next of these: until then the runs are their record.

use api::dataplane::{
    Disruption, DisruptionTarget, HostState, NodeDeployment, NodeSet, NodeStatus, RunState,
    ServiceRun,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use operator_core::node_set_host::prefix;
use operator_core::plan::{Step, Target, status_step};
use operator_core::run_engine::SequenceState;

use crate::deployment::hosts::last_deployment;
use crate::deployment::node_set_part::{EvaluatedHost, NodeSetPart};
use crate::deployment::observed::Observed;
use crate::deployment::status::End;
use crate::host::node_conditions::with_deployment;
use crate::host::status::own;

/// How many services a node records.
const RECORDED: usize = 64;

/// Returns the step that writes the status of a host's node; `None` while that says enough.
///
/// It fails where the node has changed since it was read, so that no run begins that its node does not
/// record.
pub fn step(
    seen: &Observed,
    part: &NodeSetPart,
    host: &EvaluatedHost,
    end: End,
    now: Timestamp,
) -> Option<Step> {
    let (node, set) = (host.node.as_deref()?, part.node_set.as_deref()?);
    let record = Record { seen, part, host, end, now };
    let observed = node.status.as_ref().map(own).unwrap_or_default();
    let disruption = record.disruption(observed.disruption.as_ref());
    let deployment = record.deployment(last_deployment(node));
    let is_news = deployment.as_ref() != last_deployment(node) || record.has_news();
    if !is_news && disruption == observed.disruption {
        return None;
    }
    let mut status = NodeStatus { disruption, ..observed.clone() };
    if let Some(deployment) = deployment.filter(|_| is_news) {
        record.describe(set, deployment.state, &mut status);
        status.deployment = Some(deployment);
    }
    let status = with_deployment(node, set, status, now);
    // The deployment publishes the Events.
    let step = status_step(Target::of(node), Some(&observed), &status)?.without_events();
    Some(step.at(node.resource_version()))
}

/// What is recorded of one host.
struct Record<'a> {
    seen: &'a Observed,
    part: &'a NodeSetPart,
    host: &'a EvaluatedHost,
    end: End,
    now: Timestamp,
}

impl Record<'_> {
    /// Returns which deployment is to disturb the host. Each target has a number of its own, also one
    /// that was taken away and is given again.
    fn disruption(&self, recorded: Option<&Disruption>) -> Option<Disruption> {
        let waits = self.end == End::Open && self.host.has_place() && !self.host.sequence.is_due();
        let last = recorded.map_or(0, |it| it.last);
        let uid = self.seen.deployment.uid().unwrap_or_default();
        let (ours, others): (Option<&DisruptionTarget>, Option<&DisruptionTarget>) =
            match recorded.and_then(|it| it.target.as_ref()) {
                Some(it) if it.deployment == uid => (Some(it), None),
                other => (None, other),
            };
        let new = || DisruptionTarget { deployment: uid.clone(), number: last + 1 };
        let target = if waits { Some(ours.cloned().unwrap_or_else(new)) } else { others.cloned() };
        let last = target.as_ref().map_or(last, |it| last.max(it.number));
        (last > 0).then(|| Disruption { last, target, holders: Vec::new() })
    }

    /// Returns the deployment that is at the host, or was last.
    fn deployment(&self, recorded: Option<&NodeDeployment>) -> Option<NodeDeployment> {
        let (host, deployment) = (self.host, &self.seen.deployment);
        // Where another one has begun since, the host is that one's until a run of this one is due.
        let begins = host.sequence.is_due() || host.recorded.is_empty();
        if !host.has_begun && !begins {
            return recorded.cloned();
        }
        let same = recorded.filter(|_| host.has_begun);
        let state = self.state(same);
        let entered = same.filter(|it| it.state == state);
        let is_begin = state == HostState::Deploying && entered.is_none();
        let is_attempt = same.is_none() || is_begin || self.is_tried_again();
        Some(NodeDeployment {
            name: deployment.name_any(),
            uid: deployment.uid().unwrap_or_default(),
            state,
            attempt: recorded.map_or(0, |it| it.attempt) + i64::from(is_attempt),
            since: entered.map_or(Time(self.now), |it| it.since.clone()),
            partial: deployment.spec.is_partial(),
        })
    }

    /// Returns how far the host is; `recorded` is this deployment as its node has it. One that is between
    /// two services when the deployment ends has not failed: it is half changed.
    ///
    /// What was recorded with an end stands until a run is due: other nodes may be seen as before, or the
    /// deployment may linger in its deletion.
    fn state(&self, recorded: Option<&NodeDeployment>) -> HostState {
        let live = &self.host.live;
        let ended = recorded.filter(|_| !self.host.sequence.is_due());
        match self.end {
            _ if live.is_done() => HostState::Deployed,
            End::Failed if live.state != RunState::Pending || live.is_failing() => {
                HostState::Failed
            }
            End::Failed => HostState::Undeployed,
            End::Open | End::AwaitsGates | End::Deployed => {
                ended.map_or(HostState::Deploying, |it| it.state)
            }
        }
    }

    fn is_tried_again(&self) -> bool {
        self.changed().any(|(known, present)| present.attempt > known.attempt)
    }

    /// Returns whether the records say something that the node has to know before the end of the
    /// sequence.
    fn has_news(&self) -> bool {
        let sequence = &self.host.sequence.state;
        let is_over = matches!(sequence, SequenceState::Done | SequenceState::Failed { .. });
        let facts = |it: &ServiceRun| (it.attempt, it.reason.clone(), it.message.clone());
        self.host.has_begun
            && self.changed().any(|(known, it)| is_over || facts(known) != facts(it))
    }

    /// Returns the records that differ, each with what is recorded.
    fn changed(&self) -> impl Iterator<Item = (&ServiceRun, &ServiceRun)> {
        let all = self.host.recorded.iter().zip(&self.host.sequence.services);
        all.filter(|(known, present)| known != present)
    }

    /// Writes the records of the services, what has succeeded, and the first key of the host into the status
    /// of the node.
    fn describe(&self, set: &NodeSet, state: HostState, status: &mut NodeStatus) {
        let spec = &self.seen.deployment.spec;
        status.services = self.services(set, &status.services);
        if status.host_key.is_none() {
            status.host_key = self.host.trust.key.as_ref().map(ToString::to_string);
        }
        match (state, spec.is_partial()) {
            (HostState::Deployed | HostState::Deploying, true) => {}
            (HostState::Deployed, false) => {
                status.deployed = Some(true);
                status.deployed_address.clone_from(&self.host.address);
                if spec.services_override.is_empty() {
                    status.deployed_config_hash = Some(prefix(&self.part.begun.config_hash));
                }
            }
            _ => status.deployed = None,
        }
    }

    /// Returns the records of the host: those of this deployment, and what is known of other services,
    /// in the order of the node set.
    fn services(&self, set: &NodeSet, known: &[ServiceRun]) -> Vec<ServiceRun> {
        let present = &self.host.sequence.services;
        let of_service = |it: &ServiceRun| known.iter().find(|known| known.name == it.name);
        let own = present.iter().map(|it| self.following(it, of_service(it)));
        let mut services: Vec<ServiceRun> = own.collect();
        let is_other = |it: &&ServiceRun| present.iter().all(|own| own.name != it.name);
        let n_others = RECORDED.saturating_sub(services.len());
        services.extend(known.iter().filter(is_other).take(n_others).cloned());
        let place = |it: &ServiceRun| set.spec.services.iter().position(|name| *name == it.name);
        services.sort_by_key(|it| place(it).unwrap_or(RECORDED));
        services
    }

    /// Returns a record with what is known of its service from before.
    fn following(&self, present: &ServiceRun, known: Option<&ServiceRun>) -> ServiceRun {
        let mut record = present.clone();
        if record.deployed_hash.is_none() || self.seen.deployment.spec.is_partial() {
            record.deployed_hash = known.and_then(|it| it.deployed_hash.clone());
        }
        if record.since.0 == Timestamp::UNIX_EPOCH {
            record.since = Time(self.now);
        }
        record
    }
}
