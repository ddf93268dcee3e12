//! Which instance of a host this is: the redeploy values that its role and itself were last given, and
//! the installation on its machine.

use api::dataplane::node::REDEPLOY;
use api::dataplane::{Node, Role};
use kube::ResourceExt;
use operator_core::hash;

/// The values of redeployment that are in force.
///
/// A value that was given once stays in force when the annotation goes: removing it must not deploy
/// anything again.
pub fn of(role: Option<&Role>, node: &Node) -> Option<String> {
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

/// The host's instance, as others follow it: what was asked of it, and what is installed on it.
pub fn published(redeploy: Option<&str>, installation: Option<&str>) -> Option<String> {
    let installation = installation.map(|it| format!("p{it}"));
    let parts = redeploy.map(str::to_owned).into_iter().chain(installation);
    parts.reduce(|a, b| format!("{a}.{b}"))
}

/// The command that asks for another attempt on one host.
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
        let given = of(None, &node(Some("1"), None));
        assert!(given.is_some());
        assert_eq!(of(None, &node(None, given.as_deref())), given);
    }

    #[test]
    fn an_installation_is_part_of_the_instance_and_none_of_what_was_asked() {
        let given = of(None, &node(Some("1"), None));
        let whole = published(given.as_deref(), Some("abc"));
        assert_eq!(whole, given.as_ref().map(|it| format!("{it}.pabc")));
        assert_eq!(of(None, &node(None, whole.as_deref())), given);
        assert_eq!(published(None, Some("abc")).as_deref(), Some("pabc"));
        assert_eq!(of(None, &node(None, Some("pabc"))), None);
        assert_eq!(published(given.as_deref(), None), given);
    }

    #[test]
    fn a_new_value_is_another_instance() {
        let first = of(None, &node(Some("1"), None));
        assert_ne!(of(None, &node(Some("2"), first.as_deref())), first);
        assert_eq!(of(None, &node(None, None)), None);
    }
}
