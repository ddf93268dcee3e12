//! The machines of a group: the set that its role, or its node without one, asks for.

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
use crate::finalizers::INVENTORY;
use crate::host_conflicts::Claim;
use crate::problem::Fault;
use crate::role::machine_names::{Names, known_name, machine_name};
use crate::role::observed::{NodeGroup, Observed};

/// Whoever asks for the group's machines.
#[derive(Clone, Debug)]
pub struct MachineRequest {
    /// The role, or the node without one.
    pub owner: Target,
    /// What it says of them, or why nothing can be asked for.
    pub template: Result<Template, Fault>,
    /// Which machine is which node's.
    pub names: Names,
    /// The hosts for which the set has no room.
    without_room: BTreeSet<String>,
}

impl MachineRequest {
    /// Of a group; nobody where its hosts are provisioned by others.
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

    /// The set, where it is there and was made for the group.
    pub fn set<'a>(&self, seen: &'a Observed) -> Option<&'a Arc<BaremetalSet>> {
        seen.machines.set.as_ref().filter(|it| set::is_of(it, &self.owner))
    }

    /// How far the machine of a host is, or what keeps it from getting one.
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

    /// How far the machine of a host is, whatever keeps it from getting another one.
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

    /// Whether the set has a host already: what it has it keeps, whoever else claims the host.
    fn has(&self, seen: &Observed, name: &str) -> bool {
        self.set(seen).is_some_and(|it| it.spec.baremetal_hosts.contains_key(name))
    }

    /// Whether the set has a host for a node that still needs it.
    pub fn is_at_work(&self, seen: &Observed, node: &Node) -> bool {
        let is_its_own = self.names.is_owner(node) && self.has(seen, &self.names.asked(node));
        is_its_own && keeps_machine(node)
    }

    /// The hosts for whose nodes the set still has machines although they are in the group no more,
    /// for others than the operator still hold those nodes: `machine → node`.
    pub fn migrating_nodes<'a>(&self, seen: &'a Observed) -> BTreeMap<String, &'a Arc<Node>> {
        let others = seen.movers.iter().map(|it| (known_name(it), it));
        let is_left = |(name, node): &(String, &Arc<Node>)| {
            self.names.owner(name).is_none() && self.has(seen, name) && is_used(node)
        };
        others.filter(is_left).collect()
    }

    /// The step that asks for what is wanted of the machines, where that is not asked for yet.
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
            // What is there stays, whatever is wrong with what it is made from now.
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

    /// What the set says where the template says nothing.
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

/// Whether others than the operator still hold a node: its machine is theirs to work on.
pub fn is_used(node: &Node) -> bool {
    node.finalizers().iter().any(|it| it != INVENTORY)
}

/// Whether a node still needs its machine: it is to stay, or others are not done with it.
pub fn keeps_machine(node: &Node) -> bool {
    !is_terminating(node) || is_used(node)
}

/// Whether a node that has no machine may get one: it and its group are to stay, and the host is no
/// other object's.
fn may_get_one(seen: &Observed, node: &Node) -> bool {
    let goes = is_terminating(node) || seen.role.as_ref().is_some_and(|it| is_terminating(&**it));
    let address = effective(seen, node).address();
    !goes && Claim::of_node_at(node, address.as_deref()).taken(&seen.claims).is_empty()
}

/// Whether the machine of a node that is to be deleted was given back; a node without a role has a set
/// of its own, which goes as a whole.
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
    // What a set has of that name may be another node's.
    !machine_request.names.is_owner(node)
        || provisioning_state::is_given_back(set, &machine_request.names.asked(node))
}

/// Whether a group that is to be deleted still needs its set.
pub fn needs_set(seen: &Observed, machine_request: &MachineRequest) -> bool {
    seen.nodes.iter().any(|it| machine_request.is_at_work(seen, it))
        || !machine_request.migrating_nodes(seen).is_empty()
}

/// What is known of a host beside its set.
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

/// What the set says of one host: what the template says, then the node; its address where neither
/// gives one.
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
