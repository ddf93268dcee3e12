//! Plain copies of what the decision on a group needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{DataPlane, Node, Role, Service};
use api::rollout_limits::Limits;
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_core::object_key::Key;
use operator_core::plan::Target;
use operator_runtime::source_cache::Digests;

use crate::attachments::Networks;
use crate::baremetal_request::Seen;
use crate::effective_spec::role_strategy;
use crate::host_conflicts::Claim;
use crate::role::inventory::Inventory;
use crate::vars::Objects;

/// Which hosts are decided together.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum NodeGroup {
    /// The nodes that name this role.
    Role(String),
    /// A node that names no role.
    Node(String),
}

impl NodeGroup {
    /// The group that a node belongs to.
    pub fn of(node: &Node) -> Self {
        match node.spec.role.clone().filter(|it| !it.is_empty()) {
            Some(role) => Self::Role(role),
            None => Self::Node(node.name_any()),
        }
    }

    /// The queue's key of the group: no object's name has a slash.
    pub fn key(&self, namespace: &str) -> Key {
        match self {
            Self::Role(name) => Key::new(namespace, format!("role/{name}")),
            Self::Node(name) => Key::new(namespace, format!("node/{name}")),
        }
    }

    /// The group of a key of the queue; others' keys have none.
    pub fn parse(key: &Key) -> Option<Self> {
        match key.name.split_once('/')? {
            ("role", name) => Some(Self::Role(name.to_owned())),
            ("node", name) => Some(Self::Node(name.to_owned())),
            _ => None,
        }
    }
}

/// Plain copies of everything that was seen.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Which hosts these are.
    pub group: NodeGroup,
    /// Their namespace.
    pub namespace: String,
    /// The role, where it exists.
    pub role: Option<Arc<Role>>,
    /// The data plane that the role names, where it exists.
    pub data_plane: Option<Arc<DataPlane>>,
    /// The nodes, by name.
    pub nodes: Vec<Arc<Node>>,
    /// The listed services, where they exist.
    pub services: BTreeMap<String, Arc<Service>>,
    /// Those of them that cannot be read: the field, and why.
    pub unreadable: BTreeMap<String, String>,
    /// ConfigMaps and Secrets that are referred to, where they exist.
    pub sources: BTreeMap<SourceRef, Digests>,
    /// Content of what lists of `ansibleVarsFrom` name, where it exists.
    pub objects: Objects,
    /// Which network attachments exist.
    pub networks: Networks,
    /// The runs that the role owns, or the node without a role.
    pub runs: Vec<Arc<AnsibleEe>>,
    /// Runs of other owners that were told the key of one of the hosts.
    pub others: Vec<Arc<AnsibleEe>>,
    /// What all objects that describe one of the hosts say of it.
    pub claims: Vec<Claim>,
    /// What was seen of machines.
    pub machines: Seen,
    /// Nodes of other groups whose hosts the group's machines have.
    pub movers: Vec<Arc<Node>>,
    /// What stands on each inventory object that exists.
    pub inventories: BTreeMap<String, Inventory>,
    /// What stands on each Secret beside an inventory that exists, by the inventory's name.
    pub inventory_secrets: BTreeMap<String, Inventory>,
}

impl Observed {
    /// The services in order: the role's, or those of a node that names no role.
    pub fn listed(&self) -> &[String] {
        listed(&self.group, self.role.as_deref(), &self.nodes)
    }

    /// Whoever owns the runs; nobody where no services are listed by anything that exists.
    pub fn parent(&self) -> Option<Target> {
        match (&self.group, &self.role) {
            (NodeGroup::Role(_), role) => role.as_ref().map(|it| Target::of(&**it)),
            (NodeGroup::Node(_), _) if self.listed().is_empty() => None,
            (NodeGroup::Node(_), _) => self.nodes.first().map(|it| Target::of(&**it)),
        }
    }

    /// What is allowed of a rollout over the group.
    pub fn limits(&self) -> Limits {
        role_strategy(self.data_plane.as_deref(), self.role.as_deref()).limits()
    }
}

/// The services of a group: the role's, or the node's.
pub fn listed<'a>(
    group: &NodeGroup,
    role: Option<&'a Role>,
    nodes: &'a [Arc<Node>],
) -> &'a [String] {
    match group {
        NodeGroup::Role(_) => role.map(|it| it.spec.services.as_slice()).unwrap_or_default(),
        NodeGroup::Node(_) => {
            nodes.first().map(|it| it.spec.services.as_slice()).unwrap_or_default()
        }
    }
}

/// The name of the data plane that a role names.
pub fn data_plane_of(role: &Role) -> Option<&str> {
    role.spec.data_plane.as_deref().filter(|it| !it.is_empty())
}
