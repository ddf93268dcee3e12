//! The last looks at the hosts of a group whose machines are to be given back.

use std::sync::Arc;

use api::dataplane::{Node, RunState, ServiceRun};
use jiff::Timestamp;
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::is_terminating;
use operator_core::plan::Plan;
use operator_core::run_engine::layout::Layout;
use operator_core::run_engine::run_template::RunTemplate;

use crate::finalizers::is_used;
use crate::host::last_look::{Held, LeavingHost, is_host_skipped, is_off, template};
use crate::host::machines::machine_names::{known_name, machine_of};
use crate::role::inventory_shards::node_inventory_name;
use crate::role::observed::Observed;
use crate::role::resolved::{is_first_deployment, recorded_services};

/// Returns what holds the machine of a node that no other operator needs any more; `None` where it may be
/// given back.
pub fn held(seen: &Observed, node: &Node, now: Timestamp) -> Option<Held> {
    leaving_host(seen, node)?.held(&seen.looks, now)
}

/// Returns whether something holds the machine of a node that no other operator needs any more.
pub fn is_held(seen: &Observed, node: &Node) -> bool {
    // The time decides only when the next attempt is due.
    held(seen, node, Timestamp::UNIX_EPOCH).is_some()
}

/// Returns the host of a node, at which this operator looks before its machine is given back.
fn leaving_host<'a>(seen: &'a Observed, node: &'a Node) -> Option<LeavingHost<'a>> {
    let set = seen.machines.set_of(&seen.owner()?.0)?;
    let name = known_name(node);
    if !set.spec.baremetal_hosts.contains_key(&name)
        || seen.is_namespace_terminating
        || is_host_skipped(Some(node), seen.role.as_deref())
        || !is_asked(seen, node)
    {
        return None;
    }
    let effective = seen.effective(node);
    let recorded = node.status.as_ref().and_then(|it| it.address.clone());
    let address = recorded.or_else(|| effective.address());
    let ssh = effective.ssh_secret.unwrap_or_default();
    let digests = seen.sources.get(&SourceRef::secret(&seen.namespace, &ssh));
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
        ..template(node, layout)
    };
    let (machine, is_off) = (machine_of(node), is_off(set, &name));
    Some(LeavingHost { node, machine, is_off, address, ssh: (ssh, digests), template })
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
    for host in leaving(seen).filter_map(|it| leaving_host(seen, it)) {
        host.add(plan, &seen.looks, now);
    }
}
