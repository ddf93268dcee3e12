//! Faults of variables from ConfigMaps and Secrets.

use api::shared::DataSource;
use kube::ResourceExt;

use crate::effective_spec::EffectiveSpec;
use crate::fault::Fault;
use crate::role::observed::Observed;
use crate::vars::{Objects, named};

/// The reason when an object with variables is missing.
pub const NOT_FOUND: &str = "VariablesNotFound";
/// The reason when an object with variables cannot be used.
pub const INVALID: &str = "VariablesInvalid";

/// Returns the faults of the objects that a list names; `place` is the path of the list.
pub fn faults(
    namespace: &str,
    objects: &Objects,
    entries: &[DataSource],
    place: &str,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    for named in named(entries) {
        let title = named.title();
        match objects.get(&named.source(namespace)) {
            None if named.is_optional => {}
            None => faults.push(Fault::missing(
                NOT_FOUND,
                format!(
                    "{title}, named in {place}, does not exist: create it, or set optional: true \
                     there."
                ),
            )),
            Some(content) => {
                let binary = content.keys().find(|it| content.text(it).is_none());
                faults.extend(binary.map(|key| {
                    Fault::missing(
                        INVALID,
                        format!(
                            "{title}, named in {place}, has a key {key} that is no text, and a \
                             variable can hold nothing else: take it out."
                        ),
                    )
                }));
            }
        }
    }
    faults.dedup();
    faults
}

/// Returns the faults of the role's list.
pub fn of_role(seen: &Observed) -> Vec<Fault> {
    let Some(role) = &seen.role else { return Vec::new() };
    let Some(template) = &role.spec.node_template else { return Vec::new() };
    let place =
        format!("spec.nodeTemplate.ansibleVarsFrom of OpenStackDataPlaneRole {}", role.name_any());
    faults(&seen.namespace, &seen.objects, &template.ansible_vars_from, &place)
}

/// Returns the faults of the node's list.
pub fn of_node(seen: &Observed, node: &api::dataplane::Node) -> Vec<Fault> {
    let Some(section) = &node.spec.node else { return Vec::new() };
    let place = format!("spec.node.ansibleVarsFrom of OpenStackDataPlaneNode {}", node.name_any());
    faults(&seen.namespace, &seen.objects, &section.ansible_vars_from, &place)
}

/// Returns whether faults mean that variables of the host are unknown at present.
pub fn are_unknown(faults: &[Fault]) -> bool {
    faults.iter().any(|it| [NOT_FOUND, INVALID].contains(&it.reason))
}

/// Returns whether any of these hosts has variables from Secrets.
pub fn is_needed(hosts: &[&EffectiveSpec]) -> bool {
    hosts.iter().any(|it| !it.group_secrets.is_empty() || it.host_secrets().next().is_some())
}
