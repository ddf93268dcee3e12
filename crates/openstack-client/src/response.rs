//! Limits and parsing of responses.

use std::time::Duration;

use hyper::body::Bytes;
use operator_runtime::object_size::{self, SizeLimit};
use serde::de::DeserializeOwned;

use crate::error::Error;

/// Time limit of one response: nova itself waits 60 seconds for a cell that does not answer.
pub(crate) const DEADLINE: Duration = Duration::from_secs(90);
/// Maximum size of a response in bytes: a thousand hypervisors with 8 KiB of fields each.
pub(crate) const LARGEST: usize = 8 * 1024 * 1024;
/// Limits for parsing one response.
const COST: SizeLimit = SizeLimit { depth: 100, bytes: 96 * 1024 * 1024 };

/// Parses a response's JSON within the limits; anything else does not come from the service.
pub(crate) fn parsed<T: DeserializeOwned>(body: &Bytes) -> Result<T, Error> {
    if let Some(fault) = object_size::fault(body, COST) {
        return Err(Error::TooLarge(format!("an answer that {fault}")));
    }
    serde_json::from_slice(body).map_err(|_| Error::NotTheService)
}
