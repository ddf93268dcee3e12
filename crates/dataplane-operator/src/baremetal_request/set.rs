//! The baremetal set that an owner requests: its desired fields, and whether they are applied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::baremetal::set::FOR;
use api::baremetal::{BaremetalHost, BaremetalSet, DeprovisionPolicy};
use api::conditions::ConditionDraft;
use api::shared::AnyMap;
use kube::ResourceExt;
use operator_core::applied::{APPLIED, says};
use operator_core::finalizers::{has_finalizer, is_terminating, remove_finalizer};
use operator_core::plan::{Kind, Step, Target, Write};
use operator_core::{hash, rejected_write};
use serde_json::json;

use crate::baremetal_request::observe::Seen;
use crate::fault::Fault;

/// Finalizer on a requested baremetal set: if anyone deletes the set, its machines are given back
/// only after this finalizer is removed.
pub const IN_USE: &str = "dataplane.openstack.org/machines-in-use";
/// Maximum number of hosts in a set, as its CRD says.
pub const MAX_HOSTS: usize = 500;

/// A baremetal set as an owner requests it.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredMachine {
    /// The requesting object; the set has its name.
    pub owner: Target,
    /// Labels besides [`FOR`].
    pub labels: BTreeMap<String, String>,
    /// The fields of the spec, except for the hosts.
    pub fields: AnyMap,
    /// The hosts by name.
    pub hosts: BTreeMap<String, BaremetalHost>,
}

impl DesiredMachine {
    /// Returns the step that applies the desired set, if it differs.
    ///
    /// Returns `None` if the set is being deleted or belongs to another owner, or if there is
    /// neither a set nor any host.
    pub fn step(&self, found: Option<&BaremetalSet>) -> Option<Step> {
        let is_closed = |it: &BaremetalSet| is_terminating(it) || !is_of(it, &self.owner);
        if found.is_some_and(is_closed) || (found.is_none() && self.hosts.is_empty()) {
            return None;
        }
        let mut spec = self.fields.clone();
        spec.insert("baremetalHosts".into(), json!(self.hosts));
        let mut labels = self.labels.clone();
        labels.insert(FOR.into(), self.owner.uid.clone().unwrap_or_default());
        let (spec, labels) = (json!(spec), json!(labels));
        let hash = hash::short(&(&spec, &labels));
        // Without hosts there is nothing to give back.
        let is_used = !self.hosts.is_empty();
        let is_asked = |it: &BaremetalSet| {
            // Comparing fields cannot show that a field was removed; the hash does.
            it.annotations().get(APPLIED) == Some(&hash)
                && has_finalizer(it, IN_USE) == is_used
                && says(Some(&json!(it.spec)), &spec)
                && says(Some(&json!(it.metadata.labels)), &labels)
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
        let mut step = Step::apply(Target { uid, ..target(&self.owner) }, fields, because);
        if let Write::Apply { force: forced, .. } = &mut step.write {
            *forced = force;
        }
        Some(step)
    }
}

/// Returns the target for the set of an owner.
pub fn target(owner: &Target) -> Target {
    Target { kind: Kind::of::<BaremetalSet>(), uid: None, ..owner.clone() }
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
pub fn release_of(set: &BaremetalSet) -> Option<Step> {
    remove_finalizer(set, IN_USE, BECAUSE)
}

const BECAUSE: &str = "nobody needs its machines any more";

/// Returns whether giving back a host's machine would undeploy it.
pub fn would_be_wiped(set: &BaremetalSet, host: &str) -> bool {
    let Some(entry) = set.spec.baremetal_hosts.get(host) else { return false };
    match set.spec.deprovision_policy {
        Some(DeprovisionPolicy::Retain) => false,
        Some(DeprovisionPolicy::Deprovision) => true,
        None => !entry.adopt,
    }
}

/// Returns the domain of the hosts, if they all have the same one.
pub fn domain<'a>(host_names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let domains: BTreeSet<Option<&str>> =
        host_names.map(|it| it.split_once('.').map(|it| it.1)).collect();
    domains.into_iter().reduce(|_, _| None).flatten()
}

/// Returns whether the reported rejected write was to a set.
pub fn is_refused(reported: &ConditionDraft) -> bool {
    rejected_write::is_of(reported, &Kind::of::<BaremetalSet>())
}

/// Returns the hosts, taken in order, that do not fit into the set beside its present ones.
pub fn without_room<'a>(
    set: Option<&BaremetalSet>,
    asked: impl Iterator<Item = &'a str>,
) -> BTreeSet<String> {
    let present = set.map(|it| &it.spec.baremetal_hosts);
    let has = |it: &&str| present.is_some_and(|all| all.contains_key(*it));
    let room = MAX_HOSTS.saturating_sub(present.map_or(0, BTreeMap::len));
    asked.filter(|it| !has(it)).skip(room).map(str::to_owned).collect()
}

/// Returns the fault of a host that does not fit into the set.
pub fn full(owner: &Target, host: &str) -> Fault {
    let text = format!(
        "OpenStackBaremetalSet {} has {MAX_HOSTS} hosts, and can have no more: host {host} gets a \
         machine when another one gives up its own; else put it into another {}.",
        owner.name, owner.kind.kind
    );
    Fault::missing("SetFull", text)
}

/// Returns the fault that keeps the set from being created or used; `None` if there is none.
pub fn fault(seen: &Seen, owner: &Target) -> Option<Fault> {
    let title = format!("OpenStackBaremetalSet {}", owner.name);
    let machine_request = format!("{} {}", owner.kind.kind, owner.name);
    if seen.is_missed {
        let text = format!(
            "{machine_request} asks for machines, and the cluster does not know the kind \
             OpenStackBaremetalSet: install its definition, which is in the chart."
        );
        return Some(Fault::missing("MachinesNotServed", text));
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
    Some(Fault::missing("NameTaken", text))
}

/// Reason of a host that already has a machine in another set.
pub const ELSEWHERE: &str = "MachineElsewhere";
