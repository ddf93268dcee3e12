//! The machines that the hosts of a set have, and those that they lost.

use std::collections::BTreeMap;

use api::baremetal::{DeprovisionPolicy, HostStatus, UNASSIGNED};
use api::metal3::BareMetalHost;
use kube::ResourceExt;

use super::bare_metal_host::{has_image, host_label, host_of, other_consumer, state, title};
use super::next::Next;
use super::remediation::{self, Loss};
use crate::hosts::Reason;
use crate::observe::Observed;

/// States in which nothing runs on a machine. In any other state something may: deprovisioning was
/// not observed for a machine whose object is deleted or was recreated under its name.
const UNDEPLOYED: [&str; 5] = ["inspecting", "match profile", "preparing", "available", "ready"];

/// Returns whether a host's system may still run on a machine, by its state.
pub(super) fn may_run(state: &str) -> bool {
    !UNDEPLOYED.contains(&state)
}

/// Returns the machines that are labelled for each host and have no other consumer; the one in the
/// status comes first. There are several if a user copied one with its labels.
pub(super) fn owned(seen: &Observed) -> BTreeMap<String, Vec<&BareMetalHost>> {
    let machines = seen.metal3.machines.as_deref().unwrap_or_default();
    let mut mine: BTreeMap<String, Vec<&BareMetalHost>> = BTreeMap::new();
    for machine in machines.iter().filter(|it| other_consumer(it, &seen.set).is_none()) {
        if let Some(host) = host_of(machine, &seen.set) {
            mine.entry(host).or_default().push(machine);
        }
    }
    for (host, all) in &mut mine {
        let reported = seen.set.told(host).map(|it| it.bmh_ref.as_str());
        all.sort_by_key(|it| reported != Some(&*title(it)));
    }
    mine
}

/// Returns the stop for a host with several labelled machines. Only a user can tell which one is
/// the copy, and erasing the wrong one would end a running system.
pub(super) fn twice(seen: &Observed, host: &str, machines: &[&BareMetalHost]) -> Option<Next> {
    if machines.len() < 2 {
        return None;
    }
    let titles: Vec<String> = machines.iter().map(|it| title(it)).collect();
    let text = format!(
        "BareMetalHosts {} are all labelled as host {host}; take the labels \
         openstackbaremetalset.openstack.org/* and {}, and spec.consumerRef off those that are copies",
        titles.join(", "),
        host_label(&seen.set.name_any())
    );
    Some(Next::Stop("MachineTwice", text))
}

/// Returns what to do about the machine that a host lost, if it lost one. A machine that goes away while it is running is
/// not replaced automatically, because it may still answer at the host's address. A deprovisioned
/// machine is no loss: it is provisioned again.
pub(super) fn lost(seen: &Observed, host: &str) -> Option<Reason> {
    let reported = seen.set.told(host)?;
    let unseen = unseen(seen, host, reported);
    if unseen.is_some() || !reported.installed || reported.bmh_ref == UNASSIGNED {
        return unseen;
    }
    let machines = seen.metal3.machines.as_deref().unwrap_or_default();
    let machine = machines.iter().find(|it| title(it) == reported.bmh_ref);
    let other = machine.and_then(|it| other_consumer(it, &seen.set));
    let loss = other.map_or(Loss::Gone, Loss::Taken);
    let is_lost = machine.is_none_or(|it| may_run(state(it)));
    is_lost.then(|| remediation::lost(seen, host, &reported.bmh_ref, &loss))
}

/// Returns what to do about the machine of a status entry, if it cannot be observed.
pub(super) fn unseen(seen: &Observed, host: &str, reported: &HostStatus) -> Option<Reason> {
    let loss = match reported.bmh_ref.split_once('/') {
        None if reported.bmh_ref == UNASSIGNED => return None,
        None => Loss::Elsewhere,
        Some((namespace, _)) if seen.metal3.is_watched(namespace) => return None,
        Some(_) => Loss::Unwatched,
    };
    Some(remediation::lost(seen, host, &reported.bmh_ref, &loss))
}

/// Returns whether a machine that is given up stays as it is. A machine that is not provisioned yet
/// is excluded, because it would still be provisioned, and no user could log in. One without an
/// image is excluded, because it is about to be erased.
pub(super) fn is_retained(seen: &Observed, machine: &BareMetalHost) -> bool {
    let is_wanted = seen.set.spec.deprovision_policy == Some(DeprovisionPolicy::Retain);
    let now = state(machine);
    is_wanted && (now == EXTERNAL || (now == PROVISIONED && has_image(machine)))
}

/// State of a machine that is provisioned by Metal3.
pub const PROVISIONED: &str = "provisioned";

/// State of a machine that was provisioned externally.
pub const EXTERNAL: &str = "externally provisioned";
