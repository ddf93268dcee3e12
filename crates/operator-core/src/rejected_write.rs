//! Writes that the API server rejected, and the condition that reports them on the object.

use api::conditions::{Condition, ConditionDraft, Reason, find, truncated};

use crate::plan::{Kind, Step, Target, Write};
use crate::reasons::{ALREADY_EXISTS, FORBIDDEN};

/// Condition type: every object that belongs to this one could be written.
///
/// The condition is present only while a write is rejected.
pub const WRITES_ACCEPTED: &str = "WritesAccepted";

/// Maximum length of the API server's message.
const WORDS_LIMIT: usize = 600;

/// A write that the API server rejected.
#[derive(Clone, Debug, PartialEq)]
pub struct RejectedWrite {
    /// The object that was to be written.
    pub target: Target,
    /// The cause: [`FORBIDDEN`], [`INVALID`](crate::reasons::INVALID) or [`ALREADY_EXISTS`].
    pub reason: &'static Reason,
    /// The API server's message in one line, reduced to what may be published.
    pub message: String,
    /// What was rejected, as in `ConfigMap x cannot be written`.
    what: String,
}

impl RejectedWrite {
    /// Describes the rejected `step`; `words` is the API server's message.
    pub fn of(step: &Step, reason: &'static Reason, words: &str) -> Self {
        let target = step.target.clone();
        let object = format!("{} {}", target.kind.kind, target.name);
        let what = match &step.write {
            Write::Apply { .. } | Write::Create { .. } => format!("{object} cannot be written"),
            Write::Status { .. } => format!("The status of {object} cannot be written"),
            Write::Delete { .. } => format!("{object} cannot be deleted"),
            Write::AddFinalizer { .. } => format!("{object} cannot be held by a finalizer"),
            Write::RemoveFinalizer { .. } => {
                format!("{object} cannot be released from its finalizer")
            }
        };
        let message = sayable(&target, words);
        Self { target, reason, message, what }
    }

    /// Returns the condition of type `type_`; `previous` are the object's present conditions.
    ///
    /// # Guarantees
    /// Changing counters and identifiers in the API server's message do not change a reported
    /// message.
    pub fn condition(&self, type_: &str, previous: &[Condition]) -> ConditionDraft {
        let message = self.message();
        let reported = find(previous, type_);
        let is_same =
            |it: &&Condition| it.reason == self.reason.word && says_same(&it.message, &message);
        let message = reported.filter(is_same).map_or(message, |it| it.message.clone());
        self.reason.condition(type_, message)
    }

    /// Returns object, cause and next step as one text.
    fn message(&self) -> String {
        let Self { what, message: words, .. } = self;
        format!("{what}: {words}. {}; it is retried automatically.", self.next_step())
    }

    /// Returns what the user can do about it.
    pub fn next_step(&self) -> &'static str {
        match *self.reason {
            FORBIDDEN => {
                "Raise the quota, change the policy or give the operator the permission that is \
                 missing"
            }
            ALREADY_EXISTS => {
                "Another object has its name: delete that one if it is not needed, or name this \
                 one differently"
            }
            _ => "Correct what it is made from, or the policy that refuses it",
        }
    }
}

/// Returns the condition for a rejected write.
///
/// Without a rejection the previous condition is kept while `is_waiting`, that is, while writes are
/// still to be made after the status. Writes before the status have succeeded when it is written.
pub fn condition(
    rejection: Option<&RejectedWrite>,
    previous: &[Condition],
    is_waiting: bool,
) -> Option<ConditionDraft> {
    match rejection {
        Some(rejected) => Some(rejected.condition(WRITES_ACCEPTED, previous)),
        None if is_waiting => reported(previous),
        None => None,
    }
}

/// Returns whether a reported rejected write is about an object of `kind`.
pub fn is_of(reported: &ConditionDraft, kind: &Kind) -> bool {
    // The message begins with the rejected object's kind.
    reported.message.split(' ').next() == Some(&kind.kind)
}

/// Returns the rejected write among an object's conditions, if any.
fn reported(conditions: &[Condition]) -> Option<ConditionDraft> {
    find(conditions, WRITES_ACCEPTED).map(ConditionDraft::repeated)
}

/// Returns the part of the API server's message that may be published, truncated to one line.
///
/// Policies may quote the object that they reject. For a Secret only the API server's own messages
/// about permissions and quotas are repeated.
fn sayable(target: &Target, words: &str) -> String {
    let Target { kind: Kind { group, kind, plural, .. }, name, .. } = target;
    let is_secret = group.is_empty() && kind == "Secret";
    let own =
        ["User ", "exceeded quota: "].map(|it| format!("{plural} \"{name}\" is forbidden: {it}"));
    if is_secret && !own.iter().any(|it| words.starts_with(it)) {
        return "the API server's words are left out, for they may quote its content".to_owned();
    }
    let line: Vec<&str> = words.split_whitespace().collect();
    truncated(line.join(" ").trim_end_matches('.'), WORDS_LIMIT)
}

