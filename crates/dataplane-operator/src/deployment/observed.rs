//! The observed objects on which the evaluation of a deployment depends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Deployment, Node, NodeSet, Service};
use operator_core::data_sources::SourceRef;
use operator_runtime::source_cache::Digests;

use crate::default_services::DefaultServices;
use crate::host::networks::Networks;

/// All observed objects of a deployment.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The deployment.
    pub deployment: Arc<Deployment>,
    /// The namespace of the deployment.
    pub namespace: String,
    /// The node sets that it names, if they exist.
    pub node_sets: BTreeMap<String, Arc<NodeSet>>,
    /// Those of them that exist but cannot be parsed: which field, and why.
    pub unreadable_sets: BTreeMap<String, String>,
    /// The existing services that may be deployed, and those whose certificates they use.
    pub services: BTreeMap<String, Arc<Service>>,
    /// The content of the default services.
    pub defaults: DefaultServices,
    /// Those of them that cannot be parsed: which field, and why.
    pub unreadable: BTreeMap<String, String>,
    /// The existing ConfigMaps and Secrets that are referred to.
    pub sources: BTreeMap<SourceRef, Digests>,
    /// The node sets whose inventory exists.
    pub inventories: BTreeSet<String>,
    /// The network attachments of the namespace.
    pub networks: Networks,
    /// The runs that the deployment owns.
    pub runs: Vec<Arc<AnsibleEe>>,
    /// Node set → the nodes that name it, by the names of their hosts in the inventory.
    pub nodes: BTreeMap<String, BTreeMap<String, Arc<Node>>>,
    /// The other deployments of its node sets that have not ended, each once.
    pub others: Vec<Arc<Deployment>>,
}

impl Observed {
    /// Returns the node sets in the deployment's order, each once.
    pub fn named(&self) -> Vec<&str> {
        named(&self.deployment)
    }

    /// Returns the services of a node set, before duplicates are removed.
    pub fn listed(&self, node_set: &str) -> &[String] {
        listed(&self.deployment, self.node_sets.get(node_set).map(|it| &**it))
    }

    /// Returns the node of a host; `None` where it has none that names the node set.
    pub fn node(&self, node_set: &str, host: &str) -> Option<&Node> {
        self.nodes.get(node_set)?.get(host).map(|it| &**it)
    }
}

/// Returns the node sets that a deployment names, each once.
pub fn named(deployment: &Deployment) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let names = deployment.spec.node_sets.iter().map(String::as_str);
    names.filter(|it| seen.insert(*it)).collect()
}

/// Returns the services that a node set gets from a deployment: the deployment's list if it has
/// one, else the node set's own.
pub fn listed<'a>(deployment: &'a Deployment, node_set: Option<&'a NodeSet>) -> &'a [String] {
    match deployment.spec.services_override.as_slice() {
        [] => node_set.map(|it| it.spec.services.as_slice()).unwrap_or_default(),
        names => names,
    }
}
