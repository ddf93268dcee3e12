//! What a node belongs to: a role or a node set, whose annotations and defaults it has.

pub mod conflicting_service;
pub mod inherited_annotation;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::Condition;
use api::dataplane::{Node, NodeSet, Role};
use api::shared::VolMounts;
use k8s_openapi::api::core::v1::{EnvVar, PodDNSConfig};
use kube::{Resource, ResourceExt};
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host;
use operator_core::object_key::Key;
use operator_core::plan::Target;

/// Separates the kind from the name in the key of a group in a workqueue; no name of an object has it.
const SEPARATOR: char = '/';

/// What a node belongs to.
#[derive(Clone, Debug)]
pub enum Group {
    /// A role.
    Role(Arc<Role>),
    /// A node set.
    NodeSet(Arc<NodeSet>),
}

/// The key of what a node belongs to.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum GroupKey {
    /// That of a role.
    Role(Key),
    /// That of a node set.
    NodeSet(Key),
}

/// Returns the group that a node names, or `None` for a node on its own.
pub fn group_key(node: &Node) -> Option<GroupKey> {
    let key = |name: &str| Key::new(node.namespace().unwrap_or_default(), name);
    match (node.node_set(), node.spec.role.as_deref()) {
        (Some(set), _) => Some(GroupKey::NodeSet(key(set))),
        (None, Some(role)) => Some(GroupKey::Role(key(role))),
        (None, None) => None,
    }
}

impl GroupKey {
    /// Returns the group by kind and name, as messages name it.
    pub fn title(&self) -> String {
        match self {
            Self::Role(key) => format!("{} {}", Role::kind(&()), key.name),
            Self::NodeSet(key) => format!("{} {}", NodeSet::kind(&()), key.name),
        }
    }

    /// Returns the key in a workqueue.
    pub fn work_key(&self) -> Key {
        let (kind, key) = match self {
            Self::Role(key) => ("role", key),
            Self::NodeSet(key) => ("nodeset", key),
        };
        Key::new(&key.namespace, format!("{kind}{SEPARATOR}{}", key.name))
    }

    /// Returns the group of a key in a workqueue; `None` for the key of something else.
    pub fn of_work_key(key: &Key) -> Option<Self> {
        let (kind, name) = key.name.split_once(SEPARATOR)?;
        let key = Key::new(&key.namespace, name);
        match kind {
            "role" => Some(Self::Role(key)),
            "nodeset" => Some(Self::NodeSet(key)),
            _ => None,
        }
    }

    /// Returns the field of a node that names it.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Role(_) => "spec.role",
            Self::NodeSet(_) => "spec.nodeSet",
        }
    }
}

impl Group {
    /// Returns the key of the group.
    pub fn key(&self) -> GroupKey {
        match self {
            Self::Role(role) => GroupKey::Role(Key::of(&**role)),
            Self::NodeSet(set) => GroupKey::NodeSet(Key::of(&**set)),
        }
    }

    /// Returns the object, as what is written about it names it.
    pub fn target(&self) -> Target {
        match self {
            Self::Role(role) => Target::of(&**role),
            Self::NodeSet(set) => Target::of(&**set),
        }
    }

    /// Returns the group by kind and name, as messages name it.
    pub fn title(&self) -> String {
        self.key().title()
    }

    /// Returns the annotations, of which nodes inherit those that say so.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        match self {
            Self::Role(role) => role.annotations(),
            Self::NodeSet(set) => set.annotations(),
        }
    }

    /// Returns the conditions in its status.
    pub fn conditions(&self) -> &[Condition] {
        match self {
            Self::Role(role) => role.conditions(),
            Self::NodeSet(set) => set.conditions(),
        }
    }

    /// Whether it is being deleted.
    pub fn is_terminating(&self) -> bool {
        match self {
            Self::Role(role) => is_terminating(&**role),
            Self::NodeSet(set) => is_terminating(&**set),
        }
    }

    /// Returns the names of the services that are deployed to each of its hosts.
    pub fn services(&self) -> &[String] {
        match self {
            Self::Role(role) => &role.spec.services,
            Self::NodeSet(set) => &set.spec.services,
        }
    }

    /// Returns the environment of the runs on the host of a node.
    pub fn env(&self, node: &Node) -> Vec<EnvVar> {
        match self {
            Self::Role(role) => node.effective_env(Some(role)),
            Self::NodeSet(set) => set.spec.env.clone(),
        }
    }

    /// Returns the mounts of the runs on the host of a node.
    pub fn extra_mounts(&self, node: &Node) -> Vec<VolMounts> {
        match self {
            Self::Role(role) => node.effective_extra_mounts(Some(role)),
            Self::NodeSet(set) => set.spec.node_template.extra_mounts.clone(),
        }
    }

    /// Returns how the runs on its hosts resolve names; `None` for the cluster's way.
    pub fn dns_config(&self) -> Option<PodDNSConfig> {
        match self {
            Self::Role(_) => None,
            Self::NodeSet(set) => node_set_host::dns_config(set),
        }
    }

    /// Returns the role; `None` for a node set.
    pub fn role(&self) -> Option<&Role> {
        match self {
            Self::Role(role) => Some(role),
            Self::NodeSet(_) => None,
        }
    }

    /// Returns the role, for tests that change it.
    #[cfg(test)]
    pub(crate) fn role_mut(&mut self) -> &mut Role {
        match self {
            Self::Role(role) => Arc::make_mut(role),
            Self::NodeSet(_) => panic!("not a role"),
        }
    }
}
