//! Plain copies of what the decision on a node set needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::baremetal::BaremetalSet;
use api::dataplane::{Deployment, NodeSet, Service};
use operator_core::data_sources::SourceRef;
use operator_core::keyed::Keys;
use operator_core::plan::Target;
use operator_runtime::source_cache::Digests;
use operator_runtime::source_contents::Content;

use crate::attachments::Networks;
use crate::baremetal_request::{Seen, set};
use crate::host_conflicts::Claim;
use crate::node_set::certificates::Issued;
use crate::node_set::ipam::Infra;
use crate::role::inventory::Inventory;
use crate::vars::Objects;

/// Plain copies of everything that was seen.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The node set.
    pub set: Arc<NodeSet>,
    /// Its namespace.
    pub namespace: String,
    /// The services that it lists, where they exist.
    pub services: BTreeMap<String, Arc<Service>>,
    /// Services that it lists, that its deployments bring or that lend certificates, and that cannot
    /// be read: the field, and why.
    pub unreadable: BTreeMap<String, String>,
    /// ConfigMaps and Secrets that are referred to, where they exist.
    pub sources: BTreeMap<SourceRef, Digests>,
    /// Content of what lists of `ansibleVarsFrom` name, where it exists.
    pub objects: Objects,
    /// Which network attachments exist.
    pub networks: Networks,
    /// The deployments that name it.
    pub deployments: Vec<Arc<Deployment>>,
    /// Those that cannot be read, as far as its own status tells that they are or may be its.
    pub unreadable_deployments: Vec<UnreadableDeployment>,
    /// Runs that were told the key of one of its hosts.
    pub runs: Vec<Arc<AnsibleEe>>,
    /// What all objects say that may describe one of its hosts; its own is among them.
    pub neighbours: Vec<Claim>,
    /// What stands on its inventory Secret, where it exists.
    pub inventory: Option<Inventory>,
    /// The services that only deployments bring, where they exist.
    pub brought: BTreeMap<String, Arc<Service>>,
    /// The services whose certificates others use that name none, by the other one.
    pub certificate_sources: BTreeMap<String, Arc<Service>>,
    /// What was seen of who manages addresses and names.
    pub infra: Infra,
    /// What was seen of who issues certificates.
    pub issued: Issued,
    /// What was seen of machines.
    pub machines: Seen,
    /// The content of that Secret, read only while a deployment is under way.
    pub written: Option<Content>,
    /// The keys for digests of what Secrets hold.
    pub keys: Keys,
}

/// A deployment that cannot be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnreadableDeployment {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Which field cannot be read, and why.
    pub why: String,
    /// Whether it had ended when it was last read.
    pub has_ended: bool,
}

/// The set, where it is there and was made for the node set.
pub fn own_set(seen: &Observed) -> Option<&Arc<BaremetalSet>> {
    let owner = Target::of(&*seen.set);
    seen.machines.set.as_ref().filter(|it| set::is_of(it, &owner))
}
