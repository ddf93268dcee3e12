//! What the conditions of several kinds share: the one of inputs, and texts that name the first of
//! many objects.

use api::conditions::{ConditionDraft, Severity};
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

/// How many objects a message names.
pub const NAMED: usize = 5;

/// Returns the rank by which objects that are not ready are named: errors first, then warnings.
pub fn rank(condition: &ConditionDraft) -> u8 {
    match condition.severity {
        Some(Severity::Error) => 0,
        Some(Severity::Warning) => 1,
        Some(Severity::Info) | None => 2,
    }
}

/// Joins sentences about the first objects, and says how many more objects there are.
pub fn first_texts(mut texts: Vec<String>, n_more: usize) -> String {
    if n_more > 0 {
        texts.push(format!("And {n_more} more."));
    }
    texts.join(" ")
}
