//! What is wrong with what a human wrote: where, what stands there, why not, and the legal way.

use std::fmt;

use api::conditions::truncated;

/// How much of a value is repeated.
const VALUE_LIMIT: usize = 80;

/// A mistake in an input. It heals by an edit alone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// Where, as in `network.links[1].mtu`.
    pub path: String,
    /// What stands there, trimmed; `None` where nothing does, or where it may be secret.
    pub value: Option<String>,
    /// Why it is refused, as the end of a sentence about the value.
    pub cause: String,
    /// What may be written instead.
    pub way: String,
}

impl Fault {
    /// About a value that may be shown.
    pub(crate) fn new(
        path: impl Into<String>,
        value: impl fmt::Display,
        cause: impl Into<String>,
        way: impl Into<String>,
    ) -> Self {
        let value = truncated(&value.to_string(), VALUE_LIMIT);
        Self { value: Some(value), ..Self::hidden(path, cause, way) }
    }

    /// About a value that may be secret, or that is not there.
    pub(crate) fn hidden(
        path: impl Into<String>,
        cause: impl Into<String>,
        way: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), value: None, cause: cause.into(), way: way.into() }
    }

    /// The same fault of something that stands below `parent`.
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
