//! The condition of inputs, which several kinds share.

use api::conditions::ConditionDraft;
use api::problem::Problem;
use baremetal::status::INPUT_READY;

use crate::reasons;

/// Returns the `InputReady` condition: an error if any problem needs an edit, else a warning.
pub fn input(problems: &[Problem]) -> ConditionDraft {
    let Some(worst) = Problem::worst(problems) else {
        let text = "Every input is there.";
        return reasons::inputs::INPUT_COMPLETE.condition(INPUT_READY, text);
    };
    let texts: Vec<&str> = problems.iter().map(|it| it.message.as_str()).collect();
    worst.reason.condition(INPUT_READY, texts.join(" "))
}
