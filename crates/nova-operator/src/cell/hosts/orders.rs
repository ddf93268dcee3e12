//! What is to be done in nova about the hosts of a cell.

use api::nova::Leftover;
use operator_core::object_key::Key;
use operator_core::plan::Order;

use crate::cell::observed::Observed;
use crate::cell::observed::hosts::LeftoverSeen;
use crate::nova::drain::findings::Findings;
use crate::nova::drain::order::{HostOrder, LeftBehind, OrderOfHost};
use crate::nova::drain::progress::HostProgress;
use crate::nova::identity::Identity;

/// How many hosts of a cell that is being deleted are read beside those that were found empty.
const READ_AT_A_TIME: usize = 8;

/// Returns the orders about the hosts of a cell: its leftovers are worked off, and a cell that is being
/// deleted has its hosts read, a few at a time.
pub fn orders(seen: &Observed) -> Vec<Order<OrderOfHost>> {
    let Some(of_hosts) = &seen.hosts else { return Vec::new() };
    let is_due =
        |it: &&Leftover| matches!(of_hosts.leftovers.get(&it.uid), Some(LeftoverSeen::Progress(_)));
    let leftovers = seen.cell.leftovers().iter().filter(is_due);
    let hosts = of_hosts.hosts.as_deref().unwrap_or_default();
    let mut n_left = 0;
    let is_read = |(_, progress): &&(String, HostProgress)| {
        let is_read = n_left < READ_AT_A_TIME;
        n_left += usize::from(!progress.is_empty());
        is_read
    };
    let read = hosts.iter().take_while(is_read).map(|(host, _)| inspection(seen, host));
    leftovers.map(|it| deletion(seen, it)).chain(read).collect()
}

/// Returns what was observed with how far each order is that follows from it.
pub fn with_progress(seen: &Observed, found: &Findings) -> Observed {
    let mut known = seen.clone();
    let Some(of_hosts) = &mut known.hosts else { return known };
    for leftover in seen.cell.leftovers() {
        if let Some(LeftoverSeen::Progress(it)) = of_hosts.leftovers.get_mut(&leftover.uid) {
            *it = found.of(Some(&deletion(seen, leftover)));
        }
    }
    let mut n_left = 0;
    for (host, progress) in of_hosts.hosts.iter_mut().flatten() {
        let order = (n_left < READ_AT_A_TIME).then(|| inspection(seen, host));
        *progress = found.of(order.as_ref());
        n_left += usize::from(!progress.is_empty());
    }
    known
}

/// A leftover carries the UUIDs that may be deleted in the order itself.
fn deletion(seen: &Observed, leftover: &Leftover) -> Order<OrderOfHost> {
    let (service_id, compute_id) = (leftover.service_id.clone(), leftover.compute_id.clone());
    let order = HostOrder::DeleteLeftover(LeftBehind { service_id, compute_id });
    about(seen, &leftover.host_name, order, "its compute is gone, and nothing else has its UUIDs")
}

fn inspection(seen: &Observed, host: &str) -> Order<OrderOfHost> {
    about(seen, host, HostOrder::Inspect, "the cell goes once its hosts are empty")
}

fn about(seen: &Observed, host: &str, order: HostOrder, because: &str) -> Order<OrderOfHost> {
    let (cell, host, meant_for) = (Key::of(&*seen.cell), host.to_owned(), Identity::default());
    let what = OrderOfHost { cell, host, meant_for, order, target: None };
    Order { what, reason: because.to_owned() }
}
