//! The catalog of conditions: types and reasons of each kind as data, for the docs and for tests.

use api::conditions::{Condition, READY, RECONCILING, Reason, STALLED};
use serde_json::Value;

use crate::reasons;
use crate::rejected_write::WRITES_ACCEPTED;
use crate::run_engine::outcome::FailureReason;

/// A kind, and the conditions that one operator writes on it.
#[derive(Clone, Copy, Debug)]
pub struct KindConditions {
    /// The kind's name.
    pub name: &'static str,
    /// Its conditions; [`RECONCILING`] and [`STALLED`] are implied.
    pub conditions: &'static [ConditionSpec],
}

/// A condition type, with its reasons.
#[derive(Clone, Copy, Debug)]
pub struct ConditionSpec {
    /// The type.
    pub type_: &'static str,
    /// What holds when it is True.
    pub meaning: &'static str,
    /// Its own reasons, in lists that conditions may share.
    pub reasons: &'static [&'static [Reason]],
    /// The reasons that it takes over from other conditions.
    pub repeats: Repeats,
}

/// Reasons that a condition takes over from elsewhere.
#[derive(Clone, Copy, Debug)]
pub enum Repeats {
    /// None.
    Nothing,
    /// Those of failed attempts.
    Attempts(&'static [FailureReason]),
    /// Those of the object's other conditions.
    Others,
    /// Those of another kind's `Ready` condition.
    Kind(&'static str),
}

/// The condition types that every kind has in addition to its own.
pub const ON_EVERY_KIND: &[ConditionSpec] = &[
    ConditionSpec {
        type_: RECONCILING,
        meaning: "The operator proceeds automatically; absent otherwise.",
        reasons: &[],
        repeats: Repeats::Others,
    },
    ConditionSpec {
        type_: STALLED,
        meaning: "The user is needed; absent otherwise.",
        reasons: &[],
        repeats: Repeats::Others,
    },
];

/// The condition that reports rejected writes.
pub const WRITES: ConditionSpec = condition(
    WRITES_ACCEPTED,
    "Never said: the condition is absent unless the API server refuses an object that belongs to \
     this one.",
    &[&[reasons::FORBIDDEN, reasons::INVALID, reasons::ALREADY_EXISTS]],
);

fn of_kind<'a>(kinds: &'a [KindConditions], kind: &str) -> impl Iterator<Item = &'a ConditionSpec> {
    kinds.iter().filter(move |it| it.name == kind).flat_map(|it| it.conditions)
}

/// Returns the conditions of a status that its kind does not declare, each as text; for tests.
pub fn undeclared(kinds: &[KindConditions], kind: &str, status: &Value) -> Vec<String> {
    // A status may have no conditions.
    let conditions = serde_json::from_value::<Option<Vec<Condition>>>(status["conditions"].clone());
    let conditions = match conditions {
        Ok(conditions) => conditions.unwrap_or_default(),
        Err(error) => return vec![format!("no conditions: {error}")],
    };
    let is_declared = |it: &&Condition| {
        let mut aspects = of_kind(kinds, kind).chain(ON_EVERY_KIND);
        aspects.any(|aspect| aspect.type_ == it.type_ && aspect.allows(it, kinds, kind))
    };
    let words = |it: &Condition| format!("{kind} {}={:?} {}", it.type_, it.status, it.reason);
    conditions.iter().filter(|it| !is_declared(it)).map(words).collect()
}

impl ConditionSpec {
    /// Lets the condition take over reasons from elsewhere too.
    #[must_use]
    pub const fn repeating(mut self, repeats: Repeats) -> Self {
        self.repeats = repeats;
        self
    }

