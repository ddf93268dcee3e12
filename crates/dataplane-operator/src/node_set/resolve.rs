//! A node set with everything that follows from what was observed, computed once per pass.

use std::sync::Arc;

use api::dataplane::{HostState, Service};
use api::problem::Problem;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::data_sources::service_type;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::Host;
use operator_core::plan::Step;

use crate::host::inputs::Inputs;
use crate::node_set::build::{self, Content};
use crate::node_set::deployment_history::{self, DeploymentHistory, Present};
use crate::node_set::external_resources::{self, ExternalResources};
use crate::node_set::host_key_trust::{self, Trusts};
use crate::node_set::kept_hosts::{self, KeptHosts, TerminatingHosts};
use crate::node_set::machine_request::{self, Machines};
use crate::node_set::observed::Observed;
use crate::node_set::readiness_gates::{self, GatedHosts, Gates};
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
    let content = if problems.is_empty() && served.missing().is_none() {
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
        gates: gates(seen, &outcome, now),
        outcome,
        hosts,
        problems,
        trusts,
        shared_keys,
        served,
        terminating,
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
    };
    let (set, unreadable) = (&seen.set, &seen.unreadable_deployments);
    let mut outcome = deployment_history::merge(set, &seen.deployments, unreadable, &present);
    outcome.secrets =
        published_hashes::of_existing(&seen.sources, &seen.namespace, outcome.secrets);
    let of_deleted = terminating::holders(seen).flat_map(|it| it.spec.host_finalizers.keys());
    let looked_at = last_looks::held_names(seen);
    let of_deleted = of_deleted.chain(&looked_at).filter(|_| is_terminating(&*seen.set));
    outcome.with_terminating(&seen.set, terminating.keys().chain(of_deleted))
}

fn gates(seen: &Observed, outcome: &DeploymentHistory, now: Timestamp) -> Option<Gates> {
    let is_deployed = outcome.hosts.iter().all(|it| it.state == HostState::Deployed);
    if !is_deployed || !outcome.under_way.is_empty() {
        return None;
    }
    let all = GatedHosts {
        set: &seen.set,
        services: seen.services.iter().map(|(name, it)| (name.as_str(), &**it)).collect(),
        hosts: outcome.hosts.iter().map(|it| it.name.as_str()).collect(),
        deployments: &outcome.settled,
        reports: &seen.readiness,
    };
    let previous = seen.set.status.as_ref().map(|it| it.conditions.as_slice());
    readiness_gates::evaluate(&[all], previous.unwrap_or_default(), now)
}
