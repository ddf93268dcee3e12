//! The instance of a host: the last redeploy values of its role and itself, and the installation on
//! its machine.

use api::dataplane::node::REDEPLOY;
use api::dataplane::{Node, Role};
use kube::ResourceExt;
use operator_core::hash;

/// Returns the redeploy values that are in force; `None` when there never was one.
///
/// A value stays in force when its annotation is removed: removing it must not deploy anything
/// again.
pub fn redeploy_values(role: Option<&Role>, node: &Node) -> Option<String> {
    let recorded = node.status.as_ref().and_then(|it| it.host_instance.clone());
    let part = |letter: char, given: Option<&String>| {
        given.map(|it| format!("{letter}{}", hash::short(it))).or_else(|| {
            let parts = recorded.as_deref().unwrap_or_default().split('.');
            parts.filter(|it| it.starts_with(letter)).map(str::to_owned).next()
        })
    };
    let of_role = part('r', role.and_then(|it| it.annotations().get(REDEPLOY)));
    let of_node = part('n', node.annotations().get(REDEPLOY));
    let parts: Vec<String> = of_role.into_iter().chain(of_node).collect();
    (!parts.is_empty()).then(|| parts.join("."))
}

/// Returns the published instance of the host: the redeploy values and the installation.
pub fn published(redeploy: Option<&str>, installation: Option<&str>) -> Option<String> {
    let installation = installation.map(|it| format!("p{it}"));
    let parts = redeploy.map(str::to_owned).into_iter().chain(installation);
    parts.reduce(|a, b| format!("{a}.{b}"))
}

/// Returns the command with which the user requests another attempt on one host.
pub fn redeploy_command(node: &Node) -> String {
    format!(
        "kubectl annotate --overwrite -n {} openstackdataplanenode/{} {REDEPLOY}=\"$(date +%s)\"",
        node.namespace().unwrap_or_default(),
        node.name_any()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
