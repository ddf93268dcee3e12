//! Whose hosts share audits: those of a role, or the host of a node without a role.

use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, Role};
use kube::{Resource, ResourceExt};
use operator_core::object_key::Key;

/// Separates the kind from the name in the key of a scope; no name of an object has it.
const SEPARATOR: char = '/';

/// The hosts that share audits.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Scope {
    /// Those of the nodes of a role.
    Role(Key),
    /// That of a node without a role.
    Node(Key),
}

impl Scope {
    /// Returns the scope of a node.
    pub fn of_node(node: &Node) -> Self {
        let namespace = node.namespace().unwrap_or_default();
        match &node.spec.role {
            Some(role) => Self::Role(Key::new(namespace, role)),
            None => Self::Node(Key::of(node)),
        }
    }

    /// Returns the scope of an audit, which its owner is; `None` for another run.
    pub fn of_run(run: &AnsibleEe) -> Option<Self> {
        let namespace = run.namespace().unwrap_or_default();
        run.owner_references().iter().find_map(|it| {
            let key = Key::new(&namespace, &it.name);
            if it.kind == Role::kind(&()) {
                Some(Self::Role(key))
            } else {
                (it.kind == Node::kind(&())).then_some(Self::Node(key))
            }
        })
    }

    /// Returns the key in the workqueue.
    pub fn key(&self) -> Key {
        let (kind, key) = match self {
            Self::Role(key) => ("role", key),
            Self::Node(key) => ("node", key),
        };
        Key::new(&key.namespace, format!("{kind}{SEPARATOR}{}", key.name))
    }

    /// Returns the scope of a key in the workqueue; `None` for the key of something else.
    pub fn of_key(key: &Key) -> Option<Self> {
        let (kind, name) = key.name.split_once(SEPARATOR)?;
        let object = Key::new(&key.namespace, name);
        match kind {
            "role" => Some(Self::Role(object)),
            "node" => Some(Self::Node(object)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_and_a_node_of_one_name_are_two_scopes() {
        let (role, node) = (Scope::Role(Key::new("ns", "a")), Scope::Node(Key::new("ns", "a")));
        assert_ne!(role.key(), node.key());
        for scope in [role, node] {
            assert_eq!(Scope::of_key(&scope.key()), Some(scope));
        }
        assert_eq!(Scope::of_key(&Key::new("ns", "a")), None);
    }
}
