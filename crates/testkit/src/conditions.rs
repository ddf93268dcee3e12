//! What conditions say, as tests compare it.

use api::conditions::{Condition, Severity, find};
use serde_json::json;

/// Returns the pair that [`condition`] returns for a condition of this status and reason.
pub fn is(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

/// Returns status and reason of the condition of that type, which must exist.
#[track_caller]
pub fn condition(conditions: &[Condition], type_: &str) -> (String, String) {
    let found = found(conditions, type_);
    (format!("{:?}", found.status), found.reason.clone())
}

/// Returns the message of the condition of that type, which must exist.
#[track_caller]
pub fn message(conditions: &[Condition], type_: &str) -> String {
    found(conditions, type_).message.clone()
}

/// Asserts that the message of the condition of that type has all of these words.
#[track_caller]
pub fn says(conditions: &[Condition], type_: &str, words: &[&str]) {
    let message = message(conditions, type_);
    for it in words {
        assert!(message.contains(it), "{message}\nlacks {it}");
    }
}

#[track_caller]
fn found<'a>(conditions: &'a [Condition], type_: &str) -> &'a Condition {
    find(conditions, type_).expect("there is a condition of that type")
}

/// Returns the runs among the writes that a test has noted, in which they begin with `run `.
pub fn runs(writes: &[String]) -> Vec<&str> {
    writes.iter().map(String::as_str).filter(|it| it.starts_with("run ")).collect()
}

/// Returns a condition as an operator reports it.
///
/// # Panics
///
/// When there is no such status.
#[must_use]
pub fn stated(type_: &str, status: &str, reason: &str, message: &str) -> Condition {
    let condition = json!({
        "type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    serde_json::from_value(condition).expect("it is a condition")
}

/// Returns a condition that does not hold.
#[must_use]
pub fn fault(type_: &str, severity: Severity, reason: &str, message: &str) -> Condition {
    Condition { severity: Some(severity), ..stated(type_, "False", reason, message) }
}
