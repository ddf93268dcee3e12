//! Errors of requests and of the process's own parts, each with one word for its cause.

use std::time::Duration;

use api::conditions::Reason;
use kube::core::Status;
use operator_core::reasons::{ALREADY_EXISTS, FORBIDDEN, INVALID};

/// The result of a fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any other error, used as a source.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A plain request that timed out, with its time limit.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} s", .0.as_secs())]
pub struct TimedOut(pub Duration);

/// What an unsuccessful response of the API server means.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The object was changed since it was read; reading it again helps.
    #[error("the object was changed meanwhile")]
    Conflict,
    /// An object with that name already exists.
    #[error("an object of that name exists")]
    AlreadyExists,
    /// The object, its namespace or its kind does not exist.
    #[error("not found")]
    NotFound,
    /// The operator's permissions do not allow it.
    #[error("not allowed by the operator's permissions")]
    Forbidden,
    /// The namespace is being deleted: it accepts no new objects, and everything in it is deleted.
    #[error("the namespace is being deleted")]
    Terminating,
    /// The API server, or an admission webhook, rejects the content.
    #[error("the content was refused")]
    Invalid,
    /// The API server is overloaded or asks for a retry later.
    #[error("the API server is busy")]
    Busy,
    /// Any other unsuccessful response, with its code.
    #[error("the API server answered {0}")]
    Other(u16),
}

impl Refusal {
    fn of(status: &Status) -> Self {
        match status.code {
            401 | 403 if is_terminating(status) => Self::Terminating,
            409 if status.reason == "AlreadyExists" => Self::AlreadyExists,
            // 422 would be a conflict only for JSON patches with a `test` operation, which are
            // never sent.
            409 => Self::Conflict,
            404 => Self::NotFound,
            401 | 403 => Self::Forbidden,
            408 | 429 | 503 | 504 => Self::Busy,
            // 410 concerns lists only; an admission webhook may choose any other code.
            400..=409 | 411..=499 => Self::Invalid,
            code => Self::Other(code),
        }
    }

    /// Returns one word for it.
    fn word(self) -> &'static str {
        match self {
            Self::Conflict => "Conflict",
            Self::AlreadyExists => ALREADY_EXISTS.word,
            Self::NotFound => "NotFound",
            Self::Forbidden => FORBIDDEN.word,
            Self::Terminating => "NamespaceTerminating",
            Self::Invalid => INVALID.word,
            Self::Busy => "ServerBusy",
            Self::Other(_) => "ServerError",
        }
    }
}

/// A failed request, or a failure of the process's own parts.
///
/// `Display` never repeats the source; use [`Error::chain`] to print all causes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An unsuccessful response of the API server.
    #[error("{what}: {refusal}")]
    Refused {
        /// The request.
        what: String,
        /// What the response means.
        refusal: Refusal,
        /// The response.
        #[source]
        status: Box<Status>,
    },
    /// The object was deleted before the write, or deleted and recreated.
    #[error("{what}: the object is gone")]
    Gone {
        /// The request.
        what: String,
    },
    /// No response in time; whether the request took effect is unknown.
    #[error("{what}: no answer within {} s", after.as_secs())]
    Timeout {
        /// The request.
        what: String,
        /// The time limit.
        after: Duration,
    },
    /// No response, or none that can be parsed; whether the request took effect is unknown.
    #[error("{what}: no usable answer from the API server")]
    Transport {
        /// The request.
        what: String,
        /// The cause.
        #[source]
        source: BoxError,
    },
    /// The object exists, but this version of the operator cannot deserialize it.
    #[error("{what}: the object cannot be read: {fault}")]
    Unreadable {
        /// The object, as in `read nodes ns/x`.
        what: String,
        /// The field, and what is expected there.
        fault: String,
    },
    /// The process is not, or no longer, the leader and may not write.
    #[error("{what}: another replica leads")]
    NotLeading {
        /// The write that was not made.
        what: String,
    },
    /// A part of the process could not start or ended.
    #[error("{what}")]
    Process {
        /// The part and what happened to it.
        what: String,
        /// The cause, if known.
        #[source]
        source: Option<BoxError>,
    },
}

