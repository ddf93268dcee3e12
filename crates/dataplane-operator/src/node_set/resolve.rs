//! A node set with everything that follows from what was observed, computed once per pass.

use std::sync::Arc;

use api::dataplane::{HostState, NodeDeployment, NodeSetFailure, Service};
use api::problem::Problem;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::data_sources::service_type;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::Host;
use operator_core::plan::Step;

use crate::host::gates::{self, GatedHosts, Gates};
use crate::host::inputs::Inputs;
use crate::host::node_state::{failed_service, host_state};
use crate::host::published_hashes;
use crate::node_set::build::{self, Content};
use crate::node_set::deployment_history::{self, DeploymentHistory, FAILURES, KnownHost, Present};
use crate::node_set::external_resources::{self, ExternalResources};
use crate::node_set::host_key_trust::{self, Trusts};
use crate::node_set::kept_hosts::{self, KeptHosts, TerminatingHosts};
use crate::node_set::machine_request::{self, Machines};
use crate::node_set::node_acceptance;
use crate::node_set::node_memory::{Memories, memories};
use crate::node_set::observed::{Observed, deployment_at};
use crate::node_set::{faults, inputs, inventory, inventory_entries, last_looks, terminating};
use crate::reasons;

/// Types of services that bring another version to the hosts, as upstream's control plane expects.
const VERSION_TYPES: [&str; 2] = ["update", "update-services"];

/// A resolved node set.
#[derive(Clone, Debug)]
pub struct Resolved<'a> {
    /// Its hosts.
    pub hosts: Vec<Host<'a>>,
    /// Faults that keep it from having an inventory.
    pub problems: Vec<Problem>,
    /// Faults of its networks, which keep every service from being deployed.
    pub network_faults: Vec<Problem>,
    /// Faults that keep listed services from being deployed.
    pub service_faults: Vec<Problem>,
    /// The trusted key of each host.
    pub trusts: Trusts,
    /// The message about hosts whose keys another host showed earlier.
    pub shared_keys: Option<String>,
    /// The inputs of a deployment that would begin now.
    pub inputs: Inputs,
    /// The evaluated machines.
    pub machines: Machines,
    /// The step for the baremetal set.
    pub asked_of_machines: Option<Step>,
    /// The nodes of its hosts, with what they remember of deployments.
    pub memories: Memories,
    /// What deployments have done to its hosts.
    pub outcome: DeploymentHistory,
    /// The readiness gates of its services; `None` without any, and before the last deployment has
    /// succeeded on every host.
    pub gates: Option<Gates>,
    /// What external operators provide for it.
    pub served: ExternalResources,
    /// The hosts that were taken out of it and that others still clean up after.
    pub terminating: TerminatingHosts,
    /// Whether nodes of its hosts are still to be made, so that nothing can be deployed there.
    pub lacks_nodes: bool,
    /// The desired content of its inventory Secret; `None` while it cannot be determined.
    pub content: Option<Content>,
}

/// Resolves a node set.
pub fn resolve(seen: &Observed, now: Timestamp) -> Resolved<'_> {
    let hosts = external_resources::hosts(seen);
    let terminating = terminating::hosts(seen);
    let machines = Machines::of(seen, &hosts, &terminating, now);
    let mut problems = faults::of_hosts(seen, &hosts, &terminating, &machines);
    let is_frozen = seen.is_in_use();
    let kept = KeptHosts { is_frozen, terminating: &terminating };
    let served = external_resources::evaluate(seen, &hosts, &problems, kept);
    let inputs: Inputs =
        inputs::input_digests(seen, &hosts, &served).into_iter().chain(machines.inputs()).collect();
    let memories = memories(seen, &machines, now);
    let outcome = outcome(seen, &hosts, &terminating, &memories, &inputs);
    // Machines are not requested for invalid hosts either.
    let asked_of_machines = if problems.is_empty() {
        machine_request::step(seen, &hosts, &machines, &served, kept)
    } else {
        None
    };
    problems.extend(faults::of_set(seen));
    let ssh_hosts = host_key_trust::ssh_hosts(seen, &hosts, &terminating, &memories);
    let trusts = host_key_trust::trusts(seen, &ssh_hosts);
    let shared_keys = host_key_trust::shared(seen, &trusts);
    let waits = shared_keys.clone().filter(|_| !is_frozen && !outcome.is_in_service());
    problems.extend(waits.map(|it| Problem::new(&reasons::inputs::HOST_KEY_SHARED, it)));
    let lacks_nodes = node_acceptance::are_awaited(seen, &hosts);
    let gates = gates(seen, &outcome, now);
    let content = if problems.is_empty() && served.missing().is_none() && !lacks_nodes {
        let known_hosts = host_key_trust::known_hosts(&ssh_hosts, &trusts);
        let inventory = inventory::inventory(seen, &hosts, &served);
        let further = kept_hosts::entries(&terminating);
        let inventory = inventory_entries::with_entries(inventory, further);
        let content = build::content(seen, &hosts, inventory, known_hosts);
        let size = content.values().map(String::len).sum();
        problems.extend(faults::of_inventory(&seen.set.name_any(), size));
        problems.is_empty().then_some(content)
    } else {
        None
    };
    Resolved {
        network_faults: faults::of_networks(seen),
        service_faults: faults::of_services(seen),
        inputs,
        machines,
        asked_of_machines,
        gates,
        memories,
        outcome,
        hosts,
        problems,
        trusts,
        shared_keys,
        served,
        terminating,
        lacks_nodes,
        content,
    }
}

