//! What Ironic answers, and how it packs a refusal.

use serde_json::{Value, json};

/// A status and a body; null where there is none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn of(status: u16, body: Value) -> Self {
        Self { status, body }
    }

    /// A refusal, packed twice as Ironic does.
    pub(crate) fn refused(status: u16, words: &str) -> Self {
        let fault = json!({ "faultcode": "Client", "faultstring": words, "debuginfo": null });
        Self::of(status, json!({ "error_message": fault.to_string() }))
    }
}

/// What is answered, or why not.
pub(crate) type Outcome = Result<Answer, Answer>;
