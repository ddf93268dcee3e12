//! Records of removed computes that remain in nova, listed in the status of their cell, which is
//! the last object to know them.

use std::collections::{BTreeMap, BTreeSet};

use api::conditions::ConditionStatus;
use api::nova::cell::LEFTOVERS;
use api::nova::{Cell, ExternalCompute, Leftover};
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::plan::EventDraft;

use crate::cell::credential_rotation::first_of;
use crate::cell::observed::Observed;
use crate::cleanup::messages;
use crate::cleanup::nova_removal::has_begun;
use crate::cleanup::status::concluded;

/// Returns the leftovers of a cell, the earliest first.
///
/// # Guarantees
/// The list is bounded. Computes that still wait to be recorded come first; the entries of computes
/// that are already gone are dropped for them, the earliest first.
pub fn cell_leftovers(seen: &Observed) -> Vec<Leftover> {
    let known = seen.cell.status.as_ref().map(|it| it.leftovers.as_slice()).unwrap_or_default();
    let mut waiting: Vec<Leftover> = seen.computes.iter().filter_map(|it| leftover(it)).collect();
    waiting.sort_by(|a, b| order(a).cmp(&order(b)));
    waiting.truncate(LEFTOVERS);
    let is_waiting: BTreeSet<&str> = waiting.iter().map(|it| it.uid.as_str()).collect();
    let registered: BTreeSet<&str> = seen.computes.iter().filter_map(|it| registered(it)).collect();
    let is_left = |it: &&Leftover| {
        !is_waiting.contains(it.uid.as_str()) && !registered.contains(it.host_name.as_str())
    };
    let mut gone: Vec<Leftover> = known.iter().filter(is_left).cloned().collect();
    gone.sort_by(|a, b| order(b).cmp(&order(a)));
    gone.truncate(LEFTOVERS - waiting.len());
    let mut all: Vec<Leftover> = waiting.into_iter().chain(gone).collect();
    all.sort_by(|a, b| order(a).cmp(&order(b)));
    all
}

fn order(it: &Leftover) -> (jiff::Timestamp, &str) {
    (it.since.0, &it.uid)
}

/// Returns the leftover of a compute whose host cleanup has ended; `None` before that, and where
/// the operator removes what nova has.
fn leftover(compute: &ExternalCompute) -> Option<Leftover> {
    let concluded = concluded(compute).filter(|_| !has_begun(compute))?;
    Some(Leftover {
        host_name: messages::host(compute),
        compute: compute.name_any(),
        uid: compute.uid()?,
        stopped: concluded.status == ConditionStatus::True,
        since: concluded.last_transition_time.clone(),
    })
}

/// Returns the host name of a compute that is not terminating: its records in nova are in use
/// again.
fn registered(compute: &ExternalCompute) -> Option<&str> {
    let status = compute.status.as_ref().filter(|it| !it.services.is_empty())?;
    status.host_name.as_deref().filter(|_| !is_terminating(compute))
}

/// Returns the Event that names new entries of the list, or `None` without any.
pub fn notice(cell: &Cell, leftovers: &[Leftover]) -> Option<EventDraft> {
    let known = cell.status.as_ref().map(|it| it.leftovers.as_slice()).unwrap_or_default();
    let known: BTreeMap<&str, &Leftover> = known.iter().map(|it| (it.uid.as_str(), it)).collect();
    let new: Vec<&str> = leftovers
        .iter()
        .filter(|it| !known.contains_key(it.uid.as_str()))
        .map(|it| it.host_name.as_str())
        .collect();
    let first = new.first()?;
    let note = format!(
        "Nova keeps its records of hosts whose computes were removed: {}. When no instances are \
         left on a host, `openstack compute service list --service nova-compute --host {first}` \
         shows the id for `openstack compute service delete`.",
        first_of(&new)
    );
    Some(EventDraft { warning: true, reason: "LeftInNova".to_owned(), note })
}
