//! Records of removed computes that remain in nova, listed in the status of their cell, which is
//! the last object to know them. Those with UUIDs are worked off where nova's API is used.

use std::collections::{BTreeMap, BTreeSet};

use api::conditions::ConditionStatus;
use api::nova::cell::LEFTOVERS;
use api::nova::{ExternalCompute, Leftover};
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::plan::EventDraft;

use crate::cell::credential_rotation::first_of;
use crate::cell::observed::Observed;
use crate::cell::observed::hosts::LeftoverSeen;
use crate::compute::removal::leftover_places::has_ids;
use crate::compute::removal::messages;
use crate::compute_status::host_cleaned::{concluded, goes_by_api};
use crate::nova::drain::held;
use crate::nova::drain::progress::{
    HostProgress, IdentityUse, PlacementRemoval, Removal, ServiceRemoval,
};
use crate::nova::drain::unknown::unknown;

/// Returns the leftovers of a cell, the earliest first.
///
/// # Guarantees
/// The list is bounded. An entry with UUIDs stays until it is worked off, because nothing else has
/// them any more; then come computes that still wait to be recorded, those first that were recorded
/// before. Entries without UUIDs of computes that are already gone are dropped for these, the earliest
/// first. A compute that finds no place waits for one.
pub fn cell_leftovers(seen: &Observed) -> Vec<Leftover> {
    let mut waiting: Vec<Leftover> = seen.computes.iter().filter_map(|it| leftover(it)).collect();
    let is_waiting: BTreeSet<String> = waiting.iter().map(|it| it.uid.clone()).collect();
    let gone = seen.cell.leftovers().iter().filter(|it| !is_waiting.contains(&it.uid));
    let gone = gone.filter_map(|it| remaining(seen, it));
    let (mut all, mut shown): (Vec<Leftover>, Vec<Leftover>) = gone.partition(has_ids);
    let recorded: BTreeSet<&str> = seen.cell.leftovers().iter().map(|it| it.uid.as_str()).collect();
    let is_new = |it: &Leftover| !recorded.contains(it.uid.as_str());
    waiting.sort_by(|a, b| (is_new(a), order(a)).cmp(&(is_new(b), order(b))));
    shown.sort_by(|a, b| order(b).cmp(&order(a)));
    all.extend(waiting.into_iter().chain(shown));
    all.truncate(LEFTOVERS);
    all.sort_by(|a, b| order(a).cmp(&order(b)));
    all
}

fn order(it: &Leftover) -> (jiff::Timestamp, &str) {
    (it.since.0, &it.uid)
}

/// Returns the leftover of a compute whose host cleanup has ended; `None` before that, and where
/// the operator removes what nova has.
fn leftover(compute: &ExternalCompute) -> Option<Leftover> {
    let concluded = concluded(compute).filter(|_| !goes_by_api(compute))?;
    let status = compute.status.as_ref()?;
    Some(Leftover {
        host_name: messages::host(compute),
        compute: compute.name_any(),
        uid: compute.uid()?,
        stopped: concluded.status == ConditionStatus::True,
        since: concluded.last_transition_time.clone(),
        service_id: status.service_id.clone(),
        compute_id: status.compute_id.clone(),
        message: String::new(),
    })
}

/// Returns an entry as it stays in the list; `None` once nothing is left, or a compute uses again
/// what is left.
fn remaining(seen: &Observed, entry: &Leftover) -> Option<Leftover> {
    let mut users = seen.computes.iter().filter(|it| has_host(it, &entry.host_name));
    let Some(of_hosts) = seen.hosts.as_ref().filter(|_| has_ids(entry)) else {
        return users.next().is_none().then(|| entry.clone());
    };
    let has_same_ids = |it: &ExternalCompute| {
        let status = it.status.as_ref();
        status.is_some_and(|it| {
            it.service_id == entry.service_id && it.compute_id == entry.compute_id
        })
    };
    if users.any(|it| has_same_ids(it)) {
        return None;
    }
    let message = match of_hosts.leftovers.get(&entry.uid) {
        Some(found) if is_deleted(found) => return None,
        Some(found) => held(seen, entry, found).unwrap_or_else(|| entry.message.clone()),
        None => entry.message.clone(),
    };
    Some(Leftover { message, ..entry.clone() })
}

