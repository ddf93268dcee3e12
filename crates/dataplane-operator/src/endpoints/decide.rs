//! The judgement on a service's ports: what is written, what goes, and what the service says of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use common::api::dataplane::ServiceStatus;
use common::conditions::{self, Finding, READY, settle};
use common::plan::{Plan, Step, Target, status_step};
use common::refusal::{Refusal, WRITES_ACCEPTED};
use jiff::Timestamp;
use kube::{Resource, ResourceExt};

use crate::endpoints::build::{exposed, slice, slices_of};
use crate::endpoints::observe::Observed;

/// The ports are exposed over all nodes.
pub const ENDPOINTS_READY: &str = "EndpointsReady";

/// A look without a cause, for whatever no watch tells.
const RESYNC: Duration = Duration::from_mins(15);
/// When it is looked again whether a name that others have is free.
const LOOK_AGAIN: Duration = Duration::from_mins(1);
/// How many nodes a message names.
const NAMED_NODES: usize = 5;

/// Judges a service.
pub fn decide(seen: &Observed, now: Timestamp) -> Plan {
    let mut plan = Plan { look_again: Some(RESYNC), ..Plan::default() };
    if seen.service.metadata.deletion_timestamp.is_some() {
        return plan;
    }
    plan.steps = writes(seen);
    plan.steps.extend(status(seen, None, now));
    if !seen.taken.is_empty() {
        plan.look_again_in(LOOK_AGAIN);
    }
    plan
}

/// What is told when a write was refused.
pub fn refused(seen: &Observed, refusal: &Refusal, now: Timestamp) -> Plan {
    let steps = status(seen, Some(refusal), now).into_iter().collect();
    Plan { steps, ..Plan::default() }
}

fn named<'a, K: Resource>(objects: &'a [Arc<K>], name: &str) -> Option<&'a K> {
    objects.iter().find(|it| it.name_any() == name).map(|it| &**it)
}

fn writes(seen: &Observed) -> Vec<Step> {
    let service = &*seen.service;
    let (mut steps, mut services, mut slices) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for port in &service.spec.services {
        services.insert(port.name.clone());
        if !seen.taken.contains(&format!("Service {}", port.name)) {
            steps.extend(exposed(service, port, named(&seen.exposed, &port.name)));
        }
        for content in slices_of(port, &seen.addresses) {
            let name = content.0.clone();
            if !seen.taken.contains(&format!("EndpointSlice {name}")) {
                steps.extend(slice(service, port, content, named(&seen.slices, &name)));
            }
            slices.insert(name);
        }
    }
    let because = "nothing is exposed by it any more";
    let gone = seen.slices.iter().filter(|it| !slices.contains(&it.name_any()));
    steps.extend(
        gone.filter(|it| is_there(&***it)).map(|it| Step::delete(Target::of(&**it), because)),
    );
    let gone = seen.exposed.iter().filter(|it| !services.contains(&it.name_any()));
    steps.extend(
        gone.filter(|it| is_there(&***it)).map(|it| Step::delete(Target::of(&**it), because)),
    );
    steps
}

fn is_there<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_none()
}

fn status(seen: &Observed, refusal: Option<&Refusal>, now: Timestamp) -> Option<Step> {
    let service = &*seen.service;
    let observed = service.status.as_ref();
    let previous = observed.map(|it| it.conditions.clone()).unwrap_or_default();
    let mut findings = Vec::new();
    if !service.spec.services.is_empty() || refusal.is_some() {
        findings.push(endpoints(seen));
        findings.extend(refusal.map(|it| it.finding(WRITES_ACCEPTED, &previous)));
        let good = Finding::good(READY, "Ready", "The ports are exposed.");
        let ready = conditions::ready(&findings, good);
        findings.extend(conditions::kstatus(&ready));
        findings.push(ready);
    }
    let generation = service.metadata.generation;
    let wanted = ServiceStatus {
        observed_generation: generation,
        conditions: settle(&previous, findings, generation, now),
    };
    let next = wanted.conditions.clone();
    status_step(Target::of(service), observed, &wanted, &previous, &next)
}

fn endpoints(seen: &Observed) -> Finding {
    if !seen.taken.is_empty() {
        let taken: Vec<&str> = seen.taken.iter().take(NAMED_NODES).map(String::as_str).collect();
        let text = format!(
            "{} exists and belongs to others, so it is left alone: delete it, or name the port of \
             OpenStackDataPlaneService {} differently.",
            taken.join(", "),
            seen.service.name_any()
        );
        return Finding::error(ENDPOINTS_READY, "NameTaken", text);
    }
    let count = seen.addresses.count();
    let without = &seen.addresses.without;
    if !without.is_empty() {
        let first: Vec<&str> = without.iter().take(NAMED_NODES).map(String::as_str).collect();
        let more = match without.len().saturating_sub(NAMED_NODES) {
            0 => String::new(),
            n_more => format!(" and {n_more} more"),
        };
        let text = format!(
            "{count} addresses are exposed; left out without an IP address in ansibleHost: \
             OpenStackDataPlaneNode {}{more}.",
            first.join(", ")
        );
        return Finding::waiting(ENDPOINTS_READY, "AddressMissing", text);
    }
    let text = format!("The ports of {count} addresses are exposed.");
    Finding::good(ENDPOINTS_READY, "Exposed", text)
}
