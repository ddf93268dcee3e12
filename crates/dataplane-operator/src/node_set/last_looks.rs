//! The last looks at the hosts of a node set whose machines are to be given back.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use api::baremetal::BaremetalSet;
use api::conditions::ConditionDraft;
use api::dataplane::{HostMachine, Node, NodeSet};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::{has_finalizer, is_only_finalizer, is_terminating};
use operator_core::node_set_host::{address_of, dns_config, hosts, machine_template};
use operator_core::plan::Plan;
use operator_core::run_engine::layout::{Layout, NodeSets};
use operator_core::run_engine::run_template::RunTemplate;

use crate::conditions::first_texts;
use crate::finalizers::{INVENTORY_FINALIZER, is_used};
use crate::host::last_look::{Held, LeavingHost, is_host_skipped, is_off, skip_command, template};
use crate::host::machines::set::{self, IN_USE};
use crate::node_set::observed::{Observed, own_set};
use crate::reasons;

/// Condition type: present only while machines of hosts that leave are not given back yet.
pub const MACHINES_GIVEN_BACK: &str = "MachinesGivenBack";

/// Of how many hosts the message says what holds them.
const EXPLAINED: usize = 3;

/// Returns the hosts with a machine in the node set's own baremetal set that leave the node set.
pub fn leaving(set: &NodeSet, machines: Option<&BaremetalSet>) -> BTreeSet<String> {
    let mut names: BTreeSet<String> =
        machines.iter().flat_map(|it| it.spec.baremetal_hosts.keys()).cloned().collect();
    if !is_terminating(set) {
        for host in hosts(set) {
            names.remove(&host.name);
        }
        // A node that is called differently now keeps its machine.
        let machines = set.status.as_ref().map(|it| &it.machines);
        let node = |name: &str| machines?.get(name)?.node.as_ref();
        names.retain(|it| node(it).is_none_or(|it| !set.spec.nodes.contains_key(it)));
    } else if !is_only_finalizer(set, INVENTORY_FINALIZER) {
        names.clear();
    }
    names
}

/// Returns the hosts that leave and that no other operator needs any more, as far as guests may be there.
fn asked(seen: &Observed) -> BTreeSet<String> {
    let mut names = leaving(&seen.set, own_set(seen).map(|it| &**it));
    let is_in_use = |it: &str| seen.nodes.get(it).is_some_and(|it| is_used(&**it));
    names.retain(|it| !is_let_go(seen, it) && !is_in_use(it) && is_asked(seen, it));
    names
}

/// Returns what holds the machines of these hosts, by their names in the inventory.
pub fn held(seen: &Observed, now: Timestamp) -> BTreeMap<String, Held> {
    let held = |name: String| {
        let held = match seen.nodes.get(&name) {
            Some(node) => leaving_host(seen, node).held(&seen.looks, now)?,
            None => without_node(seen, &name),
        };
        Some((name, held))
    };
    asked(seen).into_iter().filter_map(held).collect()
}

/// Returns whether the machine of a host is given back without this look: because the user says so, or
/// because nothing can be run in the namespace any more.
fn is_let_go(seen: &Observed, host: &str) -> bool {
    let node = seen.nodes.get(host).map(|it| &**it);
    seen.is_namespace_terminating || is_host_skipped(node, Some(&*seen.set))
}

/// Returns whether all machines of a baremetal set are given back without this look.
pub fn are_let_go(seen: &Observed, machines: &BaremetalSet) -> bool {
    machines.spec.baremetal_hosts.keys().all(|it| is_let_go(seen, it))
}

/// Returns the names of hosts whose machines are held.
pub fn held_names(seen: &Observed) -> BTreeSet<String> {
    // The time decides only when the next attempt is due.
    held(seen, Timestamp::UNIX_EPOCH).into_keys().collect()
}

