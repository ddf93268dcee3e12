//! The baremetal set that an owner requests: its desired fields, and whether they are applied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::baremetal::set::FOR;
use api::baremetal::{BaremetalHost, BaremetalSet, DeprovisionPolicy};
use api::conditions::ConditionDraft;
use api::problem::Problem;
use api::shared::{AnyMap, SecretReference};
use kube::ResourceExt;
use operator_core::applied::{APPLIED, contains_desired};
use operator_core::finalizers::{has_finalizer, is_terminating, remove_finalizer};
use operator_core::plan::{Kind, Step, Target, Write};
use operator_core::{hash, rejected_write};
use serde_json::{Value, json};

use crate::host::machines::observed::Seen;
use crate::reasons;

/// Finalizer on a requested baremetal set: if anyone deletes the set, its machines are given back
/// only after this finalizer is removed.
pub const IN_USE: &str = "dataplane.openstack.org/machines-in-use";
/// Maximum number of hosts in a set, as its CRD says.
pub const MAX_HOSTS: usize = 500;

/// Returns the step that applies the set of an owner, if what is desired differs from the set that
/// was `found`: its labels besides [`FOR`], the fields of its spec except for the hosts, and the
/// hosts by name.
///
/// Returns `None` if the set is being deleted or belongs to another owner, or if there is neither a
/// set nor any host.
pub fn step(
    owner: &Target,
    found: Option<&BaremetalSet>,
    mut labels: BTreeMap<String, String>,
    mut spec: AnyMap,
    hosts: &BTreeMap<String, BaremetalHost>,
) -> Option<Step> {
    let is_closed = |it: &BaremetalSet| is_terminating(it) || !is_of(it, owner);
    if found.is_some_and(is_closed) || (found.is_none() && hosts.is_empty()) {
        return None;
    }
    spec.insert("baremetalHosts".into(), json!(hosts));
    labels.insert(FOR.into(), owner.uid.clone().unwrap_or_default());
    let (spec, labels) = (json!(spec), json!(labels));
    let hash = hash::short(&(&spec, &labels));
    // Without hosts there is nothing to give back.
    let is_used = !hosts.is_empty();
    let is_asked = |it: &BaremetalSet| {
        // Comparing fields cannot show that a field was removed; the hash does.
        it.annotations().get(APPLIED) == Some(&hash)
            && has_finalizer(it, IN_USE) == is_used
            && contains_desired(Some(&json!(it.spec)), &spec)
            && contains_desired(Some(&json!(it.metadata.labels)), &labels)
    };
    if found.is_some_and(is_asked) {
        return None;
    }
    let uid = found.and_then(ResourceExt::uid);
    let mut metadata = json!({ "annotations": { APPLIED: hash }, "labels": labels });
    if is_used {
        metadata["finalizers"] = json!([IN_USE]);
    }
    if let Some(uid) = &uid {
        metadata["uid"] = json!(uid);
    }
    // Force ownership of fields only for the observed set, not for another one that was created
    // under its name meanwhile.
    let force = uid.is_some();
    let fields = json!({ "metadata": metadata, "spec": spec });
    let because = "what is asked of the machines differs from what the set says";
    let target = Target { kind: Kind::of::<BaremetalSet>(), uid, ..owner.clone() };
    let mut step = Step::apply(target, fields, because);
    if let Write::Apply { force: forced, .. } = &mut step.write {
        *forced = force;
    }
    Some(step)
}

impl Seen {
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

/// Returns the faults of the hosts that do not fit into the owner's set beside its present ones.
pub fn without_room(
    set: Option<&BaremetalSet>,
    owner: &Target,
    mut asked: Vec<String>,
) -> BTreeMap<String, Problem> {
    let present = set.map_or(0, |it| it.spec.baremetal_hosts.len());
    let room = MAX_HOSTS.saturating_sub(present);
    asked.sort_unstable();
    let without_room = asked.into_iter().filter(|it| !has(set, it)).skip(room);
    without_room.map(|it| (it.clone(), full(owner, &it))).collect()
}

/// Returns whether the set, if there is one, has an entry for a host.
pub fn has(set: Option<&BaremetalSet>, host: &str) -> bool {
    set.is_some_and(|it| it.spec.baremetal_hosts.contains_key(host))
}

fn full(owner: &Target, host: &str) -> Problem {
    let text = format!(
        "OpenStackBaremetalSet {} has {MAX_HOSTS} hosts, and can have no more: host {host} gets a \
         machine when another one gives up its own; else put it into another {}.",
        owner.name, owner.kind.kind
    );
    Problem::new(&reasons::machines::SET_FULL, text)
}

/// Returns the fault that keeps the set from being created or used; `None` if there is none.
pub fn fault(seen: &Seen, owner: &Target) -> Option<Problem> {
    let title = format!("OpenStackBaremetalSet {}", owner.name);
    let machine_request = format!("{} {}", owner.kind.kind, owner.name);
    if seen.is_missed {
        let text = format!(
            "{machine_request} requests machines, and the cluster does not have the kind \
             OpenStackBaremetalSet: install its definition, which is in the chart."
        );
        return Some(Problem::new(&reasons::machines::MACHINES_NOT_SERVED, text));
    }
    let set = seen.set.as_ref().filter(|it| !is_of(it, owner))?;
    let uid = owner.uid.clone().unwrap_or_default();
    let text = format!(
        "{title} was not made for {machine_request}, which asks for machines by a set of that name: delete it, \
         name one of the two differently, or hand it over with kubectl label --overwrite -n {} \
         openstackbaremetalset/{} {FOR}={uid}",
        owner.namespace,
        set.name_any()
    );
    Some(Problem::new(&reasons::machines::NAME_TAKEN, text))
}

/// Returns the fault of a host that has a machine in another set; `title` names the host in
/// messages.
///
/// The owner's set keeps the hosts that it has, even if others claim them.
pub fn elsewhere(
    seen: &Seen,
    set: Option<&BaremetalSet>,
    host: &str,
    title: &str,
) -> Option<Problem> {
    let other = seen.elsewhere.get(host).filter(|_| !has(set, host))?;
    let text = format!(
        "OpenStackBaremetalSet {other} has a machine for host {host} of {title}, and two machines would \
         answer at one address: the host gets one here when it is not there any more; take it out \
         there."
    );
    Some(Problem::new(&reasons::machines::MACHINE_ELSEWHERE, text))
}
