//! The judgement on a cell: what its conditions say, when its services are asked again, and what
//! keeps it.

use std::time::Duration;

use common::api::nova::{Cell, CellStatus};
use common::conditions::{self, Finding, READY, settle};
use common::finalizers::{hold, is_terminating, release};
use common::plan::{Notice, Plan, Step, Target, Write, status_step};
use jiff::Timestamp;
use kube::ResourceExt;

use crate::annotations::ALLOW_REMOVAL;
use crate::cell::leftovers;
use crate::cell::observe::{Answers, NamedSecret, Observed, view};
use crate::conf::{CellFaultReason, SERVICE_PASSWORD, TRANSPORT_URL};
use crate::holds;

/// Both Secrets are there and complete.
pub const INPUT_READY: &str = "InputReady";
/// Every broker accepts the login.
pub const MESSAGE_BUS_READY: &str = "MessageBusReady";
/// Nothing holds the cell: said only of one that is being deleted.
pub const RELEASED: &str = "Released";
/// Keystone answers.
pub const KEYSTONE_READY: &str = "KeystoneReady";

/// How many computes a condition names.
const NAMED: usize = 5;
/// A look without a cause, for whatever no watch tells.
const RESYNC: Duration = Duration::from_mins(15);

/// Judges a cell.
pub fn decide(seen: &Observed, now: Timestamp) -> Plan {
    let mut plan = Plan { look_again: Some(RESYNC), ..Plan::default() };
    if let Some(pause) = seen.ask_in {
        plan.look_again_in(pause);
    }
    let cell = &seen.cell;
    if let Some(because) = goes(seen) {
        plan.steps.extend(release(&**cell, holds::CELL, because));
        return plan;
    }
    let findings = findings(seen);
    let observed = cell.status.as_ref();
    let previous = observed.map(|it| it.conditions.clone()).unwrap_or_default();
    let wanted = CellStatus {
        observed_generation: cell.metadata.generation,
        conditions: settle(&previous, findings, cell.metadata.generation, now),
        hash: observed.map(|it| it.hash.clone()).unwrap_or_default(),
        computes: i64::try_from(seen.computes.len()).ok(),
        leftovers: leftovers::of(seen),
    };
    let next = wanted.conditions.clone();
    let step = status_step(Target::of::<Cell>(cell), observed, &wanted, &previous, &next);
    plan.steps.extend(step.map(|it| noticed(it, leftovers::notice(cell, &wanted.leftovers))));
    plan.steps.extend(holding(seen));
    plan
}

fn noticed(mut step: Step, notice: Option<Notice>) -> Step {
    if let Write::Status { notices, .. } = &mut step.write {
        notices.extend(notice);
    }
    step
}

/// Why a cell that is being deleted may go now.
fn goes(seen: &Observed) -> Option<&'static str> {
    let why = match (seen.namespace_goes, seen.computes.is_empty()) {
        (true, _) => "its namespace is being deleted",
        (false, true) => "it has no computes any more",
        (false, false) => return None,
    };
    is_terminating(&*seen.cell).then_some(why)
}

/// A cell is held while it has computes: they could neither be deployed nor tell what they leave.
fn holding(seen: &Observed) -> Option<Step> {
    if seen.computes.is_empty() {
        return release(&*seen.cell, holds::CELL, "it has no computes any more");
    }
    hold(&*seen.cell, holds::CELL, "it has computes")
}

fn findings(seen: &Observed) -> Vec<Finding> {
    let input = input(seen);
    let (message_bus, keystone) = match &seen.answers {
        Some(answers) => (message_bus(answers), keystone(seen, answers)),
        None => (not_asked(MESSAGE_BUS_READY), not_asked(KEYSTONE_READY)),
    };
    let name = seen.cell.name_any();
    let text = format!("NovaCell {name} can be used: its message bus and Keystone answer.");
    let mut all = vec![input, message_bus, keystone];
    let ready = conditions::ready(&all, Finding::good(READY, "Ready", text));
    all.extend(conditions::kstatus(&ready));
    all.push(ready);
    all.extend(is_terminating(&*seen.cell).then(|| in_use(seen)));
    all
}

/// What keeps a cell that is being deleted: the first computes by name, and how many there are.
fn in_use(seen: &Observed) -> Finding {
    let names: Vec<String> = seen.computes.iter().take(NAMED).map(|it| it.name_any()).collect();
    let (names, total) = (names.join(", "), seen.computes.len());
    let more = match total.saturating_sub(NAMED) {
        0 => String::new(),
        n_more => format!(" and {n_more} more"),
    };
    let text = format!(
        "NovaCell {} goes when no NovaExternalCompute names it any more; {total} do: {names}{more}. \
         Take them away first: delete their nodes, or let each node's compute go with annotation \
         {ALLOW_REMOVAL}.",
        seen.cell.name_any()
    );
    Finding::warning(RELEASED, "CellInUse", text)
}

fn input(seen: &Observed) -> Finding {
    let named = [
        (&seen.secret, "spec.secret", SERVICE_PASSWORD),
        (&seen.message_bus, "spec.cellMessageBusSecretName", TRANSPORT_URL),
    ];
    let missing: Vec<String> = named
        .into_iter()
        .filter(|(secret, ..)| secret.content.is_none())
        .map(|(secret, field, key)| missing(&seen.cell, secret, field, key))
        .collect();
    if !missing.is_empty() {
        return Finding::warning(INPUT_READY, "SecretNotFound", missing.join(" "));
    }
    match view(&seen.cell, &seen.secret, &seen.message_bus) {
        Some(Err(faults)) => {
            let texts: Vec<String> = faults.iter().map(|it| format!("{}.", it.message)).collect();
            let lacks = faults.iter().any(|it| it.reason == CellFaultReason::KeyMissing);
            let reason = if lacks { "SecretIncomplete" } else { "InputInvalid" };
            Finding::warning(INPUT_READY, reason, texts.join(" "))
        }
        _ => Finding::good(INPUT_READY, "InputComplete", "Every input is there."),
    }
}

fn missing(cell: &Cell, secret: &NamedSecret, field: &str, key: &str) -> String {
    let (namespace, name) = (cell.namespace().unwrap_or_default(), &secret.name);
    format!(
        "Secret {name}, named in {field} of NovaCell {}, does not exist: create it with kubectl \
         create secret generic -n {namespace} {name} --from-literal={key}=<value>.",
        cell.name_any()
    )
}

fn message_bus(answers: &Answers) -> Finding {
    let bad: Vec<_> = answers.message_bus.iter().filter(|it| !it.login.is_ok()).collect();
    let Some(first) = bad.first() else {
        return Finding::good(MESSAGE_BUS_READY, "LoggedIn", "Every broker accepts the login.");
    };
    let texts: Vec<String> = bad.iter().map(ToString::to_string).collect();
    let text = format!("{}. It is asked again by itself.", texts.join("; "));
    Finding::warning(MESSAGE_BUS_READY, first.login.reason(), text)
}

fn keystone(seen: &Observed, answers: &Answers) -> Finding {
    let url = &seen.cell.spec.keystone_auth_url;
    match &answers.keystone {
        Ok(()) => Finding::good(KEYSTONE_READY, "Answered", format!("Keystone answers at {url}.")),
        Err(fault) => {
            let text =
                format!("{fault} (spec.keystoneAuthURL {url}). It is asked again by itself.");
            Finding::warning(KEYSTONE_READY, fault.reason(), text)
        }
    }
}

fn not_asked(type_: &str) -> Finding {
    Finding::unknown(type_, "InputMissing", "It is asked once every input is there.")
}
