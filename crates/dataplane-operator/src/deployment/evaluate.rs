//! The evaluation of a node set's part of a deployment: the progress of each host.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use api::dataplane::{DeploymentNodeSet, HostState, Node, NodeSet, RunState, ServiceRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::{Host as Described, taken_out};
use operator_core::run_engine::host_progress::HostProgress;
use operator_core::run_engine::outcome::FailureReason;
use operator_core::run_engine::retry::Retries;
use operator_core::run_engine::{DesiredService, Host, Run};

use crate::deployment::disruption;
use crate::deployment::faults::missing_inputs;
use crate::deployment::hosts::{
    by_name, has_machine, hosts_of, in_service, is_ours, made_at, ssh_digests, takes_part,
};
use crate::deployment::node_set_part::{EvaluatedHost, NodeSetPart, progress};
use crate::deployment::observed::Observed;
use crate::deployment::order::goes_first;
use crate::deployment::service_schedule::ServiceSchedule;
use crate::deployment::services::List;
use crate::host::node_state::host_state;
use crate::host::services::ServiceFaults;
use crate::host::ssh_trust::{Offers, SshHost};

/// Returns whether a host has failed for good: its attempts are used up, or the failure is final.
fn is_given_up(live: &HostProgress, attempts: i64) -> bool {
    let is_final = || live.reason.as_deref().is_some_and(|it| FailureReason::parse(it).is_final());
    live.state == RunState::Failed && (live.attempt >= attempts || is_final())
}

/// Returns the record of a node set with which a deployment begins.
pub fn beginning(
    seen: &Observed,
    node_set: &NodeSet,
    list: List,
    now: Timestamp,
) -> DeploymentNodeSet {
    let name = node_set.name_any();
    let status = node_set.status.as_ref();
    let hosts: Vec<String> = hosts_of(seen, &name).collect();
    // The API server's clock may be ahead of ours.
    let newest = hosts.iter().filter_map(|it| made_at(seen.node(&name, it)?)).max();
    DeploymentNodeSet {
        uid: node_set.uid().unwrap_or_default(),
        since: Time(newest.map_or(now, |it| it.max(now))),
        services: list.services,
        joined: list.joined,
        config_hash: status.and_then(|it| it.config_hash.clone()).unwrap_or_default(),
        hosts,
    }
}

/// Evaluates a node set's part with the deployment's runs and the ssh host keys that were presented to
/// them, whatever the budget says.
pub fn evaluate(
    seen: &Observed,
    name: &str,
    begun: &DeploymentNodeSet,
    runs: &[Run<'_>],
    offers: &Offers<'_>,
    now: Timestamp,
) -> NodeSetPart {
    let node_set = seen.node_sets.get(name).filter(|it| begun.is_of(it)).cloned();
    let mut described = node_set.as_deref().map(by_name).unwrap_or_default();
    let schedule = ServiceSchedule::of(&seen.deployment, &runs_of(runs, name, begun), name, begun);
    let set = OfSet { seen, node_set: node_set.as_deref(), schedule, offers, now };
    let host = |host: &String| {
        if set.node_set.is_none() {
            return Some(set.host(host, None));
        }
        let node = seen.nodes.get(name)?.get(host)?;
        let takes_part = takes_part(seen, node, begun.since.0);
        let found = takes_part.then(|| described.remove(host)).flatten()?;
        Some(set.host(host, Some((node, found))))
    };
    let hosts: Vec<EvaluatedHost> = begun.hosts.iter().filter_map(host).collect();
    // What becomes of hosts after the last service is not the deployment's.
    let is_lost = |it: &&String| !seen.deployment.has_run() && described.contains_key(*it);
    let lost = begun.hosts.iter().filter(is_lost).cloned().collect();
    let mut part = NodeSetPart {
        name: name.to_owned(),
        node_set,
        begun: begun.clone(),
        left_out: BTreeSet::new(),
        lacking: ServiceFaults::default(),
        lost,
        hosts,
    };
    part.left_out = left_out(seen, &part);
    part.lacking = lacking(seen, &part);
    let lacks = |it: &EvaluatedHost| {
        it.sequence.needed_run().is_some_and(|it| part.lacking.blocks(&it.service))
    };
    let stop = |it: EvaluatedHost| if lacks(&it) { it.stopped() } else { it };
    part.hosts = mem::take(&mut part.hosts).into_iter().map(stop).collect();
    part
}

/// Returns the missing inputs that keep the next runs of a node set from being created.
///
/// Only those of services that some host has not completed yet count.
fn lacking(seen: &Observed, part: &NodeSetPart) -> ServiceFaults {
    let open = part.hosts.iter().filter(|it| !it.is_ended());
    let Some(front) = open.map(|it| it.live.done).min() else { return ServiceFaults::default() };
    let services = part.begun.services.get(front..).unwrap_or_default();
    missing_inputs(seen, part, services)
}

/// Returns the hosts in the inventory of a node set that no run of the deployment is for: they go, or
/// take part no more.
fn left_out(seen: &Observed, part: &NodeSetPart) -> BTreeSet<String> {
    let taken_out = part.node_set.iter().flat_map(|it| taken_out(it).into_keys());
    let nodes = seen.nodes.get(&part.name).into_iter().flatten();
    let going = nodes.filter(|(_, it)| it.is_leaving()).map(|(name, _)| name.clone());
    let present: BTreeSet<&str> = part.hosts.iter().map(|it| it.name.as_str()).collect();
    let out = part.begun.hosts.iter().filter(|it| !present.contains(it.as_str())).cloned();
    taken_out.map(str::to_owned).chain(going).chain(out).collect()
}

/// What a user does about a host for which all attempts have failed.
const WAY_ON: &str = "correct the cause and create another OpenStackDataPlaneDeployment";

/// What is the same for all hosts of a node set.
struct OfSet<'a> {
    seen: &'a Observed,
    node_set: Option<&'a NodeSet>,
    schedule: ServiceSchedule<'a>,
    offers: &'a Offers<'a>,
    now: Timestamp,
}

