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

/// Returns whether cells may not have the same message bus: they are different cells of nova. The
/// one of a cell0 is that of nova's API.
pub fn may_not_share(one: &Cell, other: &Cell) -> bool {
    one.spec.cell_name != other.spec.cell_name
        && ![one, other].iter().any(|it| is_cell_zero(it) || is_terminating(*it))
}

/// Returns whether two Secrets have the same message bus.
pub fn is_same(one: &Content, other: &Content) -> bool {
    let url = |it: &Content| TransportUrl::parse(line(it, TRANSPORT_URL)?).ok();
    url(one).zip(url(other)).is_some_and(|(one, other)| one.is_same_bus(&other))
}

/// Returns the condition of a cell whose message bus belongs to another one; `None` for all others.
pub fn condition(seen: &Observed) -> Option<ConditionDraft> {
    let bus = seen.message_bus.as_ref()?;
    let own = CellOnBus::of(Arc::clone(&seen.cell), bus, &seen.computes);
    let text = fault(&own, &seen.on_same_bus)?;
    Some(reasons::cell::MESSAGE_BUS_SHARED.condition(INPUT_READY, text))
}

/// Returns the message about a bus that belongs to one of the `others`; `None` where it is the cell's
/// own.
fn fault(own: &CellOnBus, others: &[CellOnBus]) -> Option<String> {
    let first = others.iter().min_by_key(|it| it.precedence())?;
    if own.precedence() < first.precedence() {
        return None;
    }
    let (name, bus) = (own.cell.name_any(), &own.cell.spec.cell_message_bus_secret_name);
    let other = first.cell.name_any();
    Some(format!(
        "Secret {bus}, named in spec.cellMessageBusSecretName of NovaCell {name}, has the message bus \
         of NovaCell {other}: servers of computes that are deployed with it could not be reached any \
         more, so nothing is deployed. Correct brokers or virtual host of {TRANSPORT_URL} in that \
         Secret, or name the Secret of {name}."
    ))
}

#[cfg(test)]
mod tests;
