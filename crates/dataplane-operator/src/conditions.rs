//! What the conditions of several kinds share: the one of inputs, and texts that name the first of
//! many objects.

use api::conditions::{ConditionDraft, Reason, Severity, shortened};
use api::dataplane::condition_types::SERVICE_INPUTS_READY;
use api::problem::Problem;
use baremetal::status::INPUT_READY;

use crate::reasons;

/// Returns the `InputReady` condition: an error if any problem needs an edit, else a warning.
pub fn input(problems: &[Problem]) -> ConditionDraft {
    let good = &reasons::inputs::INPUT_COMPLETE;
    input_condition(INPUT_READY, good, problems, "Every input is there.")
}

/// Returns the condition for what the listed services lack: a warning, for other services may be
/// deployed meanwhile.
pub fn service_inputs(problems: &[Problem]) -> ConditionDraft {
    let (good, text) =
        (&reasons::inputs::SERVICE_INPUTS_COMPLETE, "Every input of the listed services is there.");
    let draft = input_condition(SERVICE_INPUTS_READY, good, problems, text);
    if draft.holds() { draft } else { draft.with_severity(Severity::Warning) }
}

/// Returns the condition for these faults; those that need an edit determine severity and reason.
pub fn input_condition(
    type_: &str,
    good: &Reason,
    problems: &[Problem],
    good_text: &str,
) -> ConditionDraft {
    let Some(worst) = Problem::worst(problems) else {
        return good.condition(type_, good_text);
    };
    worst.reason.condition(type_, problem_texts(problems))
}

/// The length limit of a message about several problems.
const MESSAGES: usize = 2000;

/// Joins the messages of problems, each once and each as a whole, as far as they fit, and says how
/// many more there are. The worst one comes first.
fn problem_texts(problems: &[Problem]) -> String {
    let mut texts: Vec<&str> = Vec::new();
    for it in Problem::worst(problems).into_iter().chain(problems) {
        if !texts.contains(&it.message.as_str()) {
            texts.push(&it.message);
        }
    }
    let mut length = 0;
    let fits = |it: &&&str| {
        length += it.len() + 1;
        length <= MESSAGES
    };
    let n_shown = texts.iter().take_while(fits).count().max(1).min(texts.len());
    let shown = texts.iter().take(n_shown).map(|it| shortened(it, MESSAGES)).collect();
    first_texts(shown, texts.len() - n_shown)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_problems_whole_messages_are_shown_and_the_worst_is_among_them() {
        let problem = |it: usize| {
            let text = format!("Object {it}{} is missing. Create it.", "x".repeat(150));
            Problem::new(&reasons::inputs::DATA_SOURCE_NOT_FOUND, text)
        };
        let mut problems: Vec<Problem> = (0..30).map(problem).collect();
        problems.push(problems[0].clone());
        problems.push(Problem::new(&reasons::inputs::SERVICE_INVALID, "Correct x."));
        let found = input(&problems);
        assert!(found.message.starts_with("Correct x. Object 0x"), "{}", found.message);
        assert!(found.message.ends_with("Create it. And 20 more."), "{}", found.message);
        assert!(found.message.len() < MESSAGES + 20, "{}", found.message.len());
        assert_eq!(problem_texts(&[]), "");
    }
}
