//! What is to be done in nova about the hosts of a node set.

use std::collections::BTreeMap;

use jiff::Timestamp;
use operator_core::object_key::Key;
use operator_core::plan::Order;

use crate::drain::findings::Findings;
use crate::drain::order::{HostOrder, OrderOfHost};
use crate::drain::request::DrainRequest;
use crate::node_set_computes::observed::{HostDrain, Observed};
use crate::node_set_computes::removal::decide::host_order;
use crate::node_set_computes::removal::observed::TerminatingHost;
use crate::nova_identity::Identity;

/// Returns the orders about the hosts of a node set, at most one for each.
///
/// They follow from what is recorded and read, and not from what passes have found.
pub fn orders(seen: &Observed, now: Timestamp) -> Vec<Order<OrderOfHost>> {
    let drains = seen.drains.iter().flatten().filter_map(of_drain);
    let leaving = seen.removals.terminating.iter();
    // The removal of a host counts, whatever else is requested under its name.
    let all = drains.chain(leaving.filter_map(|it| of_removal(seen, it, now)));
    let by_host: BTreeMap<String, _> = all.map(|it| (it.what.host.clone(), it)).collect();
    by_host.into_values().collect()
}

/// Returns what was observed with how far each order is that follows from it.
pub fn with_progress(seen: &Observed, found: &Findings, now: Timestamp) -> Observed {
    let mut known = seen.clone();
    for drain in known.drains.iter_mut().flatten() {
        drain.progress = found.of(of_drain(drain).as_ref());
    }
    for host in &mut known.removals.terminating {
        host.progress = found.of(of_removal(seen, host, now).as_ref());
    }
    known
}

fn of_drain(of: &HostDrain) -> Option<Order<OrderOfHost>> {
    let because = if of.request == DrainRequest::Absent {
        "no drain of the host is requested any more"
    } else if of.is_awaited {
        "a deployment waits until the host is drained"
    } else {
        "a drain of the host is requested"
    };
    Some(about((of.cell.as_ref()?, &of.host), of.recorded.clone(), of.order()?, because))
}

fn of_removal(seen: &Observed, of: &TerminatingHost, now: Timestamp) -> Option<Order<OrderOfHost>> {
    let (cell, _) = of.cell.as_ref()?;
    let order = host_order(&seen.set, &seen.removals, of, now)?;
    let because = "the host leaves its node set";
    Some(about((cell, &of.host), of.record.identity(), order, because))
}

fn about(
    (cell, host): (&Key, &str),
    meant_for: Identity,
    order: HostOrder,
    because: &str,
) -> Order<OrderOfHost> {
    let (cell, host) = (cell.clone(), host.to_owned());
    Order { what: OrderOfHost { cell, host, meant_for, order }, reason: because.to_owned() }
}
