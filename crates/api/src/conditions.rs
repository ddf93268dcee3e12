//! Conditions as Kubernetes' API conventions want them, with upstream's optional `severity`.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::terminal;

pub use reason::{ConditionStatus, Reason, Severity};

mod reason;

/// The type of the condition that summarizes all others.
pub const READY: &str = "Ready";
/// kstatus' condition for an object that is still in progress; absent otherwise.
pub const RECONCILING: &str = "Reconciling";
/// kstatus' condition for an object that needs the user; absent otherwise.
pub const STALLED: &str = "Stalled";

/// One observed aspect of an object.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Name of the aspect, unique in the list.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// How much a False condition should worry its reader; absent for True and Unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// The `metadata.generation` that the condition describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When `status` last changed.
    pub last_transition_time: Time,
    /// One CamelCase word for the cause. Upstream's operators leave out what is empty.
    #[serde(default)]
    pub reason: String,
    /// Object, cause and next step, in words that do not change while the cause does not.
    #[serde(default)]
    pub message: String,
}

/// A condition before it is merged with the object's present ones: without time and generation.
///
/// It comes from a [`Reason`], or repeats a [`Condition`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConditionDraft {
    /// Its type.
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// How much a False condition should worry its reader.
    pub severity: Option<Severity>,
    /// One CamelCase word for the cause.
    pub reason: String,
    /// Object, cause and next step.
    pub message: String,
}

impl Reason {
    /// Creates a condition of that type with the reason's word, status and severity; `message` names
    /// object, cause and next step.
    pub fn condition(&self, type_: &str, message: impl Into<String>) -> ConditionDraft {
        ConditionDraft {
            type_: type_.into(),
            status: self.status,
            severity: self.severity,
            reason: self.word.into(),
            message: printable(&message.into()),
        }
    }
}

impl ConditionDraft {
    /// Repeats a condition of this object or of another one.
    pub fn repeated(condition: &Condition) -> Self {
        Self {
            type_: condition.type_.clone(),
            status: condition.status,
            severity: condition.severity,
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        }
    }

    /// Returns the same draft with another type, as a summary repeats its cause.
    #[must_use]
    pub fn with_type(mut self, type_: &str) -> Self {
        type_.clone_into(&mut self.type_);
        self
    }

    /// Returns the same draft with another message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = printable(&message.into());
        self
    }

    /// Returns the same draft as a condition that does not hold, with that severity.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.status = ConditionStatus::False;
        self.severity = Some(severity);
        self
    }

    /// Returns whether the condition holds.
    pub fn holds(&self) -> bool {
        self.status == ConditionStatus::True
    }
}

/// Summarizes drafts: returns `good` when all hold, else the first of the worst.
///
/// The drafts are in the order in which things happen, so of equally bad ones the first blocks the
/// others.
pub fn ready<'a>(
    findings: impl IntoIterator<Item = &'a ConditionDraft>,
    good: ConditionDraft,
) -> ConditionDraft {
    let badness = |it: &ConditionDraft| match (it.status, it.severity) {
        (ConditionStatus::False, Some(Severity::Error)) => 0,
        (ConditionStatus::False, Some(Severity::Warning)) => 1,
        (ConditionStatus::False, _) => 2,
        (ConditionStatus::Unknown, _) => 3,
        (ConditionStatus::True, _) => 4,
    };
    match findings.into_iter().min_by_key(|it| badness(it)) {
        Some(worst) if !worst.holds() => worst.clone().with_type(READY),
        _ => good.with_type(READY),
    }
}

/// Returns kstatus' extra condition for a summary.
///
/// It is `Stalled` when the user is needed, `Reconciling` when the operator continues by itself,
/// and `None` when ready.
fn kstatus(ready: &ConditionDraft) -> Option<ConditionDraft> {
    let type_ = match (ready.status, ready.severity) {
        (ConditionStatus::True, _) => return None,
        (ConditionStatus::False, Some(Severity::Error)) => STALLED,
        _ => RECONCILING,
    };
    let mut extra = ready.clone().with_type(type_);
    (extra.status, extra.severity) = (ConditionStatus::True, None);
    Some(extra)
}

