//! Error responses of nova.

use serde_json::json;

use crate::answer::Answer;

/// Creates an error response in nova's format.
pub(crate) fn refused(status: u16, message: &str) -> Answer {
    let kind = match status {
        400 => "badRequest",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "itemNotFound",
        406 => "notAcceptable",
        409 => "conflictingRequest",
        429 => "overLimit",
        503 => "serviceUnavailable",
        _ => "computeFault",
    };
    Answer::of(status, json!({ kind: { "code": status, "message": message } }))
}

/// Creates the response about a cell whose database does not answer a request that needs it.
pub(crate) fn unexpected() -> Answer {
    let class = "<class 'oslo_db.exception.DBNonExistentTable'>";
    refused(500, &format!("Unexpected API Error. Please contact the administrator\n{class}"))
}
