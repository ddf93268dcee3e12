//! Responses: size and time limits, content, and errors.

use std::time::Duration;

use http::Response;
use ironic::Error;
use operator_runtime::http_client::HttpFault;
use operator_runtime::object_size;
use serde::de::{DeserializeOwned, IgnoredAny};

/// Time limit of one response.
///
/// Some verbs are answered only after the machine's management controller was asked.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);
/// Maximum size of a response in bytes: a page of 500 machines with 16 KiB of fields each.
pub(crate) const LARGEST_ANSWER: usize = 8 * 1024 * 1024;
/// Limits for parsing one response.
const COST: object_size::SizeLimit = object_size::SizeLimit { depth: 100, bytes: 32 * 1024 * 1024 };

/// Converts an HTTP error.
pub(crate) fn of_web(fault: HttpFault) -> Error {
    match fault {
        HttpFault::NotUrl => Error::NotUrl,
        HttpFault::Unreachable(cause) => Error::Unreachable(cause),
        HttpFault::Untrusted(cause) => Error::Untrusted(cause),
        HttpFault::Cut(status) => {
            Error::Unreachable(format!("its answer of HTTP status {status} broke off"))
        }
        HttpFault::TooLong(_) => {
            Error::TooLarge(format!("an answer of more than {} MiB", LARGEST_ANSWER >> 20))
        }
        HttpFault::NoMemory(_) => Error::NoMemory,
    }
}

/// Returns a response's body, which is empty or JSON within the limits.
pub(crate) fn content<B: AsRef<[u8]>>(answer: Response<B>) -> Result<B, Error> {
    let (head, body) = answer.into_parts();
    let text = body.as_ref();
    if let Some(error) = Error::of_answer(head.status.as_u16(), text) {
        return Err(error);
    }
    if !text.is_empty() && serde_json::from_slice::<IgnoredAny>(text).is_err() {
        return Err(Error::NotIronic);
    }
    match object_size::fault(text, COST) {
        Some(fault) => Err(Error::TooLarge(format!("an answer that {fault}"))),
        None => Ok(body),
    }
}

/// Parses a response's JSON; anything else does not come from an Ironic.
pub(crate) fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(answer).map_err(|_| Error::NotIronic)
}