/// Merges drafts into the list to write: `Ready` first, the others sorted by type. That of kstatus
/// which goes with `Ready` is added.
///
/// The transition time is kept if `status` did not change. Conditions of `previous` that are not
/// among the drafts are dropped: each field manager writes only its own.
pub fn merge_conditions(
    previous: &[Condition],
    findings: Vec<ConditionDraft>,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let extra = findings.iter().find(|it| it.type_ == READY).and_then(kstatus);
    let mut settled: Vec<Condition> = findings
        .into_iter()
        .chain(extra)
        .map(|it| {
            let before = previous.iter().find(|old| old.type_ == it.type_);
            let since = match before {
                Some(old) if old.status == it.status => old.last_transition_time.clone(),
                _ => Time(now),
            };
            Condition {
                type_: it.type_,
                status: it.status,
                severity: it.severity,
                observed_generation: generation,
                last_transition_time: since,
                reason: it.reason,
                message: it.message,
            }
        })
        .collect();
    settled.sort_by(|a, b| (a.type_ != READY, &a.type_).cmp(&(b.type_ != READY, &b.type_)));
    settled
}

/// Gives kinds of objects a method that returns the conditions of their status.
macro_rules! has_conditions {
    ($($kind:ident),+) => {$(
        impl $kind {
            /// Returns the conditions of its status: none while it has no status.
            pub fn conditions(&self) -> &[$crate::conditions::Condition] {
                self.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default()
            }
        }
    )+};
}
pub(crate) use has_conditions;

/// Returns the condition of that type, if any.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|it| it.type_ == type_)
}

/// Returns whether the condition of that type is True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|it| it.status == ConditionStatus::True)
}

/// Returns whether the condition of that type was recorded as True for that generation.
///
/// Inputs that are removed later do not invalidate what exists. An edit whose inputs were never
/// complete has created nothing yet.
pub fn has_held(conditions: &[Condition], type_: &str, generation: Option<i64>) -> bool {
    find(conditions, type_).is_some_and(|it| {
        it.status == ConditionStatus::True && it.observed_generation == generation
    })
}

