//! What deployments have done to the hosts of a node set: one state per host, from their statuses.
//!
//! The result of a deployment outlives the deployment: when it has ended, it is merged once into
//! the node set's status.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::conditions::Condition;
use api::dataplane::deployment::DeploymentSpec;
use api::dataplane::{
    Deployment, ExecutionSummary, HostProgress, HostState, NodeSet, NodeSetFailure, NodeSetHost,
    NodeSetProgress, NodeSetStatus, RunState,
};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::keyed::Digest;
use operator_core::node_set_host::{PREFIX, prefix};
use operator_core::run_engine::host_progress::{awaits_disruption, is_failing, is_untouched};
use serde::Serialize;

use crate::node_set::observed::UnreadableDeployment;

/// How many of the newest deployments the status reports.
const TOLD: usize = 10;
/// Size limit in bytes of these reports. An object is limited to 1.5 MiB, which must also hold
/// every host with its names and addresses.
const TOLD_SIZE: usize = 250_000;
/// How many failures the status reports.
pub const FAILURES: usize = 5;

/// What is known of a node set's deployments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeploymentHistory {
    /// Each host, sorted by name.
    pub hosts: Vec<NodeSetHost>,
    /// Each host that was taken out of the node set and is still terminating.
    pub terminating: Vec<NodeSetHost>,
    /// The UID of the deployment that waits to disturb a host, by host name.
    pub targets: BTreeMap<String, String>,
    /// The digest with which a deployment that is not settled yet succeeded, by host name.
    pub succeeded_with: BTreeMap<String, String>,
    /// The failures of the first failed hosts.
    pub failures: Vec<NodeSetFailure>,
    /// The deployments under way, the oldest first.
    pub under_way: Vec<String>,
    /// The digest of the last deployment of all services to all hosts.
    pub deployed_config_hash: Option<String>,
    /// The parts of that digest.
    pub deployed_inputs: BTreeMap<String, String>,
    /// The digest of the machines at that deployment.
    pub deployed_bmh_hash: Option<String>,
    /// ConfigMap → digest with which services were last deployed.
    pub config_maps: BTreeMap<String, String>,
    /// Secret → digest with which services were last deployed.
    pub secrets: BTreeMap<String, String>,
    /// Deployed images of the control plane's version.
    pub images: BTreeMap<String, String>,
    /// The control plane's version that an update brought to the hosts.
    pub version: Option<String>,
    /// UIDs of existing deployments that have ended and whose result is merged.
    pub settled: Vec<String>,
    /// The conditions of the newest deployments.
    pub statuses: BTreeMap<String, Vec<Condition>>,
    /// The Ansible summaries of the newest deployments.
    pub summaries: BTreeMap<String, BTreeMap<String, ExecutionSummary>>,
}

/// Hosts whose machines replaced others: since when, and whether that is new.
pub type Replaced<'a> = BTreeMap<&'a str, (Timestamp, bool)>;

/// Returns whether a deployment has begun with a node set and may still run something. One that
/// only awaits readiness gates needs its inventory no more.
pub fn is_under_way(deployment: &Deployment, node_set: &NodeSet) -> bool {
    deployment.progress_of(node_set).is_some() && !deployment.has_run()
}

/// Returns whether a deployment needs the inventory as it is, because it may still start runs with
/// it.
pub fn is_inventory_in_use(
    node_set: &NodeSet,
    deployments: &[Arc<Deployment>],
    unreadable: &[UnreadableDeployment],
) -> bool {
    deployments.iter().any(|it| is_under_way(it, node_set))
        || unreadable.iter().any(|it| !it.has_ended)
}

/// A node set as it is at present.
pub struct Present<'a> {
    /// The names of its hosts.
    pub hosts: BTreeSet<&'a str>,
    /// The digest of what a deployment would bring now.
    pub digest: Digest,
    /// The services that bring another version to the hosts.
    pub versions: BTreeSet<&'a str>,
    /// The hosts on whose earlier machines older deployments ran.
    pub replaced: Replaced<'a>,
    /// Hosts that another node set has handed over, as it left them.
    pub handed_over: BTreeMap<&'a str, NodeSetHost>,
    /// The UID of the deployment that a host's node names as the one to disturb it.
    pub targets: BTreeMap<&'a str, &'a str>,
}

