//! What the judgement on a set sees: plain copies.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::baremetal::{BaremetalHost, BaremetalSet, Provisioner, UNASSIGNED};
use config_drive::from_baremetal_set::Texts;
use config_drive::{ApiVersion, Secret};
use ironic::{Error, Node};
use kube::ResourceExt;
use operator_core::applied::APPLIED;
use operator_core::finalizers::{has_finalizer, is_terminating};
use operator_core::keyed::Keys;
use operator_runtime::source_contents::Content;

use crate::backoff::Refused;
use crate::finalizers::MACHINES;
use crate::metal3::bare_metal_host::Seen;

/// Contents of Secrets by name, those that exist.
pub type Secrets = BTreeMap<String, Content>;

/// Plain copies of everything that was seen.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The set.
    pub set: Arc<BaremetalSet>,
    /// Its namespace.
    pub namespace: String,
    /// What the Secrets hold from which drives are made.
    pub texts: Texts,
    /// The other sets of its namespace.
    pub neighbours: Vec<Arc<BaremetalSet>>,
    /// The machines, or why they are not known.
    pub machines: Result<Machines, Unseen>,
    /// What was seen of Metal3, where it provisions the machines.
    pub metal3: Seen,
    /// What Ironic did not do lately, by the machine's UUID.
    pub refused: BTreeMap<String, Refused>,
    /// Whether nobody can be asked any more: the namespace goes, and the credentials went before.
    pub is_abandoned: bool,
    /// The keys for digests of what Secrets hold.
    pub keys: Keys,
}

/// Ironic's machines.
#[derive(Clone, Debug)]
pub struct Machines {
    /// The version of the API that is spoken.
    pub version: ApiVersion,
    /// All of them.
    pub nodes: Arc<Vec<Node>>,
}

/// Why the machines are not known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Unseen {
    /// Nobody has asked for them.
    NotAsked,
    /// Too many wait for slow Ironics at the moment: nothing is known, and nothing is told.
    NotYet,
    /// A Secret that requests need does not exist.
    NoSecret {
        /// Where the set names it.
        path: &'static str,
        /// Its name.
        name: String,
        /// The keys that it must have.
        keys: &'static str,
    },
    /// Ironic gave no answer, or a bad one.
    Error(Error),
}

impl Observed {
    /// A set that was read, with the Secrets that it names and the other sets of its namespace; its
    /// machines were not asked for.
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
        let metal3 = Seen::default();
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

    /// The hosts that are to be; none of a set that goes, once nobody else holds it.
    pub fn wanted(&self) -> impl Iterator<Item = (&str, &BaremetalHost)> {
        let hosts = self.set.spec.baremetal_hosts.iter().map(|(name, host)| (name.as_str(), host));
        let goes = is_terminating(&*self.set) && !self.is_needed();
        hosts.filter(move |_| !goes)
    }

    /// Whether the set is being deleted while somebody else holds it, who still needs the machines: they
    /// stay as they are.
    pub fn is_needed(&self) -> bool {
        is_terminating(&*self.set) && self.holders().next().is_some()
    }

    /// The finalizers by which others hold the set.
    pub fn holders(&self) -> impl Iterator<Item = &str> {
        self.set.finalizers().iter().map(String::as_str).filter(|it| *it != MACHINES)
    }

    /// What whoever asks for the machines has applied last; nothing where nobody else does.
    pub fn applied(&self) -> Option<&String> {
        self.set.annotations().get(APPLIED)
    }

    /// Whether somebody else than who asks for the machines has just taken a host out: it is asked for
    /// as before.
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

    /// Whether a host has a machine, as far as the status tells.
    pub fn has_machines(&self) -> bool {
        let reported = self.set.status.iter().flat_map(|it| it.baremetal_hosts.values());
        reported.into_iter().any(|it| it.bmh_ref != UNASSIGNED)
    }

    /// The UID of the set, from which its machines are known.
    pub fn uid(&self) -> String {
        self.set.uid().unwrap_or_default()
    }

    /// Whether Ironic provisions the machines.
    pub fn is_of_ironic(&self) -> bool {
        self.set.spec.effective_provisioner() == Provisioner::Ironic
    }

    /// Whether machines may be taken: the set does not go before they are given back.
    pub fn is_held(&self) -> bool {
        has_finalizer(&*self.set, MACHINES)
    }
}

/// The texts of a Secret; what is no text is not there.
pub fn texts(content: &Content) -> BTreeMap<String, Secret<String>> {
    let text = |key: &str| Some((key.to_owned(), Secret::new(content.text(key)?.to_owned())));
    content.keys().filter_map(text).collect()
}
