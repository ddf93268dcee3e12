//! The last looks at the hosts of a node set whose machines are to be given back.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use api::baremetal::BaremetalSet;
use api::conditions::ConditionDraft;
use api::dataplane::{HostState, Node, NodeSet};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::{has_finalizer, is_only_finalizer, is_terminating};
use operator_core::hash;
use operator_core::node_set_host::{
    address_of, connection, dns_config, hosts, machine_template, recorded_trust,
};
use operator_core::plan::{Plan, Step};
use operator_core::run_engine::layout::{Layout, NodeSets};
use operator_core::run_engine::run_template::RunTemplate;
use operator_core::run_engine::ssh_secret::SshSecret;
use operator_core::run_engine::{Run, last_run};
use operator_runtime::source_cache::Digests;

use crate::conditions::first_texts;
use crate::finalizers::{INVENTORY_FINALIZER, is_used};
use crate::host::last_look::{
    Due, Held, LeavingHost, Look, SERVICE, is_host_skipped, is_of, skip_command, template,
};
use crate::host::machines::provisioning_state::answers;
use crate::host::machines::set::{self, IN_USE};
use crate::node_set::deployment_history::is_under_way;
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

/// Returns what holds the machines of hosts that leave and that no other operator needs any more, by their
/// names in the inventory.
pub fn held(seen: &Observed, now: Timestamp) -> BTreeMap<String, Held> {
    let mut names = leaving(&seen.set, own_set(seen).map(|it| &**it));
    names.retain(|it| !is_let_go(seen, it) && !seen.nodes.get(it).is_some_and(|it| is_used(&**it)));
    names.into_iter().filter_map(|it| Some((it.clone(), of_host(seen, &it, now)?))).collect()
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

fn of_host(seen: &Observed, name: &str, now: Timestamp) -> Option<Held> {
    let set = &*seen.set;
    if !is_asked(set, name) {
        return None;
    }
    let Some(node) = seen.nodes.get(name) else {
        let message = format!(
            "The machine of host {name} is not given back, because the node set has no \
             OpenStackDataPlaneNode of that name, to which the run belongs that looks for guests \
             there: delete another one of that name. To give it back without: {}",
            skip_of_set(seen)
        );
        let reason = &reasons::machines::MACHINE_HELD;
        return Some(Held { reason, message, due: None, retry_at: None });
    };
    let machine = set.status.as_ref().and_then(|it| it.machines.get(name));
    let ssh = ssh(seen);
    let (spec, mounts) = (&set.spec, &set.spec.node_template.extra_mounts);
    let copied = (&spec.env, mounts, &spec.network_attachments, dns_config(set));
    let installation = machine.map(|it| &it.installation);
    let host = LeavingHost {
        name,
        has_address: address_of(set, name).is_some(),
        identity: hash::digest(&(SERVICE, node.uid(), name, installation, copied)),
        ssh: (ssh.name, ssh.version),
        trust: recorded_trust(set, name),
        is_off: own_set(seen)
            .is_some_and(|it| answers(it) && it.host_status(name).is_some_and(|it| it.powered_off)),
        skip: skip_command(&seen.namespace, &format!("openstackdataplanenode/{name}")),
    };
    match host.evaluate(&runs(seen, node), now) {
        Look::Over => None,
        Look::Held(held) => Some(held),
    }
}

/// Whether a run may have left guests on the host, as far as the status says: a deployment has begun
/// there.
fn is_asked(set: &NodeSet, name: &str) -> bool {
    let Some(status) = &set.status else { return false };
    let mut hosts = status.hosts.iter();
    status.host_keys.contains_key(name)
        || hosts.any(|it| {
            it.name == name && (it.state != HostState::Undeployed || it.address.is_some())
        })
}

/// Adds the runs that are due, and the deletions of old ones. None begins during a deployment.
pub fn add(plan: &mut Plan, seen: &Observed, now: Timestamp) {
    if seen.deployments.iter().any(|it| is_under_way(it, &seen.set)) {
        return;
    }
    for (name, held) in held(seen, now) {
        let Some(node) = seen.nodes.get(&name) else { continue };
        held.add(plan, &runs(seen, node), &name, now, |due| run(seen, node, due));
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

/// Returns the runs of the look at the host of a node.
fn runs<'a>(seen: &'a Observed, node: &Node) -> Vec<Run<'a>> {
    let uid = node.uid();
    seen.looks.iter().filter(|it| is_of(it, uid.as_ref())).filter_map(|it| Run::of(it)).collect()
}

fn ssh(seen: &Observed) -> SshSecret<'_> {
    let name = &seen.set.spec.node_template.ansible_ssh_private_key_secret;
    Digests::ssh_secret(name, seen.sources.get(&SourceRef::secret(&seen.namespace, name)))
}

/// Returns the run of an attempt; `None` while the host's address is not known. It belongs to the
/// node, and goes with it.
fn run(seen: &Observed, node: &Node, due: Due) -> Option<Step> {
    let (set, name) = (&*seen.set, &node.name_any());
    let (address, trust) = (address_of(set, name)?, recorded_trust(set, name));
    let connection = connection(set, (name, &address), ssh(seen), &trust, due.was_key_refused);
    let secret = set.spec.node_template.ansible_ssh_private_key_secret.clone();
    let layout = Layout::NodeSets(NodeSets {
        ssh_secrets: BTreeMap::from([(set.name_any(), secret)]),
        is_global: false,
        tls: Vec::new(),
    });
    let template = RunTemplate {
        env: set.spec.env.clone(),
        extra_mounts: set.spec.node_template.extra_mounts.clone(),
        network_attachments: set.spec.network_attachments.clone(),
        dns_config: dns_config(set),
        ..template(node, layout)?
    };
    last_run::step(&template, name, due.need, connection)
}
