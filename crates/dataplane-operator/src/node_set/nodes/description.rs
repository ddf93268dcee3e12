//! The statuses of the nodes of a node set: what is known of each host.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::{self, ConditionDraft, READY, is_true, merge_conditions};
use api::dataplane::condition_types::INPUT_READY;
use api::dataplane::{
    Disruption, DisruptionTarget, HostMachine, HostState, Node, NodeDeployment, NodeSetHost,
    NodeStatus, ObservedNodeSet, ServiceRun,
};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::node_set_host::{Host, canonical_host_name};
use operator_core::plan::{Step, Target, status_step};
use operator_core::run_engine::mounts::node_sets::inventory_name;

use crate::host::status::own;
use crate::ignored_annotations;
use crate::node_set::nodes::conditions as of_host;
use crate::node_set::nodes::conditions::OfSet;
use crate::node_set::nodes::handover::is_handed_over;
use crate::node_set::nodes::last_deployment::{self, Recorded};
use crate::node_set::nodes::services::{BegunDeployment, is_settled};
use crate::node_set::observed::Observed;
use crate::node_set::resolve::Resolved;
use crate::node_set::status;
use crate::reasons;

/// Returns the writes of the statuses that differ. They publish no Events, for the node set does.
pub fn steps(seen: &Observed, resolved: &Resolved<'_>, now: Timestamp) -> Vec<Step> {
    if seen.nodes.all().next().is_none() {
        return Vec::new();
    }
    let outcome = &resolved.outcome;
    let states = outcome.hosts.iter().chain(&outcome.terminating);
    let states: BTreeMap<&str, &NodeSetHost> = states.map(|it| (it.name.as_str(), it)).collect();
    let hosts: BTreeMap<&str, &Host<'_>> =
        resolved.hosts.iter().map(|it| (it.name.as_str(), it)).collect();
    let of_set = OfSet::of(
        seen,
        resolved,
        status::up_to_date(seen, resolved),
        status::has_changed_sources(seen, resolved),
    );
    let replaced = resolved.machines.replaced();
    let step = |(name, node): (&String, &Arc<Node>)| {
        let state = states.get(name.as_str())?;
        let replaced = replaced.get(name.as_str()).map(|(at, _)| *at);
        let known = Known { seen, resolved, of_set: &of_set, node, state, replaced, now };
        known.step(hosts.get(name.as_str()).copied())
    };
    // A node that is handed over is described by its new node set.
    let described = seen.nodes.all().filter(|(name, _)| !is_handed_over(seen, name));
    described.filter_map(step).collect()
}

/// What is known of one host.
struct Known<'a> {
    seen: &'a Observed,
    resolved: &'a Resolved<'a>,
    of_set: &'a OfSet,
    node: &'a Node,
    state: &'a NodeSetHost,
    /// When the machine was installed, if it replaced another one.
    replaced: Option<Timestamp>,
    now: Timestamp,
}

