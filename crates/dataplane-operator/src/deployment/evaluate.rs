//! The evaluation of a node set's part of a deployment: the progress of each host, and what of it
//! the status reports.

use std::collections::BTreeSet;

use api::dataplane::{
    Deployment, HostMachine, HostProgress, HostState, Node, NodeSet, NodeSetProgress, RunState,
};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::node_set_host::Host as Described;
use operator_core::run_engine::host_key::accept_command;
use operator_core::run_engine::host_owner::take_over_command;
use operator_core::run_engine::host_progress::{
    current, is_untouched, position, started, to_service_runs,
};
use operator_core::run_engine::outcome::FailureReason;
use operator_core::run_engine::retry::Retries;
use operator_core::run_engine::service_sequence::{NeededRun, ServiceSequence};
use operator_core::run_engine::{Host, Run, SequenceState};

use crate::deployment::faults::MissingInputs;
use crate::deployment::hosts::{by_name, has_machine, hosts_of, in_service, ssh_digests};
use crate::deployment::node_set_part::{EvaluatedHost, NodeSetPart};
use crate::deployment::observed::{Observed, OwnProgress};
use crate::deployment::progress_batching::{has_advanced, pending_progress, reported_at};
use crate::deployment::service_schedule::ServiceSchedule;
use crate::deployment::services::List;
use crate::host::ssh_trust::Offers;
use crate::node_set::host_key_trust::{recorded, trust};

/// The arguments that are the same for all hosts of a node set.
pub struct Common<'a> {
    /// The observed objects.
    pub seen: &'a Observed,
    /// The runs that target its hosts.
    pub runs: &'a [Run<'a>],
    /// The ssh host keys that were presented to runs.
    pub offers: &'a Offers<'a>,
    /// Whether the next service may begin.
    pub may_run: bool,
    /// The present time.
    pub now: Timestamp,
}

/// Returns the maximum number of attempts of a service on a host.
pub fn attempts(seen: &Observed) -> i64 {
    attempts_of(&seen.deployment)
}

/// Returns the maximum number of attempts of a deployment's service on a host: `backoffLimit` + 1.
pub fn attempts_of(deployment: &Deployment) -> i64 {
    i64::from(deployment.spec.backoff_limit) + 1
}

/// Returns whether a host has succeeded or failed for good.
pub fn is_ended(kept: &HostProgress, attempts: i64) -> bool {
    kept.state == RunState::Succeeded || is_given_up(kept, attempts)
}

/// Returns whether a host has failed for good: its attempts are used up, or the failure is final.
pub fn is_given_up(kept: &HostProgress, attempts: i64) -> bool {
    let is_final = || kept.reason.as_deref().is_some_and(|it| FailureReason::parse(it).is_final());
    kept.state == RunState::Failed && (kept.attempt >= attempts || is_final())
}

/// Returns the initial progress of a node set.
pub fn beginning(seen: &Observed, node_set: &NodeSet, list: List) -> NodeSetProgress {
    let name = node_set.name_any();
    let List { services, joined } = list;
    let state = if services.is_empty() { RunState::Succeeded } else { RunState::Pending };
    let status = node_set.status.as_ref();
    // Hosts on which another deployment is at work are out of service. If that one fails too, this
    // deployment begins with them.
    let failed = in_states(node_set, &[HostState::Failed, HostState::Deploying]);
    let pending = |host: &String| HostProgress {
        done: 0,
        state,
        attempt: 0,
        failures: i64::from(state == RunState::Pending && failed.contains(host.as_str())),
        reason: None,
        since: None,
        run: None,
    };
    NodeSetProgress {
        uid: node_set.uid().unwrap_or_default(),
        services,
        joined,
        config_hash: status.and_then(|it| it.config_hash.clone()).unwrap_or_default(),
        hosts: hosts_of(seen, &name).map(|it| (it.clone(), pending(&it))).collect(),
    }
}

