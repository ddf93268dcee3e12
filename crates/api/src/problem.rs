//! What keeps an object from being ready, as conditions report it.

use crate::conditions::{ConditionDraft, Reason, Severity};

/// A missing or invalid input, or a fault of something that an object needs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// The reason of the condition.
    pub reason: &'static Reason,
    /// The message, which names the object, the cause and the next step.
    pub message: String,
}

impl Problem {
    /// Creates a problem with that message.
    pub fn new(reason: &'static Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// Returns whether only an edit of this object clears it; else another object's change does.
    pub fn needs_human(&self) -> bool {
        self.reason.severity == Some(Severity::Error)
    }

    /// Returns the condition of that type that reports it.
    pub fn condition(&self, type_: &str) -> ConditionDraft {
        self.reason.condition(type_, self.message.clone())
    }

    /// Returns the problem that gives the condition over all of them its reason: the first that
    /// needs an edit, else the first. `None` if there are none.
    pub fn worst(problems: &[Self]) -> Option<&Self> {
        problems.iter().min_by_key(|it| !it.needs_human())
    }
}
