//! The statuses of the nodes of a node set: what is known of each host.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::{ConditionDraft, merge_conditions};
use api::dataplane::{HostMachine, HostState, Node, NodeStatus, ObservedNodeSet};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::keyed::Renewal;
use operator_core::node_set_host::{Host, canonical_host_name};
use operator_core::plan::{Step, Target, status_step};
use operator_core::run_engine::mounts::node_sets::inventory_name;

use crate::host::node_conditions;
use crate::host::status::own;
use crate::ignored_annotations;
use crate::node_set::nodes::conditions as of_host;
use crate::node_set::nodes::conditions::OfSet;
use crate::node_set::nodes::steps::may_come_back;
use crate::node_set::observed::Observed;
use crate::node_set::resolve::Resolved;
use crate::node_set::status;
use crate::node_set::terminating::is_handed_over;

/// Returns the writes of the statuses that differ. They publish no Events, for the node set does.
///
/// What the deployment controller records is repeated as it was observed, so each write holds only for
/// the node as it was observed.
pub fn steps(seen: &Observed, resolved: &Resolved<'_>, now: Timestamp) -> Vec<Step> {
    if resolved.memories.is_empty() {
        return Vec::new();
    }
    let hosts: BTreeMap<&str, &Host<'_>> =
        resolved.hosts.iter().map(|it| (it.name.as_str(), it)).collect();
    let of_set = OfSet::of(
        seen,
        resolved,
        status::up_to_date(seen, resolved),
        status::has_changed_sources(seen, resolved),
    );
    let step = |(name, node): (&String, &Arc<Node>)| {
        let memory = resolved.memories.get(name)?;
        let known = Known { seen, resolved, of_set: &of_set, name, node, memory, now };
        known.step(hosts.get(name.as_str()).copied())
    };
    // A node that is handed over is described by its new node set.
    let goes =
        |(name, node): &(&String, &Arc<Node>)| is_handed_over(seen, name) && may_come_back(node);
    seen.nodes.all().filter(|it| !goes(it)).filter_map(step).collect()
}

/// What is known of one host.
struct Known<'a> {
    seen: &'a Observed,
    resolved: &'a Resolved<'a>,
    of_set: &'a OfSet,
    name: &'a str,
    node: &'a Node,
    /// The node with what it records of deployments, as far as that is so.
    memory: &'a Node,
    now: Timestamp,
}

impl Known<'_> {
    /// Returns the step that writes the status; `host` is absent once the entry is gone.
    fn step(&self, host: Option<&Host<'_>>) -> Option<Step> {
        let desired = self.status(host);
        let (mut renewed, mut renewal) = (desired.clone(), Renewal::default());
        if !self.of_set.is_in_use {
            renewal.of_some(renewed.deployed_config_hash.as_mut(), &self.of_set.digest);
        }
        let observed = self.node.status.as_ref().map(own);
        let write = |it: &NodeStatus| status_step(Target::of(self.node), observed.as_ref(), it);
        if self.leaves_key_to_end() {
            write(&NodeStatus { host_key: None, ..desired.clone() })?;
        }
        if renewal.lost().is_empty() {
            write(&desired)?;
        }
        Some(write(&renewed)?.without_events().at(self.node.resource_version()))
    }

    /// Returns whether a deployment is at the host that records its first key with what it comes to.
    fn leaves_key_to_end(&self) -> bool {
        let is_at_work = |it: &NodeStatus| {
            it.deployment.as_ref().is_some_and(|it| it.state == HostState::Deploying)
        };
        let is_keyless = self.node.status.as_ref().is_some_and(|it| it.host_key.is_none());
        is_keyless && self.memory.status.as_ref().is_some_and(is_at_work)
    }

    fn status(&self, host: Option<&Host<'_>>) -> NodeStatus {
        let Self { seen, resolved, name, node, memory, .. } = self;
        let (set, remembered) = (&seen.set, memory.status.as_ref().map(own).unwrap_or_default());
        let leaving = resolved.terminating.get(*name);
        let reached = leaving.and_then(|it| it.address.as_ref());
        let address = host.map(Host::address);
        let address = address.or_else(|| reached.map(|(host, port)| format!("{host}:{port}")));
        let address = address.or_else(|| remembered.address.clone());
        let learned = match resolved.trusts.get(*name) {
            Some(it) => it.key.as_ref().map(ToString::to_string),
            None => remembered.host_key.clone(),
        };
        let drafts = self.conditions(host, address.as_deref());
        let generation = node.metadata.generation;
        let installation = remembered.machine.as_ref().and_then(HostMachine::own_installation);
        let host_name = host.map(|it| canonical_host_name(set, it));
        NodeStatus {
            observed_generation: generation,
            group: Some(format!("NodeSet/{}", set.name_any())),
            observed_node_set: Some(self.node_set(host)),
            conditions: merge_conditions(node.conditions(), drafts, generation, self.now),
            inventory_secret_name: resolved
                .content
                .is_some()
                .then(|| inventory_name(&set.name_any())),
            ssh_key_secret_name: Some(
                set.spec.node_template.ansible_ssh_private_key_secret.clone(),
            ),
            network_attachments: set.spec.network_attachments.clone(),
            host_name: host_name.or_else(|| remembered.host_name.clone()),
            host_instance: installation.map(|it| format!("p{it}")),
            address,
            host_key: learned,
            ..remembered
        }
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

    fn conditions(&self, host: Option<&Host<'_>>, address: Option<&str>) -> Vec<ConditionDraft> {
        let Self { seen, resolved, of_set, name, node, memory, .. } = self;
        let machine = of_host::machine(seen, resolved, name, address.unwrap_or_default());
        let deployment = node_conditions::deployment(&seen.set, memory);
        let mut drafts = vec![machine, of_set.input.clone(), deployment];
        drafts.push(node_conditions::summary(node, &seen.set, &drafts));
        let up_to_date = of_host::up_to_date(resolved, of_set, node, memory);
        drafts.extend([up_to_date, of_set.setup.clone()]);
        drafts.extend(of_host::host_key_checks(seen, host));
        drafts.extend(ignored_annotations::of_node(node));
        drafts
    }
}