impl OfSet<'_> {
    /// Evaluates a host with its node and its description in the node set.
    fn host(&self, name: &str, known: Option<(&Arc<Node>, Described<'_>)>) -> EvaluatedHost {
        let Self { seen, schedule, offers, now, .. } = self;
        let (node, found) = known.unzip();
        let address = schedule.addresses.get(name);
        let found = found.map(|it| if let Some(address) = address { it.at(address) } else { it });
        let ssh = self.node_set.and_then(|it| ssh_digests(seen, it));
        let known = self.node_set.zip(node).zip(found.as_ref());
        let known = known.map(|((set, node), it)| SshHost::of_entry(set, Some(node), ssh, it));
        let trust = known.map(|it| it.trust(offers)).unwrap_or_default();
        let secret = self.node_set.map(|it| &it.spec.node_template.ansible_ssh_private_key_secret);
        let has_begun = node.is_some_and(|it| is_ours(seen, it));
        let recorded = self.recorded(node, has_begun);
        let attempts = i64::from(seen.deployment.spec.backoff_limit) + 1;
        let host = Host {
            name,
            desired: &schedule.desired,
            recorded: &recorded,
            has_moved: false,
            records_begin: true,
            ssh_key: (
                secret.map(String::as_str).unwrap_or_default(),
                ssh.map(|it| it.version.as_str()).unwrap_or_default(),
            ),
            trust: &trust,
            namespace: Some(&seen.namespace),
            retries: Retries::Limited { attempts, way_on: WAY_ON },
        };
        let sequence = schedule.evaluate(&host, *now);
        let is_held = self.holds(name, node, has_begun);
        let sequence = if is_held { sequence.held() } else { sequence };
        let live = progress(has_begun, &recorded, &sequence);
        EvaluatedHost {
            name: name.to_owned(),
            address: found.map(|it| it.address()),
            is_given_up: is_given_up(&live, attempts),
            live,
            has_begun,
            has_target: !is_terminating(&*seen.deployment)
                && node.is_some_and(|it| disruption::our_target(seen, it).is_some()),
            node: node.cloned(),
            trust,
            recorded,
            sequence,
            blocked: None,
        }
    }

    /// Returns what a node records of the services, and the first attempt of the others. Once the
    /// deployment has run, all have succeeded, whatever a later one has recorded.
    fn recorded(&self, node: Option<&Arc<Node>>, has_begun: bool) -> Vec<ServiceRun> {
        let services = node.and_then(|it| it.status.as_ref()).map(|it| it.services.as_slice());
        let services = services.unwrap_or_default();
        let has_run = self.seen.deployment.has_run();
        let state = if has_run { RunState::Succeeded } else { RunState::Pending };
        let failed_before = !has_begun && !has_run && node.is_some_and(|it| has_failed(it));
        let of_service = |it: &DesiredService| {
            let is_its =
                |known: &&ServiceRun| known.name == it.service && it.run_hash.is(&known.hash);
            let known = services.iter().find(is_its).filter(|_| !has_run).cloned();
            known.unwrap_or_else(|| ServiceRun {
                name: it.service.clone(),
                state,
                hash: it.run_hash.text(),
                attempt: 1,
                run: None,
                deployed_hash: None,
                failures: i64::from(failed_before),
                since: Time(Timestamp::UNIX_EPOCH),
                reason: None,
                message: None,
            })
        };
        self.schedule.desired.iter().map(of_service).collect()
    }

    /// Returns whether a host must not begin its next service, whatever other hosts do.
    fn holds(&self, host: &str, node: Option<&Arc<Node>>, has_begun: bool) -> bool {
        let seen = self.seen;
        let known = self.node_set.zip(node).filter(|_| !has_begun);
        is_terminating(&*seen.deployment)
            || self.node_set.is_some_and(|it| !has_machine(it, host, node.map(|it| &**it)))
            || known.is_some_and(|(set, node)| goes_first(seen, set, host, node))
    }
}

/// Returns whether a host was in service, and the deployment before has not completed it.
fn has_failed(node: &Node) -> bool {
    in_service(node) && matches!(host_state(node), HostState::Failed | HostState::Deploying)
}

/// Returns the runs that target the hosts of a node set.
fn runs_of<'a>(runs: &'a [Run<'a>], node_set: &str, begun: &DeploymentNodeSet) -> Vec<&'a Run<'a>> {
    let is_its = |it: &&Run<'_>| {
        let label = it.object.labels().get(NODE_SET_LABEL);
        label.is_some_and(|it| it == node_set) || begun.joined.contains(&it.service)
    };
    runs.iter().filter(is_its).collect()
}

/// The label of a run that names its node set, as in upstream.
pub const NODE_SET_LABEL: &str = "openstackdataplanenodeset";
