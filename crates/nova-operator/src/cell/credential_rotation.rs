//! How many computes of a cell were last deployed with what the cell gives now.

use std::sync::Arc;

use api::conditions::{ConditionDraft, first_names};
use api::nova::ExternalCompute;
use kube::ResourceExt;
use nova_config::conditions::COMPUTES_UP_TO_DATE;
use operator_core::keyed::{Inputs, changed};

use crate::cell::credentials::of_cell_among;

/// How many computes a message names.
const NAMED: usize = 5;

/// The computes of a cell, counted.
pub struct RotationProgress {
    /// All of them.
    pub total: usize,
    /// The names of those that use other credentials, or none yet, in order.
    pub behind: Vec<String>,
}

impl RotationProgress {
    /// Counts by what each compute was last deployed with; `present` is what the cell gives now.
    pub fn of(computes: &[Arc<ExternalCompute>], present: &Inputs) -> Self {
        let is_behind = |it: &&Arc<ExternalCompute>| {
            let deployed = it.status.as_ref().map(|it| of_cell_among(&it.deployed_inputs));
            deployed.is_none_or(|it| !changed(&it, present).is_empty())
        };
        let behind = computes.iter().filter(is_behind).map(|it| it.name_any()).collect();
        Self { total: computes.len(), behind }
    }

    /// How many are not behind.
    pub fn up_to_date(&self) -> usize {
        self.total - self.behind.len()
    }
}

/// The condition; without a count the cell's inputs are not complete.
pub fn condition(count: Option<&RotationProgress>) -> ConditionDraft {
    let Some(count) = count else {
        let text = "It can be told once every input is there.";
        return ConditionDraft::unknown(COMPUTES_UP_TO_DATE, "InputMissing", text);
    };
    let (total, behind) = (count.total, &count.behind);
    if total == 0 {
        return ConditionDraft::good(
            COMPUTES_UP_TO_DATE,
            "NoComputes",
            "No compute names this cell.",
        );
    }
    let text = format!("{}/{total} computes use the current credentials.", count.up_to_date());
    if behind.is_empty() {
        return ConditionDraft::good(COMPUTES_UP_TO_DATE, "UpToDate", text);
    }
    let text = format!("{text} Not yet: {}.", first_of(behind));
    ConditionDraft::waiting(COMPUTES_UP_TO_DATE, "ComputesBehind", text)
}

/// The first names and how many there are besides.
pub fn first_of(names: &[impl AsRef<str>]) -> String {
    first_names(names, NAMED)
}
