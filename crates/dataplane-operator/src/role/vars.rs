//! Faults of variables from ConfigMaps and Secrets.

use api::problem::Problem;
use api::shared::DataSource;
use kube::ResourceExt;

use crate::effective_spec::EffectiveSpec;
use crate::reasons;
use crate::role::observed::Observed;
use crate::vars::{Objects, named};

/// Returns the faults of the objects that a list names; `place` is the path of the list.
pub fn faults(
    namespace: &str,
    objects: &Objects,
    entries: &[DataSource],
    place: &str,
) -> Vec<Problem> {
    let mut faults = Vec::new();
    for named in named(entries) {
        let title = named.title();
        match objects.get(&named.source(namespace)) {
            None if named.is_optional => {}
            None => faults.push(Problem::new(
                &reasons::inputs::VARIABLES_NOT_FOUND,
                format!(
                    "{title}, named in {place}, does not exist: create it, or set optional: true \
                     there."
                ),
            )),
            Some(content) => {
                let binary = content.keys().find(|it| content.text(it).is_none());
                faults.extend(binary.map(|key| {
                    Problem::new(
                        &reasons::inputs::VARIABLES_INVALID,
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
pub fn of_role(seen: &Observed) -> Vec<Problem> {
    let Some(role) = &seen.role else { return Vec::new() };
    let Some(template) = &role.spec.node_template else { return Vec::new() };
    let place =
        format!("spec.nodeTemplate.ansibleVarsFrom of OpenStackDataPlaneRole {}", role.name_any());
    faults(&seen.namespace, &seen.objects, &template.ansible_vars_from, &place)
}

/// Returns the faults of the node's list.
pub fn of_node(seen: &Observed, node: &api::dataplane::Node) -> Vec<Problem> {
    let Some(section) = &node.spec.node else { return Vec::new() };
    let place = format!("spec.node.ansibleVarsFrom of OpenStackDataPlaneNode {}", node.name_any());
    faults(&seen.namespace, &seen.objects, &section.ansible_vars_from, &place)
}

/// Returns whether faults mean that variables of the host are unknown at present.
pub fn are_unknown(faults: &[Problem]) -> bool {
    faults.iter().any(|it| {
        [&reasons::inputs::VARIABLES_NOT_FOUND, &reasons::inputs::VARIABLES_INVALID]
            .contains(&it.reason)
    })
}

/// Returns whether any of these hosts has variables from Secrets.
pub fn is_needed(hosts: &[&EffectiveSpec]) -> bool {
    hosts.iter().any(|it| !it.group_secrets.is_empty() || it.host_secrets().next().is_some())
}
