//! Faults in the user's objects or missing inputs, each with object, cause and next step.

use std::collections::BTreeSet;

use api::dataplane::{Node, NodeSection};
use api::problem::Problem;
use kube::ResourceExt;
use operator_core::data_sources::{NamedSource, SourceRef, sources_of};

use crate::host::conflicts::AddressTaken;
use crate::host::effective_spec::{EffectiveSpec, HOST_NAME_VAR};
use crate::host::services::{ServiceFaults, absent_service, invalid, source_fault};
use crate::host::ssh_trust::secret_fault;
use crate::host::{networks, vars};
use crate::reasons;
use crate::role::certificates::RoleCertificates;
use crate::role::observed::{NodeGroup, Observed, own_ssh_secret};
use crate::role::resolved::ResolvedHost;

/// Returns the faults that keep the services of the group from running on any host.
pub fn of_group(seen: &Observed, certificates: &RoleCertificates<'_>) -> ServiceFaults {
    let mut problems = ServiceFaults::default();
    for name in seen.listed() {
        // Nothing of an incomplete list is run.
        let Some(service) = seen.services.get(name) else {
            let why = seen.unreadable.get(name);
            problems.of_all.extend(seen.parent().map(|it| absent_service(&it, name, why)));
            continue;
        };
        problems.of_all.extend(invalid(service));
        let sources = sources_of(&service.spec).into_iter().map(|it| (name.clone(), it));
        let sources = sources.chain(certificates.bundles(seen, (name, service)));
        let fault = |(by, it): (String, NamedSource)| {
            let found = seen.sources.get(&it.source(&seen.namespace));
            Some((name.clone(), source_fault(&seen.namespace, &by, &it, found)?))
        };
        problems.of_services.extend(sources.filter_map(fault));
    }
    problems.of_services.extend(certificates.faults(seen));
    problems.of_all.extend(of_role(seen));
    problems
}

