//! What deployments have done to a node set: what its nodes remember, and the sums of what its
//! deployments used.
//!
//! What a deployment used outlives the deployment: when it has ended, that is merged once into the
//! node set's status.

use std::collections::{BTreeMap, BTreeSet};

use api::dataplane::{
    Deployment, DeploymentNodeSet, HostState, NodeSetFailure, NodeSetHost, NodeSetStatus,
};
use kube::ResourceExt;
use operator_core::keyed::Digest;
use operator_core::node_set_host::{PREFIX, prefix};
use serde::Serialize;

use crate::node_set::observed::{Observed, UnreadableDeployment};

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
    pub hosts: Vec<KnownHost>,
    /// The name of each host that was taken out of the node set and is still terminating.
    pub terminating: BTreeSet<String>,
    /// The deployments under way, the oldest first.
    pub under_way: Vec<String>,
    /// What the node set's status says of them; the rest is as recorded.
    pub status: NodeSetStatus,
}

/// How far a host is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KnownHost {
    /// Its name in the inventory.
    pub name: String,
    /// How far it is.
    pub state: HostState,
    /// The first digits of the digest with which all services last succeeded there.
    pub hash: Option<String>,
}

/// A node set as it is at present.
pub struct Present<'a> {
    /// Its hosts, sorted by name.
    pub hosts: Vec<KnownHost>,
    /// What failed on those of them that failed.
    pub failures: Vec<NodeSetFailure>,
    /// The digest of what a deployment would bring now.
    pub digest: Digest,
    /// The services that bring another version to the hosts.
    pub versions: BTreeSet<&'a str>,
}

/// Merges the recorded status with the statuses of the deployments that began with the node set.
///
/// Records of unreadable deployments are kept.
pub fn merge(seen: &Observed, present: &Present<'_>) -> DeploymentHistory {
    let node_set = &*seen.set;
    let nothing = NodeSetStatus::default();
    let recorded = node_set.status.as_ref().unwrap_or(&nothing);
    let name = node_set.name_any();
    let began = |it: &&Deployment| it.part_of(node_set).is_some();
    let mut deployments: Vec<&Deployment> =
        seen.deployments.iter().map(|it| &**it).filter(began).collect();
    deployments.sort_by_key(|it| (it.creation_timestamp(), it.name_any()));
    let mut outcome = DeploymentHistory::recorded(recorded, &deployments, present);
    outcome.keep(recorded, &seen.unreadable_deployments);
    for deployment in &deployments {
        let Some(part) = deployment.part_of(node_set) else { continue };
        let uid = deployment.uid().unwrap_or_default();
        if outcome.status.settled_deployments.contains(&uid) {
            continue;
        }
        // Its end may be observed before that of its hosts, which was recorded first.
        if seen.is_under_way(deployment) {
            outcome.under_way.push(deployment.name_any());
        } else {
            outcome.status.settled_deployments.push(uid);
            outcome.settle(&name, deployment, part, recorded, present);
        }
    }
    outcome.report(&name, &deployments);
    outcome
}

impl DeploymentHistory {
    /// Returns the recorded history, with the present hosts.
    fn recorded(
        recorded: &NodeSetStatus,
        deployments: &[&Deployment],
        present: &Present<'_>,
    ) -> Self {
        let exists = |uid: &String| deployments.iter().any(|it| it.uid().as_ref() == Some(uid));
        let mut status = NodeSetStatus { failures: present.failures.clone(), ..recorded.clone() };
        status.settled_deployments.retain(exists);
        status.deployment_statuses.clear();
        status.deployment_execution_summaries.clear();
        Self { hosts: present.hosts.clone(), status, ..Self::default() }
    }

    /// Keeps the records of deployments that cannot be read.
    fn keep(&mut self, recorded: &NodeSetStatus, unreadable: &[UnreadableDeployment]) {
        for it in unreadable {
            if it.has_ended {
                self.status.settled_deployments.push(it.uid.clone());
            } else {
                self.under_way.push(it.name.clone());
            }
            let reported = recorded.deployment_statuses.get(&it.name).cloned();
            let statuses = &mut self.status.deployment_statuses;
            statuses.extend(reported.map(|reported| (it.name.clone(), reported)));
            let reported = recorded.deployment_execution_summaries.get(&it.name).cloned();
            let summaries = &mut self.status.deployment_execution_summaries;
            summaries.extend(reported.map(|reported| (it.name.clone(), reported)));
        }
    }

    /// Merges what a deployment that has run used.
    fn settle(
        &mut self,
        node_set: &str,
        deployment: &Deployment,
        part: &DeploymentNodeSet,
        recorded: &NodeSetStatus,
        Present { digest: present, versions, .. }: &Present<'_>,
    ) {
        let Some(status) = &deployment.status else { return };
        let has_succeeded = status.node_set_hashes.contains_key(node_set);
        if !has_succeeded || deployment.spec.is_partial() {
            return;
        }
        let is_whole = deployment.spec.services_override.is_empty();
        let is_everywhere = is_whole && self.is_everywhere(&part.config_hash, present);
        let own = &mut self.status;
        if !deployment.spec.is_limited() {
            if is_whole {
                own.config_map_hashes.clear();
                own.secret_hashes.clear();
            }
            own.config_map_hashes.extend(status.config_map_hashes.clone());
            own.secret_hashes.extend(status.secret_hashes.clone());
        }
        own.container_images.extend(status.container_images.clone());
        if part.services.iter().any(|it| versions.contains(it.as_str())) {
            own.deployed_version.clone_from(&status.deployed_version);
        }
        if is_everywhere {
            own.deployed_config_hash = Some(part.config_hash.clone());
            // The parts are known only if this digest was published.
            let config_hash = recorded.config_hash.as_ref();
            let is_known = config_hash.is_some_and(|it| present.is_one(it, &part.config_hash));
            own.deployed_inputs = if is_known { recorded.inputs.clone() } else { BTreeMap::new() };
            own.deployed_bmh_hash = status.bmh_ref_hashes.get(node_set).cloned();
        }
    }

    /// Returns whether every host was last deployed with that digest. Another deployment may have begun
    /// there meanwhile.
    fn is_everywhere(&self, config_hash: &str, present: &Digest) -> bool {
        let (hash, present) = (prefix(config_hash), present.cut(PREFIX));
        let has_it = |it: &KnownHost| it.hash.as_ref().is_some_and(|it| present.is_one(it, &hash));
        let is_whole =
            |it: &KnownHost| matches!(it.state, HostState::Deployed | HostState::Deploying);
        self.hosts.iter().all(|it| is_whole(it) && has_it(it))
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
            self.status.deployment_statuses.insert(name.clone(), of_set);
            let summaries = &status.ansible_execution_summaries;
            let rest = left.checked_sub(size(summaries)).filter(|_| !summaries.is_empty());
            if let Some(rest) = rest {
                left = rest;
                let all = &mut self.status.deployment_execution_summaries;
                all.insert(name, summaries.clone());
            }
        }
    }

    /// Returns all hosts as the status reports them, sorted by name.
    pub fn into_hosts(self) -> Vec<NodeSetHost> {
        let own = self.hosts.into_iter().map(|it| (it.name, it.state));
        let terminating = self.terminating.into_iter().map(|it| (it, HostState::Terminating));
        let all = own.chain(terminating).map(|(name, state)| NodeSetHost { name, state });
        let mut hosts: Vec<NodeSetHost> = all.collect();
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

/// Returns the serialized size of a part of a status, in bytes.
fn size(part: &impl Serialize) -> usize {
    serde_json::to_vec(part).map_or(usize::MAX, |it| it.len())
}
