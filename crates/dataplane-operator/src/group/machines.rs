//! The machines of a group: the set that its role, or its node without one, asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::api::baremetal::{BaremetalHost, BaremetalSet};
use common::api::dataplane::{HostMachine, Node};
use common::engine::host_key::HostKey;
use common::finalizers::{is_held_by_it_alone, is_terminating};
use common::names::is_dns_label;
use common::plan::{Step, Target};
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::json;

use crate::claims::Claim;
use crate::effective::{Effective, machine_template};
use crate::group::faults::Fault;
use crate::group::holding::INVENTORY;
use crate::group::host_key::OWN_OPTIONS;
use crate::group::observe::{Group, Observed};
use crate::machines::course::{self, Course, Known};
use crate::machines::template::{Template, merged};
use crate::machines::{Wish, set};

/// Of a host that another set has a machine for.
pub const ELSEWHERE: &str = "MachineElsewhere";

/// Whoever asks for the group's machines.
#[derive(Clone, Debug)]
pub struct Asker {
    /// The role, or the node without one.
    pub owner: Target,
    /// What it says of them, or why nothing can be asked for.
    pub template: Result<Template, Fault>,
    /// Machine → the node that gets it: two nodes may call their hosts alike.
    first: BTreeMap<String, String>,
}

impl Asker {
    /// Of a group; nobody where its hosts are provisioned by others.
    pub fn of(seen: &Observed) -> Option<Self> {
        let (owner, given) = match (&seen.group, &seen.role) {
            (Group::Role(_), Some(role)) => {
                let asks = role.spec.baremetal_set_template.as_ref();
                (Target::of(&**role), asks.filter(|_| !role.spec.pre_provisioned)?)
            }
            (Group::Role(_), None) => return None,
            (Group::Node(_), _) => {
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
        let names = seen.nodes.iter().rev().map(|it| (machine_name(it), it.name_any()));
        Some(Self { owner, template, first: names.collect() })
    }

    /// The set, where it is there and was made for the group.
    pub fn set<'a>(&self, seen: &'a Observed) -> Option<&'a Arc<BaremetalSet>> {
        seen.machines.set.as_ref().filter(|it| set::is_of(it, &self.owner))
    }

    /// How far the machine of a host is, or what keeps it from getting one.
    pub fn course(
        &self,
        seen: &Observed,
        node: &Node,
        effective: &Effective,
        now: Timestamp,
    ) -> Result<Course, Fault> {
        self.template.as_ref().map_err(Clone::clone)?;
        let set = self.set(seen);
        let name = machine_name(node);
        if let Some(fault) = self.fault(seen, node, &name) {
            return Err(fault);
        }
        let known = known(node, effective, &seen.machines.answering);
        Ok(Course::of(set.map(|it| &**it), &name, &known, now))
    }

    fn fault(&self, seen: &Observed, node: &Node, name: &str) -> Option<Fault> {
        let title = format!("OpenStackDataPlaneNode {}", node.name_any());
        if !is_dns_label(name) {
            let text = format!(
                "{title} has the host name {name:?}, which no machine can have: up to the first dot it \
                 consists of at most 63 lower-case letters, digits and dashes. Correct spec.hostName."
            );
            return Some(Fault::wrong("HostNameInvalid", text));
        }
        let first = self.first.get(name).filter(|it| **it != node.name_any());
        if let Some(first) = first {
            let text = format!(
                "{title} and OpenStackDataPlaneNode {first} have one host name, {name}, and a machine \
                 has one of its own: correct spec.hostName of one of them."
            );
            return Some(Fault::wrong("HostTwice", text));
        }
        let other = seen.machines.elsewhere.get(name).filter(|_| !self.has(seen, name))?;
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

    /// The hosts for whose nodes the set still has machines although they are in the group no more,
    /// for others than the operator still hold those nodes: `machine → node`.
    pub fn movers<'a>(&self, seen: &'a Observed) -> BTreeMap<String, &'a Arc<Node>> {
        let members: BTreeSet<&str> = self.first.keys().map(String::as_str).collect();
        let others = seen.movers.iter().map(|it| (machine_name(it), it));
        let is_left = |(name, node): &(String, &Arc<Node>)| {
            !members.contains(name.as_str()) && self.has(seen, name) && is_used(node)
        };
        others.filter(is_left).collect()
    }

    /// The step that asks for what is wanted of the machines, where that is not asked for yet.
    pub fn step(&self, seen: &Observed) -> Option<Step> {
        let template = self.template.as_ref().ok()?;
        let found = self.set(seen);
        let nodes: Vec<(&Arc<Node>, Effective)> = seen
            .nodes
            .iter()
            .filter(|it| keeps_machine(it) && self.gets_one(seen, it))
            .map(|it| (it, effective(seen, it)))
            .collect();
        let host = |(node, effective): &(&Arc<Node>, Effective)| {
            (machine_name(node), entry(template, node, effective))
        };
        let mut hosts: BTreeMap<String, BaremetalHost> = nodes.iter().map(host).collect();
        let present = found.map(|it| &it.spec.baremetal_hosts);
        let kept = self.movers(seen).into_keys();
        hosts.extend(kept.filter_map(|it| Some((it.clone(), present?.get(&it)?.clone()))));
        let mut fields = template.fields.clone();
        for (name, value) in self.defaults(seen, &nodes) {
            fields.entry(name.to_owned()).or_insert(value);
        }
        let labels = BTreeMap::new();
        let wish = Wish { owner: self.owner.clone(), labels, fields, hosts };
        wish.step(found.map(|it| &**it))
    }

    fn gets_one(&self, seen: &Observed, node: &Arc<Node>) -> bool {
        let name = machine_name(node);
        let is_free = || Claim::of_node(node).taken(&seen.node_sets).is_empty();
        self.fault(seen, node, &name).is_none() && (self.has(seen, &name) || is_free())
    }

    /// What the set says where the template says nothing.
    fn defaults(
        &self,
        seen: &Observed,
        nodes: &[(&Arc<Node>, Effective)],
    ) -> BTreeMap<&'static str, serde_json::Value> {
        let shared = seen.role.as_ref().and_then(|it| it.spec.node_template.as_ref());
        let own = || nodes.iter().find_map(|(_, it)| it.ssh_secret.clone());
        let secret = shared.and_then(|it| it.ansible_ssh_private_key_secret.clone()).or_else(own);
        let user_data = shared.and_then(|it| it.user_data.as_ref()).map(|it| json!(it));
        let network_data = shared.and_then(|it| it.network_data.as_ref()).map(|it| json!(it));
        let values = [
            ("deploymentSSHSecret", secret.map(|it| json!(it))),
            ("domainName", domain(nodes).map(|it| json!(it))),
            ("networkData", network_data),
            ("userData", user_data),
        ];
        values.into_iter().filter_map(|(name, it)| Some((name, it?))).collect()
    }
}

