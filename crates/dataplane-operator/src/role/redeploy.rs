//! The instance of a host: the last redeploy values of its role and itself, those that operators of
//! services have requested, and the installation on its machine.

use std::collections::BTreeSet;

use api::conditions::{Condition, ConditionStatus};
use api::dataplane::node::{REDEPLOY, REDEPLOY_REQUESTED};
use api::dataplane::{Node, Role};
use kube::ResourceExt;
use operator_core::hash;
use operator_core::run_engine::retry;

/// How many conditions of a node may request redeploys; of more the first ones count, by type.
const MAX_REQUESTS: usize = 8;
/// The first letter of the part of such a condition.
const REQUEST: char = 'q';

/// Returns the redeploy values that are in force; `None` when there never was one.
///
/// A value stays in force when its annotation or its condition is removed: removing it must not
/// deploy anything again.
pub fn redeploy_values(role: Option<&Role>, node: &Node) -> Option<String> {
    let recorded = node.status.as_ref().and_then(|it| it.host_instance.as_deref());
    let recorded = || recorded.unwrap_or_default().split('.');
    let part = |letter: char, given: Option<&String>| {
        given
            .map(|it| format!("{letter}{}", hash::short(it)))
            .or_else(|| recorded().filter(|it| it.starts_with(letter)).map(str::to_owned).next())
    };
    let of_role = part('r', role.and_then(|it| it.annotations().get(REDEPLOY)));
    let of_node = part('n', node.annotations().get(REDEPLOY));
    let served = recorded().filter(|it| it.starts_with(REQUEST)).map(str::to_owned).collect();
    let parts: Vec<String> =
        of_role.into_iter().chain(of_node).chain(in_force(requests(node), served)).collect();
    (!parts.is_empty()).then(|| parts.join("."))
}

/// Returns the requests that are in force: those of the last deployment while each of the present
/// ones is among them.
///
/// Only with a new one those that are gone are forgotten, because then a deployment follows anyway.
fn in_force(present: BTreeSet<String>, served: BTreeSet<String>) -> BTreeSet<String> {
    if present.is_subset(&served) { served } else { present }
}

/// Returns the parts of the conditions that request a redeploy of a node. Their texts are another
/// operator's, of any length, and only their hashes are used.
fn requests(node: &Node) -> BTreeSet<String> {
    let mut found: Vec<&Condition> = node.conditions().iter().filter(|it| is_request(it)).collect();
    found.sort_by_key(|it| &it.type_);
    let value = |it: &Condition| hash::short(&(&it.type_, &it.reason, &it.message));
    found.iter().take(MAX_REQUESTS).map(|it| format!("{REQUEST}{}", value(it))).collect()
}

fn is_request(condition: &Condition) -> bool {
    let prefix = condition.type_.strip_suffix(REDEPLOY_REQUESTED);
    condition.status == ConditionStatus::True && prefix.is_some_and(|it| !it.is_empty())
}

/// Returns the published instance of the host: the redeploy values and the installation.
pub fn published(redeploy: Option<&str>, installation: Option<&str>) -> Option<String> {
    let installation = installation.map(|it| format!("p{it}"));
    let parts = redeploy.map(str::to_owned).into_iter().chain(installation);
    parts.reduce(|a, b| format!("{a}.{b}"))
}

/// Returns the command with which the user requests another attempt on one host.
pub fn redeploy_command(node: &Node) -> String {
    retry::redeploy_command(&node.namespace().unwrap_or_default(), &node.name_any())
}

#[cfg(test)]
mod tests {
    use testkit::conditions::stated;

    use super::*;

    /// A node whose conditions have these types, statuses and messages.
    fn with_conditions(conditions: &[(&str, &str, &str)], recorded: Option<&str>) -> Node {
        let all = conditions.iter().map(|it| stated(it.0, it.1, "Why", it.2)).collect();
        let mut node = node(None, recorded);
        node.status.as_mut().unwrap().conditions = all;
        node
    }

    fn requested(conditions: &[(&str, &str, &str)], recorded: Option<&str>) -> Option<String> {
        redeploy_values(None, &with_conditions(conditions, recorded))
    }

    fn node(annotation: Option<&str>, recorded: Option<&str>) -> Node {
        let mut node = Node::new("n", api::dataplane::NodeSpec::default());
        if let Some(value) = annotation {
            node.annotations_mut().insert(REDEPLOY.into(), value.into());
        }
        node.status = Some(api::dataplane::NodeStatus {
            host_instance: recorded.map(str::to_owned),
            ..Default::default()
        });
        node
    }

