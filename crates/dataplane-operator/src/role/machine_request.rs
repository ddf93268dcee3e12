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
use operator_core::plan::Step;
use operator_core::run_engine::host_key::{HostKey, recorded_trust};
use serde_json::Value;

use crate::finalizers::is_used;
use crate::host::effective_spec::{
    EffectiveSpec, has_own_options, machine_template, role_template,
};
use crate::host::machines::machine_names::{
    MachineNames, is_on_unmanaged_machine, known_name, machine_name, machine_of, recorded, renamed,
};
use crate::host::machines::provisioning_state::{
    Known, ProvisioningState, is_awaited, is_given_back, knows,
};
use crate::host::machines::request::MachineRequest as Request;
use crate::host::machines::set;
use crate::host::machines::template::{Template, merged};
use crate::reasons;
use crate::role::last_looks;
use crate::role::observed::{NodeGroup, Observed};
use crate::role::resolved::ResolvedHost;

/// A group's request for machines.
pub struct MachineRequest<'a> {
    /// The request of the role, or of the node without a role.
    pub request: Request<'a>,
    /// The template of the set, or the fault that keeps it from being written.
    pub template: Result<Template, Problem>,
    seen: &'a Observed,
}

impl<'a> MachineRequest<'a> {
    /// Builds the request of a group; `None` when its hosts are provisioned by other means.
    pub fn of(seen: &'a Observed) -> Option<Self> {
        let given = match &seen.group {
            NodeGroup::Role(_) => role_template(seen.role.as_deref()?)?,
            NodeGroup::Node(_) => machine_template(None, seen.nodes.first()?)?,
        };
        let (owner, _) = seen.owner()?;
        let place = format!("spec.baremetalSetTemplate of {} {}", owner.kind.kind, owner.name);
        let names = names_of(&seen.nodes, seen.machines.set_of(&owner).map(|it| &**it));
        let asking = seen.nodes.iter().filter(|it| !is_terminating(&***it));
        let asked = asking.filter_map(|it| Some(names.machine(&it.name_any())?.to_owned()));
        let asked = asked.collect();
        let request = Request::of(&seen.machines, owner, names, asked);
        let template = Template::read(given, &place);
        let template = template.and_then(|it| request.fault().map_or(Ok(it), Err));
        Some(Self { request, template, seen })
    }

    /// Returns the machine that a node gets; `None` if another node gets the one that it requests.
    fn machine(&self, node: &Node) -> Option<&str> {
        self.request.names.machine(&node.name_any())
    }

    /// Returns the name of the machine that a node requests, even if another node gets it.
    fn asked(&self, node: &Node) -> String {
        self.machine(node).map_or_else(|| machine_name(node), str::to_owned)
    }

    /// Returns the provisioning state of a host's machine, or the fault that keeps it from getting
    /// one.
    pub fn provisioning(
        &self,
        node: &Node,
        effective: &EffectiveSpec,
        now: Timestamp,
    ) -> Result<ProvisioningState, Problem> {
        let template = self.template.as_ref().map_err(Clone::clone)?;
        let name = self.asked(node);
        let is_adopted = || merged(template.host(&name), node.spec.baremetal_host.as_ref()).adopt;
        let known = Known {
            keeps_unmanaged_machine: is_on_unmanaged_machine(node) && !is_adopted(),
            ..known(node, effective, &self.seen.machines.answering)
        };
        if is_terminating(node) {
            // It gets no other one.
            return Ok(self.request.followed(&name, &known, now));
        }
        self.fault(node).map_or(Ok(()), Err)?;
        self.request.provisioning((&name, &title(node)), &known, now)
    }

    /// Returns whether to probe a host's ssh server: its machine is installed and has not answered
    /// yet.
    pub fn is_awaited(&self, node: &Node, effective: &EffectiveSpec) -> bool {
        let known = known(node, effective, &self.seen.machines.answering);
        self.request.set.is_some_and(|it| is_awaited(it, &self.asked(node), &known))
    }

    fn fault(&self, node: &Node) -> Option<Problem> {
        let (own, title) = (node.name_any(), title(node));
        let (name, called) = (self.asked(node), machine_name(node));
        if name != called {
            let fix = format!(
                "Set spec.hostName to {name} again, or delete the node and make one of the new name."
            );
            return Some(renamed(&title, &called, &name, &fix));
        }
        if !is_dns_label(&name) {
            let text = format!(
                "{title} has the host name {name:?}, which no machine can have: up to the first dot it \
                 consists of at most 63 lower-case letters, digits and dashes. Correct spec.hostName."
            );
            return Some(Problem::new(&reasons::machines::HOST_NAME_INVALID, text));
        }
        let first = self.request.names.owner(&name).filter(|it| *it != own)?;
        let text = format!(
            "{title} and OpenStackDataPlaneNode {first} have one host name, {name}, and a machine \
             has one of its own, which {first} gets: correct spec.hostName of {own}."
        );
        Some(Problem::new(&reasons::machines::HOST_TWICE, text))
    }

    /// Returns whether the set has a host for a node that still needs it.
    pub fn is_at_work(&self, node: &Node) -> bool {
        self.machine(node).is_some_and(|it| self.request.has(it)) && self.keeps_machine(node)
    }

    /// Returns whether a node still needs its machine: it is not being deleted, others still use it, or
    /// guests may be on its host.
    fn keeps_machine(&self, node: &Node) -> bool {
        !is_leaving(node) || last_looks::is_held(self.seen, node)
    }

