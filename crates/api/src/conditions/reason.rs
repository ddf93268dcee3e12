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
/// Operators declare each of their reasons once, by [`reasons!`](crate::reasons): as a constant that
/// raises conditions, and in the lists of their condition catalog, from which the docs are made.
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

    /// Declares the reason of a condition that does not hold, about which the user may want to do
    /// something.
    pub const fn lacking(
        word: &'static str,
        meaning: &'static str,
        heals: &'static str,
        step: &'static str,
    ) -> Self {
        Self::absent(word, "").described(meaning, heals, step)
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

/// Declares reasons, each as a constant and in the lists of a condition catalog.
///
/// The first line is `pub(crate) mod catalog;`, the module of the lists.
/// A list begins with its doc comment and `const LIST;`, and holds the reasons of a condition, or
/// some of them. Its entries are:
///
/// - `NAME: warning "Word" means "…" heals "…" step "…";`, which declares a reason, here by
///   [`Reason::warning`]; one that needs no help ends after `means "…"`;
/// - `NAME;` or a path, which names a reason of another list;
/// - a name or path with `means "…" heals "…" step "…";`, which names it with other help.
///
/// Code raises `NAME`; the lists have a copy of it, so that the compiler reports a reason that
/// nothing raises, and a list that the catalog lacks.
/// It reports only items that begin and end with a token of their own crate: here with the
/// visibility and the semicolon of the first line.
#[macro_export]
macro_rules! reasons {
    ($public:tt $in_crate:tt mod $catalog:ident $end:tt $(
        $(#[$about:meta])+
        const $list:ident;
        $(
            $name:ident $(:: $rest:ident)*
            $(: $kind:ident $word:literal means $meaning:literal
                $(heals $heals:literal step $step:literal)?)?
            $(means $means:literal heals $then:literal step $do:literal)?;
        )+
    )+) => {
        $($($(
            #[doc = $meaning]
            $public $in_crate const $name: $crate::conditions::Reason =
                $crate::conditions::Reason::$kind($word, $meaning $(, $heals, $step)?) $end
        )?)+)+

        /// The same reasons in lists, for the condition catalog.
        $public $in_crate mod $catalog {
            $($($(
                #[doc = $meaning]
                $public $in_crate const $name: $crate::conditions::Reason =
                    $crate::conditions::Reason::$kind($word, $meaning $(, $heals, $step)?) $end
            )?)+)+
            $(
                $(#[$about])+
                $public $in_crate const $list: &[$crate::conditions::Reason] =
                    &[$($name $(:: $rest)* $(.described($means, $then, $do))?),+] $end
            )+
        }
    };
}
