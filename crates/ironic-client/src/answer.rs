//! What an answer of a server holds, how long it may take and how large it may be, and why there is none.

use std::time::Duration;

use http::Response;
use hyper::body::Bytes;
use ironic::Error;
use operator_runtime::http_client::HttpFault;
use operator_runtime::object_size;
use serde::de::{DeserializeOwned, IgnoredAny};

/// How long one answer may take. Some verbs are answered only after the machine's management controller
/// was asked.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);
/// The largest answer, in bytes: a page of 500 machines, with 16 KiB of what is asked of each.
pub(crate) const LARGEST_ANSWER: usize = 8 * 1024 * 1024;
/// What reading one answer may cost.
const COST: object_size::SizeLimit = object_size::SizeLimit { depth: 100, bytes: 32 * 1024 * 1024 };

/// Why there was no answer.
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
    }
}

/// What an answer holds: nothing, or JSON that costs little to read.
pub(crate) fn content(answer: Response<Bytes>) -> Result<Bytes, Error> {
    let (head, body) = answer.into_parts();
    if let Some(error) = Error::of_answer(head.status.as_u16(), &body) {
        return Err(error);
    }
    if !body.is_empty() && serde_json::from_slice::<IgnoredAny>(&body).is_err() {
        return Err(Error::NotIronic);
    }
    match object_size::fault(&body, COST) {
        Some(fault) => Err(Error::TooLarge(format!("an answer that {fault}"))),
        None => Ok(body),
    }
}

/// The JSON of an answer; what is none, or says something else, is no Ironic's.
pub(crate) fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(answer).map_err(|_| Error::NotIronic)
}
