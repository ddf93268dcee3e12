//! Faults of a spec: the field and a valid alternative.

use std::fmt;

/// A field of a spec that has to be corrected.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// The field, as in `spec.env[2].name`.
    pub path: String,
    /// The present value, why it is rejected, and a valid alternative.
    pub message: String,
}

impl Fault {
    /// Creates a fault of that field.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}
