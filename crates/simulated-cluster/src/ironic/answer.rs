//! Ironic's responses, and its format of an error.

use serde_json::{Value, json};

/// Status and body of a response; the body is null when there is none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn of(status: u16, body: Value) -> Self {
        Self { status, body }
    }

    /// Creates an error response, encoded twice as Ironic does.
    pub(crate) fn refused(status: u16, words: &str) -> Self {
        let fault = json!({ "faultcode": "Client", "faultstring": words, "debuginfo": null });
        Self::of(status, json!({ "error_message": fault.to_string() }))
    }
}

/// A response; the error is a rejection.
pub(crate) type Outcome = Result<Answer, Answer>;
