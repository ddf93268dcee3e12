//! Snapshot of everything that the decision on a baremetal set needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::baremetal::{BaremetalHost, BaremetalSet, Provisioner, UNASSIGNED};
use api::metal3::{BareMetalHost, ProvisionServer};
use api::secret::Secret;
use config_drive::ApiVersion;
use config_drive::from_baremetal_set::Texts;
use ironic::{Error, Node};
use kube::ResourceExt;
use operator_core::applied::APPLIED;
use operator_core::finalizers::{has_finalizer, is_terminating};
use operator_core::keyed::Keys;
use operator_runtime::answer_memory::Held;
use operator_runtime::source_cache::Content;

use crate::backoff::Refused;
use crate::finalizers::MACHINES;

/// Contents of existing Secrets by name.
pub type Secrets = BTreeMap<String, Content>;

/// Plain copies of everything that was observed.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The set.
    pub set: Arc<BaremetalSet>,
    /// Its namespace.
    pub namespace: String,
    /// The contents of the Secrets that config drives are made from.
    pub texts: Texts,
    /// The other sets of its namespace.
    pub neighbours: Vec<Arc<BaremetalSet>>,
    /// The machines, or why they are unknown.
    pub machines: Result<Machines, Unseen>,
    /// What was observed of Metal3, if it provisions the machines.
    pub metal3: Metal3Seen,
    /// Failed Ironic requests, by the machine's UUID.
    pub refused: BTreeMap<String, Refused>,
    /// Whether machines can no longer be given back: the namespace is being deleted, and its
    /// credentials are gone.
    pub is_abandoned: bool,
    /// The keys for digests of Secret content.
    pub keys: Keys,
}

/// Ironic's machines.
#[derive(Clone, Debug)]
pub struct Machines {
    /// The negotiated version of the API.
    pub version: ApiVersion,
    /// All nodes.
    pub nodes: Arc<Held<Node>>,
    /// Why deployments failed, by the UUID of the machine, as far as only its history has it.
    pub causes: BTreeMap<String, String>,
}

/// Why the machines are unknown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Unseen {
    /// They were not requested.
    NotAsked,
    /// Too many requests wait for slow Ironics now. Nothing is known, and nothing is reported.
    NotYet,
    /// A Secret that requests need does not exist.
    NoSecret {
        /// The field of the set that names it.
        path: &'static str,
        /// Its name.
        name: String,
        /// The keys that it must have.
        keys: &'static str,
    },
    /// Ironic gave no answer, or an invalid one.
    Error(Error),
}

/// What was observed of Metal3.
#[derive(Clone, Debug, Default)]
pub struct Metal3Seen {
    /// The machines of all watched namespaces; `None` if the cluster lacks the CRD.
    pub machines: Option<Vec<Arc<BareMetalHost>>>,
    /// The Secrets that were created for the set's hosts.
    pub secrets: Vec<HostSecret>,
    /// The provision server that the set names, if it exists.
    pub server: Option<Arc<ProvisionServer>>,
    /// Names of Secrets that the set's hosts need and that belong to others, in the namespace of
    /// the machines.
    pub taken: BTreeSet<String>,
    /// The watched namespaces; empty means all.
    pub namespaces: Vec<String>,
}

impl Metal3Seen {
    /// Returns whether the machines of a namespace are watched.
    pub fn is_watched(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|it| it == namespace)
    }
}

/// A Secret that was created for a host, without its content.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostSecret {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: Option<String>,
    /// The UID of the machine that owns it.
    pub machine: Option<String>,
    /// The hash of the config drive that it is a part of.
    pub drive: Option<String>,
}

