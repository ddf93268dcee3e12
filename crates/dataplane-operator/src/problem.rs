//! What keeps a host from being deployed, or a spec from taking effect: reason, cause and next step.

/// Something that keeps a host from being deployed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// One CamelCase word.
    pub reason: &'static str,
    /// Object, cause and next step.
    pub message: String,
    /// Whether it heals as soon as something appears; else only by an edit of this object.
    pub is_missing: bool,
}

impl Fault {
    /// What heals as soon as something appears.
    pub fn missing(reason: &'static str, message: String) -> Self {
        Self { reason, message, is_missing: true }
    }

    /// What only an edit heals.
    pub fn wrong(reason: &'static str, message: String) -> Self {
        Self { reason, message, is_missing: false }
    }
}
