//! A request for machines: the baremetal set of its owner, and what becomes of the machine of each host.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::baremetal::set::FOR;
use api::baremetal::{BaremetalHost, BaremetalSet};
use api::problem::Problem;
use api::shared::AnyMap;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::applied::{APPLIED, contains_desired};
use operator_core::finalizers::{has_finalizer, is_terminating};
use operator_core::hash;
use operator_core::plan::{Kind, Plan, Step, Target};
use serde_json::json;

use crate::host::machines::machine_names::MachineNames;
use crate::host::machines::provisioning_state::{ASK_AGAIN, Known, ProvisioningState};
use crate::host::machines::set::{IN_USE, Seen};
use crate::reasons;

/// Requeue interval while a CRD that is used is missing: no watch reports its arrival.
pub const CRD_POLL_INTERVAL: Duration = Duration::from_mins(1);
/// Maximum number of hosts in a set, as its CRD says.
pub const MAX_HOSTS: usize = 500;

/// The request of a role, of a node without one, or of a node set.
pub struct MachineRequest<'a> {
    /// The requesting object.
    pub owner: Target,
    /// The set, if it exists and was created for this owner.
    pub set: Option<&'a Arc<BaremetalSet>>,
    /// Which host gets which machine.
    pub names: MachineNames,
    seen: &'a Seen,
    without_room: BTreeMap<String, Problem>,
}

impl<'a> MachineRequest<'a> {
    /// Returns the request of an owner for the machines of these names.
    pub fn of(seen: &'a Seen, owner: Target, names: MachineNames, asked: Vec<String>) -> Self {
        let set = seen.set_of(&owner);
        let mut request = Self { owner, set, names, seen, without_room: BTreeMap::new() };
        request.without_room = request.without_room(asked);
        request
    }

    /// Returns whether the set, if there is one, has an entry for a host.
    pub fn has(&self, host: &str) -> bool {
        self.set.is_some_and(|it| it.spec.baremetal_hosts.contains_key(host))
    }

    /// Returns the provisioning state of the machine of a host, or the fault that keeps the host from
    /// getting one; `title` names the host in messages.
    pub fn provisioning(
        &self,
        (host, title): (&str, &str),
        known: &Known<'_>,
        now: Timestamp,
    ) -> Result<ProvisioningState, Problem> {
        let full = || self.without_room.get(host).cloned();
        let fault = self.fault().or_else(full).or_else(|| self.elsewhere(host, title));
        let fault = fault.or_else(|| self.in_service(host, title, known));
        fault.map_or_else(|| Ok(self.followed(host, known, now)), Err)
    }

    /// Returns the provisioning state of the machine of a host, whatever keeps the host from getting
    /// another one.
    pub fn followed(&self, host: &str, known: &Known<'_>, now: Timestamp) -> ProvisioningState {
        ProvisioningState::of(self.set.map(|it| &**it), host, known, now)
    }

    /// Returns the step that applies the set, if what is desired differs from the present one: its
    /// labels besides [`FOR`], its `spec` except for the hosts, and the hosts by name. A host without a
    /// desired entry keeps the one that it has.
    ///
    /// Returns `None` if the set cannot be written or is being deleted, or if there is neither a set nor
    /// any host.
    pub fn step(
        &self,
        mut labels: BTreeMap<String, String>,
        mut spec: AnyMap,
        hosts: impl IntoIterator<Item = (String, Option<BaremetalHost>)>,
    ) -> Option<Step> {
        let present = |it: &str| self.set?.spec.baremetal_hosts.get(it).cloned();
        let entry = |(host, desired): (String, Option<BaremetalHost>)| {
            let entry = desired.or_else(|| present(&host))?;
            Some((host, entry))
        };
        let hosts: BTreeMap<String, BaremetalHost> = hosts.into_iter().filter_map(entry).collect();
        let is_closed = self.fault().is_some() || self.set.is_some_and(|it| is_terminating(&**it));
        if is_closed || (self.set.is_none() && hosts.is_empty()) {
            return None;
        }
        spec.insert("baremetalHosts".into(), json!(hosts));
        labels.insert(FOR.into(), self.owner.uid.clone().unwrap_or_default());
        let (spec, labels) = (json!(spec), json!(labels));
        let hash = hash::short(&(&spec, &labels));
        // Without hosts there is nothing to give back.
        let is_used = !hosts.is_empty();
        let is_asked = |it: &Arc<BaremetalSet>| {
            // Comparing fields cannot show that a field was removed; the hash does.
            it.annotations().get(APPLIED) == Some(&hash)
                && has_finalizer(&**it, IN_USE) == is_used
                && contains_desired(Some(&json!(it.spec)), &spec)
                && contains_desired(Some(&json!(it.metadata.labels)), &labels)
        };
        if self.set.is_some_and(is_asked) {
            return None;
        }
        let uid = self.set.and_then(|it| it.uid());
        let mut metadata = json!({ "annotations": { APPLIED: hash }, "labels": labels });
        if is_used {
            metadata["finalizers"] = json!([IN_USE]);
        }
        let fields = json!({ "metadata": metadata, "spec": spec });
        let because = "what is asked of the machines differs from what the set says";
        let target = Target { kind: Kind::of::<BaremetalSet>(), uid, ..self.owner.clone() };
        Some(Step::apply_observed(target, fields, because))
    }

