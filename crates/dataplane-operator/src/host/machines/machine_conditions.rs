//! Conditions on machines: on one machine, and on all that an owner requests.

use api::conditions::{ConditionDraft, Severity, shortened, truncated};
use api::dataplane::condition_types::BAREMETAL_READY;
use api::problem::Problem;
use baremetal::status::TEXT;
use operator_core::plan::Target;

use crate::conditions::{NAMED, first_texts, rank};
use crate::host::machines::provisioning_state::{ProvisioningState, waits_until};
use crate::reasons;

/// Length limit of the part of a summary about one machine.
const ONE: usize = 300;

/// Reports the machine of one host under a condition type. `owner` requests the set, and `address`
/// is where the host is reached.
pub fn condition(
    type_: &str,
    owner: &Target,
    machine: &Result<ProvisioningState, Problem>,
    address: &str,
) -> ConditionDraft {
    match machine {
        Ok(provisioning) => followed(type_, owner, provisioning, address),
        Err(problem) => problem.condition(type_),
    }
}

fn followed(
    type_: &str,
    owner: &Target,
    provisioning: &ProvisioningState,
    address: &str,
) -> ConditionDraft {
    let record = &provisioning.record;
    let machine = record.machine.as_deref().unwrap_or("not chosen yet");
    let state = format!("Machine {machine}: {} since {}.", record.state, record.since.0);
    let set = format!("OpenStackBaremetalSet {}", owner.name);
    if record.ready {
        return reasons::machines::PROVISIONED.condition(type_, state + &aside(provisioning, &set));
    }
    if provisioning.waits_for_ssh {
        let until = waits_until(record).map(|it| it.to_string()).unwrap_or_default();
        let text = format!(
            "{state} Its ssh server at {address} has not answered yet: services begin when it does, \
             or at {until}."
        );
        return reasons::machines::WAITING_FOR_SSH.condition(type_, text);
    }
    if let Some(error) = &provisioning.error {
        let text = format!("{state} {set} says of it: {}", truncated(error, TEXT));
        return failing(type_, provisioning.is_final, text);
    }
    if let Some(problem) = &provisioning.fault {
        let text = format!("{state} {set} {}", truncated(&problem.text, TEXT));
        return failing(type_, problem.is_final, text);
    }
    reasons::machines::PROVISIONING.condition(type_, format!("{state} {set} follows it."))
}

/// Reports the machine of a node that is being deleted and waits for nothing else.
pub fn leaving(owner: &Target, provisioning: &ProvisioningState) -> ConditionDraft {
    let giving_back =
        |text: String| reasons::machines::GIVING_BACK.condition(BAREMETAL_READY, text);
    let record = &provisioning.record;
    let machine = record.machine.as_deref().unwrap_or("none any more");
    let set = format!("OpenStackBaremetalSet {}", owner.name);
    let text = format!(
        "No other operator needs the host any more, and {set} gives its machine back. Machine \
         {machine}: {} since {}.",
        record.state, record.since.0
    );
    match &provisioning.error {
        Some(error) => {
            let text = format!("{text} {set} says of it: {}", truncated(error, TEXT));
            giving_back(text).with_severity(Severity::Warning)
        }
        None => giving_back(text),
    }
}

/// Returns the notes on a machine that is ready: a changed config drive, and the set's error.
fn aside(provisioning: &ProvisioningState, set: &str) -> String {
    let mut text = String::new();
    if provisioning.has_drifted {
        text = format!(
            " What its config drive is made from has changed since: the host gets that only when \
             it is provisioned again, which overwrites its disk and which no operator does by \
             itself; see UpToDate of {set}."
        );
    }
    if let Some(error) = &provisioning.error {
        text = format!("{text} {set} says of it: {}", truncated(error, TEXT));
    }
    text
}

fn failing(type_: &str, is_final: bool, text: String) -> ConditionDraft {
    let severity = if is_final { Severity::Error } else { Severity::Warning };
    let draft = reasons::machines::PROVISIONING_FAILED.condition(type_, text);
    draft.with_severity(severity)
}

/// Summarizes the conditions of machines by host name: how many are ready, and the first others,
/// worst first.
pub fn sum(type_: &str, all: &[(&str, ConditionDraft)]) -> ConditionDraft {
    let mut open: Vec<&(&str, ConditionDraft)> = all.iter().filter(|(_, it)| !it.holds()).collect();
    open.sort_by_key(|(_, it)| rank(it));
    let mut texts =
        vec![format!("{}/{} hosts have their machines.", all.len() - open.len(), all.len())];
    let one =
        |(name, it): &&(&str, ConditionDraft)| format!("{name}: {}", shortened(&it.message, ONE));
    texts.extend(open.iter().take(NAMED).map(one));
    let text = first_texts(texts, open.len().saturating_sub(NAMED));
    match open.first() {
        None => reasons::machines::PROVISIONED.condition(type_, text),
        Some((_, worst)) => worst.clone().with_type(type_).with_message(text),
    }
}
