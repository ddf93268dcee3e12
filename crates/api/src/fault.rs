//! What is wrong with what a human wrote into a spec: where, and the legal way.

use std::fmt;

/// A field of a spec that must be written differently.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// Where, as in `spec.env[2].name`.
    pub path: String,
    /// What is there, why it is refused, and the legal way.
    pub message: String,
}

impl Fault {
    /// A fault of that place.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}
