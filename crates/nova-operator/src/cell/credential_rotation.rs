//! How many computes of a cell were last deployed with the cell's current credentials.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::{ConditionDraft, first_names};
use api::nova::{Credential, ExternalCompute};
use kube::ResourceExt;
use nova_config::conditions::COMPUTES_UP_TO_DATE;
use operator_core::finalizers::is_terminating;
use operator_core::keyed::{Inputs, changed_inputs};

use crate::cell::observed::Observed;
use crate::cell_inputs::of_cell_among;
use crate::compute::credentials::decide::release_command;
use crate::reasons;

/// The number of computes that a message names.
const NAMED: usize = 5;

/// The number of computes of a cell that this operator deploys, and those with other credentials.
pub struct RotationProgress {
    /// The number of all of them.
    pub total: usize,
    /// The names of the computes that use other credentials, or none yet, in the given order.
    pub behind: Vec<String>,
}

impl RotationProgress {
    /// Compares the inputs of each compute's last deployment with `present`, the cell's current
    /// ones.
    pub fn of(computes: &[Arc<ExternalCompute>], present: &Inputs) -> Self {
        let deployed = || computes.iter().filter(|it| !it.is_observed());
        let is_behind = |it: &&Arc<ExternalCompute>| {
            let deployed = it.status.as_ref().map(|it| of_cell_among(&it.deployed_inputs));
            deployed.is_none_or(|it| !changed_inputs(&it, present).is_empty())
        };
        let behind = deployed().filter(is_behind).map(|it| it.name_any()).collect();
        Self { total: deployed().count(), behind }
    }

    /// Returns the number of computes that use the current credentials.
    pub fn up_to_date(&self) -> usize {
        self.total - self.behind.len()
    }
}

/// Returns the condition; `count` is `None` when the cell's inputs are incomplete.
pub fn condition(seen: &Observed, count: Option<&RotationProgress>) -> ConditionDraft {
    let Some(count) = count else {
        let text = "It is known once every input is there.";
        return reasons::cell::COMPUTES_UNKNOWN.condition(COMPUTES_UP_TO_DATE, text);
    };
    let (total, behind) = (count.total, &count.behind);
    if total == 0 {
        return reasons::cell::NO_COMPUTES
            .condition(COMPUTES_UP_TO_DATE, "No compute names this cell.");
    }
    let (text, held) = (
        format!("{}/{total} computes use the current credentials.", count.up_to_date()),
        held(seen),
    );
    if behind.is_empty() {
        return reasons::cell::UP_TO_DATE.condition(COMPUTES_UP_TO_DATE, text + &held);
    }
    let text = format!("{text} Not yet: {}.{held}", first_of(behind));
    reasons::cell::COMPUTES_BEHIND.condition(COMPUTES_UP_TO_DATE, text)
}

/// Returns which former credentials are held for computes that stay, and for which; empty without one.
fn held(seen: &Observed) -> String {
    let mut by_credential = BTreeMap::<&Credential, Vec<String>>::new();
    for compute in seen.computes.iter().filter(|it| !is_terminating(&***it)) {
        let used = compute.status.iter().flat_map(|it| &it.credentials);
        for credential in used.filter(|it| !seen.credentials.contains(it)) {
            by_credential.entry(credential).or_default().push(compute.name_any());
        }
    }
    let held: Vec<String> = by_credential
        .iter()
        .map(|(credential, computes)| format!("{credential} ({})", first_of(computes)))
        .collect();
    if held.is_empty() {
        return String::new();
    }
    format!(" Held until each is deployed: {}. {}", first_of(&held), release_command(&seen.cell))
}

/// Returns the first names, and the number of the others.
pub fn first_of(names: &[impl AsRef<str>]) -> String {
    first_names(names, NAMED)
}