/// Returns whether another deployment has failed on a host for good and the node set's status does
/// not report it yet.
fn is_given_up_by_another(seen: &Observed, node_set: &str, host: &str) -> bool {
    let other = seen.others.get(node_set).and_then(|it| it.get(host));
    other.is_some_and(|it| it.doing == OwnProgress::GivenUp)
}

/// Returns the hosts of a node set that were in service and have one of these states.
fn in_states<'a>(node_set: &'a NodeSet, states: &[HostState]) -> BTreeSet<&'a str> {
    let hosts = in_service(node_set).filter(|it| states.contains(&it.state));
    hosts.map(|it| it.name.as_str()).collect()
}

/// Evaluates a node set's part, whatever its other hosts do; it shows the recorded progress.
pub fn evaluate(
    common: &Common<'_>,
    name: &str,
    kept: &NodeSetProgress,
    lacking: MissingInputs,
) -> NodeSetPart {
    let seen = common.seen;
    let node_set = seen.node_sets.get(name).filter(|it| kept.is_of(it)).cloned();
    let mut described = node_set.as_deref().map(by_name);
    let set = OfSet {
        common,
        name,
        node_set: node_set.as_deref(),
        schedule: ServiceSchedule::of(&seen.deployment, common.runs, name, kept),
        lacking: &lacking,
    };
    let failed = node_set.as_deref().map(|it| in_states(it, &[HostState::Failed]));
    let failed = failed.unwrap_or_default();
    let has_failed = |host: &str| failed.contains(host) || is_given_up_by_another(seen, name, host);
    let mut hosts = Vec::new();
    for (host, kept) in &kept.hosts {
        let mut kept = kept.clone();
        if is_untouched(&kept) && has_failed(host) {
            // Another deployment has failed on the host since this one began.
            kept.failures = 1;
        }
        let goes = || seen.node(name, host).is_some_and(Node::is_leaving);
        let found = described.as_mut().and_then(|it| it.remove(host)).filter(|_| !goes());
        // A host that was removed from the node set, or that goes, is no longer deployed.
        if found.is_some() || node_set.is_none() {
            hosts.push(set.host(host, found, kept));
        }
    }
    NodeSetPart {
        name: name.to_owned(),
        node_set,
        services: kept.services.clone(),
        joined: kept.joined.clone(),
        lacking,
        hosts,
        is_news: false,
        report_at: None,
        shown: kept.clone(),
    }
}

/// Returns a part that shows the progress of its hosts if it is time; `is_new` says that the status
/// does not contain the part yet.
pub fn reported(part: NodeSetPart, is_new: bool, now: Timestamp) -> NodeSetPart {
    let recorded = part.shown;
    let report_at = reported_at(&part.hosts);
    let is_due = report_at.is_some_and(|it| it <= now);
    let is_news = is_new || is_due || has_advanced(&part.hosts, &recorded);
    let shown = |it: &EvaluatedHost| {
        let kept = recorded.hosts.get(&it.name).filter(|_| !is_news);
        (it.name.clone(), kept.unwrap_or(&it.live).clone())
    };
    let hosts = part.hosts.iter().map(shown).collect();
    NodeSetPart {
        is_news,
        report_at: report_at.filter(|_| !is_news),
        shown: NodeSetProgress { hosts, ..recorded },
        ..part
    }
}

/// What a user does about a host for which all attempts have failed.
const WAY_ON: &str = "correct the cause and create another OpenStackDataPlaneDeployment";

/// What is the same for all hosts of a node set.
struct OfSet<'a> {
    common: &'a Common<'a>,
    name: &'a str,
    node_set: Option<&'a NodeSet>,
    schedule: ServiceSchedule<'a>,
    lacking: &'a MissingInputs,
}

