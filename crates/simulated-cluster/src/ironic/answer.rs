//! Ironic's format of an error.

use serde_json::json;

use crate::answer::Answer;

impl Answer {
    /// Creates an error response, encoded twice as Ironic does.
    pub(crate) fn refused(status: u16, words: &str) -> Self {
        let fault = json!({ "faultcode": "Client", "faultstring": words, "debuginfo": null });
        Self::of(status, json!({ "error_message": fault.to_string() }))
    }
}
