//! The machines that the hosts of a set have, and those that they lost.

use std::collections::BTreeMap;

use api::baremetal::{DeprovisionPolicy, HostStatus, UNASSIGNED};
use api::metal3::BareMetalHost;
use api::problem::Problem;
use ironic::Cause;
use kube::ResourceExt;

use super::bare_metal_host::{has_image, host_label, host_of, other_consumer, state, title};
use super::host::Next;
use crate::observe::Observed;
use crate::reasons;
use crate::remediation::forgotten;

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
        let reported = seen.set.host_status(host).map(|it| it.bmh_ref.as_str());
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
        "BareMetalHosts {} are all labelled as host {host}; remove the labels \
         openstackbaremetalset.openstack.org/* and {}, and spec.consumerRef from those that are \
         copies",
        titles.join(", "),
        host_label(&seen.set.name_any())
    );
    Some(Next::Stop(Problem::new(&reasons::MACHINE_TWICE, text)))
}

/// Returns what to do about the machine that a host lost, if it lost one. A machine that goes away while it is running is
/// not replaced automatically, because it may still answer at the host's address. A deprovisioned
/// machine is no loss: it is provisioned again.
pub(super) fn lost(seen: &Observed, host: &str) -> Option<Problem> {
    let reported = seen.set.host_status(host)?;
    let unseen = unseen(seen, host, reported);
    if unseen.is_some() || !reported.installed || reported.bmh_ref == UNASSIGNED {
        return unseen;
    }
    let machines = seen.metal3.machines.as_deref().unwrap_or_default();
    let machine = machines.iter().find(|it| title(it) == reported.bmh_ref);
    if machine.is_some_and(|it| !may_run(state(it))) {
        return None;
    }
    let (name, forgotten) = (&reported.bmh_ref, forgotten(seen, host));
    let Some(other) = machine.and_then(|it| other_consumer(it, &seen.set)) else {
        let text = format!(
            "its BareMetalHost {name} was deleted or removed from the set while it ran, so two \
             machines could answer at one address if another was chosen; make sure that it is off, \
             and then {forgotten}"
        );
        return Some(Problem::new(&reasons::MACHINE_GONE, text));
    };
    let text = format!(
        "its BareMetalHost {name} is now used by {other}; release it there, or make sure that \
         nothing of {host} runs on it, and then {forgotten}"
    );
    Some(Problem::new(Cause::Taken.reason(), text))
}

/// Returns what to do about the machine of a status entry, if it cannot be observed.
///
/// An owner that requests the set would restore a removed host, so the user removes the status
/// entry instead, which is all that holds the host back.
pub(super) fn unseen(seen: &Observed, host: &str, reported: &HostStatus) -> Option<Problem> {
    let (name, forgotten) = (&reported.bmh_ref, forgotten(seen, host));
    let text = match name.split_once('/') {
        None if name == UNASSIGNED => return None,
        None => format!(
            "its machine {name} is not a BareMetalHost, so it came from another provisioner; set \
             spec.provisioner to the previous value, or release it there, and then {forgotten}"
        ),
        Some((namespace, _)) if seen.metal3.is_watched(namespace) => return None,
        Some((namespace, _)) => format!(
            "its BareMetalHost {name} is no longer visible, because the operators do not watch \
             that namespace; add {namespace} to watchNamespaces of the chart, or release it \
             manually, and then {forgotten}"
        ),
    };
    Some(Problem::new(&reasons::MACHINE_GONE, text))
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