/// Returns whether two messages have the same object and the same words, ignoring words with
/// digits.
fn says_same(a: &str, b: &str) -> bool {
    let (Some((what_a, why_a)), Some((what_b, why_b))) = (a.split_once(": "), b.split_once(": "))
    else {
        return a == b;
    };
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|it: char| !it.is_alphanumeric());
        let is_word = |it: &&str| !it.is_empty() && !it.contains(|it: char| it.is_ascii_digit());
        words.filter(is_word).map(str::to_owned).collect()
    };
    what_a == what_b && words(why_a) == words(why_b)
}

#[cfg(test)]
mod tests {
    use api::conditions::merge_conditions;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::reasons::INVALID;

    fn step(kind: &str, name: &str) -> Step {
        let kind = Kind {
            group: String::new(),
            version: "v1".into(),
            kind: kind.into(),
            plural: format!("{}s", kind.to_lowercase()),
        };
        let target = Target { kind, namespace: "ns".into(), name: name.into(), uid: None };
        Step::apply(target, json!({ "metadata": {} }), "x")
    }

    fn message(rejected: &RejectedWrite, previous: &[Condition]) -> String {
        rejected.condition(WRITES_ACCEPTED, previous).message
    }

    #[test]
    fn a_refusal_names_object_cause_and_next_step_for_each_reason() {
        let cases = [
            (&FORBIDDEN, "Raise the quota"),
            (&INVALID, "Correct what it is made from"),
            (&ALREADY_EXISTS, "Another object has its name"),
        ];
        for (reason, next_step) in cases {
            let rejected = RejectedWrite::of(&step("ConfigMap", "a"), reason, "no\n  more room.");
            let text = message(&rejected, &[]);
            assert!(text.starts_with("ConfigMap a cannot be written: no more room. "), "{text}");
            assert!(text.contains(next_step) && text.ends_with("automatically."), "{text}");
        }
        let mut delete = step("ConfigMap", "a");
        delete.write = Write::Delete { resource_version: None };
        assert!(
            message(&RejectedWrite::of(&delete, &FORBIDDEN, "x"), &[])
                .contains("cannot be deleted")
        );
    }

    #[test]
    fn a_told_refusal_is_of_the_kind_that_was_refused() {
        let step = step("ConfigMap", "a");
        let reported = RejectedWrite::of(&step, &INVALID, "x").condition(WRITES_ACCEPTED, &[]);
        assert!(is_of(&reported, &step.target.kind));
        assert!(!is_of(&reported, &Kind { kind: "Config".into(), ..step.target.kind }));
    }

    #[test]
    fn words_about_a_secret_are_repeated_only_where_they_cannot_quote_it() {
        let cases = [
            ("secrets \"a\" is forbidden: exceeded quota: q, used: secrets=1", true),
            ("secrets \"a\" is forbidden: User \"op\" cannot patch resource", true),
            ("admission webhook \"w\" denied the request: hunter2", false),
            ("secrets \"a\" is forbidden: policy says hunter2", false),
            ("Secret \"a\" is invalid: data: hunter2", false),
        ];
        for (words, is_said) in cases {
            let text = message(&RejectedWrite::of(&step("Secret", "a"), &FORBIDDEN, words), &[]);
            assert_eq!(text.contains(words), is_said, "{text}");
            assert!(!text.contains("hunter2") && text.contains("Secret a"), "{text}");
        }
    }

    #[test]
    fn counters_do_not_change_what_is_told_and_another_cause_or_object_does() {
        let reported = |name: &str, words: &str, previous: &[Condition]| {
            message(&RejectedWrite::of(&step("ConfigMap", name), &FORBIDDEN, words), previous)
        };
        let first =
            RejectedWrite::of(&step("ConfigMap", "a1"), &FORBIDDEN, "used: 5 of 5 (id 7f3a)");
        let condition = first.condition(WRITES_ACCEPTED, &[]);
        let previous = merge_conditions(&[], vec![condition.clone()], None, Timestamp::UNIX_EPOCH);
        assert_eq!(reported("a1", "used: 6 of 6 (id 9b2c)", &previous), condition.message);
        assert_ne!(reported("a2", "used: 5 of 5 (id 7f3a)", &previous), condition.message);
        assert!(reported("a1", "the policy says no", &previous).contains("the policy says no"));
        let other = RejectedWrite::of(&step("ConfigMap", "a1"), &INVALID, "used: 5 of 5 (id 7f3a)");
        assert_ne!(message(&other, &previous), condition.message);
    }

    #[test]
    fn a_message_is_bounded_however_long_the_words() {
        let rejected = RejectedWrite::of(&step("ConfigMap", "a"), &INVALID, &"long ".repeat(9999));
        assert!(message(&rejected, &[]).len() < 1000);
    }
}