    #[test]
    fn a_value_stays_in_force_when_its_annotation_goes() {
        let given = redeploy_values(None, &node(Some("1"), None));
        assert!(given.is_some());
        assert_eq!(redeploy_values(None, &node(None, given.as_deref())), given);
    }

    #[test]
    fn values_are_recorded_as_earlier_releases_recorded_them() {
        let mut role = Role::new("compute", api::dataplane::RoleSpec::default());
        role.annotations_mut().insert(REDEPLOY.into(), "1".into());
        let recorded = "r391552c099.n266aa58860.pabc";
        for node in [node(Some("7"), None), node(None, Some(recorded))] {
            let values = redeploy_values(Some(&role), &node);
            assert_eq!(published(values.as_deref(), Some("abc")).as_deref(), Some(recorded));
        }
    }

    #[test]
    fn an_installation_is_part_of_the_instance_and_none_of_what_was_asked() {
        let given = redeploy_values(None, &node(Some("1"), None));
        let whole = published(given.as_deref(), Some("abc"));
        assert_eq!(whole, given.as_ref().map(|it| format!("{it}.pabc")));
        assert_eq!(redeploy_values(None, &node(None, whole.as_deref())), given);
        assert_eq!(published(None, Some("abc")).as_deref(), Some("pabc"));
        assert_eq!(redeploy_values(None, &node(None, Some("pabc"))), None);
        assert_eq!(published(given.as_deref(), None), given);
    }

    #[test]
    fn a_new_value_is_another_instance() {
        let first = redeploy_values(None, &node(Some("1"), None));
        assert_ne!(redeploy_values(None, &node(Some("2"), first.as_deref())), first);
        assert_eq!(redeploy_values(None, &node(None, None)), None);
    }

    const A: &str = "a.example.org/RedeployRequested";
    const B: &str = "b.example.org/RedeployRequested";

    #[test]
    fn a_request_is_another_instance_for_each_value_and_stays_in_force_when_it_goes() {
        let first = requested(&[(A, "True", "1")], None);
        assert!(first.is_some());
        for gone in [&[][..], &[(A, "False", "1")], &[(A, "Unknown", "2")]] {
            assert_eq!(requested(gone, first.as_deref()), first, "{gone:?}");
        }
        assert_eq!(requested(&[(A, "True", "1")], first.as_deref()), first);
        let second = requested(&[(A, "True", "2")], first.as_deref());
        assert_ne!(second, first);
        let of_annotation = redeploy_values(None, &node(Some("1"), second.as_deref())).unwrap();
        assert!(of_annotation.ends_with(&format!(".{}", second.unwrap())), "{of_annotation}");
    }

    #[test]
    fn one_operators_request_is_not_served_again_because_anothers_goes() {
        let both = requested(&[(B, "True", "1"), (A, "True", "1")], None);
        assert_eq!(requested(&[(A, "True", "1")], both.as_deref()), both);
        assert_eq!(requested(&[(A, "True", "1"), (B, "True", "1")], both.as_deref()), both);
        let alone = requested(&[(A, "True", "2")], both.as_deref());
        assert_eq!(alone, requested(&[(A, "True", "2")], None), "what is gone is forgotten then");
    }

    #[test]
    fn any_other_condition_requests_nothing() {
        for type_ in ["RedeployRequested", "/RedeployRequested", "a.example.org/Redeploy", "Ready"]
        {
            assert_eq!(requested(&[(type_, "True", "1")], None), None, "{type_}");
            let recorded = Some("n0123456789.pabc");
            let kept = Some("n0123456789".to_owned());
            assert_eq!(requested(&[(type_, "True", "1")], recorded), kept, "{type_}");
        }
    }

    #[test]
    fn requests_of_any_length_and_number_are_an_instance_of_bounded_length() {
        let long = "x".repeat(1_000_000);
        let types: Vec<String> =
            (0..1000).map(|it| format!("{it:04}.example.org{REDEPLOY_REQUESTED}")).collect();
        let all: Vec<_> = types.iter().map(|it| (it.as_str(), "True", "1")).collect();
        let many = requested(&all, None).unwrap();
        assert!(many.len() < 100, "{many}");
        assert_eq!(requested(&all[..MAX_REQUESTS], None).as_ref(), Some(&many));
        assert!(requested(&[(A, "True", &long)], None).unwrap().len() < 20);
    }
}
