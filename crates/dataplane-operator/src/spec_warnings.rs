//! Fields of a spec that are without effect: a condition names them, and what to write instead.

use api::conditions::{ConditionDraft, first_names, join_with_more};
use api::fault::Fault;
use api::shared::VolMounts;
use operator_core::condition_catalog::{ConditionSpec, condition as spec};

use crate::conditions::NAMED;
use crate::reasons;
use crate::reasons::service::catalog::WITHOUT_EFFECT;

/// Condition type: something in the spec has no effect or is deprecated. Does not affect `Ready`.
pub const SPEC_WARNINGS: &str = "SpecWarnings";

/// The condition on roles, nodes and node sets.
pub const CONDITION: ConditionSpec = spec(
    SPEC_WARNINGS,
    "Something in the spec is without effect; absent otherwise. `Ready` does not depend on it.",
    &[&[WITHOUT_EFFECT]],
);

/// Returns the condition of an object, named as `Kind name`; `None` without such fields.
pub fn condition(object: &str, found: &[Fault]) -> Option<ConditionDraft> {
    let reason = &reasons::service::WITHOUT_EFFECT;
    (!found.is_empty()).then(|| reason.condition(SPEC_WARNINGS, message(object, found)))
}

/// Returns a message with the first of these fields of an object.
pub fn message(object: &str, found: &[Fault]) -> String {
    let texts: Vec<String> = found.iter().take(NAMED).map(ToString::to_string).collect();
    let texts = join_with_more(texts, "; ", found.len().saturating_sub(NAMED));
    format!("{object}: {texts}.")
}

/// Returns the entries of the list of mounts at that path which no run gets.
pub fn of_mounts(path: &str, mounts: &[VolMounts]) -> Vec<Fault> {
    let fault = |(idx, it): (usize, &VolMounts)| {
        let message = format!(
            "no run gets these volumes, because {} is neither All nor Compute: list one of the two, \
             or take propagation out",
            first_names(&it.propagation, NAMED)
        );
        Fault::new(format!("{path}[{idx}].propagation"), message)
    };
    mounts.iter().enumerate().filter(|(_, it)| !it.reaches_runs()).map(fault).collect()
}
