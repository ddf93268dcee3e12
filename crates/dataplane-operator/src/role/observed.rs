//! The observed objects on which the evaluation of a group depends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{DataPlane, Node, Role, Service};
use api::rollout_limits::Limits;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource as _, ResourceExt};
use operator_core::certificates::Issued;
use operator_core::data_sources::SourceRef;
use operator_core::object_key::Key;
use operator_core::plan::Target;
use operator_runtime::source_cache::Digests;

use crate::collection::RunnerImage;
use crate::default_services::DefaultServices;
use crate::host::conflicts::Claim;
use crate::host::effective_spec::{EffectiveSpec, role_strategy};
use crate::host::inventory_metadata::Inventory;
use crate::host::machines::Seen;
use crate::host::networks::Networks;
use crate::host::vars::{Objects, named};
use crate::role::memory::Recalled;

/// The hosts that are evaluated together.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum NodeGroup {
    /// The nodes that name this role.
    Role(String),
    /// A node that names no role.
    Node(String),
}

impl NodeGroup {
    /// Returns the group to which a node belongs; `None` for a node of a node set, whose deployments
    /// are its own.
    pub fn of(node: &Node) -> Option<Self> {
        if node.node_set().is_some() {
            return None;
        }
        Some(match node.spec.role.clone().filter(|it| !it.is_empty()) {
            Some(role) => Self::Role(role),
            None => Self::Node(node.name_any()),
        })
    }

    /// Returns the workqueue key of the group; it has a slash, so it equals no object's name.
    pub fn key(&self, namespace: &str) -> Key {
        match self {
            Self::Role(name) => Key::new(namespace, format!("role/{name}")),
            Self::Node(name) => Key::new(namespace, format!("node/{name}")),
        }
    }

    /// Parses a workqueue key; `None` when it is not one of a group.
    pub fn parse(key: &Key) -> Option<Self> {
        match key.name.split_once('/')? {
            ("role", name) => Some(Self::Role(name.to_owned())),
            ("node", name) => Some(Self::Node(name.to_owned())),
            _ => None,
        }
    }
}

/// All observed objects of a group.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The group.
    pub group: NodeGroup,
    /// The namespace of the group.
    pub namespace: String,
    /// The role, if it exists.
    pub role: Option<Arc<Role>>,
    /// The data plane that the role names, if it exists.
    pub data_plane: Option<Arc<DataPlane>>,
    /// The nodes, sorted by name.
    pub nodes: Vec<Arc<Node>>,
    /// The listed services that exist.
    pub services: BTreeMap<String, Arc<Service>>,
    /// For services that define no certificates: the service whose certificates they use.
    pub certificate_sources: BTreeMap<String, Arc<Service>>,
    /// The content of the default services.
    pub defaults: DefaultServices,
    /// The listed services that cannot be parsed: which field, and why.
    pub unreadable: BTreeMap<String, String>,
    /// What is known of the runner image.
    pub runner: RunnerImage,
    /// The existing ConfigMaps and Secrets that are referred to.
    pub sources: BTreeMap<SourceRef, Digests>,
    /// The content of the existing objects that lists of `ansibleVarsFrom` name.
    pub objects: Objects,
    /// The network attachments of the namespace.
    pub networks: Networks,
    /// The runs that the role owns, or the node without a role.
    pub runs: Vec<Arc<AnsibleEe>>,
    /// The runs that look for guests on hosts whose machines are to be given back.
    pub looks: Vec<Arc<AnsibleEe>>,
    /// Whether the namespace is being deleted, if the machine of a node is to be given back.
    pub is_namespace_terminating: bool,
    /// Runs of other owners to which one of the hosts presented its ssh host key.
    pub others: Vec<Arc<AnsibleEe>>,
    /// The claims of all objects that describe one of the hosts.
    pub claims: Vec<Claim>,
    /// The observed sets of machines.
    pub machines: Seen,
    /// What was observed of cert-manager, if hosts get certificates or have some.
    pub issued: Issued,
    /// Nodes of other groups for whose hosts the group's set has machines.
    pub migrating_nodes: Vec<Arc<Node>>,
    /// The metadata of each inventory object that exists.
    pub inventories: BTreeMap<String, Inventory>,
    /// The metadata of each existing Secret beside an inventory, by the inventory's name.
    pub inventory_secrets: BTreeMap<String, Inventory>,
    /// What earlier passes found of the hosts; what concerns a known host alone was not read.
    pub recalled: Recalled,
}

impl Observed {
    /// Returns the services in order: the role's, or those of a node that names no role.
    pub fn listed(&self) -> &[String] {
        listed(&self.group, self.role.as_deref(), &self.nodes)
    }

    /// Returns the owner of the runs; `None` when no existing object lists services.
    pub fn parent(&self) -> Option<Target> {
        let is_alone = matches!(self.group, NodeGroup::Node(_));
        let (owner, _) = self.owner().filter(|_| !is_alone || !self.listed().is_empty())?;
        Some(owner)
    }

    /// Returns the role, or the node without one; `None` when it does not exist.
    pub fn owner(&self) -> Option<(Target, &ObjectMeta)> {
        match &self.group {
            NodeGroup::Role(_) => self.role.as_ref().map(|it| (Target::of(&**it), it.meta())),
            NodeGroup::Node(_) => self.nodes.first().map(|it| (Target::of(&**it), it.meta())),
        }
    }

    /// Returns the effective spec of a node of the group.
    pub fn effective(&self, node: &Node) -> EffectiveSpec {
        EffectiveSpec::of(self.data_plane.as_deref(), self.role.as_deref(), node, &self.objects)
    }

    /// Returns whether a run has not ended, which may still mount what it was created with.
    pub fn has_open_run(&self) -> bool {
        let is_open =
            |it: &AnsibleEe| it.status.as_ref().is_none_or(|it| it.completion_time.is_none());
        self.runs.iter().any(|it| is_open(it))
    }

    /// Returns the rollout limits of the group.
    pub fn limits(&self) -> Limits {
        role_strategy(self.data_plane.as_deref(), self.role.as_deref()).limits()
    }

    /// Returns the most hosts that share a run.
    pub fn batch_size(&self) -> usize {
        role_strategy(self.data_plane.as_deref(), self.role.as_deref()).batch_size()
    }
}

/// Returns the ssh Secret that a role names for its nodes.
pub fn own_ssh_secret(role: &Role) -> Option<&str> {
    role.spec.node_template.as_ref()?.ansible_ssh_private_key_secret.as_deref()
}

/// Returns the services of a group: the role's, or the node's.
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

/// Returns the objects that lists of `ansibleVarsFrom` of a role and nodes name.
pub fn sources_of_vars(
    namespace: &str,
    role: Option<&Role>,
    nodes: &[Arc<Node>],
) -> BTreeSet<SourceRef> {
    let template = role.and_then(|it| it.spec.node_template.as_ref());
    let own = nodes.iter().filter_map(|it| it.spec.node.as_ref());
    let lists = template.into_iter().chain(own).map(|it| it.ansible_vars_from.as_slice());
    lists.flat_map(named).map(|it| it.source(namespace)).collect()
}