impl Error {
    /// Returns one word for the error, used as condition reason, Event reason and metric label.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Refused { refusal, .. } => refusal.word(),
            Self::Gone { .. } => "Gone",
            Self::Timeout { .. } => "Timeout",
            Self::Transport { .. } => "NoAnswer",
            Self::Unreadable { .. } => "Unreadable",
            Self::NotLeading { .. } => "NotLeading",
            Self::Process { .. } => "ProcessFailed",
        }
    }

    /// Returns the error and all its sources in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(it) = cause {
            let part = it.to_string();
            // Libraries often repeat their source in `Display`; this crate does not.
            if !text.ends_with(&part) {
                text = format!("{text}: {part}");
            }
            cause = it.source();
        }
        text
    }

    /// Returns what the API server's response means, and the response; `None` when there was none.
    fn refusal(&self) -> Option<(Refusal, &Status)> {
        let Self::Refused { refusal, status, .. } = self else { return None };
        Some((*refusal, status.as_ref()))
    }

    fn is(&self, refusal: Refusal) -> bool {
        self.refusal().is_some_and(|it| it.0 == refusal)
    }

    /// Returns whether the error needs no correction: another client wrote first, or the namespace
    /// is being deleted.
    pub fn is_expected(&self) -> bool {
        self.is_conflict() || self.is(Refusal::Terminating)
    }

    /// Returns whether another client wrote first and nothing else is wrong.
    pub fn is_conflict(&self) -> bool {
        self.is(Refusal::Conflict) || self.already_exists()
    }

    /// Returns whether an object of the name exists.
    pub fn already_exists(&self) -> bool {
        self.is(Refusal::AlreadyExists)
    }

    /// Returns whether the decision was made on a version of the object that is not the newest, which
    /// the next pass reads; a field of another field manager is a conflict too, and stays one.
    pub fn is_outdated(&self) -> bool {
        let Some((Refusal::Conflict, status)) = self.refusal() else { return false };
        status.details.iter().all(|it| it.causes.is_empty())
    }

    /// Returns the reason and the API server's message when it understood the request and rejected
    /// it, so that only the user can change the outcome; `None` for all other errors.
    ///
    /// A namespace being deleted is not a rejection: everything in it is deleted.
    pub fn rejection(&self) -> Option<(&'static Reason, &str)> {
        let (refusal, status) = self.refusal()?;
        let reason = match refusal {
            Refusal::AlreadyExists => &ALREADY_EXISTS,
            Refusal::Forbidden => &FORBIDDEN,
            Refusal::Invalid => &INVALID,
            Refusal::Conflict
            | Refusal::NotFound
            | Refusal::Terminating
            | Refusal::Busy
            | Refusal::Other(_) => return None,
        };
        Some((reason, &status.message))
    }

    /// Returns whether the API server answered about this one object, so that writes of other
    /// objects may still succeed.
    pub fn is_answer(&self) -> bool {
        self.is_gone() || self.refusal().is_some_and(|it| it.0 != Refusal::Busy)
    }

    /// Returns whether the written object no longer exists, which is not a failure.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone { .. })
    }

    /// Returns whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.is(Refusal::NotFound)
    }

    /// Returns whether the content was rejected because of that field.
    pub fn names_field(&self, field: &str) -> bool {
        let Some((Refusal::Invalid, status)) = self.refusal() else { return false };
        status.details.iter().flat_map(|it| &it.causes).any(|it| it.field == field)
    }

    /// Creates the error of a failed part of the process, with its cause.
    pub fn process(what: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::Process { what: what.into(), source: Some(source.into()) }
    }

    /// Classifies a client's error; `what` names the request, as in `get secrets/x`.
    pub fn from_kube(what: impl Into<String>, error: kube::Error) -> Self {
        let what = what.into();
        let kube::Error::Api(status) = error else {
            return Self::from_transport(what, error.into());
        };
        Self::Refused { what, refusal: Refusal::of(&status), status }
    }

    fn from_transport(what: String, source: BoxError) -> Self {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(source.as_ref());
        while let Some(it) = cause {
            if let Some(timed_out) = it.downcast_ref::<TimedOut>() {
                return Self::Timeout { what, after: timed_out.0 };
            }
            cause = it.source();
        }
        Self::Transport { what, source }
    }
}