impl Observed {
    /// Builds the observation of a set from its Secrets and the other sets of its namespace. The
    /// machines are not requested yet.
    pub fn new(
        set: Arc<BaremetalSet>,
        secrets: &Secrets,
        neighbours: Vec<Arc<BaremetalSet>>,
    ) -> Self {
        let namespace = set.namespace().unwrap_or_default();
        let texts = config_drive::from_baremetal_set::secrets(&set.spec, &namespace)
            .into_iter()
            .filter_map(|it| Some((it.to_owned(), texts(secrets.get(it)?))))
            .collect();
        let (machines, refused) = (Err(Unseen::NotAsked), BTreeMap::new());
        let metal3 = Metal3Seen::default();
        Self {
            set,
            namespace,
            texts,
            neighbours,
            machines,
            metal3,
            refused,
            is_abandoned: false,
            keys: Keys::default(),
        }
    }

    /// Returns the desired hosts. Empty for a set that is being deleted, once no other finalizer
    /// holds it.
    pub fn wanted(&self) -> impl Iterator<Item = (&str, &BaremetalHost)> {
        let hosts = self.set.spec.baremetal_hosts.iter().map(|(name, host)| (name.as_str(), host));
        let goes = is_terminating(&*self.set) && !self.is_needed();
        hosts.filter(move |_| !goes)
    }

    /// Returns whether the set is being deleted while another finalizer holds it. The machines stay
    /// as they are, because that holder still needs them.
    pub fn is_needed(&self) -> bool {
        is_terminating(&*self.set) && self.holders().next().is_some()
    }

    /// Returns the finalizers other than the operator's own.
    pub fn holders(&self) -> impl Iterator<Item = &str> {
        self.set.finalizers().iter().map(String::as_str).filter(|it| *it != MACHINES)
    }

    /// Returns the hash of what the owner that requests the machines has applied last; `None` if
    /// there is no such owner.
    pub fn applied(&self) -> Option<&String> {
        self.set.annotations().get(APPLIED)
    }

    /// Returns whether someone other than the requesting owner has just removed a host. The owner
    /// still requests it.
    pub fn is_taken_out_by_hand(&self, host: &str) -> bool {
        let Some(status) = &self.set.status else { return false };
        let is_leaving =
            || status.baremetal_hosts.get(host).is_none_or(|it| it.annotated_for_deletion);
        let goes = is_terminating(&*self.set) && !self.is_needed();
        !goes
            && self.applied().is_some()
            && self.applied() == status.applied.as_ref()
            && !self.set.spec.baremetal_hosts.contains_key(host)
            && !is_leaving()
    }

    /// Returns whether any host has a machine, according to the status.
    pub fn has_machines(&self) -> bool {
        let reported = self.set.status.iter().flat_map(|it| it.baremetal_hosts.values());
        reported.into_iter().any(|it| it.bmh_ref != UNASSIGNED)
    }

    /// Returns the UID of the set, which identifies its machines.
    pub fn uid(&self) -> String {
        self.set.uid().unwrap_or_default()
    }

    /// Returns whether Ironic provisions the machines.
    pub fn is_of_ironic(&self) -> bool {
        self.set.spec.effective_provisioner() == Provisioner::Ironic
    }

    /// Returns the version of Ironic's API, if it answers.
    pub fn version(&self) -> Option<ApiVersion> {
        self.machines.as_ref().map(|it| it.version).ok()
    }

    /// Returns whether the provisioner was read, so that its machines are known.
    pub fn sees_machines(&self) -> bool {
        if self.is_of_ironic() { self.machines.is_ok() } else { self.metal3.machines.is_some() }
    }

    /// Returns whether Metal3 is to provision the machines, and the cluster lacks it.
    pub fn lacks_metal3(&self) -> bool {
        !self.is_of_ironic() && !self.sees_machines()
    }

    /// Returns whether machines may be taken: the finalizer keeps the set until they are given
    /// back.
    pub fn is_held(&self) -> bool {
        has_finalizer(&*self.set, MACHINES)
    }
}

/// Returns the text values of a Secret; values that are not text are left out.
pub fn texts(content: &Content) -> BTreeMap<String, Secret<String>> {
    let text = |key: &str| Some((key.to_owned(), Secret::new(content.text(key)?.to_owned())));
    content.keys().filter_map(text).collect()
}