fn leaving_host<'a>(seen: &'a Observed, node: &'a Node) -> LeavingHost<'a> {
    let (set, name) = (&*seen.set, node.name_any());
    let (spec, shared) = (&set.spec, &set.spec.node_template);
    let ssh = shared.ansible_ssh_private_key_secret.clone();
    let digests = seen.sources.get(&SourceRef::secret(&seen.namespace, &ssh));
    let layout = Layout::NodeSets(NodeSets {
        ssh_secrets: BTreeMap::from([(set.name_any(), ssh.clone())]),
        is_global: false,
        tls: Vec::new(),
    });
    LeavingHost {
        node,
        machine: machine_of(seen, &name),
        is_off: own_set(seen).is_some_and(|it| is_off(it, &name)),
        address: address_of(set, node),
        ssh: (ssh, digests),
        template: RunTemplate {
            env: spec.env.clone(),
            extra_mounts: shared.extra_mounts.clone(),
            network_attachments: spec.network_attachments.clone(),
            dns_config: dns_config(set),
            ..template(node, layout)
        },
    }
}

/// Returns what holds the machine of a host without a node, to which runs would belong.
fn without_node(seen: &Observed, name: &str) -> Held {
    let message = format!(
        "The machine of host {name} is not given back, because the node set has no \
         OpenStackDataPlaneNode of that name, to which the run belongs that looks for guests \
         there: delete another one of that name. To give it back without: {}",
        skip_of_set(seen)
    );
    Held { reason: &reasons::machines::MACHINE_HELD, message }
}

fn machine_of<'a>(seen: &'a Observed, name: &str) -> Option<&'a HostMachine> {
    seen.set.status.as_ref()?.machines.get(name)
}

/// Whether a run may have left guests on the host: as its node says, a deployment has begun there; or
/// the node, which was made anew, does not know what ran before.
fn is_asked(seen: &Observed, name: &str) -> bool {
    let installed = machine_of(seen, name).filter(|it| it.installation.is_some());
    let Some(node) = seen.nodes.get(name) else { return installed.is_some() };
    let since = installed.map(|it| it.installed.as_ref().unwrap_or(&it.since));
    let is_younger = since.zip(node.creation_timestamp()).is_some_and(|(it, made)| *it < made);
    let has_begun = node.status.as_ref().is_some_and(|it| {
        it.host_key.is_some()
            || it.deployment.is_some()
            || it.deployed_config_hash.is_some()
            || !it.services.is_empty()
    });
    is_younger || has_begun
}

/// Adds the runs that are due, and the deletions of old ones. None begins during a deployment.
pub fn add(plan: &mut Plan, seen: &Observed, now: Timestamp) {
    if seen.is_in_use() {
        return;
    }
    for node in asked(seen).iter().filter_map(|it| seen.nodes.get(it)) {
        leaving_host(seen, node).add(plan, &seen.looks, now);
    }
}

/// Returns the condition; `None` where no machine is held.
pub fn condition(seen: &Observed, now: Timestamp) -> Option<ConditionDraft> {
    let held = held(seen, now);
    let Some(worst) = held.values().min_by_key(|it| it.reason.severity) else {
        return unlooked(seen);
    };
    let texts = held.values().take(EXPLAINED).map(|it| it.message.clone()).collect();
    let text = first_texts(texts, held.len().saturating_sub(EXPLAINED));
    Some(worst.reason.condition(MACHINES_GIVEN_BACK, text))
}

/// Returns the condition of machines that are to go with their set, although the node set keeps their
/// hosts and asks for none.
fn unlooked(seen: &Observed) -> Option<ConditionDraft> {
    let own = own_set(seen).filter(|it| is_terminating(&***it) && has_finalizer(&***it, IN_USE))?;
    let is_released = set::release_of(own, are_let_go(seen, own), iter::empty::<&str>()).is_some();
    if machine_template(&seen.set).is_some() || is_released {
        return None;
    }
    let name = own.name_any();
    let text = format!(
        "OpenStackBaremetalSet {name} is to be deleted, and its machines are not given back, because \
         no run has looked for guests on their hosts. Take the hosts out of spec.nodes: then one \
         looks there. To give them back without: {}",
        skip_of_set(seen)
    );
    Some(reasons::machines::MACHINE_HELD.condition(MACHINES_GIVEN_BACK, text))
}

/// Returns the command to give back all machines of the node set without this look.
fn skip_of_set(seen: &Observed) -> String {
    let object = format!("openstackdataplanenodeset/{}", seen.set.name_any());
    skip_command(&seen.namespace, &object)
}
