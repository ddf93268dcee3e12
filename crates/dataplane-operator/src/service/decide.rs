//! The decision on a service: what to restore and expose, and its status.

use std::sync::Arc;

use api::conditions::merge_conditions;
use api::dataplane::{Service, ServiceStatus};
use jiff::Timestamp;
use operator_core::finalizers::is_terminating;
use operator_core::plan::{EventDraft, Plan, Step, Target, Write, status_step};
use operator_core::rejected_write::RejectedWrite;

use crate::default_services::{contested_until, taking_back};
use crate::endpoints::decide::{NAME_POLL_INTERVAL, writes};
use crate::service::observed::Observed;
use crate::service::status::{conditions, contested};

/// Decides what to write for a service.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    let mut plan = Plan::with_resync();
    let Some(service) = &seen.service else {
        let because = "hosts of this namespace may get it";
        plan.steps.extend(seen.defaults.step(&seen.namespace, &seen.name, because));
        return plan;
    };
    if is_terminating(&**service) {
        return plan;
    }
    let (restoring, event) = seen.defaults.restoration(service).unzip();
    let event = event.flatten();
    let is_edit = event.is_some();
    let contested = contested_until(service, now).filter(|_| is_edit);
    // Ports that a user added to a default service disappear once it is restored.
    if let Some(ports) = seen.ports.as_ref().filter(|_| restoring.is_none()) {
        plan.steps.extend(writes(ports));
        if !ports.taken.is_empty() {
            plan.requeue_in(NAME_POLL_INTERVAL);
        }
    }
    match (restoring, contested) {
        (_, Some(until)) => plan.requeue_at(until, now),
        (Some(step), None) if is_edit => plan.push(taking_back(step, service, now)),
        (step, None) => plan.steps.extend(step),
    }
    // A rejected restoration has restored nothing.
    let event = event.filter(|_| rejected.is_none() && contested.is_none());
    let status = status(seen, service, rejected, contested.is_some(), now);
    plan.steps.extend(status.map(|it| with_event(it, event)));
    plan
}

/// Adds an Event to the status step.
fn with_event(mut status: Step, event: Option<EventDraft>) -> Step {
    if let Write::Status { notices, .. } = &mut status.write {
        notices.extend(event);
    }
    status
}

fn status(
    seen: &Observed,
    service: &Arc<Service>,
    rejection: Option<&RejectedWrite>,
    is_contested: bool,
    now: Timestamp,
) -> Option<Step> {
    let observed = service.status.as_ref();
    let held = seen.defaults.as_it_holds(Arc::clone(service));
    let mut conditions = conditions(seen, &held, rejection, service.conditions());
    conditions.extend(is_contested.then(|| contested(&held)));
    let generation = service.metadata.generation;
    let desired = ServiceStatus {
        observed_generation: generation,
        conditions: merge_conditions(service.conditions(), conditions, generation, now),
    };
    status_step(Target::of(&**service), observed, &desired)
}
