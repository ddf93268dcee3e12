//! The baremetal sets that are observed, and the one that an owner requests: whose it is, what all owners give theirs, and how it is let
//! go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::baremetal::set::FOR;
use api::baremetal::{BaremetalSet, DeprovisionPolicy};
use api::conditions::ConditionDraft;
use api::shared::{AnyMap, SecretReference};
use kube::ResourceExt;
use operator_core::finalizers::{is_terminating, remove_finalizer};
use operator_core::plan::{Kind, Step, Target};
use operator_core::rejected_write;
use serde_json::{Value, json};

use crate::host::machines::provisioning_state::knows;

/// Finalizer on a requested baremetal set: if anyone deletes the set, its machines are given back
/// only after this finalizer is removed.
pub const IN_USE: &str = "dataplane.openstack.org/machines-in-use";

/// What was observed of machines; empty if none are requested.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Whether machines are requested and the cluster lacks the CRD.
    pub is_missed: bool,
    /// The set with the requesting object's name, which may belong to another owner.
    pub set: Option<Arc<BaremetalSet>>,
    /// The other sets of the namespace.
    pub others: Vec<Arc<BaremetalSet>>,
    /// Host → another set that has or requests a machine for it.
    pub elsewhere: BTreeMap<String, String>,
    /// The addresses, as `host:port`, whose ssh server has answered.
    pub answering: BTreeSet<String>,
}

impl Seen {
    /// Returns whether a set of the namespace may have a host. True if the sets are unknown.
    pub fn may_know(&self, host: &str) -> bool {
        let is_known = self.set.iter().any(|it| knows(it, host));
        is_known || self.elsewhere.contains_key(host) || self.is_missed
    }

    /// Returns the set, if it exists and was created for this owner.
    pub fn set_of(&self, owner: &Target) -> Option<&Arc<BaremetalSet>> {
        self.set.as_ref().filter(|it| is_of(it, owner))
    }
}

/// Returns whether a set was created for this owner.
pub fn is_of(set: &BaremetalSet, owner: &Target) -> bool {
    owner.uid.is_some() && set.labels().get(FOR) == owner.uid.as_ref()
}

/// Returns the step that deletes the set so that it gives back its machines, or, once it is being
/// deleted, the one that removes the finalizer.
pub fn deletion(set: &Arc<BaremetalSet>) -> Option<Step> {
    if is_terminating(&**set) {
        return remove_finalizer(&**set, IN_USE, BECAUSE);
    }
    Some(Step::delete(Target::of(&**set), BECAUSE))
}

/// Returns the step that removes the finalizer without deleting the set.
///
/// Returns `None` while a later deletion of the set would undeploy a machine of one of these hosts,
/// which are in use; and while its deletion, which has begun, would undeploy any, because no run
/// has looked for guests there. That only the user lets go, as `is_let_go` says.
pub fn release_of(
    set: &BaremetalSet,
    is_let_go: bool,
    mut in_use: impl Iterator<Item = impl AsRef<str>>,
) -> Option<Step> {
    let is_unlooked = is_terminating(set) && !is_let_go;
    let mut hosts = set.spec.baremetal_hosts.keys().filter(|_| is_unlooked);
    let is_needed = in_use.any(|it| would_be_wiped(set, it.as_ref()))
        || hosts.any(|it| would_be_wiped(set, it));
    remove_finalizer(set, IN_USE, BECAUSE).filter(|_| !is_needed)
}

const BECAUSE: &str = "its machines are not needed any more";

/// Returns whether giving back a host's machine would undeploy it.
fn would_be_wiped(set: &BaremetalSet, host: &str) -> bool {
    let Some(entry) = set.spec.baremetal_hosts.get(host) else { return false };
    match set.spec.deprovision_policy {
        Some(DeprovisionPolicy::Retain) => false,
        Some(DeprovisionPolicy::Deprovision) => true,
        None => !entry.adopt,
    }
}

/// Returns the fields with those values that they do not have yet.
pub fn with_defaults(
    mut fields: AnyMap,
    values: impl IntoIterator<Item = (&'static str, Option<Value>)>,
) -> AnyMap {
    for (name, value) in values.into_iter().filter_map(|(name, it)| Some((name, it?))) {
        fields.entry(name.to_owned()).or_insert(value);
    }
    fields
}

/// Returns the fields of the spec that every owner gives its set, as far as it has values for them.
pub fn common_fields<'a>(
    ssh_secret: Option<&String>,
    user_data: Option<&SecretReference>,
    network_data: Option<&SecretReference>,
    host_names: impl Iterator<Item = &'a str>,
) -> [(&'static str, Option<Value>); 4] {
    [
        ("deploymentSSHSecret", ssh_secret.map(|it| json!(it))),
        ("domainName", domain(host_names).map(|it| json!(it))),
        ("networkData", network_data.map(|it| json!(it))),
        ("userData", user_data.map(|it| json!(it))),
    ]
}

/// Returns the domain of the hosts, if they all have the same one.
fn domain<'a>(host_names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let domains: BTreeSet<Option<&str>> =
        host_names.map(|it| it.split_once('.').map(|it| it.1)).collect();
    domains.into_iter().reduce(|_, _| None).flatten()
}

/// Returns whether the reported rejected write was to a set.
pub fn is_refused(reported: &ConditionDraft) -> bool {
    rejected_write::is_of(reported, &Kind::of::<BaremetalSet>())
}