    /// Returns its own reasons, in the order of the docs.
    pub fn own_reasons(&self) -> impl Iterator<Item = &'static Reason> {
        self.reasons.iter().copied().flatten()
    }

    /// Returns whether the kind's condition may have this status and reason.
    fn allows(&self, found: &Condition, kinds: &[KindConditions], kind: &str) -> bool {
        let is_own = |it: &Reason| it.word == found.reason && it.status == found.status;
        self.own_reasons().any(is_own) || self.repeats(&found.reason, kinds, kind)
    }

    /// Returns whether it may take over this reason from elsewhere.
    fn repeats(&self, reason: &str, kinds: &[KindConditions], kind: &str) -> bool {
        let says = |kind| {
            of_kind(kinds, kind).any(|it| {
                let is_summary = matches!(it.repeats, Repeats::Others);
                it.own_reasons().any(|it| it.word == reason)
                    || (!is_summary && it.repeats(reason, kinds, kind))
            })
        };
        match self.repeats {
            Repeats::Nothing => false,
            Repeats::Attempts(reasons) => reasons.iter().any(|it| it.as_str() == reason),
            Repeats::Others => says(kind),
            // The kinds of other operators are not in this list, so their reasons cannot be
            // checked.
            Repeats::Kind(other) => of_kind(kinds, other).next().is_none() || says(other),
        }
    }
}

/// Declares the summary of an object's other conditions, with its own reasons for when all is well.
pub const fn summary(
    meaning: &'static str,
    reasons: &'static [&'static [Reason]],
) -> ConditionSpec {
    ConditionSpec { type_: READY, meaning, reasons, repeats: Repeats::Others }
}

/// Declares a condition with only its own reasons.
pub const fn condition(
    type_: &'static str,
    meaning: &'static str,
    reasons: &'static [&'static [Reason]],
) -> ConditionSpec {
    ConditionSpec { type_, meaning, reasons, repeats: Repeats::Nothing }
}

#[cfg(test)]
mod tests {
    use api::conditions::{ConditionDraft, merge_conditions};
    use serde_json::json;

    use super::*;

    const GOOD: Reason = Reason::good("Ready", "All is well.");
    const WAITING: Reason = Reason::waiting("Waiting", "Not yet.", "Yes.", "Wait.");
    const TIRED: Reason = Reason::waiting("Tired", "", "", "");

    const KINDS: &[KindConditions] = &[KindConditions {
        name: "Thing",
        conditions: &[
            summary("All is well.", &[&[GOOD]]),
            condition("Done", "It is done.", &[&[WAITING]])
                .repeating(Repeats::Attempts(&[FailureReason::TaskFailed])),
        ],
    }];

    fn found(drafts: Vec<ConditionDraft>) -> Vec<String> {
        let conditions = merge_conditions(&[], drafts, None, jiff::Timestamp::UNIX_EPOCH);
        undeclared(KINDS, "Thing", &json!({ "conditions": conditions }))
    }

    #[test]
    fn the_help_on_an_attempt_says_how_it_is_retried() {
        for reason in FailureReason::ALL {
            let heals = reason.reason().heals;
            assert_eq!(heals.starts_with("Yes"), reason.heals_by_itself(), "{reason:?}");
            assert_eq!(heals.contains("ssh Secret"), reason.heals_with_ssh_secret(), "{reason:?}");
        }
    }

    #[test]
    fn what_is_declared_is_found() {
        let waiting = WAITING.condition("Done", "");
        let ready = waiting.clone().with_type(READY);
        assert_eq!(found(vec![waiting, ready]), [""; 0]);
        let failed = reasons::TASK_FAILED.condition("Done", "");
        let ready = failed.clone().with_type(READY);
        assert_eq!(found(vec![failed, ready]), [""; 0]);
        assert_eq!(found(vec![GOOD.condition(READY, "")]), [""; 0]);
    }

    #[test]
    fn another_reason_type_or_status_is_not() {
        let condition = TIRED.condition("Done", "");
        assert_eq!(found(vec![condition.clone()]), ["Thing Done=False Tired"]);
        let summary = ["Thing Ready=False Tired", "Thing Reconciling=True Tired"];
        assert_eq!(found(vec![condition.with_type(READY)]), summary);
        assert_eq!(found(vec![Reason::good("Waiting", "").condition("Done", "")]).len(), 1);
        assert_eq!(found(vec![Reason::good("Waiting", "").condition("Other", "")]).len(), 1);
        assert_eq!(found(vec![reasons::KEY_REFUSED.condition("Done", "")]).len(), 1);
    }
}
