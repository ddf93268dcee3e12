//! A node set with everything that follows from what was observed, computed once per pass.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::dataplane::{HostState, NodeSetHost, Service};
use api::problem::Problem;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::data_sources::service_type;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::Host;
use operator_core::plan::Step;

use crate::host::gates::{self, GatedHosts, Gates};
use crate::host::inputs::Inputs;
use crate::node_set::build::{self, Content};
use crate::node_set::deployment_history::{self, DeploymentHistory, Present};
use crate::node_set::external_resources::{self, ExternalResources};
use crate::node_set::host_key_trust::{self, Trusts};
use crate::node_set::kept_hosts::{self, KeptHosts, TerminatingHosts};
use crate::node_set::machine_request::{self, Machines};
use crate::node_set::nodes::{acceptance, last_deployment};
use crate::node_set::observed::Observed;
use crate::node_set::{
    faults, inputs, inventory, inventory_entries, last_looks, published_hashes, terminating,
};
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

impl Resolved<'_> {
    /// Returns whether the inventory must not change, because a deployment is under way.
    pub fn is_frozen(&self) -> bool {
        !self.outcome.under_way.is_empty()
    }
}

/// Resolves a node set.
pub fn resolve(seen: &Observed, now: Timestamp) -> Resolved<'_> {
    let hosts = external_resources::hosts(seen);
    let terminating = terminating::hosts(seen);
    let machines = Machines::of(seen, &hosts, &terminating, now);
    let mut problems = faults::of_hosts(seen, &hosts, &terminating, &machines);
    let is_frozen =
        seen.deployments.iter().any(|it| deployment_history::is_under_way(it, &seen.set));
    let kept = KeptHosts { is_frozen, terminating: &terminating };
    let served = external_resources::evaluate(seen, &hosts, &problems, kept);
    let inputs: Inputs =
        inputs::input_digests(seen, &hosts, &served).into_iter().chain(machines.inputs()).collect();
    let outcome = outcome(seen, &hosts, &terminating, &machines, &inputs);
    // Machines are not requested for invalid hosts either.
    let asked_of_machines = if problems.is_empty() {
        machine_request::step(seen, &hosts, &machines, &served, kept)
    } else {
        None
    };
    problems.extend(faults::of_set(seen));
    let trusts = host_key_trust::trusts(seen, &hosts, &terminating, &machines);
    let shared_keys = host_key_trust::shared(seen, &trusts);
    let waits = shared_keys.clone().filter(|_| !is_frozen && !outcome.is_in_service());
    problems.extend(waits.map(|it| Problem::new(&reasons::inputs::HOST_KEY_SHARED, it)));
    let lacks_nodes = acceptance::are_awaited(seen, &hosts);
    let gates = gates(seen, &outcome, &machines, now);
    let content = if problems.is_empty() && served.missing().is_none() && !lacks_nodes {
        let content = content(seen, &hosts, &terminating, &served, &trusts);
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

fn content(
    seen: &Observed,
    hosts: &[Host<'_>],
    terminating: &TerminatingHosts,
    served: &ExternalResources,
    trusts: &Trusts,
) -> Content {
    let known_hosts = host_key_trust::known_hosts(hosts, terminating, trusts);
    let inventory = inventory::inventory(seen, hosts, served);
    let further = kept_hosts::entries(terminating);
    let inventory = inventory_entries::with_entries(inventory, further);
    build::content(seen, hosts, inventory, known_hosts)
}

fn outcome(
    seen: &Observed,
    hosts: &[Host<'_>],
    terminating: &TerminatingHosts,
    machines: &Machines,
    inputs: &Inputs,
) -> DeploymentHistory {
    let brings_version = |(name, it): &(&String, &Arc<Service>)| {
        VERSION_TYPES.contains(&service_type(&it.spec, name).as_str())
    };
    let services = seen.services.iter().chain(&seen.brought);
    let versions = services.filter(brings_version).map(|(name, _)| name.as_str());
    let present = Present {
        hosts: hosts.iter().map(|it| it.name.as_str()).collect(),
        digest: inputs::digest(inputs),
        versions: versions.collect(),
        replaced: machines.replaced(),
        handed_over: handed_over(seen, hosts),
        targets: targets(seen),
    };
    let (set, unreadable) = (&seen.set, &seen.unreadable_deployments);
    let mut outcome = deployment_history::merge(set, &seen.deployments, unreadable, &present);
    outcome.secrets =
        published_hashes::of_existing(&seen.sources, &seen.namespace, outcome.secrets);
    // Those that the spec does not have are among the names; the others are of a node set or a node that
    // is being deleted.
    let mut names = terminating::names(seen);
    names.extend(terminating.keys().cloned());
    names.extend(last_looks::held_names(seen).into_iter().filter(|_| is_terminating(&*seen.set)));
    // A node set that is being deleted waits for its deployments, which keep the hosts and the places that
    // they have; they leave a host out whose own node is being deleted.
    let is_kept =
        |it: &String| present.hosts.contains(it.as_str()) && !seen.nodes.leaving.contains_key(it);
    if !outcome.under_way.is_empty() {
        names.retain(|it| !is_kept(it));
    }
    outcome.with_terminating(&seen.set, names.iter())
}

/// Returns the hosts that another node set has handed over with their nodes, which still describe it, and
/// those of which this one has recorded nothing.
fn handed_over<'a>(seen: &'a Observed, hosts: &'a [Host<'_>]) -> BTreeMap<&'a str, NodeSetHost> {
    let recorded: BTreeSet<&str> =
        seen.set.status.iter().flat_map(|it| &it.hosts).map(|it| &*it.name).collect();
    let uid = seen.set.uid();
    let left = |host: &'a Host<'_>| {
        let status = seen.nodes.own.get(&host.name)?.status.as_ref()?;
        let described = status.observed_node_set.as_ref().map(|it| &it.uid);
        if recorded.contains(&*host.name) && described == uid.as_ref() {
            return None;
        }
        let hash = status.deployed_config_hash.clone()?;
        let is_deployed = status.deployed == Some(true);
        let state = if is_deployed { HostState::Deployed } else { HostState::Undeployed };
        let address = status.address.as_ref().filter(|it| **it == host.address());
        let address = address.map(|_| host.address_digest());
        let left = NodeSetHost { name: host.name.clone(), state, hash: Some(hash), address };
        Some((host.name.as_str(), left))
    };
    hosts.iter().filter_map(left).collect()
}

