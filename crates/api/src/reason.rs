//! The reasons of conditions, each declared once as a constant, with status and severity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a condition holds.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is unknown, or has not been evaluated yet.
    Unknown,
}

/// How much a False condition should worry its reader; absent for True and Unknown.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum Severity {
    /// It does not heal without a user.
    Error,
    /// It is tried again by itself.
    Warning,
    /// It is an ordinary step on the way.
    Info,
}

/// The reason of a condition: its word, its state, and its documentation.
///
/// Operators declare each of their reasons as a constant, raise conditions with it, and list it in
/// their condition catalog, from which the docs are made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reason {
    /// The reason as one CamelCase word.
    pub word: &'static str,
    /// The status of a condition with this reason.
    pub status: ConditionStatus,
    /// How much a False condition should worry its reader; `None` where that is the good state, and
    /// for True and Unknown.
    pub severity: Option<Severity>,
    /// What is wrong, or what holds.
    pub meaning: &'static str,
    /// Whether and when it heals without the user; empty when nothing is wrong.
    pub heals: &'static str,
    /// What the user does next; empty when there is nothing to do.
    pub step: &'static str,
}

impl Reason {
    /// Declares the reason of a condition that holds, which is the good state.
    pub const fn good(word: &'static str, meaning: &'static str) -> Self {
        let status = ConditionStatus::True;
        Self { word, status, severity: None, meaning, heals: "", step: "" }
    }

    /// Declares the reason of a condition that holds, about which the user may want to do something.
    pub const fn notable(
        word: &'static str,
        meaning: &'static str,
        heals: &'static str,
        step: &'static str,
    ) -> Self {
        Self::good(word, "").described(meaning, heals, step)
    }

    /// Declares the reason of a condition that does not hold, which is the good state.
    pub const fn absent(word: &'static str, meaning: &'static str) -> Self {
        Self { status: ConditionStatus::False, ..Self::good(word, meaning) }
    }

    /// Declares the reason of a condition that does not hold yet, as an ordinary step.
    pub const fn waiting(
        word: &'static str,
        meaning: &'static str,
        heals: &'static str,
        step: &'static str,
    ) -> Self {
        let severity = Some(Severity::Info);
        Self { severity, ..Self::absent(word, "") }.described(meaning, heals, step)
    }

    /// Declares the reason of a condition that does not hold and is retried automatically.
    pub const fn warning(
        word: &'static str,
        meaning: &'static str,
        heals: &'static str,
        step: &'static str,
    ) -> Self {
        let severity = Some(Severity::Warning);
        Self { severity, ..Self::absent(word, "") }.described(meaning, heals, step)
    }

    /// Declares the reason of a condition that does not hold until the user changes something.
    pub const fn error(
        word: &'static str,
        meaning: &'static str,
        heals: &'static str,
        step: &'static str,
    ) -> Self {
        let severity = Some(Severity::Error);
        Self { severity, ..Self::absent(word, "") }.described(meaning, heals, step)
    }

    /// Declares the reason of a condition that has not been evaluated yet, or cannot be.
    pub const fn unknown(
        word: &'static str,
        meaning: &'static str,
        heals: &'static str,
        step: &'static str,
    ) -> Self {
        let status = ConditionStatus::Unknown;
        Self { status, ..Self::absent(word, "") }.described(meaning, heals, step)
    }

    /// Returns the same reason with other documentation, as it is listed for another kind.
    #[must_use]
    pub const fn described(
        mut self,
        meaning: &'static str,
        heals: &'static str,
        step: &'static str,
    ) -> Self {
        self.meaning = meaning;
        self.heals = heals;
        self.step = step;
        self
    }
}
