//! The set of machines that somebody asks for: what it must say, and whether it says so.

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
use crate::problem::Fault;

/// On a set that somebody asks for: whoever deletes it, none of its machines is given back before it
/// is let go.
pub const IN_USE: &str = "dataplane.openstack.org/machines-in-use";
/// How many hosts a set has at most, as its definition says.
pub const MAX_HOSTS: usize = 500;

/// A set that somebody asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredMachine {
    /// Whoever asks; the set has its name.
    pub owner: Target,
    /// Labels beside [`FOR`].
    pub labels: BTreeMap<String, String>,
    /// What it is to say, but for the hosts.
    pub fields: AnyMap,
    /// The hosts by name.
    pub hosts: BTreeMap<String, BaremetalHost>,
}

impl DesiredMachine {
    /// The step that makes the set what it is to be, if it is not.
    ///
    /// Nothing is made for nobody, and nothing is changed of a set that goes or is another's.
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
            // No comparison tells that a field was taken out; the hash does.
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
        // Fields are taken over only of a set that was seen and is ours: not of another one that came
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

/// The address of the set that somebody asks for.
pub fn target(owner: &Target) -> Target {
    Target { kind: Kind::of::<BaremetalSet>(), uid: None, ..owner.clone() }
}

/// Whether a set was made for somebody.
pub fn is_of(set: &BaremetalSet, owner: &Target) -> bool {
    owner.uid.is_some() && set.labels().get(FOR) == owner.uid.as_ref()
}

/// The step by which the set goes and gives back its machines: it is deleted, then let go.
pub fn deletion(set: &Arc<BaremetalSet>) -> Option<Step> {
    if is_terminating(&**set) {
        return remove_finalizer(&**set, IN_USE, BECAUSE);
    }
    Some(Step::delete(Target::of(&**set), BECAUSE))
}

/// The step that leaves a set to whoever deletes it, without doing so.
pub fn release_of(set: &BaremetalSet) -> Option<Step> {
    remove_finalizer(set, IN_USE, BECAUSE)
}

const BECAUSE: &str = "nobody needs its machines any more";

/// Whether a machine of the set would be undeployed if it were given back.
pub fn would_be_wiped(set: &BaremetalSet, host: &str) -> bool {
    let Some(entry) = set.spec.baremetal_hosts.get(host) else { return false };
    match set.spec.deprovision_policy {
        Some(DeprovisionPolicy::Retain) => false,
        Some(DeprovisionPolicy::Deprovision) => true,
        None => !entry.adopt,
    }
}

/// The domain of all hosts, where they have one in common.
pub fn domain<'a>(host_names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let domains: BTreeSet<Option<&str>> =
        host_names.map(|it| it.split_once('.').map(|it| it.1)).collect();
    domains.into_iter().reduce(|_, _| None).flatten()
}

/// Whether what is told of a refused write is of a set.
pub fn is_refused(reported: &ConditionDraft) -> bool {
    rejected_write::is_of(reported, &Kind::of::<BaremetalSet>())
}

/// Those of the hosts, in order, that find no room in the set beside what it has.
pub fn without_room<'a>(
    set: Option<&BaremetalSet>,
    asked: impl Iterator<Item = &'a str>,
) -> BTreeSet<String> {
    let present = set.map(|it| &it.spec.baremetal_hosts);
    let has = |it: &&str| present.is_some_and(|all| all.contains_key(*it));
    let room = MAX_HOSTS.saturating_sub(present.map_or(0, BTreeMap::len));
    asked.filter(|it| !has(it)).skip(room).map(str::to_owned).collect()
}

/// Of a host that finds no room in the set.
pub fn full(owner: &Target, host: &str) -> Fault {
    let text = format!(
        "OpenStackBaremetalSet {} has {MAX_HOSTS} hosts, and can have no more: host {host} gets a \
         machine when another one gives up its own; else put it into another {}.",
        owner.name, owner.kind.kind
    );
    Fault::missing("SetFull", text)
}

/// What keeps the set from being made or followed.
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

/// Of a host that another set has a machine for.
pub const ELSEWHERE: &str = "MachineElsewhere";
