//! Tests of words: comments and names use the field's terms.

use std::fs;

use crate::paths;
use crate::sources::{files, without_tests};

/// Words that comments do not use, each with the term that they use instead.
const IN_COMMENTS: &[(&str, &str)] = &[
    ("a human", "a user"),
    ("nobody", "no user, no controller, …"),
    ("nothing where", "returns `None` when"),
    ("the human", "the user"),
    ("told", "reported"),
    ("wakes", "enqueues"),
    ("whoever", "the caller, the user, …"),
];

/// Names of types that have a standard term, each with it.
const NAMES: &[(&str, &str)] = &[
    ("Absorb", "WriteThrough"),
    ("Asker", "MachineRequest"),
    ("Bearing", "RelevantFields"),
    ("Candidate", "ManagerBuilder"),
    ("Crew", "TaskGroup"),
    ("Desk", "ReviewLimits"),
    ("Doors", "SshProbe"),
    ("Gate", "DisruptionBudget"),
    ("Judged", "Evaluation"),
    ("Judgement", "Evaluation"),
    ("Leader", "Manager"),
    ("Lender", "CertificateSource"),
    ("Notice", "EventDraft"),
    ("Queue", "WorkQueue"),
    ("Reach", "HostConnection"),
    ("Recipe", "RunTemplate"),
    ("Rival", "ConflictingService"),
    ("Shard", "Batch"),
    ("Standing", "RolloutState"),
    ("Stir", "Requeue"),
    ("Truth", "ConditionStatus"),
    ("Vault", "SourceContents"),
    ("Watches", "Informers"),
];

/// The words of a text: letters, digits and underscores.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !it.is_alphanumeric() && it != '_').filter(|it| !it.is_empty())
}

/// Whether a line has the words of a phrase one after the other.
fn has(line: &str, phrase: &str) -> bool {
    let line: Vec<&str> = words(line).collect();
    let phrase: Vec<&str> = words(phrase).collect();
    line.windows(phrase.len()).any(|it| it == phrase)
}

/// The faults of a text: where it has a word that is not used, and what is used instead.
fn faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (idx, line) in text.lines().enumerate() {
        let code = line.trim_start();
        let bad = if code.starts_with("//") {
            let lower = code.to_lowercase();
            IN_COMMENTS.iter().find(|(it, _)| has(&lower, it))
        } else {
            NAMES.iter().find(|(it, _)| words(code).any(|word| word == *it))
        };
        faults.extend(bad.map(|(bad, good)| format!("line {}: {bad:?}, use {good}", idx + 1)));
    }
    faults
}

#[test]
fn comments_and_names_use_the_fields_terms() {
    let this = paths::repo().join("xtask/src/words.rs");
    for path in ["crates", "e2e/src", "xtask/src"].iter().flat_map(|it| files(it, ".rs").unwrap()) {
        let name = path.strip_prefix(paths::repo()).unwrap().display().to_string();
        // Doc comments of kinds are published in their definitions.
        if path == this || name.contains("test") || name.starts_with("crates/api/") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(faults(without_tests(&text)), [""; 0], "{name}");
    }
}

#[test]
fn a_word_is_found_in_a_comment_and_a_name_in_code() {
    assert_eq!(faults("/// What a human wrote.\n"), ["line 1: \"a human\", use a user"]);
    assert_eq!(faults("let it = Queue::new();\n"), ["line 1: \"Queue\", use WorkQueue"]);
    assert_eq!(faults("/// A WorkQueue of humans.\nlet told = WorkQueue::new();\n"), [""; 0]);
}
