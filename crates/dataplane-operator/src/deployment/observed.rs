//! Plain copies of what the decision on a deployment needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Deployment, NodeSet, Service};
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_runtime::source_cache::Digests;

use crate::attachments::Networks;
use crate::default_services;

/// What a service of a user's own trusts where it names nothing; upstream's default.
pub const CA_BUNDLE: &str = "combined-ca-bundle";

/// Plain copies of everything that was seen.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The deployment.
    pub deployment: Arc<Deployment>,
    /// Its namespace.
    pub namespace: String,
    /// The node sets that it names, where they exist.
    pub node_sets: BTreeMap<String, Arc<NodeSet>>,
    /// Those of them that exist and cannot be read: the field, and why.
    pub unreadable_sets: BTreeMap<String, String>,
    /// The services that may be deployed, and those whose certificates they use, where they exist.
    pub services: BTreeMap<String, Arc<Service>>,
    /// Those of them that cannot be read: the field, and why.
    pub unreadable: BTreeMap<String, String>,
    /// ConfigMaps and Secrets that are referred to, where they exist.
    pub sources: BTreeMap<SourceRef, Digests>,
    /// The node sets whose inventory exists.
    pub inventories: BTreeSet<String>,
    /// Which network attachments exist.
    pub networks: Networks,
    /// The runs that the deployment owns.
    pub runs: Vec<Arc<AnsibleEe>>,
    /// Node set → its hosts that other deployments have begun and not finished.
    pub others: BTreeMap<String, BTreeMap<String, Begun>>,
}

impl Observed {
    /// The node sets in the deployment's order, each once.
    pub fn named(&self) -> Vec<&str> {
        named(&self.deployment)
    }

    /// The services that a node set is to get, before duplicates are left out.
    pub fn listed(&self, node_set: &str) -> &[String] {
        listed(&self.deployment, self.node_sets.get(node_set).map(|it| &**it))
    }
}

/// The node sets that a deployment names, each once.
pub fn named(deployment: &Deployment) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let names = deployment.spec.node_sets.iter().map(String::as_str);
    names.filter(|it| seen.insert(*it)).collect()
}

/// The services that a node set gets by a deployment: its own list, or the deployment's.
pub fn listed<'a>(deployment: &'a Deployment, node_set: Option<&'a NodeSet>) -> &'a [String] {
    match deployment.spec.services_override.as_slice() {
        [] => node_set.map(|it| it.spec.services.as_slice()).unwrap_or_default(),
        names => names,
    }
}

/// The Secret with the CA bundle of a service, and whether its runs wait for it: for one that nobody
/// named they do not. The default services name theirs.
pub fn ca_bundle(service: &Service) -> Option<(&str, bool)> {
    if let Some(name) = service.spec.ca_certs.as_deref() {
        return (!name.is_empty()).then_some((name, true));
    }
    let is_default = default_services::find(&service.name_any()).is_some();
    (!is_default).then_some((CA_BUNDLE, false))
}

/// What another deployment does on a host that it has begun; of several deployments the last one counts.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum OwnProgress {
    /// It has failed there for good.
    GivenUp,
    /// It has failed there, and tries again.
    Failing,
    /// It goes on there with the next service.
    GoingOn,
    /// It has a run there.
    InRun,
}

/// A host that another deployment has begun and not finished.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Begun {
    /// The deployment, by name.
    pub deployment: String,
    /// What it does there.
    pub doing: OwnProgress,
    /// Whether it is older than this deployment. Of two that have come to rest because of each other's
    /// failures the older one ends.
    pub is_older: bool,
}
