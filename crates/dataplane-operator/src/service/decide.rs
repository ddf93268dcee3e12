//! The decision on a service: what to restore and expose, and its status.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::merge_conditions;
use api::dataplane::{Service, ServiceStatus};
use jiff::Timestamp;
use operator_core::finalizers::is_terminating;
use operator_core::plan::{EventDraft, Plan, Step, Target, Write, status_step};
use operator_core::rejected_write::RejectedWrite;

use crate::default_services;
use crate::endpoints::decide::{LOOK_AGAIN, writes};
use crate::service::observed::Observed;
use crate::service::status::conditions;

/// Periodic requeue, for changes that no watch reports.
const RESYNC: Duration = Duration::from_mins(15);

/// Decides what to write for a service.
pub fn decide(seen: &Observed, now: Timestamp) -> Plan {
    let mut plan = Plan { requeue_after: Some(RESYNC), ..Plan::default() };
    let Some(service) = &seen.service else {
        let because = "hosts of this namespace may get it";
        plan.steps.extend(default_services::step(&seen.namespace, &seen.name, because));
        return plan;
    };
    if is_terminating(&**service) {
        return plan;
    }
    let restoration = default_services::restoration(service);
    let (restoring, notice) = restoration.unzip();
    // Ports that a user added to a default service disappear once it is restored.
    if let Some(ports) = seen.ports.as_ref().filter(|_| restoring.is_none()) {
        plan.steps.extend(writes(ports));
        if !ports.taken.is_empty() {
            plan.requeue_in(LOOK_AGAIN);
        }
    }
    plan.steps.extend(restoring);
    plan.steps.extend(status(seen, service, None, now).map(|it| telling(it, notice.flatten())));
    plan
}

/// Returns the status step that reports a rejected write.
pub fn report_rejection(seen: &Observed, rejected: &RejectedWrite, now: Timestamp) -> Plan {
    let service = seen.service.as_ref();
    let steps = service.and_then(|it| status(seen, it, Some(rejected), now));
    Plan { steps: steps.into_iter().collect(), ..Plan::default() }
}

/// Adds an Event to the status step.
fn telling(mut status: Step, notice: Option<EventDraft>) -> Step {
    if let Write::Status { notices, .. } = &mut status.write {
        notices.extend(notice);
    }
    status
}

fn status(
    seen: &Observed,
    service: &Arc<Service>,
    rejection: Option<&RejectedWrite>,
    now: Timestamp,
) -> Option<Step> {
    let observed = service.status.as_ref();
    let previous = observed.map(|it| it.conditions.clone()).unwrap_or_default();
    let held = default_services::as_it_holds(Arc::clone(service));
    let conditions = conditions(seen, &held, rejection, &previous);
    let generation = service.metadata.generation;
    let desired = ServiceStatus {
        observed_generation: generation,
        conditions: merge_conditions(&previous, conditions, generation, now),
    };
    let next = desired.conditions.clone();
    status_step(Target::of(&**service), observed, &desired, &previous, &next)
}
