//! Errors of requests to Ironic, or to the Keystone in front of it.

use std::fmt;

use api::conditions::{Reason, one_line};
use serde_json::Value;

use crate::reasons;
use crate::supported_versions::{NEWEST, OLDEST};

/// How many bytes of a server's message are repeated.
pub const WORDS_LIMIT: usize = 512;

/// Why a request failed.
///
/// A server's message is repeated only from where Ironic or Keystone puts it, because the author of a
/// set chooses which server is asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Error {
    /// The text is not an http or https URL.
    NotUrl,
    /// No connection, or no response in time; the text says which.
    Unreachable(String),
    /// The server has no TLS, or its certificate is not trusted; the text says which.
    Untrusted(String),
    /// The server is not an Ironic.
    NotIronic,
    /// A response exceeds a limit; the text says of what.
    TooLarge(String),
    /// There is no memory for a response now.
    NoMemory,
    /// The server supports none of the API versions that this crate supports.
    Version {
        /// Its oldest version.
        min: String,
        /// Its newest version.
        max: String,
    },
    /// Credentials are missing or wrong.
    Unauthorized,
    /// The credentials are valid but lack permissions.
    Forbidden(String),
    /// The Secret with credentials or certificates is incomplete; the text says what is missing.
    Credentials(String),
    /// The machine does not exist.
    NotFound,
    /// The machine is locked, in another state, or taken by somebody else: read it again.
    Conflict(String),
    /// Ironic has no free worker, or asks to try later.
    Busy(String),
    /// Ironic rejects the request.
    Refused(String),
    /// Ironic itself fails, with this HTTP status.
    Broken(u16, String),
}

impl Error {
    /// Returns the reason of a condition that reports it on a machine.
    pub fn reason(&self) -> &'static Reason {
        match self {
            Self::NotUrl => &reasons::INVALID_URL,
            Self::Unreachable(_) => &reasons::UNREACHABLE,
            Self::Untrusted(_) => &reasons::CERTIFICATE_NOT_TRUSTED,
            Self::NotIronic => &reasons::NOT_IRONIC,
            Self::TooLarge(_) | Self::NoMemory => &reasons::ANSWER_TOO_LARGE,
            Self::Version { .. } => &reasons::VERSION_NOT_SUPPORTED,
            Self::Unauthorized => &reasons::CREDENTIALS_REFUSED,
            Self::Forbidden(_) => &reasons::ACCESS_DENIED,
            Self::Credentials(_) => &reasons::CREDENTIALS_INCOMPLETE,
            Self::NotFound => &reasons::MACHINE_NOT_FOUND,
            Self::Conflict(_) => &reasons::MACHINE_BUSY,
            Self::Busy(_) => &reasons::IRONIC_BUSY,
            Self::Refused(_) => &reasons::REQUEST_REFUSED,
            Self::Broken(..) => &reasons::IRONIC_FAILED,
        }
    }

    /// Returns whether a retry may succeed without a change by the user.
    pub fn heals(&self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::NoMemory
            | Self::NotFound
            | Self::Conflict(_)
            | Self::Busy(_)
            | Self::Broken(..) => true,
            Self::NotUrl
            | Self::Untrusted(_)
            | Self::NotIronic
            | Self::TooLarge(_)
            | Self::Version { .. }
            | Self::Unauthorized
            | Self::Forbidden(_)
            | Self::Credentials(_)
            | Self::Refused(_) => false,
        }
    }

    /// Returns the error for a response; `None` for a successful one.
    pub fn of_answer(status: u16, body: &[u8]) -> Option<Self> {
        let words = || words(status, body);
        match status {
            200..=299 => None,
            401 => Some(Self::Unauthorized),
            403 => Some(Self::Forbidden(words())),
            404 => Some(Self::NotFound),
            409 => Some(Self::Conflict(words())),
            429 | 502..=504 => Some(Self::Busy(words())),
            400..=499 => Some(Self::Refused(words())),
            _ => Some(Self::Broken(status, words())),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUrl => f.write_str("the endpoint is no http or https URL"),
            Self::Unreachable(cause) => write!(f, "Ironic cannot be reached: {cause}"),
            Self::Untrusted(cause) => write!(f, "Ironic's certificate is not trusted: {cause}"),
            Self::NotIronic => f.write_str("what answers at the endpoint is no Ironic"),
            Self::TooLarge(what) => write!(f, "Ironic returns more than the limit: {what}"),
            Self::NoMemory => f.write_str(
                "Ironic returns more than the limit: more than is left of the operator's memory for \
                 answers",
            ),
            Self::Version { min, max } => write!(
                f,
                "Ironic supports versions {min} to {max} of its API, and the operator {OLDEST} to \
                 {NEWEST}"
            ),
            Self::Unauthorized => f.write_str("Ironic refuses the credentials"),
            Self::Forbidden(words) => {
                write!(f, "Ironic does not let these credentials do this: {words}")
            }
            Self::Credentials(lack) => f.write_str(lack),
            Self::NotFound => f.write_str("Ironic has no such machine"),
            Self::Conflict(words) | Self::Refused(words) => write!(f, "Ironic says: {words}"),
            Self::Busy(words) => write!(f, "Ironic is busy: {words}"),
            Self::Broken(status, words) => {
                write!(f, "Ironic fails with HTTP status {status}: {words}")
            }
        }
    }
}

impl std::error::Error for Error {}

/// The message of a response that has none.
const NO_WORDS: &str = "no reason";

/// Returns a server's message in one line.
///
/// Ironic packs it into JSON once or twice, Keystone once. A response of any other form comes from
/// another kind of server, and nothing of it is repeated.
fn words(status: u16, body: &[u8]) -> String {
    let packed: Option<Value> =
        (body.len() <= LARGEST_REFUSAL).then(|| serde_json::from_slice(body).ok()).flatten();
    let words = packed.and_then(|it| of_ironic(&it).or_else(|| of_keystone(status, &it)));
    let words = words.unwrap_or_default();
    // A traceback follows if the server is configured to include it.
    let own = words.split("Traceback (most recent call last)").next().unwrap_or_default();
    let line = one_line(own, WORDS_LIMIT);
    if line.is_empty() { NO_WORDS.to_owned() } else { line }
}

/// How many bytes of an error response are parsed: it is one message.
const LARGEST_REFUSAL: usize = 64 * 1024;

/// Returns the message in the form of pecan and WSME, which all releases of Ironic use.
fn of_ironic(packed: &Value) -> Option<String> {
    let packed = packed.get("error_message").unwrap_or(packed);
    let inner: Value = match packed.as_str() {
        Some(inner) => serde_json::from_str(inner).ok()?,
        None => packed.clone(),
    };
    inner.get("faultstring")?.as_str().map(str::to_owned)
}

/// Returns the message in Keystone's form, also used by its middleware in front of Ironic.
fn of_keystone(status: u16, packed: &Value) -> Option<String> {
    let error = packed.get("error")?;
    let is_keystones = error.get("code")? == status && error.get("title")?.is_string();
    error.get("message")?.as_str().filter(|_| is_keystones).map(str::to_owned)
}
