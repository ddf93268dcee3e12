//! Hosts that present the same ssh key at two addresses: copies of one image, or one machine with
//! two addresses.
//!
//! Only learned keys are compared, and only within a namespace.

use std::collections::{BTreeMap, BTreeSet};

use api::conditions;
use operator_core::condition_catalog::{ConditionSpec, condition};
use operator_core::run_engine::host_key::HostKey;

use crate::annotations::ACCEPT_SHARED;
use crate::host::conflicts::claim_index::{ClaimIndex, Description};
use crate::host::conflicts::host_claim::{Claim, HostClaim};
use crate::reasons::inputs;

/// Condition type of objects that describe hosts: no older object's host presents the same key.
pub const HOST_KEY_UNIQUE: &str = "HostKeyUnique";

/// Condition on shared ssh host keys. Hosts in service continue.
pub const CONDITION: ConditionSpec = condition(
    HOST_KEY_UNIQUE,
    "No other host shows the key of one of its hosts; absent where that is so. `Ready` does not \
     depend on it.",
    &[inputs::catalog::SHARED_KEYS],
);

/// How many hosts a message names.
const NAMED: usize = 3;

/// A host whose key another host presented first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SharedKey {
    /// The host.
    pub host: String,
    /// The fingerprint of the key.
    pub fingerprint: String,
    /// The other host, with its object.
    pub other: String,
}

impl Claim {
    /// Replaces the keys of the hosts, by their names.
    #[must_use]
    pub fn showing(mut self, key: impl Fn(&str) -> Option<HostKey>) -> Self {
        for host in &mut self.hosts {
            host.key = key(&host.name);
        }
        self
    }

    /// Returns the hosts whose keys an older object of the namespace presents at another host, or
    /// an earlier host of the same object. Keys that the user accepts are left out.
    pub fn shared_keys(&self, others: &ClaimIndex<'_>) -> Vec<SharedKey> {
        let is_here = |it: &Self| it.namespace == self.namespace && !it.is_of_same(self);
        let is_older = |it: &&Description<'_>| is_here(it.claim) && it.claim.age() < self.age();
        let mut known: BTreeMap<&HostKey, Vec<&HostClaim>> = BTreeMap::new();
        let mut found = Vec::new();
        for host in &self.hosts {
            let Some(key) = &host.key else { continue };
            let earlier = known.entry(key).or_default();
            let older = others.showing(key).iter().filter(is_older).map(|it| (it.claim, it.host));
            let mut before = older.chain(earlier.iter().map(|it| (self, *it)));
            // Two objects that describe the same host are reported as a conflict elsewhere.
            let other = before.find(|(_, it)| host.shared(it, true).is_none());
            let other = other.map(|(claim, it)| format!("host {} of {}", it.name, claim.title()));
            let fingerprint = key.fingerprint();
            if let Some(other) = other.filter(|_| !host.shared.contains(&fingerprint)) {
                found.push(SharedKey { host: host.name.clone(), fingerprint, other });
            }
            earlier.push(host);
        }
        found
    }

    /// Formats hosts, cause and next step; `None` if there are no shared keys.
    pub fn shared_keys_text(&self, shared: &[SharedKey]) -> Option<String> {
        let first = shared.first()?;
        let names: Vec<&str> = shared.iter().map(|it| it.host.as_str()).collect();
        let hosts = conditions::first_names(&names, NAMED);
        // The node of a host has its name.
        let nodes: Vec<String> =
            names.iter().take(NAMED).map(|it| format!("openstackdataplanenode/{it}")).collect();
        let fingerprints: BTreeSet<&str> = shared.iter().map(|it| &*it.fingerprint).collect();
        let fingerprints: Vec<&str> = fingerprints.into_iter().take(NAMED).collect();
        let (title, namespace) = (self.title(), &self.namespace);
        Some(format!(
            "{title}: {hosts} shows an ssh host key that others showed before, as {} shows {}: \
             they were made from one image, or are one machine at two addresses. Give each host keys \
             of its own (sudo rm /etc/ssh/ssh_host_*, sudo ssh-keygen -A, and a restart of sshd). If \
             they are machines of one image that keep their keys: kubectl annotate --overwrite -n \
             {namespace} {} {ACCEPT_SHARED}={}",
            first.other,
            first.fingerprint,
            nodes.join(" "),
            fingerprints.join(",")
        ))
    }
}