/// Merges the recorded status with the statuses of the deployments that began with the node set.
///
/// Records of unreadable deployments are kept.
pub fn merge(
    node_set: &NodeSet,
    deployments: &[Arc<Deployment>],
    unreadable: &[UnreadableDeployment],
    present: &Present<'_>,
) -> DeploymentHistory {
    let nothing = NodeSetStatus::default();
    let recorded = node_set.status.as_ref().unwrap_or(&nothing);
    let began = |it: &&Deployment| it.progress_of(node_set).is_some();
    let mut deployments: Vec<&Deployment> =
        deployments.iter().map(|it| &**it).filter(began).collect();
    deployments.sort_by_key(|it| (it.creation_timestamp(), it.name_any()));
    let mut outcome = DeploymentHistory::recorded(recorded, &deployments, present);
    outcome.keep(recorded, unreadable, present);
    for deployment in &deployments {
        let Some(progress) = deployment.progress_of(node_set) else { continue };
        let uid = deployment.uid().unwrap_or_default();
        if outcome.settled.contains(&uid) {
            continue;
        }
        outcome.follow(&node_set.name_any(), deployment, progress, present);
        if deployment.has_run() {
            outcome.settled.push(uid);
            outcome.settle(&node_set.name_any(), deployment, progress, recorded, present);
        } else {
            outcome.under_way.push(deployment.name_any());
        }
    }
    outcome.end();
    outcome.report(&node_set.name_any(), &deployments);
    outcome
}

impl DeploymentHistory {
    /// Returns the recorded history, reduced to the present hosts.
    fn recorded(
        recorded: &NodeSetStatus,
        deployments: &[&Deployment],
        Present { hosts, replaced, handed_over, .. }: &Present<'_>,
    ) -> Self {
        let mut known: BTreeMap<&str, &NodeSetHost> =
            handed_over.iter().map(|(name, it)| (*name, it)).collect();
        // While its entry waited for the node, nothing was deployed to it here.
        let waited = |it: &NodeSetHost| it.state == HostState::Undeployed && it.hash.is_none();
        let own =
            recorded.hosts.iter().filter(|it| !waited(it) || !handed_over.contains_key(&*it.name));
        known.extend(own.map(|it| (it.name.as_str(), it)));
        let host = |name: &&str| {
            let is_another = replaced.get(name).is_some_and(|(_, is_new)| *is_new);
            let known = known.get(name).filter(|_| !is_another);
            let mut host = known.map_or_else(|| undeployed(name), |it| (*it).clone());
            match host.state {
                // If no existing deployment still reports this host, the deployment was deleted
                // while running.
                HostState::Deploying => host.state = HostState::Failed,
                // It came back, and its services may have been stopped meanwhile. It stays in
                // service, so that a deployment disturbs no more such hosts at once than it may.
                HostState::Terminating => host.state = HostState::Undeployed,
                HostState::Undeployed | HostState::Deployed | HostState::Failed => {}
            }
            host
        };
        let exists = |uid: &&String| deployments.iter().any(|it| it.uid().as_ref() == Some(*uid));
        Self {
            hosts: hosts.iter().map(host).collect(),
            failures: recorded.failures.clone(),
            deployed_config_hash: recorded.deployed_config_hash.clone(),
            deployed_inputs: recorded.deployed_inputs.clone(),
            deployed_bmh_hash: recorded.deployed_bmh_hash.clone(),
            config_maps: recorded.config_map_hashes.clone(),
            secrets: recorded.secret_hashes.clone(),
            images: recorded.container_images.clone(),
            version: recorded.deployed_version.clone(),
            settled: recorded.settled_deployments.iter().filter(exists).cloned().collect(),
            ..Self::default()
        }
    }

    /// Keeps the records of deployments that cannot be read.
    fn keep(
        &mut self,
        recorded: &NodeSetStatus,
        unreadable: &[UnreadableDeployment],
        present: &Present<'_>,
    ) {
        for it in unreadable {
            if it.has_ended {
                self.settled.push(it.uid.clone());
            } else {
                self.under_way.push(it.name.clone());
            }
            let reported = recorded.deployment_statuses.get(&it.name).cloned();
            self.statuses.extend(reported.map(|reported| (it.name.clone(), reported)));
            let reported = recorded.deployment_execution_summaries.get(&it.name).cloned();
            self.summaries.extend(reported.map(|reported| (it.name.clone(), reported)));
        }
        if !self.under_way.is_empty() {
            let is_at = |name: &String| {
                let mut hosts = recorded.hosts.iter();
                hosts.any(|it| it.name == *name && it.state == HostState::Deploying)
            };
            for host in self.hosts.iter_mut().filter(|it| is_at(&it.name)) {
                host.state = HostState::Deploying;
            }
        }
        let is_open = |uid: &str| unreadable.iter().any(|it| !it.has_ended && it.uid == uid);
        let kept = present.targets.iter().filter(|(_, uid)| is_open(uid));
        self.targets.extend(kept.map(|(host, uid)| ((*host).to_owned(), (*uid).to_owned())));
    }

