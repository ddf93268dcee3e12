//! The machines of a group: the set that its role, or its node without a role, requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::baremetal::{BaremetalHost, BaremetalSet};
use api::dataplane::Node;
use api::names::is_dns_label;
use api::problem::Problem;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Step, Target};
use operator_core::run_engine::host_key::HostKey;
use serde_json::Value;

use crate::baremetal_request::machine_names::{self, MachineNames};
use crate::baremetal_request::provisioning_state::{self, Known, ProvisioningState};
use crate::baremetal_request::set;
use crate::baremetal_request::template::{Template, merged};
use crate::effective_spec::{EffectiveSpec, has_own_options, machine_template};
use crate::finalizers::is_used;
use crate::host_conflicts::Claim;
use crate::reasons;
use crate::role::machine_names::{known_name, machine_name, machine_of, of as names_of};
use crate::role::observed::{NodeGroup, Observed};

/// A group's request for machines.
#[derive(Clone, Debug)]
pub struct MachineRequest {
    /// The requesting object: the role, or the node without a role.
    pub owner: Target,
    /// The template of the set, or the fault that keeps it from being written.
    pub template: Result<Template, Problem>,
    /// The set, if it exists and was created for this owner.
    pub set: Option<Arc<BaremetalSet>>,
    names: MachineNames,
    without_room: BTreeMap<String, Problem>,
}

impl MachineRequest {
    /// Builds the request of a group; `None` when its hosts are provisioned by other means.
    pub fn of(seen: &Observed) -> Option<Self> {
        let given = match &seen.group {
            NodeGroup::Role(_) => {
                let spec = &seen.role.as_ref()?.spec;
                spec.baremetal_set_template.as_ref().filter(|_| !spec.pre_provisioned)?
            }
            NodeGroup::Node(_) => machine_template(None, seen.nodes.first()?)?,
        };
        let (owner, _) = seen.owner()?;
        let place = format!("spec.baremetalSetTemplate of {} {}", owner.kind.kind, owner.name);
        let template = Template::read(given, &place)
            .and_then(|it| set::fault(&seen.machines, &owner).map_or(Ok(it), Err));
        let set = seen.machines.set_of(&owner).cloned();
        let names = names_of(&seen.nodes, set.as_deref());
        let mut request = Self { owner, template, set, names, without_room: BTreeMap::new() };
        let may_ask = |it: &&Arc<Node>| !is_terminating(&***it) && request.is_owner(it);
        let asked = seen.nodes.iter().filter(may_ask).map(|it| request.asked(it)).collect();
        request.without_room = set::without_room(request.set.as_deref(), &request.owner, asked);
        Some(request)
    }

    /// Returns the name of the machine that a node requests, even if another node gets it.
    pub fn asked(&self, node: &Node) -> String {
        self.names.machine(&node.name_any()).map_or_else(|| machine_name(node), str::to_owned)
    }

    /// Returns whether a node gets the machine that it requests.
    fn is_owner(&self, node: &Node) -> bool {
        self.names.owner(&self.asked(node)) == Some(&node.name_any())
    }

    fn has(&self, machine: &str) -> bool {
        set::has(self.set.as_deref(), machine)
    }

    /// Returns the provisioning state of a host's machine, or the fault that keeps it from getting
    /// one.
    pub fn provisioning(
        &self,
        seen: &Observed,
        node: &Node,
        effective: &EffectiveSpec,
        now: Timestamp,
    ) -> Result<ProvisioningState, Problem> {
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
        let known = known(node, effective, &seen.machines.answering);
        ProvisioningState::of(self.set.as_deref(), &self.asked(node), &known, now)
    }

    fn fault(&self, seen: &Observed, node: &Node) -> Option<Problem> {
        let own = node.name_any();
        let title = format!("OpenStackDataPlaneNode {own}");
        let (name, called) = (self.asked(node), machine_name(node));
        if name != called {
            let fix = format!(
                "Set spec.hostName to {name} again, or delete the node and make one of the new name."
            );
            return Some(machine_names::renamed(&title, &called, &name, &fix));
        }
        if !is_dns_label(&name) {
            let text = format!(
                "{title} has the host name {name:?}, which no machine can have: up to the first dot it \
                 consists of at most 63 lower-case letters, digits and dashes. Correct spec.hostName."
            );
            return Some(Problem::new(&reasons::machines::HOST_NAME_INVALID, text));
        }
        if let Some(first) = self.names.owner(&name).filter(|it| *it != own) {
            let text = format!(
                "{title} and OpenStackDataPlaneNode {first} have one host name, {name}, and a machine \
                 has one of its own, which {first} gets: correct spec.hostName of {own}."
            );
            return Some(Problem::new(&reasons::machines::HOST_TWICE, text));
        }
        let full = self.without_room.get(&name).cloned();
        full.or_else(|| set::elsewhere(&seen.machines, self.set.as_deref(), &name, &title))
    }

