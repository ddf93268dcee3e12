//! Whether a cell has a place for what nova keeps of a host whose compute is let go.

use api::conditions::ConditionDraft;
use api::nova::cell::LEFTOVERS;
use api::nova::{Cell, Leftover};
use kube::ResourceExt;
use nova_config::conditions::LEFTOVER_RECORDED;

use crate::reasons;

/// Whether a cell has no place for a further leftover: each entry has UUIDs that are to be deleted.
pub fn is_full(cell: &Cell) -> bool {
    cell.leftovers().iter().filter(|it| has_ids(it)).count() >= LEFTOVERS
}

/// Returns that a host is held because its cell has no place for what is left of it, and what to do
/// about it; `None` where the cell has a place.
pub fn full(host: &str, cell: &Cell) -> Option<ConditionDraft> {
    let (namespace, name) = (cell.namespace().unwrap_or_default(), cell.name_any());
    let text = format!(
        "What nova keeps of host {host} cannot be recorded, because status.leftovers of NovaCell \
         {name} has {LEFTOVERS} entries whose UUIDs are still to be deleted. Each says what it waits \
         for: kubectl -n {namespace} get novacell {name} -o yaml. Do what an entry says; or delete in \
         nova and placement what it names, and take it off the list: kubectl -n {namespace} edit \
         --subresource=status novacell {name}."
    );
    is_full(cell).then(|| reasons::cleanup::LEFTOVERS_FULL.condition(LEFTOVER_RECORDED, text))
}

/// Returns whether a leftover has UUIDs, by which it can be worked off.
pub fn has_ids(leftover: &Leftover) -> bool {
    leftover.service_id.is_some() || leftover.compute_id.is_some()
}