    /// Merges what a deployment reports of each host.
    fn follow(
        &mut self,
        node_set: &str,
        deployment: &Deployment,
        progress: &NodeSetProgress,
        present: &Present<'_>,
    ) {
        let is_over = deployment.has_ended();
        let created = deployment.creation_timestamp().map(|it| it.0);
        let is_another =
            |it: &str| present.replaced.get(it).is_some_and(|(at, _)| created < Some(*at));
        for host in self.hosts.iter_mut().filter(|it| !is_another(&it.name)) {
            let Some(at) = progress.hosts.get(&host.name) else { continue };
            follow_host(host, at, &deployment.spec, progress, is_over);
            // Of several, the oldest one is first.
            if let Some(uid) = target(at, deployment) {
                self.targets.entry(host.name.clone()).or_insert(uid);
            }
            if host.state == HostState::Deployed && progress.is_done_on(at) {
                self.succeeded_with.insert(host.name.clone(), progress.config_hash.clone());
            }
        }
        let reported = deployment.status.iter().flat_map(|it| &it.failures);
        for failure in reported.filter(|it| it.node_set == node_set) {
            self.failures.retain(|it| it.host != failure.host);
            self.failures.push(NodeSetFailure {
                host: failure.host.clone(),
                deployment: deployment.name_any(),
                service: failure.service.clone(),
                reason: failure.reason.clone(),
                message: failure.message.clone(),
            });
        }
    }

    /// Merges what a deployment that has ended used.
    fn settle(
        &mut self,
        node_set: &str,
        deployment: &Deployment,
        progress: &NodeSetProgress,
        recorded: &NodeSetStatus,
        Present { digest: present, versions, .. }: &Present<'_>,
    ) {
        let Some(status) = &deployment.status else { return };
        let has_succeeded = progress.is_done();
        if !has_succeeded || is_partial(&deployment.spec) {
            return;
        }
        if !is_limited(&deployment.spec) {
            if deployment.spec.services_override.is_empty() {
                self.config_maps.clear();
                self.secrets.clear();
            }
            self.config_maps.extend(status.config_map_hashes.clone());
            self.secrets.extend(status.secret_hashes.clone());
        }
        self.images.extend(status.container_images.clone());
        if progress.services.iter().any(|it| versions.contains(it.as_str())) {
            self.version.clone_from(&status.deployed_version);
        }
        let is_whole = deployment.spec.services_override.is_empty();
        if is_whole && self.is_everywhere(&progress.config_hash, present) {
            self.deployed_config_hash = Some(progress.config_hash.clone());
            // The parts are known only if this digest was published.
            let config_hash = recorded.config_hash.as_ref();
            let is_known = config_hash.is_some_and(|it| present.is_one(it, &progress.config_hash));
            self.deployed_inputs = if is_known { recorded.inputs.clone() } else { BTreeMap::new() };
            self.deployed_bmh_hash = status.bmh_ref_hashes.get(node_set).cloned();
        }
    }

    /// Returns whether every host was last deployed with that digest.
    fn is_everywhere(&self, config_hash: &str, present: &Digest) -> bool {
        let (hash, present) = (prefix(config_hash), present.cut(PREFIX));
        let has_it =
            |it: &NodeSetHost| it.hash.as_ref().is_some_and(|it| present.is_one(it, &hash));
        self.hosts.iter().all(|it| it.state == HostState::Deployed && has_it(it))
    }

    /// Drops failures of hosts that are no longer failed.
    fn end(&mut self) {
        let has_failed = |name: &str| {
            self.hosts.iter().any(|it| it.name == name && it.state == HostState::Failed)
        };
        let mut failures = std::mem::take(&mut self.failures);
        failures.retain(|it| has_failed(&it.host));
        failures.sort_by(|a, b| a.host.cmp(&b.host));
        failures.truncate(FAILURES);
        self.failures = failures;
    }

    /// Collects the reports on the newest deployments that have ended. One under way reports in its
    /// own status, service by service. Ansible's summaries are left out when they do not fit.
    fn report(&mut self, node_set: &str, deployments: &[&Deployment]) {
        let ended = deployments.iter().rev().filter(|it| it.has_ended());
        let mut left = TOLD_SIZE;
        for deployment in ended.take(TOLD) {
            let Some(status) = &deployment.status else { continue };
            let name = deployment.name_any();
            let of_set = status.node_set_conditions.get(node_set).cloned().unwrap_or_default();
            let Some(rest) = left.checked_sub(size(&of_set)) else { return };
            left = rest;
            self.statuses.insert(name.clone(), of_set);
            let summaries = &status.ansible_execution_summaries;
            let rest = left.checked_sub(size(summaries)).filter(|_| !summaries.is_empty());
            if let Some(rest) = rest {
                left = rest;
                self.summaries.insert(name, summaries.clone());
            }
        }
    }

