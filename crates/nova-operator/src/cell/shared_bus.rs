//! Which cell a message bus belongs to, where two cells of a namespace name the same one.
//!
//! Computes that are deployed with the bus of another cell answer there, and their servers, which stay
//! in the database of their own cell, cannot be reached any more.

use std::sync::Arc;

use api::conditions::ConditionDraft;
use api::nova::Cell;
use kube::ResourceExt;
use nova_config::conditions::INPUT_READY;
use nova_config::conf::TRANSPORT_URL;
use nova_config::transport_url::TransportUrl;
use operator_core::finalizers::is_terminating;
use operator_runtime::source_cache::Content;

use crate::cell::config::is_cell_zero;
use crate::cell::observed::Observed;
use crate::cell::observed::cell_on_bus::CellOnBus;
use crate::cell_inputs::line;
use crate::reasons;

/// Returns whether a cell may not have the message bus of another one: they are different cells of nova.
/// That of a cell0 is nova's API's, and a cell that goes deploys nothing more.
pub fn may_not_share(own: &Cell, other: &Cell) -> bool {
    own.spec.cell_name != other.spec.cell_name
        && !is_terminating(own)
        && ![own, other].into_iter().any(is_cell_zero)
}

/// Returns whether two Secrets have the same message bus.
pub fn is_same(one: &Content, other: &Content) -> bool {
    let url = |it: &Content| TransportUrl::parse(line(it, TRANSPORT_URL)?).ok();
    url(one).zip(url(other)).is_some_and(|(one, other)| one.is_same_bus(&other))
}

/// Returns the condition of a cell with the message bus of another one, unless the bus is certainly its
/// own.
pub fn condition(seen: &Observed) -> Option<ConditionDraft> {
    if seen.on_same_bus.is_empty() {
        return None;
    }
    let own = CellOnBus::of(Arc::clone(&seen.cell), &seen.computes);
    let text = fault(&own, &seen.on_same_bus)?;
    Some(reasons::cell::MESSAGE_BUS_SHARED.condition(INPUT_READY, text))
}

/// Returns the message about a bus that may belong to one of the `others`.
///
/// It is certainly the cell's own where that alone has computes in service, or is the oldest of those
/// without any. Of two with computes each may have got the wrong Secret.
fn fault(own: &CellOnBus, others: &[CellOnBus]) -> Option<String> {
    let age = |it: &CellOnBus| (it.cell.metadata.creation_timestamp.clone(), it.cell.name_any());
    let owns = |it: &&CellOnBus| it.has_computes || (!own.has_computes && age(it) < age(own));
    let first = others.iter().filter(owns).min_by_key(|it| age(it))?;
    let [(name, bus), (other, others_bus)] =
        [own, first].map(|it| (it.cell.name_any(), &it.cell.spec.cell_message_bus_secret_name));
    Some(format!(
        "NovaCell {name} and NovaCell {other} have one message bus, by Secrets {bus} and {others_bus}: \
         servers of computes that are deployed with the bus of another cell cannot be reached any more, so \
         nothing is deployed to those of {name}. Correct {TRANSPORT_URL} in the Secret of the cell whose bus \
         it is not, or spec.cellMessageBusSecretName there."
    ))
}

#[cfg(test)]
mod tests;
