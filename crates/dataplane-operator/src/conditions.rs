//! The condition types that several kinds share, and the condition of inputs.

use api::conditions::ConditionDraft;
use baremetal::status::INPUT_READY;

use crate::fault::Fault;

/// The reason of a condition whose cause `InputReady` reports.
pub const INPUT_MISSING: &str = "InputMissing";

/// Returns the `InputReady` condition: an error if any fault needs an edit, else a warning.
pub fn input(faults: &[Fault]) -> ConditionDraft {
    match faults.iter().min_by_key(|it| it.is_missing) {
        None => ConditionDraft::good(INPUT_READY, "InputComplete", "Every input is there."),
        Some(first) => {
            let text: Vec<&str> = faults.iter().map(|it| it.message.as_str()).collect();
            let text = text.join(" ");
            if first.is_missing {
                ConditionDraft::warning(INPUT_READY, first.reason, text)
            } else {
                ConditionDraft::error(INPUT_READY, first.reason, text)
            }
        }
    }
}