    /// Adds the hosts of these names as terminating, with what is recorded of them.
    #[must_use]
    pub fn with_terminating<'a>(
        mut self,
        node_set: &NodeSet,
        names: impl Iterator<Item = &'a String>,
    ) -> Self {
        let recorded = node_set.status.iter().flat_map(|it| &it.hosts);
        let recorded: BTreeMap<&str, &NodeSetHost> =
            recorded.map(|it| (it.name.as_str(), it)).collect();
        let names: BTreeSet<&String> = names.collect();
        for name in names {
            self.targets.remove(name);
            if let Some(own) = self.hosts.iter_mut().find(|it| it.name == *name) {
                own.state = HostState::Terminating;
                continue;
            }
            let known = recorded.get(name.as_str());
            let host = known.map_or_else(|| undeployed(name), |it| (*it).clone());
            self.terminating.push(NodeSetHost { state: HostState::Terminating, ..host });
        }
        self
    }

    /// Returns all hosts as the status reports them, sorted by name.
    pub fn into_hosts(self) -> Vec<NodeSetHost> {
        let mut hosts: Vec<NodeSetHost> = self.hosts.into_iter().chain(self.terminating).collect();
        hosts.sort_by(|a, b| a.name.cmp(&b.name));
        hosts
    }

    /// Returns whether a deployment has succeeded on any host.
    pub fn is_in_service(&self) -> bool {
        self.hosts.iter().any(|it| it.hash.is_some() || it.state == HostState::Deployed)
    }

    /// Returns on how many hosts the last deployment succeeded.
    pub fn n_ready(&self) -> usize {
        self.hosts.iter().filter(|it| it.state == HostState::Deployed).count()
    }
}

/// Returns a host on which nothing is deployed.
fn undeployed(name: &str) -> NodeSetHost {
    NodeSetHost { name: name.to_owned(), state: HostState::Undeployed, hash: None, address: None }
}

fn follow_host(
    host: &mut NodeSetHost,
    at: &HostProgress,
    spec: &DeploymentSpec,
    progress: &NodeSetProgress,
    is_over: bool,
) {
    // A host that the deployment never reached stays as it was.
    if is_untouched(at) {
        return;
    }
    if is_partial(spec) {
        // A partial deployment completes no host, but it may break one.
        if is_over && !progress.is_done_on(at) {
            host.state = ended(at);
        }
        return;
    }
    if at.state == RunState::Failed && is_over {
        host.state = HostState::Failed;
    } else if !progress.is_done_on(at) {
        host.state = if is_over { ended(at) } else { HostState::Deploying };
    } else {
        host.state = HostState::Deployed;
        if spec.services_override.is_empty() {
            host.hash = Some(prefix(&progress.config_hash));
        }
    }
}

/// Returns the UID of a deployment that waits to disturb a host. Once it has begun there, the host's
/// node names it.
fn target(at: &HostProgress, deployment: &Deployment) -> Option<String> {
    let uid = deployment.uid().filter(|_| !deployment.has_ended())?;
    (awaits_disruption(at) && !is_terminating(deployment)).then_some(uid)
}

/// Returns the state of a host whose deployment ended before completing it. A host that was still
/// pending without a reason has not failed: it is half changed.
pub fn ended(at: &HostProgress) -> HostState {
    let has_failed = at.state != RunState::Pending || is_failing(at);
    if has_failed { HostState::Failed } else { HostState::Undeployed }
}

/// Returns whether only tasks with some tags ran, or on hosts that only Ansible can determine. Such
/// a deployment completes no host.
pub fn is_partial(spec: &DeploymentSpec) -> bool {
    let is_set = |it: &Option<String>| it.as_ref().is_some_and(|it| !it.is_empty());
    let is_open = |it: &String| it.contains(['~', '@', '[']);
    is_set(&spec.ansible_tags)
        || is_set(&spec.ansible_skip_tags)
        || spec.ansible_limit.as_ref().is_some_and(is_open)
}

/// Returns whether a deployment leaves hosts out.
fn is_limited(spec: &DeploymentSpec) -> bool {
    spec.ansible_limit.as_ref().is_some_and(|it| !it.is_empty() && it != "*")
}

/// Returns the serialized size of a part of a status, in bytes.
fn size(part: &impl Serialize) -> usize {
    serde_json::to_vec(part).map_or(usize::MAX, |it| it.len())
}
