//! Ironic's format of an error.

use serde_json::json;

use crate::answer::Answer;

impl Answer {
    /// Creates an error response, encoded twice as Ironic does; what is too large is rejected by an
    /// outer layer, which encodes once.
    pub(crate) fn refused(status: u16, words: &str) -> Self {
        if status == 413 {
            return Self::of(status, json!({ "faultcode": "Client", "faultstring": words }));
        }
        let fault = json!({ "faultcode": "Client", "faultstring": words, "debuginfo": null });
        Self::of(status, json!({ "error_message": fault.to_string() }))
    }
}