    /// Returns whether the machine of a node that is being deleted was given back.
    ///
    /// A node without a role has a set of its own, which is deleted as a whole.
    pub fn is_given_back(&self, node: &Node) -> bool {
        let set = self.request.set;
        if matches!(self.seen.group, NodeGroup::Node(_)) {
            return set.is_none();
        }
        // The set's machine of that name may be another node's.
        self.machine(node).is_none_or(|it| is_given_back(set.map(|it| &**it), it))
    }

    /// Returns whether a group that is being deleted still needs its set.
    pub fn needs_set(&self) -> bool {
        self.seen.nodes.iter().any(|it| self.is_at_work(it)) || self.has_migrating_nodes()
    }

    /// Returns whether nodes that have left the group still have machines in its set.
    pub fn has_migrating_nodes(&self) -> bool {
        self.machines_of_migrating_nodes().next().is_some()
    }

    /// Returns the machines of nodes that have left the group, because other finalizers still hold
    /// those nodes.
    fn machines_of_migrating_nodes(&self) -> impl Iterator<Item = String> {
        let is_needed = |it: &&Arc<Node>| is_used(&***it) || last_looks::is_held(self.seen, it);
        let needed = self.seen.migrating_nodes.iter().filter(is_needed).map(|it| known_name(it));
        needed.filter(|it| self.request.names.owner(it).is_none() && self.request.has(it))
    }

    /// Returns the step that writes the desired set; `None` when it is up to date or cannot be
    /// written.
    pub fn step(&self, hosts: &[ResolvedHost<'_>]) -> Option<Step> {
        let template = self.template.as_ref().ok()?;
        let is_going = self.seen.role.as_ref().is_some_and(|it| is_terminating(&**it));
        let (mut entries, mut asking) = (Vec::new(), Vec::new());
        for host in hosts.iter().filter(|it| self.keeps_machine(it.node)) {
            let Some(name) = self.machine(host.node) else { continue };
            let stays = matches!(host.machine, Some(Err(_))) || is_terminating(host.node);
            if (stays || is_going || host.is_taken) && !self.request.has(name) {
                continue;
            }
            // An existing entry stays as it is if the node now has a fault, or goes.
            let entry = || entry(template, name, host.node, &host.effective);
            entries.push((name.to_owned(), (!stays).then(entry)));
            asking.push(&host.effective);
        }
        entries.extend(self.machines_of_migrating_nodes().map(|it| (it, None)));
        let fields = set::with_defaults(template.fields.clone(), defaults(self.seen, &asking));
        self.request.step(BTreeMap::new(), fields, entries)
    }
}

/// Returns how messages call the host of a node.
fn title(node: &Node) -> String {
    format!("OpenStackDataPlaneNode {}", node.name_any())
}

/// Computes the machine of each node of a group.
///
/// # Guarantees
/// A machine stays with the node whose status records it for as long as the set knows it. When
/// several nodes request one machine, the oldest gets it.
pub fn names_of(nodes: &[Arc<Node>], set: Option<&BaremetalSet>) -> MachineNames {
    let mut names = MachineNames::default();
    let mut by_age: Vec<&Arc<Node>> = nodes.iter().collect();
    by_age.sort_by_key(|it| (it.creation_timestamp().map(|it| it.0), it.name_any()));
    let is_known = |it: &&str| set.is_some_and(|set| knows(set, it));
    // A status that names another machine than the set has may be about an earlier machine.
    for must_agree in [true, false] {
        for node in by_age.iter().filter(|it| !must_agree || agrees(set, it)) {
            if let Some(known) = recorded(machine_of(node)).filter(is_known) {
                names.give(&node.name_any(), known);
            }
        }
    }
    for node in by_age {
        names.give(&node.name_any(), &machine_name(node));
    }
    names
}

/// Returns whether a node's status and the set name the same machine for the host.
fn agrees(set: Option<&BaremetalSet>, node: &Node) -> bool {
    let machine = machine_of(node);
    let reported = set.zip(recorded(machine)).and_then(|(set, host)| set.host_status(host));
    reported.map(|it| &it.bmh_ref) == machine.and_then(|it| it.machine.as_ref())
}

/// Returns the fields of the set that apply when the template does not set them.
fn defaults(seen: &Observed, hosts: &[&EffectiveSpec]) -> [(&'static str, Option<Value>); 4] {
    let shared = seen.role.as_ref().and_then(|it| it.spec.node_template.as_ref());
    let own = hosts.iter().find_map(|it| it.ssh_secret.as_ref());
    set::common_fields(
        shared.and_then(|it| it.ansible_ssh_private_key_secret.as_ref()).or(own),
        shared.and_then(|it| it.user_data.as_ref()),
        shared.and_then(|it| it.network_data.as_ref()),
        hosts.iter().map(|it| it.host_name.as_str()),
    )
}

/// Returns whether a node is being deleted and no other operator needs it any more.
pub fn is_leaving(node: &Node) -> bool {
    is_terminating(node) && !is_used(node)
}

/// Returns what is known of a host besides its set.
fn known<'a>(node: &'a Node, effective: &EffectiveSpec, answering: &BTreeSet<String>) -> Known<'a> {
    let key = recorded_trust(node).key.as_ref().map(HostKey::fingerprint);
    let can_be_asked = !has_own_options(&effective.vars)
        && effective.network_attachments.is_empty()
        && effective.undecided_address().is_empty()
        && effective.address().is_some();
    let answers = effective.address().is_some_and(|it| answering.contains(&it));
    let recorded = machine_of(node);
    Known { recorded, key, can_be_asked, answers, ..Known::default() }
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
