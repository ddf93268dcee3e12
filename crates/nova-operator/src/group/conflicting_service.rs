//! A service of type nova among those of a node, which would write the same files as the compute.

use api::dataplane::{Node, Service};
use kube::ResourceExt;
use nova_config::annotations::CELL;
use nova_config::services::NOVA_TYPE;
use operator_core::data_sources::service_type;

use crate::group::{Group, group_key};

/// A service of type nova, and the object that lists it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConflictingService {
    /// The listing object, as in `OpenStackDataPlaneRole x`.
    pub lister: String,
    /// The name of the service.
    pub service: String,
}

/// Returns the names of the services of a node: those of its group, or its own without one.
pub fn listed<'a>(group: Option<&'a Group>, node: &'a Node) -> &'a [String] {
    match (group_key(node), group) {
        (Some(_), group) => group.map(Group::services).unwrap_or_default(),
        (None, _) => &node.spec.services,
    }
}

/// Returns what lists the services of a node, as in `OpenStackDataPlaneRole x`.
pub fn lister(group: Option<&Group>, node: &Node) -> String {
    match group.filter(|_| group_key(node).is_some()) {
        Some(group) => group.title(),
        None => format!("OpenStackDataPlaneNode {}", node.name_any()),
    }
}

/// Whether a service is of a type; one that does not exist yet, or names no type, is assumed to have the
/// type of its name.
pub fn is_of_type(name: &str, service: Option<&Service>, type_: &str) -> bool {
    service.map_or_else(|| name.to_owned(), |it| service_type(&it.spec, name)) == type_
}

/// Whether a service is of type nova.
pub fn is_nova(name: &str, service: Option<&Service>) -> bool {
    is_of_type(name, service, NOVA_TYPE)
}

/// Returns the first service of type nova of a node; `find` looks up the services that exist.
pub fn conflicting_service<'a>(
    group: Option<&Group>,
    node: &Node,
    find: impl Fn(&str) -> Option<&'a Service>,
) -> Option<ConflictingService> {
    let service = listed(group, node).iter().find(|it| is_nova(it, find(it)))?.clone();
    Some(ConflictingService { lister: lister(group, node), service })
}

impl ConflictingService {
    /// Returns the condition message: object, cause and next step.
    pub fn message(&self, node: &str) -> String {
        let Self { lister, service } = self;
        format!(
            "OpenStackDataPlaneService {service} of type {NOVA_TYPE}, listed in spec.services of \
             {lister}, writes the same files on the host as NovaExternalCompute {node}, which \
             therefore runs nothing: take the service off the list, or the annotation \
             {CELL} off the node."
        )
    }

    /// Returns the condition message about the annotation of `origin`, which counts for nothing beside
    /// the service.
    pub fn message_of_annotation(&self, origin: &str) -> String {
        let Self { lister, service } = self;
        format!(
            "Annotation {CELL} of {origin} counts for nothing, because OpenStackDataPlaneService \
             {service} of type {NOVA_TYPE}, listed in spec.services of {lister}, deploys nova-compute: \
             take the annotation off, or the service off the list."
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::dataplane::{NodeSpec, Role, RoleSpec, ServiceSpec};

    use super::*;

    fn role(services: &[&str]) -> Group {
        let services = services.iter().map(|it| (*it).to_owned()).collect();
        let spec = RoleSpec { services, ..RoleSpec::default() };
        Group::Role(Arc::new(Role::new("compute", spec)))
    }

    fn node(role: Option<&str>, services: &[&str]) -> Node {
        let services = services.iter().map(|it| (*it).to_owned()).collect();
        let role = role.map(str::to_owned);
        Node::new("n0", NodeSpec { role, services, ..NodeSpec::default() })
    }

    fn service(type_: Option<&str>) -> Service {
        let edpm_service_type = type_.map(str::to_owned);
        Service::new("x", ServiceSpec { edpm_service_type, ..ServiceSpec::default() })
    }

    #[test]
    fn the_type_counts_and_without_one_the_name() {
        let (typed, other) = (service(Some("nova")), service(Some("other")));
        let cases = [
            (vec!["run-os", "nova"], None, Some("nova")),
            (vec!["nova-custom"], None, None),
            (vec!["nova-custom"], Some(&typed), Some("nova-custom")),
            (vec!["nova"], Some(&other), None),
        ];
        for (services, known, expected) in cases {
            let found =
                conflicting_service(Some(&role(&services)), &node(Some("compute"), &[]), |_| known);
            assert_eq!(found.map(|it| it.service).as_deref(), expected, "{services:?}");
        }
    }

    #[test]
    fn a_node_without_a_role_lists_for_itself() {
        let found = conflicting_service(None, &node(None, &["nova"]), |_| None).unwrap();
        assert_eq!(found.lister, "OpenStackDataPlaneNode n0");
        // The services of a node with a role have no effect, and a missing role lists none.
        assert_eq!(
            conflicting_service(
                Some(&role(&["run-os"])),
                &node(Some("compute"), &["nova"]),
                |_| None
            ),
            None
        );
        assert_eq!(conflicting_service(None, &node(Some("compute"), &["nova"]), |_| None), None);
    }
}
