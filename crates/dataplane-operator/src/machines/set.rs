//! The set of machines that somebody asks for: what it must say, and whether it says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use common::api::baremetal::{BaremetalHost, BaremetalSet};
use common::api::shared::AnyMap;
use common::finalizers::is_terminating;
use common::hash;
use common::plan::{Kind, Step, Target, Write};
use kube::ResourceExt;
use serde_json::json;

use crate::group::faults::Fault;
use crate::machines::observe::Seen;
use crate::plane::wanted::{APPLIED, says};

/// Label with the UID of whoever asks for the set: what has another one, or none, is left alone.
pub const FOR: &str = "dataplane.openstack.org/machines-for";

/// A set that somebody asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// Whoever asks; the set has its name.
    pub owner: Target,
    /// Labels beside [`FOR`].
    pub labels: BTreeMap<String, String>,
    /// What it is to say, but for the hosts.
    pub fields: AnyMap,
    /// The hosts by name.
    pub hosts: BTreeMap<String, BaremetalHost>,
}

impl Wish {
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
        let is_asked = |it: &BaremetalSet| {
            // No comparison tells that a field was taken out; the hash does.
            it.annotations().get(APPLIED) == Some(&hash)
                && says(Some(&json!(it.spec)), &spec)
                && says(Some(&json!(it.metadata.labels)), &labels)
        };
        if found.is_some_and(is_asked) {
            return None;
        }
        let uid = found.and_then(ResourceExt::uid);
        let mut metadata = json!({ "annotations": { APPLIED: hash }, "labels": labels });
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

/// The step that deletes the set, unless it goes already.
pub fn deletion(set: &Arc<BaremetalSet>) -> Option<Step> {
    let because = "nobody needs its machines any more";
    (!is_terminating(&**set)).then(|| Step::delete(Target::of(&**set), because))
}

/// What keeps the set from being made or followed.
pub fn fault(seen: &Seen, owner: &Target) -> Option<Fault> {
    let title = format!("OpenStackBaremetalSet {}", owner.name);
    let asker = format!("{} {}", owner.kind.kind, owner.name);
    if seen.is_missed {
        let text = format!(
            "{asker} asks for machines, and the cluster does not know the kind \
             OpenStackBaremetalSet: install its definition, which is in the chart."
        );
        return Some(Fault::missing("MachinesNotServed", text));
    }
    let set = seen.set.as_ref().filter(|it| !is_of(it, owner))?;
    let uid = owner.uid.clone().unwrap_or_default();
    let text = format!(
        "{title} was not made for {asker}, which asks for machines by a set of that name: delete it, \
         name one of the two differently, or hand it over with kubectl label --overwrite -n {} \
         openstackbaremetalset/{} {FOR}={uid}",
        owner.namespace,
        set.name_any()
    );
    Some(Fault::missing("NameTaken", text))
}
