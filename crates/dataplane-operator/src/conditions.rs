//! The types of conditions that several kinds have, and the condition of inputs.

use api::conditions::ConditionDraft;
use baremetal::status::INPUT_READY;

use crate::problem::Fault;

/// The reason of [`SETUP_READY`] where `InputReady` has the cause.
pub const INPUT_MISSING: &str = "InputMissing";

/// What faults say as a condition.
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
