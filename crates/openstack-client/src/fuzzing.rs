//! Bodies of the fuzz targets of this crate; see `fuzz/` and docs/development.md.
//!
//! They are compiled only for tests, which run them on the committed corpus, and for the fuzzer.

use api::conditions::printable;
use http::StatusCode;
use hyper::body::Bytes;

use crate::compute;
use crate::error::{Error, Fault, Service};
use crate::message::MESSAGE_LIMIT;

/// A fuzz target: its name, and the function that takes an input.
pub type Target = (&'static str, fn(&[u8]));

/// The targets of this crate.
pub const TARGETS: &[Target] = &[("nova", nova_answer)];

/// A response of nova: its status in the first line, then its body, parsed as each kind of response.
pub fn nova_answer(data: &[u8]) {
    let at = data.iter().position(|it| *it == b'\n').unwrap_or(data.len());
    let (line, body) = (&data[..at], data.get(at + 1..).unwrap_or_default());
    let status = std::str::from_utf8(line).ok().and_then(|it| it.parse::<StatusCode>().ok());
    let body = Bytes::copy_from_slice(body);
    let refused = Error::of_response(status.unwrap_or_default(), &body);
    let errors = [
        refused,
        compute::services_of(&body).err(),
        compute::hypervisors_of(&body).err(),
        compute::supports(&body).err(),
    ];
    for error in errors.into_iter().flatten() {
        let message = Fault::of(Service::Compute, error).to_string();
        assert!(message.len() <= MESSAGE_LIMIT + 256, "{} bytes", message.len());
        let message = printable(&message);
        assert!(!message.contains(|it: char| it.is_control()), "{message:?}");
    }
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;
