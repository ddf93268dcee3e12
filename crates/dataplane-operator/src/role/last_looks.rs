//! The last looks at the hosts of a group whose machines are to be given back.

use std::sync::Arc;

use api::baremetal::BaremetalSet;
use api::dataplane::{Node, RunState, ServiceRun};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::is_terminating;
use operator_core::hash;
use operator_core::plan::{Plan, Step};
use operator_core::run_engine::Run;
use operator_core::run_engine::host_key::recorded_trust;
use operator_core::run_engine::last_run;
use operator_core::run_engine::layout::Layout;
use operator_core::run_engine::run_template::{HostConnection, RunTemplate};
use operator_runtime::source_cache::Digests;

use crate::finalizers::is_used;
use crate::host::effective_spec::EffectiveSpec;
use crate::host::last_look::{
    Due, Held, LeavingHost, Look, SERVICE, is_host_skipped, is_of, skip_command, template,
};
use crate::host::machines::machine_names::{known_name, machine_of};
use crate::host::machines::provisioning_state::answers;
use crate::role::inventory_shards::node_inventory_name;
use crate::role::observed::Observed;
use crate::role::resolved::{is_first_deployment, recorded_services};

/// Returns what holds the machine of a node that no other operator needs any more; `None` where it may be
/// given back.
pub fn held(seen: &Observed, node: &Node, now: Timestamp) -> Option<Held> {
    let set = own_set(seen).filter(|it| it.spec.baremetal_hosts.contains_key(&known_name(node)))?;
    if seen.is_namespace_terminating
        || is_host_skipped(Some(node), seen.role.as_deref())
        || !is_asked(seen, node)
    {
        return None;
    }
    let effective = seen.effective(node);
    let (ssh_name, ssh) = ssh(seen, &effective);
    let ssh = Digests::ssh_secret(&ssh_name, ssh);
    let namespace = &seen.namespace;
    let copied = (&effective.env, &effective.extra_mounts, &effective.network_attachments);
    let installation = machine_of(node).map(|it| &it.installation);
    let host = LeavingHost {
        name: &effective.name,
        has_address: address(node, &effective).is_some(),
        identity: hash::digest(&(SERVICE, node.uid(), installation, copied)),
        ssh: (ssh.name, ssh.version),
        trust: recorded_trust(node),
        is_off: answers(set) && set.host_status(&known_name(node)).is_some_and(|it| it.powered_off),
        skip: skip_command(namespace, &format!("openstackdataplanenode/{}", node.name_any())),
    };
    match host.evaluate(&runs(seen, node), now) {
        Look::Over => None,
        Look::Held(held) => Some(held),
    }
}

/// Returns whether something holds the machine of a node that no other operator needs any more.
pub fn is_held(seen: &Observed, node: &Node) -> bool {
    // The time decides only when the next attempt is due.
    held(seen, node, Timestamp::UNIX_EPOCH).is_some()
}

/// Returns the set that the group requests, if it exists.
fn own_set(seen: &Observed) -> Option<&BaremetalSet> {
    let (owner, _) = seen.owner()?;
    seen.machines.set_of(&owner).map(|it| &**it)
}

/// Whether a run may have left guests on the host: one has succeeded there. Of a host without services
/// of this operator, nothing is known of the runs of others.
fn is_asked(seen: &Observed, node: &Node) -> bool {
    let Some(machine) = machine_of(node) else { return false };
    let has_succeeded =
        |it: &ServiceRun| it.state == RunState::Succeeded || it.deployed_hash.is_some();
    let services = recorded_services(node);
    !is_first_deployment(node)
        || services.iter().any(has_succeeded)
        || (seen.listed().is_empty() && machine.installation.is_some())
}

/// Returns the nodes whose machines no other operator needs any more: those that are being deleted, and those
/// that have left the group.
fn leaving(seen: &Observed) -> impl Iterator<Item = &Arc<Node>> {
    let deleted = seen.nodes.iter().filter(|it| is_terminating(&***it));
    deleted.chain(&seen.migrating_nodes).filter(|it| !is_used(&***it))
}

/// Adds the runs that are due, and the deletions of old ones.
pub fn add(plan: &mut Plan, seen: &Observed, now: Timestamp) {
    for node in leaving(seen) {
        let Some(held) = held(seen, node, now) else { continue };
        held.add(plan, &runs(seen, node), &node.name_any(), now, |due| run(seen, node, due));
    }
}

/// Returns the runs of the look at a node's host.
fn runs<'a>(seen: &'a Observed, node: &Node) -> Vec<Run<'a>> {
    let uid = node.uid();
    seen.looks.iter().filter(|it| is_of(it, uid.as_ref())).filter_map(|it| Run::of(it)).collect()
}

fn ssh<'a>(seen: &'a Observed, effective: &EffectiveSpec) -> (String, Option<&'a Digests>) {
    let name = effective.ssh_secret.clone().unwrap_or_default();
    let digests = seen.sources.get(&SourceRef::secret(&seen.namespace, &name));
    (name, digests)
}

/// Returns the address at which runs reach a node's host, as far as it is known.
fn address(node: &Node, effective: &EffectiveSpec) -> Option<String> {
    let recorded = node.status.as_ref().and_then(|it| it.address.clone());
    recorded.or_else(|| effective.address())
}

/// Returns the run of an attempt; `None` while the host's address is not known. It belongs to the
/// node, and goes with it.
fn run(seen: &Observed, node: &Node, due: Due) -> Option<Step> {
    let effective = seen.effective(node);
    let (ssh_name, ssh) = ssh(seen, &effective);
    let connection = HostConnection::new(
        address(node, &effective)?,
        Digests::ssh_secret(&ssh_name, ssh),
        &recorded_trust(node),
        due.was_key_refused,
    );
    let inventory = node_inventory_name(&effective.name);
    let layout = Layout::Parent {
        beside: seen.inventory_secrets.contains_key(&inventory).then(|| inventory.clone()),
        inventory,
        tls: vec![],
    };
    let template = RunTemplate {
        env: effective.env,
        extra_mounts: effective.extra_mounts,
        network_attachments: effective.network_attachments,
        ..template(node, layout)?
    };
    last_run::step(&template, &effective.name, due.need, connection)
}
