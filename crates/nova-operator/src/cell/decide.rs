//! The decisions on a cell: its files, its status, and its finalizer.

use jiff::Timestamp;
use operator_core::finalizers::{add_finalizer, is_terminating, remove_finalizer};
use operator_core::plan::{EventDraft, Plan, Step, Write};
use operator_core::rejected_write::{RejectedWrite, WRITES_ACCEPTED};

use crate::cell::credential_rotation;
use crate::cell::credential_rotation::RotationProgress;
use crate::cell::hosts::orders::orders;
use crate::cell::hosts::release;
use crate::cell::observed::Observed;
use crate::cell::{
    conductor, config, discovery, leftovers, mappings, nova_api, nova_matches, shared_bus, status,
};
use crate::cell_inputs::{of_cell, view};
use crate::finalizers;
use crate::nova::drain::order::OrderOfHost;

/// Returns the plan for a cell, with the orders about its hosts, which follow from what is recorded
/// already.
pub fn decide(
    seen: &Observed,
    rejected: Option<&RejectedWrite>,
    now: Timestamp,
) -> Plan<OrderOfHost> {
    let mut plan = Plan { orders: orders(seen), ..Plan::with_resync() };
    let cell = &seen.cell;
    if let Some(because) = goes(seen) {
        plan.steps.extend(remove_finalizer(&**cell, finalizers::CELL, because));
        return plan;
    }
    let (secret, message_bus) = (seen.secret.as_ref(), seen.message_bus.as_ref());
    let view = view(cell, secret, message_bus);
    let complete = view.as_ref().and_then(|it| it.as_ref().ok());
    let present = of_cell(cell, secret, message_bus);
    let shared_bus = shared_bus::condition(seen);
    // Node sets mount the files: those with a bus of another cell are not written.
    let config = config::render(seen, complete.filter(|_| shared_bus.is_none()));
    let count = complete.map(|_| RotationProgress::of(&seen.computes, &present));
    let previous = cell.conditions();
    let mut drafts = vec![config.condition, credential_rotation::condition(seen, count.as_ref())];
    drafts.extend(conductor::condition(cell, &seen.computes));
    drafts.extend(nova_matches::condition(cell, &seen.computes));
    drafts.extend(nova_api::conditions(seen, previous));
    // First, because removals wait for readings; one that is rejected is not tried again.
    let reading = mappings::decide::decide(seen, rejected, now);
    let discovery = discovery::decide::decide(seen, reading.job.is_some(), now);
    drafts.extend(discovery.condition);
    for next in [reading.next, discovery.next].into_iter().flatten() {
        plan.requeue_at(next, now);
    }
    // Files that cannot be written do not affect computes, which have their own files.
    drafts.extend(rejected.map(|it| it.condition(WRITES_ACCEPTED, previous)));
    drafts.extend(status::conditions(seen, view.as_ref(), shared_bus, previous));
    let digests = status::digests(seen, &present, config.hash);
    let up_to_date = count.map(|it| it.up_to_date());
    let mut desired = status::desired(seen, drafts, &digests, up_to_date, now);
    (desired.discovery, desired.mapping_reading) = (discovery.record, reading.record);
    // A terminating cell deletes its files with it.
    plan.steps.extend(config.step.filter(|_| !is_terminating(&**cell)));
    let step = status::step(seen, &desired, &digests);
    let renewing = config.renewing.filter(|_| step.is_some() && !is_terminating(&**cell));
    plan.steps.extend(renewing);
    plan.steps.extend(step.map(|it| noticed(it, leftovers::notices(seen, &desired.leftovers))));
    plan.steps.extend(finalizer_step(seen));
    // After the status: an attempt is recorded before its Job exists, and a result before it goes.
    plan.steps.extend(reading.job.into_iter().chain(reading.ended).chain(discovery.steps));
    plan
}

fn noticed(mut step: Step, new: Vec<EventDraft>) -> Step {
    if let Write::Status { notices, .. } = &mut step.write {
        notices.extend(new);
    }
    step
}

/// Returns why the finalizer of a terminating cell can be removed, or `None` while it must stay.
fn goes(seen: &Observed) -> Option<&'static str> {
    let is_empty = seen.computes.is_empty() && release::is_free(seen);
    let why = match (seen.namespace_goes, is_empty) {
        (true, _) => "its namespace is being deleted",
        (false, true) => "it has no computes any more, and nothing on its hosts holds it",
        (false, false) => return None,
    };
    is_terminating(&*seen.cell).then_some(why)
}

/// The finalizer holds a cell that has computes: without it they could not be deployed, and their
/// leftovers could not be recorded. Where nova's API is used, it holds any cell that may have hosts.
fn finalizer_step(seen: &Observed) -> Option<Step> {
    if seen.computes.is_empty() && seen.hosts.is_none() {
        return remove_finalizer(&*seen.cell, finalizers::CELL, "it has no computes any more");
    }
    add_finalizer(&*seen.cell, finalizers::CELL, "it may have hosts")
}
