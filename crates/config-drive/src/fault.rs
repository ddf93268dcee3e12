//! Faults of a user's input: the field, its value, the cause and a valid alternative.

use std::fmt;

use api::conditions::truncated;

/// How many bytes of a value are repeated.
const VALUE_LIMIT: usize = 80;

/// A fault of an input. Only an edit corrects it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// The field, as in `network.links[1].mtu`.
    pub path: String,
    /// Its value, trimmed; `None` when it is absent or may be secret.
    pub value: Option<String>,
    /// Why it is rejected, as the end of a sentence about the value.
    pub cause: String,
    /// What is valid instead.
    pub way: String,
}

impl Fault {
    /// Creates a fault of a value that may be shown.
    pub(crate) fn new(
        path: impl Into<String>,
        value: impl fmt::Display,
        cause: impl Into<String>,
        way: impl Into<String>,
    ) -> Self {
        let value = truncated(&value.to_string(), VALUE_LIMIT);
        Self { value: Some(value), ..Self::hidden(path, cause, way) }
    }

    /// Creates a fault of a value that is absent or may be secret.
    pub(crate) fn hidden(
        path: impl Into<String>,
        cause: impl Into<String>,
        way: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), value: None, cause: cause.into(), way: way.into() }
    }

    /// Returns the same fault with `parent` before its path.
    pub(crate) fn below(mut self, parent: &str) -> Self {
        self.path = format!("{parent}.{}", self.path);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, value, cause, way } = self;
        match value {
            Some(value) => write!(f, "{path}: {value:?} {cause}; {way}"),
            None => write!(f, "{path}: the value {cause}; {way}"),
        }
    }
}