    /// Returns the fault that keeps the set from being created or used; `None` if there is none.
    pub fn fault(&self) -> Option<Problem> {
        let owner = &self.owner;
        let request = format!("{} {}", owner.kind.kind, owner.name);
        if self.seen.is_missed {
            let text = format!(
                "{request} requests machines, and the cluster does not have the kind \
                 OpenStackBaremetalSet: install its definition, which is in the chart."
            );
            return Some(Problem::new(&reasons::machines::MACHINES_NOT_SERVED, text));
        }
        let set = self.seen.set.as_ref().filter(|_| self.set.is_none())?;
        let text = format!(
            "OpenStackBaremetalSet {} was not made for {request}, which asks for machines by a set of that name: delete it, \
             name one of the two differently, or hand it over with kubectl label --overwrite -n {} \
             openstackbaremetalset/{} {FOR}={}",
            owner.name,
            owner.namespace,
            set.name_any(),
            owner.uid.as_deref().unwrap_or_default()
        );
        Some(Problem::new(&reasons::machines::NAME_TAKEN, text))
    }

    /// Returns the faults of the hosts that do not fit into the set beside its present ones.
    fn without_room(&self, mut asked: Vec<String>) -> BTreeMap<String, Problem> {
        let present = self.set.map_or(0, |it| it.spec.baremetal_hosts.len());
        asked.sort_unstable();
        let new = asked.into_iter().filter(|it| !self.has(it));
        let without_room = new.skip(MAX_HOSTS.saturating_sub(present));
        without_room.map(|it| (it.clone(), self.full(&it))).collect()
    }

    fn full(&self, host: &str) -> Problem {
        let text = format!(
            "OpenStackBaremetalSet {} has {MAX_HOSTS} hosts, and can have no more: host {host} gets a \
             machine when another one gives up its own; else put it into another {}.",
            self.owner.name, self.owner.kind.kind
        );
        Problem::new(&reasons::machines::SET_FULL, text)
    }

    /// Returns the fault of a host that has a machine in another set. This one keeps the hosts that it
    /// has, even if others claim them.
    fn elsewhere(&self, host: &str, title: &str) -> Option<Problem> {
        let other = self.seen.elsewhere.get(host).filter(|_| !self.has(host))?;
        let text = format!(
            "OpenStackBaremetalSet {other} has a machine for host {host} of {title}, and two machines would \
             answer at one address: the host gets one here when it is not there any more; take it out \
             there."
        );
        Some(Problem::new(&reasons::machines::MACHINE_ELSEWHERE, text))
    }

    /// Returns the fault of a host in service on a machine that others provisioned.
    fn in_service(&self, host: &str, title: &str, known: &Known<'_>) -> Option<Problem> {
        // The record of a node set may be ahead of its node's.
        let had_one = known.recorded.is_some_and(|it| it.installation.is_some());
        if !known.keeps_unmanaged_machine || had_one || self.has(host) {
            return None;
        }
        let Target { kind, name, .. } = &self.owner;
        let without = match kind.kind.as_str() {
            "OpenStackDataPlaneNode" => "take spec.baremetalSetTemplate out of",
            _ => "set spec.preProvisioned: true of",
        };
        let text = format!(
            "Host {host} of {title} is in service on a machine that others provisioned, and a new one would \
             answer at its address: {without} {} {name}; with Ironic, its own may be adopted \
             (baremetalHost.adopt and machine.node). To have another one, delete its node and make it anew.",
            kind.kind
        );
        Some(Problem::new(&reasons::machines::HOST_IN_SERVICE, text))
    }
}

/// Requeues an owner for what no watch reports of the machines of its hosts.
pub fn requeue<'a>(
    plan: &mut Plan,
    machines: impl IntoIterator<Item = &'a Result<ProvisioningState, Problem>>,
) {
    for machine in machines {
        match machine {
            Ok(it) if it.waits_for_ssh => plan.requeue_in(ASK_AGAIN),
            Ok(it) if it.is_unheard => plan.requeue_in(CRD_POLL_INTERVAL),
            Err(fault) if !fault.needs_human() => plan.requeue_in(CRD_POLL_INTERVAL),
            Ok(_) | Err(_) => {}
        }
    }
}
