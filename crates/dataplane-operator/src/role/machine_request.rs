//! The machines of a group: the set that its role, or its node without a role, requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::baremetal::{BaremetalHost, BaremetalSet};
use api::dataplane::{HostMachine, Node};
use api::names::is_dns_label;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Step, Target};
use operator_core::run_engine::host_key::HostKey;
use serde_json::json;

use crate::baremetal_request::provisioning_state::{self, Known, ProvisioningState};
use crate::baremetal_request::set::ELSEWHERE;
use crate::baremetal_request::template::{Template, merged};
use crate::baremetal_request::{DesiredMachine, set};
use crate::effective_spec::{EffectiveSpec, OWN_OPTIONS, machine_template};
use crate::fault::Fault;
use crate::finalizers::INVENTORY;
use crate::host_conflicts::Claim;
use crate::role::machine_names::{Names, known_name, machine_name};
use crate::role::observed::{NodeGroup, Observed};

/// A group's request for machines.
#[derive(Clone, Debug)]
pub struct MachineRequest {
    /// The requesting object: the role, or the node without a role.
    pub owner: Target,
    /// The template of the set, or the fault that keeps it from being written.
    pub template: Result<Template, Fault>,
    /// The mapping between nodes and machines.
    pub names: Names,
    /// The hosts for which the set has no room.
    without_room: BTreeSet<String>,
}

impl MachineRequest {
    /// Builds the request of a group; `None` when its hosts are provisioned by other means.
    pub fn of(seen: &Observed) -> Option<Self> {
        let (owner, given) = match (&seen.group, &seen.role) {
            (NodeGroup::Role(_), Some(role)) => {
                let asks = role.spec.baremetal_set_template.as_ref();
                (Target::of(&**role), asks.filter(|_| !role.spec.pre_provisioned)?)
            }
            (NodeGroup::Role(_), None) => return None,
            (NodeGroup::Node(_), _) => {
                let node = seen.nodes.first()?;
                (Target::of(&**node), machine_template(None, node)?)
            }
        };
        let place = format!("spec.baremetalSetTemplate of {} {}", owner.kind.kind, owner.name);
        let template = Template::read(given, &place);
        let template = match set::fault(&seen.machines, &owner) {
            Some(fault) if template.is_ok() => Err(fault),
            _ => template,
        };
        let set = seen.machines.set.as_deref().filter(|it| set::is_of(it, &owner));
        let names = Names::of(&seen.nodes, set);
        let may_ask = |it: &&Arc<Node>| !is_terminating(&***it) && names.is_owner(it);
        let mut asked: Vec<String> =
            seen.nodes.iter().filter(may_ask).map(|it| names.asked(it)).collect();
        asked.sort();
        let without_room = set::without_room(set, asked.iter().map(String::as_str));
        Some(Self { owner, template, names, without_room })
    }