/// Returns the faults of the Secrets with the ssh keys of these hosts and the known ones, each Secret once;
/// without hosts, of the one that the role names.
pub fn of_ssh_keys(seen: &Observed, hosts: &[ResolvedHost<'_>]) -> Vec<Problem> {
    let of_role = seen.role.as_deref().filter(|_| seen.nodes.is_empty()).and_then(own_ssh_secret);
    let of_hosts = hosts.iter().filter_map(|it| it.effective.ssh_secret.as_deref());
    let of_known = seen.recalled.hosts().filter_map(|it| it.ssh_secret.as_deref());
    let names: BTreeSet<&str> = of_hosts.chain(of_known).chain(of_role).collect();
    let fault = |name: &str| {
        let digests = seen.sources.get(&SourceRef::secret(&seen.namespace, name));
        secret_fault(&seen.namespace, name, digests)
    };
    names.into_iter().filter_map(fault).collect()
}

/// Returns the faults of the variables and networks that the role names.
fn of_role(seen: &Observed) -> Vec<Problem> {
    let Some(role) = &seen.role else { return Vec::new() };
    let name = role.name_any();
    let place = format!("spec.nodeTemplate.ansibleVarsFrom of OpenStackDataPlaneRole {name}");
    let mut problems = of_variables(seen, role.spec.node_template.as_ref(), &place);
    let names = &role.spec.network_attachments;
    problems.extend(networks::missing(&seen.networks, names, "OpenStackDataPlaneRole", &name));
    problems
}

/// Returns the faults of a section's list of variables; `place` is the path of the list.
fn of_variables(seen: &Observed, section: Option<&NodeSection>, place: &str) -> Vec<Problem> {
    let Some(section) = section else { return Vec::new() };
    vars::faults(&seen.namespace, &seen.objects, &section.ansible_vars_from, place)
}

/// Returns the faults that keep this node from being deployed, in addition to the group's; `taken`
/// is its host, if another object owns it.
pub fn of_node(
    seen: &Observed,
    node: &Node,
    effective: &EffectiveSpec,
    taken: &[AddressTaken],
) -> Vec<Problem> {
    let name = node.name_any();
    if let Some(fault) = role_fault(seen, &name) {
        // The role may provide what else is missing.
        return vec![fault];
    }
    let mut problems = Vec::new();
    let object = format!("OpenStackDataPlaneNode {name}");
    // When the other object is gone, the node gets the host.
    problems.extend(
        taken.iter().map(|it| Problem::new(&reasons::inputs::HOST_TAKEN, it.message(&object))),
    );
    if effective.ansible_host.is_empty() {
        problems.push(Problem::new(
            &reasons::role::HOST_ADDRESS_MISSING,
            format!(
                "OpenStackDataPlaneNode {name} has neither spec.ansibleHost nor spec.hostName: set \
                 one, so that the host can be reached."
            ),
        ));
    }
    problems.extend(effective.undecided_address().into_iter().map(|var| {
        Problem::new(
            &reasons::inputs::HOST_ADDRESS_INVALID,
            format!(
                "The variable {var} of OpenStackDataPlaneNode {name} is no plain address or port, \
                 or comes from a Secret: two runs on one host are distinguished by it, so set \
                 spec.ansibleHost and spec.node.ansiblePort instead."
            ),
        )
    }));
    match &effective.ssh_secret {
        None => problems.push(Problem::new(
            &reasons::role::SSH_SECRET_NOT_NAMED,
            format!(
                "OpenStackDataPlaneNode {name} names no ssh key: set \
                 spec.node.ansibleSSHPrivateKeySecret, or \
                 spec.nodeTemplate.ansibleSSHPrivateKeySecret of its role."
            ),
        )),
        Some(secret) => {
            let digests = seen.sources.get(&SourceRef::secret(&seen.namespace, secret));
            problems.extend(secret_fault(&seen.namespace, secret, digests));
        }
    }
    problems.extend(other_name(&object, effective));
    let place = format!("spec.node.ansibleVarsFrom of {object}");
    problems.extend(of_variables(seen, node.spec.node.as_ref(), &place));
    let own = &node.spec.network_attachments;
    problems.extend(networks::missing(&seen.networks, own, "OpenStackDataPlaneNode", &name));
    problems.extend(disagreement(seen, node));
    problems
}

/// Returns the fault of a host whose services register under another name than its certificates
/// carry.
fn other_name(object: &str, effective: &EffectiveSpec) -> Option<Problem> {
    let own = &effective.host_name;
    let is_same = effective.vars.get(HOST_NAME_VAR).is_none_or(|it| it == own.as_str());
    let is_known = is_same && !effective.origins.contains_key(HOST_NAME_VAR);
    (effective.tls.is_some() && !is_known).then(|| {
        let text = format!(
            "The variable {HOST_NAME_VAR} of {object} is not the host's name {own}, which its \
             certificates carry: set spec.hostName to the name under which its services register, \
             and take the variable out."
        );
        Problem::new(&reasons::role::HOST_NAME_DIFFERS, text)
    })
}

fn role_fault(seen: &Observed, node: &str) -> Option<Problem> {
    match &seen.group {
        NodeGroup::Node(_) if seen.listed().is_empty() => Some(Problem::new(
            &reasons::role::ROLE_NOT_NAMED,
            format!(
                "OpenStackDataPlaneNode {node} has neither spec.role nor spec.services: name the \
                 OpenStackDataPlaneRole whose services it gets, or list services of its own."
            ),
        )),
        NodeGroup::Role(role) if seen.role.is_none() => Some(Problem::new(
            &reasons::role::ROLE_NOT_FOUND,
            format!(
                "OpenStackDataPlaneRole {role}, named in spec.role of OpenStackDataPlaneNode \
                 {node}, does not exist: create it or correct spec.role."
            ),
        )),
        NodeGroup::Role(_) | NodeGroup::Node(_) => None,
    }
}

/// Compares the node's network attachments with the role's or, without any, with those of the first
/// node that has some.
fn disagreement(seen: &Observed, node: &Node) -> Option<Problem> {
    let own = &node.spec.network_attachments;
    if own.is_empty() {
        return None;
    }
    let of_role = seen.role.as_ref().filter(|it| !it.spec.network_attachments.is_empty());
    let (kind, name, expected) = if let Some(role) = of_role {
        ("OpenStackDataPlaneRole", role.name_any(), &role.spec.network_attachments)
    } else {
        let first = seen.nodes.iter().find(|it| !it.spec.network_attachments.is_empty())?;
        ("OpenStackDataPlaneNode", first.name_any(), &first.spec.network_attachments)
    };
    (own != expected).then(|| {
        let text = format!(
            "spec.networkAttachments of OpenStackDataPlaneNode {} ({}) and of {kind} {name} ({}) \
             differ: make them equal, in the same order, or empty the node's.",
            node.name_any(),
            own.join(", "),
            expected.join(", ")
        );
        Problem::new(&reasons::role::NETWORK_ATTACHMENTS_DIFFER, text)
    })
}
