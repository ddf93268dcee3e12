//! The decisions on a cell: its conditions, the time of the next probe, and its finalizer.

use std::collections::BTreeMap;

use api::conditions::{self, ConditionDraft, READY, merge_conditions};
use api::nova::{Cell, CellStatus};
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::annotations::ALLOW_REMOVAL;
use nova_config::conditions::{INPUT_READY, KEYSTONE_READY, MESSAGE_BUS_READY, RELEASED};
use nova_config::conf::{CellFault, CellFaultReason, CellView, SERVICE_PASSWORD, TRANSPORT_URL};
use nova_config::rendered_secret::cell_secret_name;
use operator_core::finalizers::{add_finalizer, is_terminating, remove_finalizer};
use operator_core::keyed::{Digest, Inputs, Renewal, kept, short};
use operator_core::plan::{EventDraft, Plan, Step, Target, Write};
use operator_core::rejected_write::{RejectedWrite, WRITES_ACCEPTED};

use crate::cell::credential_rotation::{self, RotationProgress, first_of};
use crate::cell::credentials::{CREDENTIALS, of_cell};
use crate::cell::observed::{Answers, NamedSecret, Observed, view};
use crate::cell::{conductor, config, leftovers};
use crate::finalizers;
use crate::reasons;

/// Returns the plan for a cell.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    let mut plan = Plan::with_resync();
    if let Some(pause) = seen.ask_in {
        plan.requeue_in(pause);
    }
    let cell = &seen.cell;
    if let Some(because) = goes(seen) {
        plan.steps.extend(remove_finalizer(&**cell, finalizers::CELL, because));
        return plan;
    }
    let view = view(cell, &seen.secret, &seen.message_bus);
    let complete = view.as_ref().and_then(|it| it.as_ref().ok());
    let present = of_cell(cell, seen.secret.content.as_ref(), seen.message_bus.content.as_ref());
    let config = config::of(seen, complete);
    let count = complete.map(|_| RotationProgress::of(&seen.computes, &present));
    let observed = cell.status.as_ref();
    let previous = observed.map(|it| it.conditions.clone()).unwrap_or_default();
    let mut drafts = vec![config.condition, credential_rotation::condition(count.as_ref())];
    drafts.extend(conductor::condition(cell, &seen.computes));
    // Files that cannot be written do not affect computes, which have their own files.
    drafts.extend(rejected.map(|it| it.condition(WRITES_ACCEPTED, &previous)));
    drafts.extend(of_services(seen, view.as_ref()));
    let number = |it: usize| i64::try_from(it).ok();
    let digests = digests(seen, &present, config.hash);
    let desired = CellStatus {
        observed_generation: cell.metadata.generation,
        conditions: merge_conditions(&previous, drafts, cell.metadata.generation, now),
        hash: hashes(seen, &digests),
        computes: number(seen.computes.len()),
        up_to_date_computes: count.and_then(|it| number(it.up_to_date())),
        leftovers: leftovers::of(seen),
    };
    // A terminating cell deletes its files with it.
    plan.steps.extend(config.step.filter(|_| !is_terminating(&**cell)));
    let step = status(seen, &desired, &digests);
    let renewing = config.renewing.filter(|_| step.is_some() && !is_terminating(&**cell));
    plan.steps.extend(renewing);
    plan.steps.extend(step.map(|it| noticed(it, leftovers::notice(cell, &desired.leftovers))));
    plan.steps.extend(finalizer_step(seen));
    plan
}

fn noticed(mut step: Step, notice: Option<EventDraft>) -> Step {
    if let Write::Status { notices, .. } = &mut step.write {
        notices.extend(notice);
    }
    step
}

/// Returns why the finalizer of a terminating cell can be removed, or `None` while it must stay.
fn goes(seen: &Observed) -> Option<&'static str> {
    let why = match (seen.namespace_goes, seen.computes.is_empty()) {
        (true, _) => "its namespace is being deleted",
        (false, true) => "it has no computes any more",
        (false, false) => return None,
    };
    is_terminating(&*seen.cell).then_some(why)
}

/// The finalizer holds a cell that has computes: without it they could not be deployed, and their
/// leftovers could not be recorded.
fn finalizer_step(seen: &Observed) -> Option<Step> {
    if seen.computes.is_empty() {
        return remove_finalizer(&*seen.cell, finalizers::CELL, "it has no computes any more");
    }
    add_finalizer(&*seen.cell, finalizers::CELL, "it has computes")
}

/// Returns the step that writes the status, or `None` when the status is up to date.
fn status(seen: &Observed, desired: &CellStatus, digests: &Inputs) -> Option<Step> {
    let observed = seen.cell.status.as_ref();
    let previous = observed.map(|it| it.conditions.as_slice()).unwrap_or_default();
    let (mut renewed, mut renewal) = (desired.clone(), Renewal::default());
    renewal.of_inputs(&mut renewed.hash, digests);
    let conditions = (previous, desired.conditions.as_slice());
    let way_on = "Its computes report what follows for them.";
    renewal.step(Target::of(&*seen.cell), observed, (desired, &renewed), conditions, way_on)
}