    /// Returns the set, if it exists and was created for this owner.
    pub fn set<'a>(&self, seen: &'a Observed) -> Option<&'a Arc<BaremetalSet>> {
        seen.machines.set.as_ref().filter(|it| set::is_of(it, &self.owner))
    }

    /// Returns the provisioning state of a host's machine, or the fault that keeps it from getting
    /// one.
    pub fn provisioning(
        &self,
        seen: &Observed,
        node: &Node,
        effective: &EffectiveSpec,
        now: Timestamp,
    ) -> Result<ProvisioningState, Fault> {
        self.template.as_ref().map_err(Clone::clone)?;
        match self.fault(seen, node) {
            Some(fault) => Err(fault),
            None => Ok(self.followed(seen, node, effective, now)),
        }
    }

    /// Returns the provisioning state of a host's machine, whatever keeps it from getting another
    /// one.
    pub fn followed(
        &self,
        seen: &Observed,
        node: &Node,
        effective: &EffectiveSpec,
        now: Timestamp,
    ) -> ProvisioningState {
        let name = self.names.asked(node);
        let known = known(node, effective, &seen.machines.answering);
        let mut provisioning =
            ProvisioningState::of(self.set(seen).map(|it| &**it), &name, &known, now);
        provisioning.record.host = Some(name);
        provisioning
    }

    fn fault(&self, seen: &Observed, node: &Node) -> Option<Fault> {
        let title = format!("OpenStackDataPlaneNode {}", node.name_any());
        let (name, called) = (self.names.asked(node), machine_name(node));
        if name != called {
            let text = format!(
                "{title} is called {called} now, and its machine was asked for as {name}, which it \
                 stays: under another name it would be given back, and another one deployed. Set \
                 spec.hostName to {name} again, or delete the node and make one of the new name."
            );
            return Some(Fault::wrong("HostNameChanged", text));
        }
        if !is_dns_label(&name) {
            let text = format!(
                "{title} has the host name {name:?}, which no machine can have: up to the first dot it \
                 consists of at most 63 lower-case letters, digits and dashes. Correct spec.hostName."
            );
            return Some(Fault::wrong("HostNameInvalid", text));
        }
        let first = self.names.owner(&name).filter(|it| *it != node.name_any());
        if let Some(first) = first {
            let text = format!(
                "{title} and OpenStackDataPlaneNode {first} have one host name, {name}, and a machine \
                 has one of its own, which {first} gets: correct spec.hostName of {}.",
                node.name_any()
            );
            return Some(Fault::wrong("HostTwice", text));
        }
        if self.without_room.contains(&name) {
            return Some(set::full(&self.owner, &name));
        }
        let other = seen.machines.elsewhere.get(&name).filter(|_| !self.has(seen, &name))?;
        let text = format!(
            "OpenStackBaremetalSet {other} has a machine for host {name} of {title}, and two machines \
             would answer at one address: the host gets one here when it is not there any more; take \
             it out there."
        );
        Some(Fault::missing(ELSEWHERE, text))
    }

    /// Returns whether the set has the host already: it keeps its hosts, even if others claim them.
    fn has(&self, seen: &Observed, name: &str) -> bool {
        self.set(seen).is_some_and(|it| it.spec.baremetal_hosts.contains_key(name))
    }

    /// Returns whether the set has a host for a node that still needs it.
    pub fn is_at_work(&self, seen: &Observed, node: &Node) -> bool {
        let is_its_own = self.names.is_owner(node) && self.has(seen, &self.names.asked(node));
        is_its_own && keeps_machine(node)
    }

    /// Returns the hosts of nodes that have left the group but still have machines in its set,
    /// because other finalizers still hold those nodes: `machine → node`.
    pub fn migrating_nodes<'a>(&self, seen: &'a Observed) -> BTreeMap<String, &'a Arc<Node>> {
        let others = seen.movers.iter().map(|it| (known_name(it), it));
        let is_left = |(name, node): &(String, &Arc<Node>)| {
            self.names.owner(name).is_none() && self.has(seen, name) && is_used(node)
        };
        others.filter(is_left).collect()
    }

    /// Returns the step that writes the desired set; `None` when it is up to date or cannot be
    /// written.
    pub fn step(&self, seen: &Observed) -> Option<Step> {
        let template = self.template.as_ref().ok()?;
        let found = self.set(seen);
        let present = found.map(|it| &it.spec.baremetal_hosts);
        let mut nodes: Vec<(&Arc<Node>, EffectiveSpec)> = Vec::new();
        let mut hosts: BTreeMap<String, BaremetalHost> = BTreeMap::new();
        let owners = seen.nodes.iter().filter(|it| self.names.is_owner(it) && keeps_machine(it));
        for node in owners {
            let (name, has_fault) = (self.names.asked(node), self.fault(seen, node).is_some());
            let present = present.and_then(|it| it.get(&name));
            // An existing entry stays, even if the node now has a fault.
            let kept = present.filter(|_| has_fault).cloned();
            if kept.is_some() || !has_fault && (present.is_some() || may_get_one(seen, node)) {
                let effective = effective(seen, node);
                let made = || entry(template, &name, node, &effective);
                hosts.insert(name.clone(), kept.unwrap_or_else(made));
                nodes.push((node, effective));
            }
        }
        let kept = self.migrating_nodes(seen).into_keys();
        hosts.extend(kept.filter_map(|it| Some((it.clone(), present?.get(&it)?.clone()))));
        let mut fields = template.fields.clone();
        for (name, value) in Self::defaults(seen, &nodes) {
            fields.entry(name.to_owned()).or_insert(value);
        }
        let labels = BTreeMap::new();
        let desired = DesiredMachine { owner: self.owner.clone(), labels, fields, hosts };
        desired.step(found.map(|it| &**it))
    }

    /// Returns the fields of the set that apply when the template does not set them.
    fn defaults(
        seen: &Observed,
        nodes: &[(&Arc<Node>, EffectiveSpec)],
    ) -> BTreeMap<&'static str, serde_json::Value> {
        let shared = seen.role.as_ref().and_then(|it| it.spec.node_template.as_ref());
        let own = || nodes.iter().find_map(|(_, it)| it.ssh_secret.clone());
        let secret = shared.and_then(|it| it.ansible_ssh_private_key_secret.clone()).or_else(own);
        let user_data = shared.and_then(|it| it.user_data.as_ref()).map(|it| json!(it));
        let network_data = shared.and_then(|it| it.network_data.as_ref()).map(|it| json!(it));
        let domain = set::domain(nodes.iter().map(|(_, it)| it.host_name.as_str()));
        let values = [
            ("deploymentSSHSecret", secret.map(|it| json!(it))),
            ("domainName", domain.map(|it| json!(it))),
            ("networkData", network_data),
            ("userData", user_data),
        ];
        values.into_iter().filter_map(|(name, it)| Some((name, it?))).collect()
    }
}