/// Returns whether the API server refuses because the namespace is being deleted; no permission
/// would help.
fn is_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|it| &it.causes);
    causes.into_iter().any(|it| it.reason == "NamespaceTerminating")
}

/// Extension that adds the request to a client's error.
pub trait During<T> {
    /// Converts the error; `what` describes the request, as in `get secrets/x`.
    fn during(self, what: impl Into<String>) -> Result<T>;
}

impl<T> During<T> for Result<T, kube::Error> {
    fn during(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|error| Error::from_kube(what, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(code: u16, reason: &str) -> Error {
        let status = Status::failure("told so", reason).with_code(code);
        Error::from_kube("get nodes/a", kube::Error::Api(status.boxed()))
    }

    #[test]
    fn an_answer_is_known_by_its_code() {
        // Whether only the user changes it, too.
        let cases = [
            (409, "Conflict", "Conflict", false),
            (409, "AlreadyExists", "AlreadyExists", true),
            (404, "NotFound", "NotFound", false),
            (403, "Forbidden", "Forbidden", true),
            (422, "Invalid", "Invalid", true),
            (400, "BadRequest", "Invalid", true),
            (418, "", "Invalid", true),
            (408, "Timeout", "ServerBusy", false),
            (429, "TooManyRequests", "ServerBusy", false),
            (500, "InternalError", "ServerError", false),
        ];
        for (code, reason, expected, is_rejection) in cases {
            let error = api(code, reason);
            assert_eq!(error.reason(), expected, "{code} {reason}");
            let words = is_rejection.then_some("told so");
            assert_eq!(error.rejection().map(|it| it.1), words, "{code} {reason}");
        }
        assert_eq!(Error::Gone { what: "x".into() }.rejection(), None);
        let other = api(500, "InternalError").to_string();
        assert_eq!(other, "get nodes/a: the API server answered 500");
    }

    #[test]
    fn a_conflict_with_another_field_manager_stays_one_in_the_next_pass() {
        let status: Status = serde_json::from_value(serde_json::json!({
            "code": 409,
            "reason": "Conflict",
            "details": { "causes": [{ "reason": "FieldManagerConflict", "field": ".spec.x" }] },
        }))
        .unwrap();
        let error = Error::from_kube("apply x", kube::Error::Api(status.boxed()));
        assert!(error.is_conflict() && !error.is_outdated());
        assert!(api(409, "Conflict").is_outdated() && !api(409, "AlreadyExists").is_outdated());
    }

    #[test]
    fn a_namespace_that_is_being_deleted_is_neither_a_refusal_nor_a_lack_of_permissions() {
        let status: Status = serde_json::from_value(serde_json::json!({
            "code": 403,
            "reason": "Forbidden",
            "details": { "causes": [{ "reason": "NamespaceTerminating" }] },
        }))
        .unwrap();
        let error = Error::from_kube("create x", kube::Error::Api(status.boxed()));
        assert_eq!((error.reason(), error.rejection()), ("NamespaceTerminating", None));
        assert!(error.is_expected() && error.is_answer() && !error.is_conflict());
        assert_eq!(error.chain().split(':').nth(1), Some(" the namespace is being deleted"));
        assert!(!api(403, "Forbidden").is_expected());
    }

    #[test]
    fn no_part_of_a_message_is_said_twice() {
        let text = api(403, "Forbidden").chain();
        assert_eq!(text.matches("told so").count(), 1, "{text}");
        assert!(text.starts_with("get nodes/a: not allowed"), "{text}");
    }

    #[test]
    fn a_request_without_an_answer_in_time_is_a_timeout() {
        let timed_out = TimedOut(Duration::from_secs(15));
        let error = Error::from_kube("get x", kube::Error::Service(Box::new(timed_out)));
        assert_eq!(error.reason(), "Timeout");
    }
}