    /// Returns whether the set has a host for a node that still needs it.
    pub fn is_at_work(&self, node: &Node) -> bool {
        self.is_owner(node) && self.has(&self.asked(node)) && keeps_machine(node)
    }

    /// Returns whether the machine of a node that is being deleted was given back.
    ///
    /// A node without a role has a set of its own, which is deleted as a whole.
    pub fn is_given_back(&self, seen: &Observed, node: &Node) -> bool {
        if matches!(seen.group, NodeGroup::Node(_)) {
            return self.set.is_none();
        }
        // The set's machine of that name may be another node's.
        !self.is_owner(node)
            || provisioning_state::is_given_back(self.set.as_deref(), &self.asked(node))
    }

    /// Returns whether a group that is being deleted still needs its set.
    pub fn needs_set(&self, seen: &Observed) -> bool {
        seen.nodes.iter().any(|it| self.is_at_work(it)) || !self.migrating_nodes(seen).is_empty()
    }

    /// Returns the hosts of nodes that have left the group but still have machines in its set,
    /// because other finalizers still hold those nodes: `machine → node`.
    pub fn migrating_nodes<'a>(&self, seen: &'a Observed) -> BTreeMap<String, &'a Arc<Node>> {
        let others = seen.migrating_nodes.iter().map(|it| (known_name(it), it));
        let is_left = |(name, node): &(String, &Arc<Node>)| {
            self.names.owner(name).is_none() && self.has(name) && is_used(&***node)
        };
        others.filter(is_left).collect()
    }

    /// Returns the step that writes the desired set; `None` when it is up to date or cannot be
    /// written.
    pub fn step(&self, seen: &Observed) -> Option<Step> {
        let template = self.template.as_ref().ok()?;
        let present = self.set.as_ref().map(|it| &it.spec.baremetal_hosts);
        let mut nodes: Vec<(&Arc<Node>, EffectiveSpec)> = Vec::new();
        let mut hosts: BTreeMap<String, BaremetalHost> = BTreeMap::new();
        for node in seen.nodes.iter().filter(|it| self.is_owner(it) && keeps_machine(it)) {
            let (name, has_fault) = (self.asked(node), self.fault(seen, node).is_some());
            let present = present.and_then(|it| it.get(&name));
            // An existing entry stays, even if the node now has a fault.
            let kept = present.filter(|_| has_fault).cloned();
            if kept.is_some() || !has_fault && (present.is_some() || may_get_one(seen, node)) {
                let effective = seen.effective(node);
                let made = || entry(template, &name, node, &effective);
                hosts.insert(name.clone(), kept.unwrap_or_else(made));
                nodes.push((node, effective));
            }
        }
        let kept = self.migrating_nodes(seen).into_keys();
        hosts.extend(kept.filter_map(|it| Some((it.clone(), present?.get(&it)?.clone()))));
        let fields = set::with_defaults(template.fields.clone(), defaults(seen, &nodes));
        set::step(&self.owner, self.set.as_deref(), BTreeMap::new(), fields, &hosts)
    }
}

/// Returns the fields of the set that apply when the template does not set them.
fn defaults(
    seen: &Observed,
    nodes: &[(&Arc<Node>, EffectiveSpec)],
) -> [(&'static str, Option<Value>); 4] {
    let shared = seen.role.as_ref().and_then(|it| it.spec.node_template.as_ref());
    let own = nodes.iter().find_map(|(_, it)| it.ssh_secret.as_ref());
    set::common_fields(
        shared.and_then(|it| it.ansible_ssh_private_key_secret.as_ref()).or(own),
        shared.and_then(|it| it.user_data.as_ref()),
        shared.and_then(|it| it.network_data.as_ref()),
        nodes.iter().map(|(_, it)| it.host_name.as_str()),
    )
}

/// Returns whether a node still needs its machine: it is not being deleted, or others still use it.
pub fn keeps_machine(node: &Node) -> bool {
    !is_terminating(node) || is_used(node)
}

/// Returns whether a node without a machine may get one: neither it nor its role is being deleted,
/// and the host belongs to no other object.
fn may_get_one(seen: &Observed, node: &Node) -> bool {
    let goes = is_terminating(node) || seen.role.as_ref().is_some_and(|it| is_terminating(&**it));
    let address = seen.effective(node).address();
    !goes && Claim::of_node_at(node, address.as_deref()).taken(&seen.claims).is_empty()
}

/// Returns what is known of a host besides its set.
pub fn known<'a>(
    node: &'a Node,
    effective: &EffectiveSpec,
    answering: &BTreeSet<String>,
) -> Known<'a> {
    let key = node.status.as_ref().and_then(|it| HostKey::parse(it.host_key.as_deref()?));
    let can_be_asked = !has_own_options(&effective.vars)
        && effective.network_attachments.is_empty()
        && effective.undecided_address().is_empty()
        && effective.address().is_some();
    let answers = effective.address().is_some_and(|it| answering.contains(&it));
    Known { node: None, recorded: machine_of(node), key, can_be_asked, answers }
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