/// The name by which a node's machine is known: its host's up to the first dot.
pub fn machine_name(node: &Node) -> String {
    let host = node.spec.host_name.clone().unwrap_or_else(|| node.name_any());
    host.split('.').next().unwrap_or_default().to_owned()
}

/// Whether others than the operator still hold a node: its machine is theirs to work on.
fn is_used(node: &Node) -> bool {
    node.finalizers().iter().any(|it| it != INVENTORY)
}

/// Whether a node still needs its machine: it is to stay, or others are not done with it.
pub fn keeps_machine(node: &Node) -> bool {
    !is_terminating(node) || is_used(node)
}

/// Whether the machine of a node that is to be deleted was given back; a node without a role has a set
/// of its own, which goes as a whole.
pub fn is_given_back(asker: Option<&Asker>, seen: &Observed, node: &Node) -> bool {
    let Some(asker) = asker else { return true };
    let set = asker.set(seen).map(|it| &**it);
    if matches!(seen.group, Group::Node(_)) {
        return set.is_none();
    }
    // What a set has of that name may be another node's.
    let is_anothers = asker.first.get(&machine_name(node)) != Some(&node.name_any());
    is_anothers || course::is_given_back(set, &machine_name(node))
}

/// Whether a group that is to be deleted still needs its set.
pub fn needs_set(seen: &Observed, asker: &Asker) -> bool {
    seen.nodes.iter().any(|it| !is_held_by_it_alone(&**it, INVENTORY) || !is_terminating(&**it))
        || !asker.movers(seen).is_empty()
}

/// What is known of a host beside its set.
pub fn known<'a>(node: &'a Node, effective: &Effective, answering: &BTreeSet<String>) -> Known<'a> {
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

fn effective(seen: &Observed, node: &Node) -> Effective {
    Effective::of(seen.plane.as_deref(), seen.role.as_deref(), node, &seen.objects)
}

/// What the set says of one host: what the template says, then the node; its address where neither
/// gives one.
fn entry(template: &Template, node: &Node, effective: &Effective) -> BaremetalHost {
    let name = machine_name(node);
    let mut host = merged(template.host(&name), node.spec.baremetal_host.as_ref());
    let address = host.ctl_plane_ip.take().filter(|it| !it.is_empty());
    let address = address.unwrap_or_else(|| effective.ansible_host.clone());
    host.ctl_plane_ip = template.with_prefix(&address);
    if let Some(own) = &node.spec.node {
        host.user_data = own.user_data.clone().or(host.user_data);
        host.network_data = own.network_data.clone().or(host.network_data);
    }
    host
}

/// The domain of all hosts, where they have one in common.
fn domain(nodes: &[(&Arc<Node>, Effective)]) -> Option<String> {
    let of = |it: &Effective| it.host_name.split_once('.').map(|it| it.1.to_owned());
    let domains: BTreeSet<Option<String>> = nodes.iter().map(|(_, it)| of(it)).collect();
    domains.into_iter().reduce(|_, _| None).flatten()
}