/// Returns whether other finalizers than the operator's hold a node, so that its machine is in use.
pub fn is_used(node: &Node) -> bool {
    node.finalizers().iter().any(|it| it != INVENTORY)
}

/// Returns whether a node still needs its machine: it is not being deleted, or others still use it.
pub fn keeps_machine(node: &Node) -> bool {
    !is_terminating(node) || is_used(node)
}

/// Returns whether a node without a machine may get one: neither it nor its role is being deleted,
/// and the host belongs to no other object.
fn may_get_one(seen: &Observed, node: &Node) -> bool {
    let goes = is_terminating(node) || seen.role.as_ref().is_some_and(|it| is_terminating(&**it));
    let address = effective(seen, node).address();
    !goes && Claim::of_node_at(node, address.as_deref()).taken(&seen.claims).is_empty()
}

/// Returns whether the machine of a node that is being deleted was given back.
///
/// A node without a role has a set of its own, which is deleted as a whole.
pub fn is_given_back(
    machine_request: Option<&MachineRequest>,
    seen: &Observed,
    node: &Node,
) -> bool {
    let Some(machine_request) = machine_request else { return true };
    let set = machine_request.set(seen).map(|it| &**it);
    if matches!(seen.group, NodeGroup::Node(_)) {
        return set.is_none();
    }
    // The set's machine of that name may be another node's.
    !machine_request.names.is_owner(node)
        || provisioning_state::is_given_back(set, &machine_request.names.asked(node))
}

/// Returns whether a group that is being deleted still needs its set.
pub fn needs_set(seen: &Observed, machine_request: &MachineRequest) -> bool {
    seen.nodes.iter().any(|it| machine_request.is_at_work(seen, it))
        || !machine_request.migrating_nodes(seen).is_empty()
}

/// Returns what is known of a host besides its set.
pub fn known<'a>(
    node: &'a Node,
    effective: &EffectiveSpec,
    answering: &BTreeSet<String>,
) -> Known<'a> {
    let status = node.status.as_ref();
    let recorded: Option<&HostMachine> = status.and_then(|it| it.machine.as_ref());
    let key = status.and_then(|it| HostKey::parse(it.host_key.as_deref()?));
    let is_plain = !OWN_OPTIONS.iter().any(|it| effective.vars.contains_key(*it));
    let can_be_asked = is_plain
        && effective.network_attachments.is_empty()
        && effective.undecided_address().is_empty()
        && effective.address().is_some();
    let answers = effective.address().is_some_and(|it| answering.contains(&it));
    Known { recorded, key, can_be_asked, answers }
}

fn effective(seen: &Observed, node: &Node) -> EffectiveSpec {
    EffectiveSpec::of(seen.data_plane.as_deref(), seen.role.as_deref(), node, &seen.objects)
}

/// Returns the set's entry for one host: the template's fields, overridden by the node's.
///
/// When neither sets an address, the host's own is used.
fn entry(template: &Template, name: &str, node: &Node, effective: &EffectiveSpec) -> BaremetalHost {
    let mut host = merged(template.host(name), node.spec.baremetal_host.as_ref());
    let address = host.ctl_plane_ip.take().filter(|it| !it.is_empty());
    let address = address.unwrap_or_else(|| effective.ansible_host.clone());
    host.ctl_plane_ip = template.with_prefix(&address);
    if let Some(own) = &node.spec.node {
        host.user_data = own.user_data.clone().or(host.user_data);
        host.network_data = own.network_data.clone().or(host.network_data);
    }
    host
}