fn outcome(
    seen: &Observed,
    hosts: &[Host<'_>],
    terminating: &TerminatingHosts,
    memories: &Memories,
    inputs: &Inputs,
) -> DeploymentHistory {
    let brings_version = |(name, it): &(&String, &Arc<Service>)| {
        VERSION_TYPES.contains(&service_type(&it.spec, name).as_str())
    };
    let services = seen.services.iter().chain(&seen.brought);
    let versions = services.filter(brings_version).map(|(name, _)| name.as_str());
    let hosts = known_hosts(seen, hosts, memories);
    let present = Present {
        failures: failures(&hosts, memories),
        hosts,
        digest: inputs::digest(inputs),
        versions: versions.collect(),
    };
    let mut outcome = deployment_history::merge(seen, &present);
    let secrets = std::mem::take(&mut outcome.status.secret_hashes);
    outcome.status.secret_hashes =
        published_hashes::of_existing(&seen.sources, &seen.namespace, secrets);
    outcome.terminating = terminating.keys().cloned().collect();
    let is_going = is_terminating(&*seen.set);
    if is_going {
        outcome.terminating.extend(last_looks::held_names(seen));
    }
    // Deployments keep the hosts and the places that they have.
    let all_leave = is_going && !seen.is_in_use();
    for host in &mut outcome.hosts {
        let was_taken_out = outcome.terminating.remove(&host.name);
        let is_left = if is_going { all_leave } else { was_taken_out };
        if is_left {
            host.state = HostState::Terminating;
        }
    }
    outcome
}

/// Returns how far each host is; on one without a node nothing is deployed.
fn known_hosts(seen: &Observed, hosts: &[Host<'_>], memories: &Memories) -> Vec<KnownHost> {
    let exists = |at: &NodeDeployment| {
        seen.deployments.iter().any(|it| it.metadata.uid.as_ref() == Some(&at.uid))
    };
    let known = |host: &Host<'_>| {
        let memory = memories.get(&host.name);
        // Until it is observed how it has ended there, a deployment is at the host.
        let node = seen.nodes.get(&host.name).filter(|it| deployment_at(it).is_some_and(exists));
        let node = node.map(|it| &**it).or(memory);
        KnownHost {
            name: host.name.clone(),
            state: node.map_or(HostState::Undeployed, host_state),
            hash: memory.and_then(|it| it.status.as_ref()?.deployed_config_hash.clone()),
        }
    };
    let mut all: Vec<KnownHost> = hosts.iter().map(known).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all.dedup_by(|a, b| a.name == b.name);
    all
}

/// Returns what failed on the first hosts that failed, as far as that is known.
fn failures(hosts: &[KnownHost], memories: &Memories) -> Vec<NodeSetFailure> {
    let failed = hosts.iter().filter(|it| it.state == HostState::Failed);
    let failure = |host: &KnownHost| {
        let memory = memories.get(&host.name)?.status.as_ref()?;
        let failed = failed_service(memory)?;
        Some(NodeSetFailure {
            host: host.name.clone(),
            deployment: memory.deployment.as_ref()?.name.clone(),
            service: failed.name.clone(),
            reason: failed.reason.clone()?,
            message: failed.message.clone().unwrap_or_default(),
        })
    };
    failed.filter_map(failure).take(FAILURES).collect()
}

fn gates(seen: &Observed, outcome: &DeploymentHistory, now: Timestamp) -> Option<Gates> {
    let is_deployed = outcome.hosts.iter().all(|it| it.state == HostState::Deployed);
    if !is_deployed || seen.is_in_use() {
        return None;
    }
    let node = |name: &str| seen.nodes.own.get(name).map(|it| &**it);
    let all = GatedHosts {
        set: &seen.set,
        services: seen.services.iter().map(|(name, it)| (name.as_str(), &**it)).collect(),
        hosts: outcome.hosts.iter().map(|it| (it.name.as_str(), node(&it.name))).collect(),
    };
    gates::evaluate(&[all], seen.set.conditions(), now)
}
