//! Snapshot of everything that the decision on a node set needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::baremetal::BaremetalSet;
use api::dataplane::{Deployment, HostState, Node, NodeDeployment, NodeSet, Service};
use kube::ResourceExt;
use operator_core::certificates::Issued;
use operator_core::data_sources::SourceRef;
use operator_core::keyed::Keys;
use operator_core::plan::Target;
use operator_runtime::source_cache::Content;
use operator_runtime::source_cache::Digests;

use crate::collection::RunnerImage;
use crate::default_services::DefaultServices;
use crate::host::conflicts::Claim;
use crate::host::inventory_metadata::Inventory;
use crate::host::machines::Seen;
use crate::host::networks::Networks;
use crate::host::vars::Objects;
use crate::node_set::certificate_bundles::Bundles;
use crate::node_set::ipam::Infra;
use crate::node_set::observed_nodes::SetNodes;

/// Plain copies of everything that was observed.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The node set.
    pub set: Arc<NodeSet>,
    /// Its namespace.
    pub namespace: String,
    /// The services that it lists, as far as they exist.
    pub services: BTreeMap<String, Arc<Service>>,
    /// The content of the default services.
    pub defaults: DefaultServices,
    /// Services that cannot be parsed, with the field and the reason: listed services, those that
    /// its deployments bring, and those that provide certificates.
    pub unreadable: BTreeMap<String, String>,
    /// What is known of the runner image.
    pub runner: RunnerImage,
    /// Digests of the ConfigMaps and Secrets that are referred to and exist.
    pub sources: BTreeMap<SourceRef, Digests>,
    /// Content of the objects named in `ansibleVarsFrom`, as far as they exist.
    pub objects: Objects,
    /// The network attachments that exist.
    pub networks: Networks,
    /// The deployments that name it.
    pub deployments: Vec<Arc<Deployment>>,
    /// Deployments that cannot be parsed and, by the node set's own status or by its nodes, are its.
    pub unreadable_deployments: Vec<UnreadableDeployment>,
    /// The nodes of its hosts.
    pub nodes: SetNodes,
    /// Runs that reported the host key of one of its hosts.
    pub runs: Vec<Arc<AnsibleEe>>,
    /// The runs that look for guests on hosts whose machines are to be given back.
    pub looks: Vec<Arc<AnsibleEe>>,
    /// The claims of all objects that may describe one of its hosts, including its own.
    pub neighbours: Vec<Claim>,
    /// Metadata of its inventory Secret, if that exists.
    pub inventory: Option<Inventory>,
    /// The services that only deployments bring, as far as they exist.
    pub brought: BTreeMap<String, Arc<Service>>,
    /// For services that define no certificates: the service whose certificates they use.
    pub certificate_sources: BTreeMap<String, Arc<Service>>,
    /// What was observed of the operator that manages addresses and names.
    pub infra: Infra,
    /// What was observed of cert-manager.
    pub issued: Issued,
    /// The Secrets with the certificates of all its hosts.
    pub bundles: Bundles,
    /// What was observed of the baremetal sets.
    pub machines: Seen,
    /// Whether its namespace is being deleted, looked up only when the node set is as well and a
    /// host has a node or a machine.
    pub is_namespace_terminating: bool,
    /// The content of the inventory Secret, read only while a deployment is under way or a host
    /// leaves.
    pub written: Option<Content>,
    /// The keys for digests of Secret content.
    pub keys: Keys,
}

impl Observed {
    /// Returns whether a deployment is under way, so that neither the inventory nor anything else that
    /// runs use may change. One that cannot be parsed goes on.
    pub fn is_in_use(&self) -> bool {
        self.deployments.iter().any(|it| self.is_under_way(it))
            || self.unreadable_deployments.iter().any(|it| !it.has_ended)
    }

    /// Returns whether a deployment has begun with the node set, and may still run something, or has
    /// not ended on all hosts as these were observed. One that only awaits readiness gates has.
    pub fn is_under_way(&self, deployment: &Deployment) -> bool {
        let uid = deployment.uid().unwrap_or_default();
        let is_settled = || {
            let status = self.set.status.as_ref();
            status.is_some_and(|it| it.settled_deployments.contains(&uid))
        };
        let is_at = |it: &Arc<Node>| deployment_at(it).is_some_and(|it| it.uid == uid);
        deployment.part_of(&self.set).is_some()
            && !is_settled()
            && (!deployment.has_run() || self.nodes.own.values().any(is_at))
    }
}

/// Returns the deployment that is at the host of a node.
pub fn deployment_at(node: &Node) -> Option<&NodeDeployment> {
    let last = node.status.as_ref()?.deployment.as_ref();
    last.filter(|it| it.state == HostState::Deploying)
}

/// A deployment that cannot be parsed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnreadableDeployment {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// The field that cannot be parsed, and why.
    pub why: String,
    /// Whether it had ended when it was last readable.
    pub has_ended: bool,
}

/// Returns the baremetal set, if it exists and was created for the node set.
pub fn own_set(seen: &Observed) -> Option<&Arc<BaremetalSet>> {
    seen.machines.set_of(&Target::of(&*seen.set))
}