impl OfSet<'_> {
    /// Evaluates a host; `found` is its description in the node set.
    fn host(&self, name: &str, found: Option<Described<'_>>, kept: HostProgress) -> EvaluatedHost {
        let Common { seen, runs, offers, now, .. } = *self.common;
        let (set_name, node_set, schedule) = (self.name, self.node_set, &self.schedule);
        let desired = schedule.desired.as_slice();
        let address = schedule.addresses.get(name);
        let found = found.map(|it| if let Some(address) = address { it.at(address) } else { it });
        let ssh = node_set.and_then(|it| ssh_digests(seen, it));
        let node = seen.node(set_name, name);
        let known = node_set.zip(found.as_ref());
        // The node set's records already take a new installation into account.
        let trust = known.map(|(set, it)| {
            trust((set, node), ssh, it, recorded(set, node, name), machine(set, name), offers)
        });
        let trust = trust.unwrap_or_default();
        let text = failure_text(seen, set_name, name);
        let secret =
            node_set.map(|it| it.spec.node_template.ansible_ssh_private_key_secret.as_str());
        let version = ssh.map(|it| it.version.as_str());
        let accept = trust.is_learned.then(|| accept_command(&seen.namespace, name));
        let object = format!("openstackdataplanenode/{name}");
        let host = Host {
            name,
            desired,
            recorded: &to_service_runs(name, desired, Some(&started(&kept)), runs, text),
            has_moved: false,
            ssh_key: (secret.unwrap_or_default(), version.unwrap_or_default()),
            trusted: &trust.token(),
            accept: accept.as_deref(),
            take_over: &take_over_command(&seen.namespace, &object),
            retries: Retries::Limited { attempts: attempts(seen), way_on: WAY_ON },
        };
        let (sequence, runs) = schedule.evaluate(&host, position(&kept), now);
        let sequence = if self.holds(name, &sequence) { sequence.held() } else { sequence };
        let has_begun = !is_untouched(&kept) || sequence.state != SequenceState::OutOfDate;
        let evaluated = EvaluatedHost {
            name: name.to_owned(),
            address: found.map(|it| it.address()),
            trust,
            live: if has_begun { current(name, desired, &sequence, runs) } else { kept.clone() },
            pending_progress: pending_progress(&kept, &sequence, runs).filter(|_| has_begun),
            kept,
            sequence,
            blocked: None,
        };
        evaluated.with_place()
    }

    /// Returns whether a host must not begin its next service, whatever other hosts do.
    fn holds(&self, host: &str, sequence: &ServiceSequence) -> bool {
        let lacks = |it: &NeededRun| self.lacking.blocks(&it.service);
        !self.common.may_run
            || self.node_set.is_some_and(|it| !has_machine(it, host))
            || (self.node_set.is_some() && self.common.seen.node(self.name, host).is_none())
            || sequence.needed_run().is_some_and(lacks)
    }
}

/// Returns the message that the deployment's status has about the failure of a host.
fn failure_text<'a>(seen: &'a Observed, node_set: &str, host: &str) -> Option<&'a str> {
    let mut failures = seen.deployment.status.iter().flat_map(|it| &it.failures);
    failures.find(|it| it.node_set == node_set && it.host == host).map(|it| it.message.as_str())
}

/// Returns the record of a host's machine in the node set's status.
fn machine<'a>(set: &'a NodeSet, host: &str) -> Option<&'a HostMachine> {
    set.status.as_ref().and_then(|it| it.machines.get(host))
}

/// Returns the runs that target the hosts of a node set.
pub fn runs_of<'a>(runs: &[Run<'a>], node_set: &str, kept: &NodeSetProgress) -> Vec<Run<'a>> {
    let is_its = |it: &&Run<'a>| {
        let label = it.object.labels().get(NODE_SET_LABEL);
        label.is_some_and(|it| it == node_set) || kept.joined.contains(&it.service)
    };
    runs.iter().filter(is_its).cloned().collect()
}

/// The label of a run that names its node set, as in upstream.
pub const NODE_SET_LABEL: &str = "openstackdataplanenodeset";