/// Returns the digests that this reconciliation computed.
fn digests(seen: &Observed, present: &Inputs, config: Option<Digest>) -> Inputs {
    let config = config.map(|it| (cell_secret_name(&seen.cell.name_any()), it));
    let tried = seen.answers.as_ref().map(|_| (CREDENTIALS.to_owned(), short(present)));
    config.into_iter().chain(tried).collect()
}

/// Returns the recorded digests, updated with the new ones.
fn hashes(seen: &Observed, digests: &Inputs) -> BTreeMap<String, String> {
    let mut hashes = seen.cell.status.as_ref().map(|it| it.hash.clone()).unwrap_or_default();
    let known = kept(&hashes, digests);
    hashes.extend(known);
    hashes
}

/// Returns the conditions that say whether computes can use the cell.
fn of_services(
    seen: &Observed,
    view: Option<&Result<CellView, Vec<CellFault>>>,
) -> Vec<ConditionDraft> {
    let input = input(seen, view);
    let (message_bus, keystone) = match &seen.answers {
        Some(answers) => (message_bus(seen, answers), keystone(seen, answers)),
        None => (not_asked(MESSAGE_BUS_READY), not_asked(KEYSTONE_READY)),
    };
    let name = seen.cell.name_any();
    let text = format!("NovaCell {name} can be used: its message bus and Keystone answer.");
    let mut all = vec![input, message_bus, keystone];
    let ready = conditions::ready(&all, reasons::cell::READY.condition(READY, text));
    all.extend(conditions::kstatus(&ready));
    all.push(ready);
    all.extend(is_terminating(&*seen.cell).then(|| in_use(seen)));
    all
}

/// Returns the condition that names what holds a terminating cell: the first computes and their
/// count.
fn in_use(seen: &Observed) -> ConditionDraft {
    let names: Vec<String> = seen.computes.iter().map(|it| it.name_any()).collect();
    let text = format!(
        "NovaCell {} goes when no NovaExternalCompute names it any more; {} do: {}. \
         Take them away first: delete their nodes, or let each node's compute go with annotation \
         {ALLOW_REMOVAL}.",
        seen.cell.name_any(),
        names.len(),
        first_of(&names)
    );
    reasons::cell::CELL_IN_USE.condition(RELEASED, text)
}

fn input(seen: &Observed, view: Option<&Result<CellView, Vec<CellFault>>>) -> ConditionDraft {
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
        return reasons::cell::SECRET_NOT_FOUND.condition(INPUT_READY, missing.join(" "));
    }
    match view {
        Some(Err(faults)) => {
            let texts: Vec<String> = faults.iter().map(|it| format!("{}.", it.message)).collect();
            let lacks = faults.iter().any(|it| it.reason == CellFaultReason::KeyMissing);
            let reason = if lacks {
                &reasons::cell::SECRET_INCOMPLETE
            } else {
                &reasons::cell::INPUT_INVALID
            };
            reason.condition(INPUT_READY, texts.join(" "))
        }
        _ => reasons::cell::INPUT_COMPLETE.condition(INPUT_READY, "Every input is there."),
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

fn message_bus(seen: &Observed, answers: &Answers) -> ConditionDraft {
    let bad: Vec<_> = answers.message_bus.iter().filter(|it| !it.login.is_ok()).collect();
    let Some(first) = bad.first() else {
        return reasons::cell::LOGGED_IN
            .condition(MESSAGE_BUS_READY, "Every broker accepts the login.");
    };
    let texts: Vec<String> = bad.iter().map(ToString::to_string).collect();
    let text = format!(
        "{}. Correct {TRANSPORT_URL} in Secret {}, or the broker; it is probed again \
         automatically.",
        texts.join("; "),
        seen.message_bus.name
    );
    first.login.reason().condition(MESSAGE_BUS_READY, text)
}

fn keystone(seen: &Observed, answers: &Answers) -> ConditionDraft {
    let url = &seen.cell.spec.keystone_auth_url;
    match &answers.keystone {
        Ok(()) => {
            reasons::cell::ANSWERED.condition(KEYSTONE_READY, format!("Keystone answers at {url}."))
        }
        Err(fault) => {
            let text = format!(
                "{fault} (spec.keystoneAuthURL {url} of NovaCell {}). Start Keystone, or correct \
                 the URL; it is probed again automatically.",
                seen.cell.name_any()
            );
            fault.reason().condition(KEYSTONE_READY, text)
        }
    }
}

fn not_asked(type_: &str) -> ConditionDraft {
    reasons::cell::NOT_ASKED.condition(type_, "It is asked once every input is there.")
}