/// Returns the deployments that the nodes name as the ones to disturb them, by their UIDs.
fn targets(seen: &Observed) -> BTreeMap<&str, &str> {
    let named = seen.nodes.own.iter().filter_map(|(name, it)| {
        Some((name.as_str(), it.disruption_target()?.deployment.as_str()))
    });
    named.collect()
}

fn gates(
    seen: &Observed,
    outcome: &DeploymentHistory,
    machines: &Machines,
    now: Timestamp,
) -> Option<Gates> {
    let is_deployed = outcome.hosts.iter().all(|it| it.state == HostState::Deployed);
    if !is_deployed || !outcome.under_way.is_empty() {
        return None;
    }
    let replaced = machines.replaced();
    // What a node says of the deployment before the last one counts for nothing.
    let node = |name: &str| {
        let since = replaced.get(name).map(|(at, _)| *at);
        let node = seen.nodes.own.get(name)?;
        last_deployment::is_recorded(seen, (name, since), node).then_some(&**node)
    };
    let all = GatedHosts {
        set: &seen.set,
        services: seen.services.iter().map(|(name, it)| (name.as_str(), &**it)).collect(),
        hosts: outcome.hosts.iter().map(|it| (it.name.as_str(), node(&it.name))).collect(),
    };
    let previous = seen.set.status.as_ref().map(|it| it.conditions.as_slice());
    gates::evaluate(&[all], previous.unwrap_or_default(), now)
}