/// Whether a compute that is not terminating is registered under a host name: what nova has of it
/// is in use again.
fn has_host(compute: &ExternalCompute, host: &str) -> bool {
    let has_attempts = !compute.services().is_empty();
    !is_terminating(compute) && has_attempts && compute.host_name() == Some(host)
}

fn is_deleted(found: &LeftoverSeen) -> bool {
    let LeftoverSeen::Progress(HostProgress::Removing(removal)) = found else { return false };
    removal.service == ServiceRemoval::Done && removal.placement == PlacementRemoval::Done
}

/// Returns why a leftover is not deleted yet, and what to do about it; `None` where what was found
/// says nothing new.
fn held(seen: &Observed, entry: &Leftover, found: &LeftoverSeen) -> Option<String> {
    let host = &entry.host_name;
    let compare = format!(
        "Compare the UUIDs with those of `openstack --os-compute-api-version 2.53 compute service \
         list --host {host}` and `openstack resource provider list --name {host}`, and delete what \
         is not in use."
    );
    let progress = match found {
        LeftoverSeen::InUse(user) => {
            let text = format!("The host name belongs to {user} again, so nothing is deleted.");
            return Some(format!("{text} {compare}"));
        }
        LeftoverSeen::OtherNode(id) => {
            let text = format!("Nova has compute node {id} on the host, so nothing is deleted.");
            return Some(format!("{text} {compare}"));
        }
        LeftoverSeen::Progress(progress) => progress,
    };
    if let HostProgress::Removing(Removal { service, placement, .. }) = progress {
        return held::service(host, service).or_else(|| held::provider(host, placement));
    }
    if let HostProgress::OtherService { id } = progress {
        return Some(format!(
            "Nova has service {id} of the host, which is not the recorded one, so nothing is \
             deleted. {compare}"
        ));
    }
    if let HostProgress::Identity(IdentityUse::OtherHost { compute_id, host }) = progress {
        return Some(format!(
            "Nova has compute node {compute_id} on host {host} now, so nothing is deleted. {compare}"
        ));
    }
    let (_, cause) = unknown(progress, &seen.cell.spec.secret)?;
    Some(format!("It is unknown what nova has of the host, because {cause}"))
}

/// Returns the Events about new entries of the list, and about those that are worked off.
pub fn notices(seen: &Observed, leftovers: &[Leftover]) -> Vec<EventDraft> {
    let known: BTreeMap<&str, &Leftover> =
        seen.cell.leftovers().iter().map(|it| (it.uid.as_str(), it)).collect();
    let new: Vec<&Leftover> =
        leftovers.iter().filter(|it| !known.contains_key(it.uid.as_str())).collect();
    let is_deleted = |it: &&&Leftover| {
        let found = seen.hosts.as_ref().and_then(|of| of.leftovers.get(&it.uid));
        found.is_some_and(is_deleted)
    };
    let deleted: Vec<&str> =
        known.values().filter(is_deleted).map(|it| it.host_name.as_str()).collect();
    let of_deleted = (!deleted.is_empty()).then(|| {
        let note = format!(
            "What nova and placement had of hosts whose computes were let go is deleted: {}.",
            first_of(&deleted)
        );
        EventDraft { warning: false, reason: "LeftoverDeleted".to_owned(), note }
    });
    of_new(seen, &new).into_iter().chain(of_deleted).collect()
}

fn of_new(seen: &Observed, new: &[&Leftover]) -> Option<EventDraft> {
    let hosts: Vec<&str> = new.iter().map(|it| it.host_name.as_str()).collect();
    let first = hosts.first()?;
    let next_step = if seen.hosts.is_some() && new.iter().all(|it| has_ids(it)) {
        "They are deleted once nova's API shows that the hosts are empty; status.leftovers says \
         what they wait for."
            .to_owned()
    } else {
        format!(
            "When no instances are left on a host, `openstack compute service list --service \
             nova-compute --host {first}` shows the id for `openstack compute service delete`."
        )
    };
    let note = format!(
        "Nova keeps its records of hosts whose computes were removed: {}. {next_step}",
        first_of(&hosts)
    );
    Some(EventDraft { warning: true, reason: "LeftInNova".to_owned(), note })
}