/// Cuts a text at `limit` bytes on a character boundary, and marks the omission.
pub fn truncated(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit.saturating_sub('…'.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

/// How many bytes of a message's end [`shortened`] keeps at most: two sentences with a command.
const NEXT_STEP_LIMIT: usize = 800;
/// How many bytes of a message's beginning [`shortened`] keeps at least: what object it is about.
const FACTS: usize = 100;

/// Shortens a message that ends with its next step: its facts are cut, and its last two sentences,
/// which have the next step and its command, stay whole.
///
/// The result has at most `limit` bytes, or 901 where the next step needs them.
pub fn shortened(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let starts: Vec<usize> = text.match_indices(". ").map(|(at, it)| at + it.len()).collect();
    let last_two = &starts[starts.len().saturating_sub(2)..];
    let fits = |start: &&usize| text.len() - **start <= NEXT_STEP_LIMIT;
    let Some(start) = last_two.iter().find(fits) else { return truncated(text, limit) };
    let (facts, next_step) = text.split_at(*start);
    let limit = limit.saturating_sub(next_step.len() + 1).max(FACTS);
    format!("{} {next_step}", truncated(facts.trim_end(), limit))
}

/// Returns a text in one line of at most `limit` bytes: whitespace and control characters between
/// words become one space.
pub fn one_line(text: &str, limit: usize) -> String {
    let words = text.split(|it: char| it.is_whitespace() || it.is_control());
    let line = words.filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ");
    truncated(&line, limit)
}

/// Returns a text without control characters except line breaks, and without bidirectional marks.
///
/// Texts in messages come from hosts, servers and authors of objects, and a terminal would execute
/// control sequences in them.
pub fn printable(text: &str) -> String {
    text.chars().filter(|it| *it == '\n' || !terminal::is_obeyed(*it)).collect()
}

/// Returns the names joined, or the first `limit` of them and how many more there are.
pub fn first_names(names: &[impl AsRef<str>], limit: usize) -> String {
    let shown = names.iter().take(limit).map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    append_more(shown, names.len().saturating_sub(limit))
}

/// Returns a list of which `n_more` items are left out, as in `a, b and 3 more`.
pub fn append_more(shown: String, n_more: usize) -> String {
    if n_more == 0 { shown } else { format!("{shown} and {n_more} more") }
}

/// Returns the first of several texts, as in `a (and 3 more)`.
pub fn append_more_in_parentheses(first: String, n_more: usize) -> String {
    if n_more == 0 { first } else { format!("{first} (and {n_more} more)") }
}

/// Returns the texts joined, and how many more there are, as in `a; b; and 3 more`.
pub fn join_with_more(mut texts: Vec<String>, separator: &str, n_more: usize) -> String {
    if n_more > 0 {
        texts.push(format!("and {n_more} more"));
    }
    texts.join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Reason = Reason::good("Done", "");
    const WAITING: Reason = Reason::waiting("Waiting", "", "", "");
    const BROKEN: Reason = Reason::error("Broken", "", "", "");

    #[test]
    fn a_message_holds_nothing_that_a_terminal_obeys() {
        let finding = BROKEN.condition(READY, "machine \u{1b}[2Ja\r\u{202e}b\nIronic says é");
        assert_eq!(finding.message, "machine [2Jab\nIronic says é");
    }

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_time_of_transition_changes_only_with_the_status() {
        let first = time("2026-01-01T00:00:00Z");
        let later = time("2026-01-01T00:00:09Z");
        let old = merge_conditions(&[], vec![WAITING.condition("A", "for x")], Some(1), first);
        let same = merge_conditions(&old, vec![BROKEN.condition("A", "y")], Some(2), later);
        assert_eq!(same[0].last_transition_time.0, first);
        let changed = merge_conditions(&same, vec![DONE.condition("A", "")], Some(2), later);
        assert_eq!(changed[0].last_transition_time.0, later);
    }

    #[test]
    fn ready_stands_first_and_the_others_are_sorted() {
        let now = time("2026-01-01T00:00:00Z");
        let findings =
            ["Zebra", READY, "Ape"].map(|it| DONE.condition(it, "")).into_iter().collect();
        let types: Vec<_> =
            merge_conditions(&[], findings, None, now).into_iter().map(|it| it.type_).collect();
        assert_eq!(types, [READY, "Ape", "Zebra"]);
    }

    #[test]
    fn ready_repeats_the_first_of_the_worst_findings() {
        let findings = [
            DONE.condition("A", ""),
            WAITING.condition("B", "b"),
            BROKEN.condition("C", "c"),
            BROKEN.condition("D", "d"),
        ];
        let summary = ready(&findings, DONE.condition(READY, ""));
        assert_eq!((summary.message.as_str(), summary.type_.as_str()), ("c", READY));
        assert_eq!(kstatus(&summary).map(|it| it.type_), Some(STALLED.to_owned()));
    }

    #[test]
    fn a_trimmed_text_keeps_whole_characters() {
        assert_eq!(truncated("äöü", 5), "ä…");
        assert_eq!(truncated("abc", 3), "abc");
    }

    #[test]
    fn a_shortened_message_loses_facts_and_never_its_next_step() {
        let step = "Ask the host. If the change is yours: kubectl annotate --overwrite x y=z";
        let long = "f".repeat(500);
        let cut = shortened(&format!("Host n1 shows another key: {long}. {step}"), 300);
        assert!(cut.starts_with("Host n1 shows another key: fff"), "{cut}");
        assert!(cut.ends_with(&format!("… {step}")) && cut.len() <= 300, "{cut}");
        // A next step that is longer than the limit stays, with the object that it is for.
        let step = format!("If it is yours: kubectl annotate {}", "n".repeat(400));
        let cut = shortened(&format!("Host n1 is not yours: {long}. {step}"), 300);
        assert!(cut.starts_with("Host n1") && cut.ends_with(&step), "{cut}");
        for (text, limit) in [("a. b", 4), ("no sentence", 4), ("one. two", 7)] {
            assert!(shortened(text, limit).len() <= limit.max(text.len()), "{text}");
        }
        let endless = format!("a. {}. {}", "b".repeat(900), "c".repeat(900));
        assert_eq!(shortened(&endless, 300), truncated(&endless, 300));
    }

    #[test]
    fn long_lists_end_with_a_number() {
        assert_eq!(first_names(&["a", "b"], 2), "a, b");
        assert_eq!(first_names(&["a", "b", "c"], 2), "a, b and 1 more");
    }
}
