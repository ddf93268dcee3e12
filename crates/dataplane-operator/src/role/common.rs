//! What the hosts of a group have in common, and whether anything of them is remembered.

use std::sync::Arc;

use api::dataplane::{Node, Role, Service};
use api::shared::SourceKind;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;

use crate::host::effective_spec::role_template;
use crate::role::certificates::is_enabled;
use crate::role::memory::{Common, Stated};
use crate::role::observed::{Observed, sources_of_vars};

/// Returns whether what is found of the hosts of a group may be remembered.
///
/// Machines, certificates and variables from Secrets connect a host with objects that change without its
/// node: their groups are evaluated as a whole.
pub fn may_remember(role: Option<&Role>, nodes: &[Arc<Node>]) -> bool {
    let has_machine = |it: &Arc<Node>| it.status.as_ref().is_some_and(|it| it.machine.is_some());
    let sources = sources_of_vars("", role, nodes);
    role.is_some_and(|it| !is_terminating(it) && role_template(it).is_none())
        && !is_enabled(role)
        && !nodes.iter().any(has_machine)
        && sources.iter().all(|it| it.kind == SourceKind::ConfigMap)
}

/// Returns what the hosts of a group have in common.
pub fn of(seen: &Observed) -> Common {
    let Observed {
        role,
        data_plane,
        nodes,
        services,
        unreadable,
        sources,
        objects,
        networks,
        // One group has one memory.
        group: _,
        namespace: _,
        // They do not change while the process runs.
        defaults: _,
        runner: _,
        // They are compared for each host, or noted as changes of it.
        runs: _,
        others: _,
        claims: _,
        inventories: _,
        inventory_secrets: _,
        // Groups with machines or certificates are not remembered.
        certificate_sources: _,
        looks: _,
        is_namespace_terminating: _,
        machines: _,
        issued: _,
        migrating_nodes: _,
        recalled: _,
    } = seen;
    let first = nodes.iter().find(|it| !it.spec.network_attachments.is_empty());
    let of_service = |(name, it): (&String, &Arc<Service>)| (name.clone(), Stated(Arc::clone(it)));
    Common {
        role: role.as_ref().map(|it| Stated(Arc::clone(it))),
        data_plane: data_plane.as_ref().map(|it| Stated(Arc::clone(it))),
        services: services.iter().map(of_service).collect(),
        unreadable: unreadable.clone(),
        sources: sources.clone(),
        variables: objects.iter().map(|(name, it)| (name.clone(), it.digests().clone())).collect(),
        networks: networks.clone(),
        attachments: first.map(|it| (it.name_any(), it.spec.network_attachments.clone())),
    }
}
