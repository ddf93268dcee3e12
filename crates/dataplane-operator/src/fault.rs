//! Faults that keep a host from being deployed or a spec from taking effect.

/// A fault that keeps a host from being deployed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// The reason of the condition, one CamelCase word.
    pub reason: &'static str,
    /// The message, which names the object, the cause and the next step.
    pub message: String,
    /// Whether it clears when another object appears or changes; otherwise only an edit of this
    /// object clears it.
    pub is_missing: bool,
}

impl Fault {
    /// Creates a fault that clears when another object appears or changes.
    pub fn missing(reason: &'static str, message: String) -> Self {
        Self { reason, message, is_missing: true }
    }

    /// Creates a fault that only an edit of this object clears.
    pub fn wrong(reason: &'static str, message: String) -> Self {
        Self { reason, message, is_missing: false }
    }
}
