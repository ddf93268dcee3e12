//! Whether a deployment of a host drains it first.

use api::dataplane::Node;
use nova_config::annotations::DRAIN_BEFORE;

use crate::group::Group;
use crate::group::inherited_annotation::{annotation, repeated};
use crate::nova::drain::order::ROLLOUT;
use crate::nova::drain::request::{DrainRequest, migrated};

/// What the annotations of a node and its group say.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DrainBefore {
    /// Deployments wait for no drain.
    No,
    /// A deployment begins once the host is drained.
    Yes,
    /// Nothing that is understood; the message names the annotation, its value and the legal ones.
    Invalid(String),
}

/// Returns what the annotations say; the node's own takes precedence over its group's.
///
/// `group` is the one that the node names, or `None` when it does not exist.
pub fn drain_before(group: Option<&Group>, node: &Node) -> DrainBefore {
    let found = annotation(group, node, DRAIN_BEFORE);
    found.map_or(DrainBefore::No, |(value, origin)| said(value, &origin))
}

fn said(value: &str, origin: &str) -> DrainBefore {
    match value {
        "true" => DrainBefore::Yes,
        "false" => DrainBefore::No,
        other => DrainBefore::Invalid(format!(
            "Annotation {DRAIN_BEFORE} of {origin} is \"{}\", so nothing is deployed: set it to true \
             or false, or remove it.",
            repeated(other)
        )),
    }
}

/// Returns the drain by which a deployment begins where the user requests none.
pub fn of_rollout(group: Option<&Group>, node: &Node) -> DrainRequest {
    migrated(group, node, ROLLOUT.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::dataplane::Role;
    use kube::ResourceExt;

    use super::*;

    fn of(role: Option<&str>, node: Option<&str>) -> DrainBefore {
        let annotate = |annotations: &mut std::collections::BTreeMap<_, _>, value: Option<&str>| {
            annotations.extend(value.map(|it| (DRAIN_BEFORE.to_owned(), it.to_owned())));
        };
        let mut of_role = Role::new("compute", <_>::default());
        annotate(of_role.annotations_mut(), role);
        let mut of_node = Node::new("n0", <_>::default());
        annotate(of_node.annotations_mut(), node);
        drain_before(Some(&Group::Role(Arc::new(of_role))), &of_node)
    }

    #[test]
    fn it_is_inherited_and_a_node_may_take_it_back() {
        assert_eq!(of(None, None), DrainBefore::No);
        assert_eq!(of(Some("true"), None), DrainBefore::Yes);
        assert_eq!(of(Some("true"), Some("false")), DrainBefore::No);
        assert_eq!(of(Some("false"), Some("true")), DrainBefore::Yes);
    }

    #[test]
    fn any_other_value_is_refused_with_the_legal_ones_and_its_origin() {
        for value in ["", "True", " true", "yes", "migrate"] {
            let DrainBefore::Invalid(message) = of(Some(value), None) else {
                panic!("{value} is accepted")
            };
            assert!(message.contains("OpenStackDataPlaneRole compute"), "{message}");
            assert!(message.contains("true or false"), "{message}");
        }
        let DrainBefore::Invalid(message) = of(Some("true"), Some("")) else { panic!("accepted") };
        assert!(message.contains("OpenStackDataPlaneNode n0"), "{message}");
    }
}
