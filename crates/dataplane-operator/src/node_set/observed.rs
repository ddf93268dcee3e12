//! Snapshot of everything that the decision on a node set needs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::ansibleee::AnsibleEe;
use api::baremetal::BaremetalSet;
use api::dataplane::{Deployment, NodeSet, Service};
use operator_core::certificates::Issued;
use operator_core::data_sources::{NamedSource, SourceRef};
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
use crate::host::vars::{Objects, named};
use crate::node_set::certificates::Bundles;
use crate::node_set::ipam::Infra;
use crate::node_set::nodes::observed::SetNodes;

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
    /// Deployments that cannot be parsed and, by the node set's own status, are or may be its.
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

/// Returns the objects named in `ansibleVarsFrom`.
pub fn sources_of_vars(set: &NodeSet) -> Vec<NamedSource> {
    let template = set.spec.node_template.ansible.as_ref();
    let own = set.spec.nodes.values().filter_map(|it| it.ansible.as_ref());
    let lists = template.into_iter().chain(own).map(|it| it.ansible_vars_from.as_slice());
    lists.flat_map(named).collect()
}

/// Requeue interval while CRDs that a node set would use are missing: no watch reports their
/// arrival.
pub const CRD_POLL_INTERVAL: Duration = Duration::from_mins(1);