impl Known<'_> {
    /// Returns the step that writes the status; `host` is absent once the entry is gone.
    fn step(&self, host: Option<&Host<'_>>) -> Option<Step> {
        let Self { seen, resolved, node, .. } = self;
        let (set, name) = (&seen.set, &self.state.name);
        let leaving = resolved.terminating.get(name);
        let reached = leaving.and_then(|it| it.address.as_ref());
        let address = host.map(Host::address);
        let address = address.or_else(|| reached.map(|(host, port)| format!("{host}:{port}")));
        let machines = &resolved.machines;
        let machine = machines.records.get(name).or_else(|| machines.of_terminating.get(name));
        let begun = BegunDeployment::begun(seen, name, self.replaced);
        let services = self.services(&begun);
        let last = begun.last();
        let drafts = self.conditions(host, address.as_deref(), last, &services);
        let observed = node.status.as_ref();
        let previous = observed.map(|it| it.conditions.as_slice()).unwrap_or_default();
        let generation = node.metadata.generation;
        let installation = machine.and_then(HostMachine::own_installation);
        let desired = NodeStatus {
            observed_generation: generation,
            group: Some(format!("NodeSet/{}", set.name_any())),
            observed_node_set: Some(self.node_set(host)),
            conditions: merge_conditions(previous, drafts, generation, self.now),
            inventory_secret_name: resolved
                .content
                .is_some()
                .then(|| inventory_name(&set.name_any())),
            ssh_key_secret_name: Some(
                set.spec.node_template.ansible_ssh_private_key_secret.clone(),
            ),
            network_attachments: set.spec.network_attachments.clone(),
            deployed: (self.state.state == HostState::Deployed).then_some(true),
            deployment: self.deployment(&services),
            deployed_config_hash: self.state.hash.clone(),
            disruption: self.disruption(),
            host_name: host
                .map(|it| canonical_host_name(set, it))
                .or_else(|| observed?.host_name.clone()),
            address,
            host_key: resolved.trusts.get(name).and_then(|it| Some(it.key.as_ref()?.to_string())),
            host_instance: installation.map(|it| format!("p{it}")),
            machine: machine.cloned(),
            services,
            ..NodeStatus::default()
        };
        let conditions = &desired.conditions;
        let ours = observed.map(own);
        status_step(Target::of(*node), ours.as_ref(), &desired, conditions, conditions)
    }

    fn deployment(&self, services: &[ServiceRun]) -> Option<NodeDeployment> {
        let status = self.node.status.as_ref();
        let recorded = Recorded {
            deployment: status.and_then(|it| it.deployment.as_ref()),
            services: status.map(|it| it.services.as_slice()).unwrap_or_default(),
            state: self.state.state,
        };
        let host = (self.state.name.as_str(), self.replaced);
        last_deployment::of_host(self.seen, host, &recorded, services, self.now)
    }

    /// Returns which deployment is to disturb the host. Each target has a number of its own, also one
    /// that was taken away and is given again.
    fn disruption(&self) -> Option<Disruption> {
        let recorded = self.node.status.as_ref().and_then(|it| it.disruption.as_ref());
        let last = recorded.map_or(0, |it| it.last);
        let target = self.resolved.outcome.targets.get(&self.state.name);
        let same = recorded.and_then(|it| it.target.as_ref());
        let same = same.filter(|it| Some(&it.deployment) == target);
        let target = target.map(|uid| match same {
            Some(same) => same.clone(),
            None => DisruptionTarget { deployment: uid.clone(), number: last + 1 },
        });
        let last = target.as_ref().map_or(last, |it| last.max(it.number));
        (last > 0).then(|| Disruption { last, target, holders: Vec::new() })
    }

    fn node_set(&self, host: Option<&Host<'_>>) -> ObservedNodeSet {
        let set = &self.seen.set;
        ObservedNodeSet {
            name: set.name_any(),
            uid: set.uid().unwrap_or_default(),
            generation: set.metadata.generation.unwrap_or_default(),
            key: host.map(|it| it.key.to_owned()),
        }
    }

    /// Returns the records of the services, after these deployments in their order; those of a machine
    /// that was replaced are forgotten.
    fn services(&self, begun: &[BegunDeployment<'_>]) -> Vec<ServiceRun> {
        let recorded = self.node.status.as_ref().map(|it| it.services.clone());
        let mut recorded = recorded.unwrap_or_default();
        recorded.retain(|it| self.replaced.is_none_or(|at| it.since.0 >= at));
        // A host that was taken out and is back is a new one, whatever ran there before; so is one whose
        // node was deleted by hand.
        let is_new = recorded.is_empty() && self.state.state == HostState::Undeployed;
        let Some((newest, earlier)) = begun.split_last() else { return recorded };
        let recorded = earlier.iter().fold(recorded, |all, it| it.ended_in(all, self.now));
        if is_new && is_settled(newest.deployment, self.seen) {
            return recorded;
        }
        newest.services(self.seen, &recorded, self.now)
    }

    fn conditions(
        &self,
        host: Option<&Host<'_>>,
        address: Option<&str>,
        last: Option<&BegunDeployment<'_>>,
        services: &[ServiceRun],
    ) -> Vec<ConditionDraft> {
        let Self { seen, resolved, of_set, node, state, .. } = self;
        let machine = of_host::machine(seen, resolved, &state.name, address.unwrap_or_default());
        let deployment = of_host::deployment(seen, state, last, services);
        // A host that needs no deployment stays ready when an input of a deployment goes missing.
        let keeps_ready = deployment.holds() && self.has_stood();
        let mut drafts = vec![machine, of_set.input.clone(), deployment];
        let blocking: Vec<ConditionDraft> =
            drafts.iter().filter(|it| !keeps_ready || it.type_ != INPUT_READY).cloned().collect();
        let good = format!("OpenStackDataPlaneNode {} is deployed.", node.name_any());
        let ready = conditions::ready(&blocking, reasons::role::READY.condition(READY, good));
        drafts.extend(conditions::kstatus(&ready));
        let up_to_date = of_host::up_to_date(resolved, of_set, state, node);
        drafts.extend([ready, up_to_date, of_set.setup.clone()]);
        drafts.extend(of_host::host_key_checks(seen, host));
        drafts.extend(ignored_annotations::of_node(node));
        drafts
    }

    /// Returns whether the node was ready at the node set's present generation.
    fn has_stood(&self) -> bool {
        let Some(status) = &self.node.status else { return false };
        let generation = status.observed_node_set.as_ref().map(|it| it.generation);
        is_true(&status.conditions, READY) && generation == self.seen.set.metadata.generation
    }
}
