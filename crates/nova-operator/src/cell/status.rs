//! The status of a cell: its conditions and the recorded digests.

use std::collections::BTreeMap;

use api::conditions::{self, Condition, ConditionDraft, READY, find, merge_conditions};
use api::nova::{Cell, CellStatus};
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::annotations::ALLOW_REMOVAL;
use nova_config::conditions::{INPUT_READY, KEYSTONE_READY, MESSAGE_BUS_READY, RELEASED};
use nova_config::conf::{CellFault, CellFaultReason, CellView, SERVICE_PASSWORD, TRANSPORT_URL};
use nova_config::rendered_secret::cell_secret_name;
use operator_core::finalizers::is_terminating;
use operator_core::keyed::{Digest, Inputs, Renewal, kept, short};
use operator_core::plan::{Step, Target};
use operator_runtime::source_cache::Content;

use crate::cell::credential_rotation::first_of;
use crate::cell::hosts::release;
use crate::cell::leftovers;
use crate::cell::observed::{Answers, Observed};
use crate::cell_inputs::CREDENTIALS;
use crate::reasons;

/// Returns the status that a cell should have; `up_to_date` is the number of computes with the
/// present credentials.
pub fn desired(
    seen: &Observed,
    drafts: Vec<ConditionDraft>,
    digests: &Inputs,
    up_to_date: Option<usize>,
    now: Timestamp,
) -> CellStatus {
    let metadata = &seen.cell.metadata;
    let number = |it: usize| i64::try_from(it).ok();
    CellStatus {
        observed_generation: metadata.generation,
        conditions: merge_conditions(seen.cell.conditions(), drafts, metadata.generation, now),
        hash: hashes(seen, digests),
        computes: number(seen.computes.iter().filter(|it| !it.is_observed()).count()),
        up_to_date_computes: up_to_date.and_then(number),
        leftovers: leftovers::cell_leftovers(seen),
        discovery: None,
        mapping_reading: None,
    }
}

/// Returns the step that writes the status, or `None` when the status is up to date.
pub fn step(seen: &Observed, desired: &CellStatus, digests: &Inputs) -> Option<Step> {
    let observed = seen.cell.status.as_ref();
    let (mut renewed, mut renewal) = (desired.clone(), Renewal::default());
    renewal.of_inputs(&mut renewed.hash, digests);
    let way_on = "Its computes report what follows for them.";
    renewal.step(Target::of(&*seen.cell), observed, (desired, &renewed), way_on)
}

/// Returns the digests that this reconciliation computed.
pub fn digests(seen: &Observed, present: &Inputs, config: Option<Digest>) -> Inputs {
    // Node sets that mount it record the same hash, and upstream compares the two.
    let config = config.map(|it| it.unkeyed().into());
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

/// Returns the conditions that say whether computes can use the cell; `shared_bus` is that of a message
/// bus which is another cell's.
pub fn conditions(
    seen: &Observed,
    view: Option<&Result<CellView, Vec<CellFault>>>,
    shared_bus: Option<ConditionDraft>,
    previous: &[Condition],
) -> Vec<ConditionDraft> {
    let input = input(&seen.cell, seen.secret.as_ref(), seen.message_bus.as_ref(), view);
    let input = shared_bus.filter(|_| input.holds()).unwrap_or(input);
    let (message_bus, keystone) = match &seen.answers {
        Some(answers) => (message_bus(seen, answers), keystone(seen, answers)),
        None => (
            unanswered(seen, MESSAGE_BUS_READY, previous),
            unanswered(seen, KEYSTONE_READY, previous),
        ),
    };
    let name = seen.cell.name_any();
    let text = format!("NovaCell {name} can be used: its message bus and Keystone answer.");
    let mut all = vec![input, message_bus, keystone];
    all.push(conditions::ready(&all, reasons::cell::READY.condition(READY, text)));
    all.extend(is_terminating(&*seen.cell).then(|| held(seen)));
    all
}

/// Returns the condition that names what holds a terminating cell: its computes, else its hosts.
fn held(seen: &Observed) -> ConditionDraft {
    if seen.computes.is_empty() { release::condition(seen) } else { in_use(seen) }
}

/// Returns the condition of a cell that computes hold: the first of them and their count.
fn in_use(seen: &Observed) -> ConditionDraft {
    let names: Vec<String> = seen.computes.iter().map(|it| it.name_any()).collect();
    let text = format!(
        "NovaCell {} goes when no NovaExternalCompute names it any more; {} do: {}. \
         Take them away first: delete their nodes, take hosts out of their node sets, or let each \
         node's compute go with annotation {ALLOW_REMOVAL}.",
        seen.cell.name_any(),
        names.len(),
        first_of(&names)
    );
    reasons::cell::CELL_IN_USE.condition(RELEASED, text)
}

/// Returns the condition that says whether the Secrets of a cell are there and complete.
pub fn input(
    cell: &Cell,
    secret: Option<&Content>,
    message_bus: Option<&Content>,
    view: Option<&Result<CellView, Vec<CellFault>>>,
) -> ConditionDraft {
    let (secret_name, bus_name) = (&cell.spec.secret, &cell.spec.cell_message_bus_secret_name);
    let named = [
        (secret, secret_name, "spec.secret", SERVICE_PASSWORD),
        (message_bus, bus_name, "spec.cellMessageBusSecretName", TRANSPORT_URL),
    ];
    let missing: Vec<String> = named
        .into_iter()
        .filter(|(secret, ..)| secret.is_none())
        .map(|(_, name, field, key)| missing(cell, name, field, key))
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

fn missing(cell: &Cell, name: &str, field: &str, key: &str) -> String {
    let namespace = cell.namespace().unwrap_or_default();
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
        seen.cell.spec.cell_message_bus_secret_name
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

/// Returns the condition of a service without a result for the present inputs. Until there is one,
/// what was found for the same spec stays: after a restart, and after a change of a Secret.
fn unanswered(seen: &Observed, type_: &str, previous: &[Condition]) -> ConditionDraft {
    if !seen.is_probed {
        return reasons::cell::NOT_ASKED.condition(type_, "It is asked once every input is there.");
    }
    let generation = seen.cell.metadata.generation;
    let before = find(previous, type_).filter(|it| it.observed_generation == generation);
    let before = before.filter(|it| it.reason != reasons::cell::NOT_ASKED.word);
    before.map_or_else(
        || reasons::cell::ANSWER_PENDING.condition(type_, "It is asked; its answer is awaited."),
        ConditionDraft::repeated,
    )
}
