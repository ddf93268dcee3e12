//! What the annotations of a node and its group request for the servers of its host.

use api::dataplane::Node;
use kube::ResourceExt;
use nova_config::annotations::{DRAIN, DRAIN_REASON, MAX_MIGRATIONS};

use crate::group::Group;
use crate::group::inherited_annotation::{annotation, repeated};
use crate::nova::drain::migration_limit::most_migrations;
use crate::nova::drain::order::{Drain, DrainMode};

/// The annotation of node sets by which the release before drained hosts.
pub(crate) const DRAIN_HOSTS: &str = "nova.openstack.org/drain-hosts";

/// What is requested.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DrainRequest {
    /// Nothing: servers may be scheduled to the host.
    Absent,
    /// A drain.
    Drain(Drain),
    /// Nothing that is understood; the message names the annotation, its value and the legal ones.
    Invalid(String),
}

/// Returns what is requested. The drain itself is never inherited; its reason and the number of
/// migrations at a time are, and the node's own take precedence.
pub fn requested(group: Option<&Group>, node: &Node) -> DrainRequest {
    let of_node = format!("OpenStackDataPlaneNode {}", node.name_any());
    let Some(mode) = node.annotations().get(DRAIN) else {
        return drained_by_set(group).map_or(DrainRequest::Absent, DrainRequest::Invalid);
    };
    let reason =
        annotation(group, node, DRAIN_REASON).map(|it| it.0.to_owned()).unwrap_or_default();
    let mode = match mode.as_str() {
        "wait" => DrainMode::Wait,
        "migrate" => return migrated(group, node, reason),
        other => {
            return DrainRequest::Invalid(format!(
                "Annotation {DRAIN} of {of_node} is \"{}\", and nothing was changed: set it to \
                 wait or migrate, or remove it.",
                repeated(other)
            ));
        }
    };
    DrainRequest::Drain(Drain { mode, reason })
}

/// Returns why nothing is enabled or drained on hosts of a node set that has the annotation of the release
/// before: a host that is still in maintenance by it must not get guests. `None` without it.
fn drained_by_set(group: Option<&Group>) -> Option<String> {
    let group = group.filter(|it| matches!(it, Group::NodeSet(_)))?;
    group.annotations().get(DRAIN_HOSTS)?;
    Some(format!(
        "Annotation {DRAIN_HOSTS} of {} drains no host any more, and while it is there none is given \
         back: set annotation {DRAIN} on the nodes of those hosts that are to stay drained, then \
         remove it.",
        group.title()
    ))
}

/// Returns a drain by live migration with this reason, as many servers at a time as the annotations
/// say; `Invalid` where they name no legal number.
pub fn migrated(group: Option<&Group>, node: &Node, reason: String) -> DrainRequest {
    match most_migrations(annotation(group, node, MAX_MIGRATIONS)) {
        Ok(number) => DrainRequest::Drain(Drain { mode: DrainMode::Migrate(number), reason }),
        Err(message) => DrainRequest::Invalid(message),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::Arc;

    use api::dataplane::{NodeSet, NodeSetSpec, Role};

    use super::*;

    fn annotated<K: ResourceExt>(mut object: K, annotations: &[(&str, &str)]) -> K {
        let all = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        object.annotations_mut().extend(all);
        object
    }

    fn of(role: &[(&str, &str)], node: &[(&str, &str)]) -> DrainRequest {
        let role = annotated(Role::new("compute", <_>::default()), role);
        let role = Group::Role(Arc::new(role));
        requested(Some(&role), &annotated(Node::new("n0", <_>::default()), node))
    }

    fn migrate(number: usize) -> DrainRequest {
        let mode = DrainMode::Migrate(NonZeroUsize::new(number).unwrap());
        DrainRequest::Drain(Drain { mode, reason: String::new() })
    }

    #[test]
    fn a_drain_is_that_of_the_node_alone() {
        assert_eq!(of(&[(DRAIN, "wait")], &[]), DrainRequest::Absent);
        let request = of(&[], &[(DRAIN, "wait"), (DRAIN_REASON, "new kernel")]);
        let reason = "new kernel".to_owned();
        assert_eq!(request, DrainRequest::Drain(Drain { mode: DrainMode::Wait, reason }));
    }

    #[test]
    fn the_reason_is_inherited_and_may_be_overridden() {
        let reason = |node: &[(&str, &str)]| {
            let DrainRequest::Drain(drain) = of(&[(DRAIN_REASON, "rack 7")], node) else {
                panic!("no drain")
            };
            drain.reason
        };
        assert_eq!(reason(&[(DRAIN, "wait")]), "rack 7");
        assert_eq!(reason(&[(DRAIN, "wait"), (DRAIN_REASON, "new fan")]), "new fan");
    }

    #[test]
    fn hosts_that_a_node_set_has_drained_are_not_given_back_by_an_upgrade() {
        let spec = NodeSetSpec::default();
        let set = annotated(NodeSet::new("edpm", spec), &[(DRAIN_HOSTS, "{\"n0\": \"wait\"}")]);
        let set = Group::NodeSet(Arc::new(set));
        let node = |annotations| annotated(Node::new("n0", <_>::default()), annotations);
        let DrainRequest::Invalid(message) = requested(Some(&set), &node(&[])) else {
            panic!("the host is given back")
        };
        assert!(message.contains("OpenStackDataPlaneNodeSet edpm"), "{message}");
        assert!(message.contains(DRAIN_HOSTS) && message.contains("remove it"), "{message}");
        let own = requested(Some(&set), &node(&[(DRAIN, "wait")]));
        assert!(matches!(own, DrainRequest::Drain(_)), "{own:?}");
    }

    #[test]
    fn the_number_of_migrations_is_inherited_and_may_be_overridden() {
        assert_eq!(of(&[], &[(DRAIN, "migrate")]), migrate(2));
        assert_eq!(of(&[(MAX_MIGRATIONS, "5")], &[(DRAIN, "migrate")]), migrate(5));
        let own = [(DRAIN, "migrate"), (MAX_MIGRATIONS, "1")];
        assert_eq!(of(&[(MAX_MIGRATIONS, "5")], &own), migrate(1));
    }

    #[test]
    fn any_other_value_is_refused_with_the_legal_ones() {
        for value in ["", "true", "Wait", " wait", "evacuate"] {
            let DrainRequest::Invalid(message) = of(&[], &[(DRAIN, value)]) else {
                panic!("{value} is accepted")
            };
            assert!(message.contains("wait or migrate"), "{message}");
        }
        for value in ["", "0", "-1", "101", "two"] {
            let request = of(&[(MAX_MIGRATIONS, value)], &[(DRAIN, "migrate")]);
            let DrainRequest::Invalid(message) = request else { panic!("{value} is accepted") };
            assert!(message.contains("OpenStackDataPlaneRole compute"), "{message}");
        }
    }
}
