//! What a compute may log in with, and the decision on an object that computes hold.

use std::sync::Arc;

use api::conditions::first_names;
use api::nova::{CREDENTIALS, Cell, Credential, ExternalCompute};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use nova_config::annotations::RELEASE_CREDENTIALS;
use operator_core::plan::{EventDraft, Plan, Target};

use crate::compute::credentials::observed::Observed;

/// How long a user that is being deleted is held before its hosts are named on their cells.
const PATIENCE: SignedDuration = SignedDuration::from_hours(24);
/// Reason of that Event.
const HELD: &str = "CredentialsHeld";
/// How many hosts a message names.
const NAMED: usize = 5;

/// How far the deployment of a compute is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// An attempt with the present credentials is about to be made, or what earlier ones have used was
    /// never recorded.
    Begins,
    /// The last deployment was completed with the present credentials.
    Done,
    /// Neither, or that is unknown.
    Between,
}

/// Returns what a compute may log in with from now on: after an attempt has begun, what it had before
/// too, because a failed attempt may have changed its host or not.
pub fn used(
    recorded: &[Credential],
    present: &[Credential],
    stage: Stage,
    cell: Option<&Cell>,
) -> Vec<Credential> {
    let mut used = if stage == Stage::Done { Vec::new() } else { recorded.to_vec() };
    if stage != Stage::Between {
        let new: Vec<&Credential> = present.iter().filter(|it| !used.contains(it)).collect();
        used.extend(new.into_iter().cloned());
    }
    let released = cell.and_then(|it| it.annotations().get(RELEASE_CREDENTIALS));
    let released: Vec<&str> = released.iter().flat_map(|it| it.split(',')).map(str::trim).collect();
    used.retain(|it| !released.contains(&it.name.as_str()));
    // The newest are at the end.
    used.split_off(used.len().saturating_sub(CREDENTIALS))
}

/// Returns the plan for an object that is held.
pub fn decide(seen: &Observed, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if seen.computes.is_empty() {
        plan.steps.extend(seen.object.release());
        return plan;
    }
    let Some(deleted) = &seen.object.metadata.deletion_timestamp else { return plan };
    let told_at = deleted.0 + PATIENCE;
    if now < told_at {
        plan.requeue_at(told_at, now);
        return plan;
    }
    let note = |cell: &Cell| held(&seen.object.credential, &seen.computes, cell);
    for cell in &seen.cells {
        let event = EventDraft { warning: true, reason: HELD.to_owned(), note: note(cell) };
        plan.events.push((Target::of(&**cell), event));
    }
    plan.requeue_at(now + PATIENCE, now);
    plan
}

/// Returns the text about a credential that some hosts still use.
fn held(credential: &Credential, computes: &[Arc<ExternalCompute>], cell: &Cell) -> String {
    let names: Vec<String> = computes.iter().map(|it| it.name_any()).collect();
    format!(
        "{credential} is to be deleted and held for more than a day, because these computes were not \
         deployed with a newer one: {}. See UpToDate of each. {}",
        first_names(&names, NAMED),
        release_command(cell)
    )
}

/// Returns how a user lets go of a credential that hosts still use.
pub fn release_command(cell: &Cell) -> String {
    format!(
        "To let one go all the same: kubectl annotate --overwrite -n {} novacell/{} \
         {RELEASE_CREDENTIALS}=NAME",
        cell.namespace().unwrap_or_default(),
        cell.name_any()
    )
}
