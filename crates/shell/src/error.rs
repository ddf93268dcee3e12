//! What can go wrong between an operator and the world, each with one word for its cause.

use std::time::Duration;

use kube::core::Status;

/// The result of anything that talks to the API server.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How many of several errors are told one by one.
const NAMED_ERRORS: usize = 5;

/// Any other error, as a source.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A failed request, or a failure of the process's own parts.
///
/// Display never repeats the source: whoever prints it uses [`Error::chain`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object was changed since it was read; reading again helps.
    #[error("{what}: the object was changed meanwhile")]
    Conflict {
        /// The request.
        what: String,
        /// The answer.
        #[source]
        status: Box<Status>,
    },
    /// An object of that name is there already.
    #[error("{what}: an object of that name exists")]
    AlreadyExists {
        /// The request.
        what: String,
        /// The answer.
        #[source]
        status: Box<Status>,
    },
    /// The object, its namespace or its kind is not there.
    #[error("{what}: not found")]
    NotFound {
        /// The request.
        what: String,
        /// The answer.
        #[source]
        status: Box<Status>,
    },
    /// The operator's permissions do not allow it.
    #[error("{what}: not allowed by the operator's permissions")]
    Forbidden {
        /// The request.
        what: String,
        /// The answer.
        #[source]
        status: Box<Status>,
    },
    /// The API server, or a webhook, does not accept the content.
    #[error("{what}: the content was refused")]
    Invalid {
        /// The request.
        what: String,
        /// The answer.
        #[source]
        status: Box<Status>,
    },
    /// The API server asks for patience.
    #[error("{what}: the API server is busy")]
    Busy {
        /// The request.
        what: String,
        /// The answer.
        #[source]
        status: Box<Status>,
    },
    /// Any other answer that is not a success.
    #[error("{what}: the API server answered {}", status.code)]
    Refused {
        /// The request.
        what: String,
        /// The answer.
        #[source]
        status: Box<Status>,
    },
    /// No answer in time; whether the request took effect is unknown.
    #[error("{what}: no answer within {} s", after.as_secs())]
    Timeout {
        /// The request.
        what: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// No answer, or none that can be read; whether the request took effect is unknown.
    #[error("{what}: no usable answer from the API server")]
    Transport {
        /// The request.
        what: String,
        /// The cause.
        #[source]
        source: BoxError,
    },
    /// The process lost, or never had, the right to write.
    #[error("{what}: another replica leads")]
    NotLeading {
        /// The write that was not made.
        what: String,
    },
    /// Several writes that do not depend on each other were refused.
    #[error("{count} writes were refused: {what}")]
    Several {
        /// How many.
        count: usize,
        /// The first of them, each with its cause.
        what: String,
    },
    /// A part of the process could not start or ended.
    #[error("{what}")]
    Process {
        /// The part and what happened to it.
        what: String,
        /// The cause, where there is one.
        #[source]
        source: Option<BoxError>,
    },
}

impl Error {
    /// One word: condition reason, Event reason and metric label alike.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "Conflict",
            Self::AlreadyExists { .. } => "AlreadyExists",
            Self::NotFound { .. } => "NotFound",
            Self::Forbidden { .. } => "Forbidden",
            Self::Invalid { .. } => "Invalid",
            Self::Busy { .. } => "ServerBusy",
            Self::Refused { .. } => "ServerError",
            Self::Timeout { .. } => "Timeout",
            Self::Transport { .. } => "NoAnswer",
            Self::NotLeading { .. } => "NotLeading",
            Self::Several { .. } => "SeveralRefused",
            Self::Process { .. } => "ProcessFailed",
        }
    }

    /// The error and all its sources in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(it) = cause {
            let part = it.to_string();
            // Libraries often repeat their source; ours do not.
            if !text.ends_with(&part) {
                text = format!("{text}: {part}");
            }
            cause = it.source();
        }
        text
    }

    /// Whether nothing is wrong except that someone else was faster.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::AlreadyExists { .. })
    }

    /// Whether the request was understood and refused, so that only a human can change the answer.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::AlreadyExists { .. }
                | Self::Forbidden { .. }
                | Self::Invalid { .. }
                | Self::Several { .. }
        )
    }

    /// Whether the API server answered about this one object, so that other writes may do better.
    pub fn is_answer(&self) -> bool {
        self.is_refusal()
            || matches!(self, Self::Conflict { .. } | Self::NotFound { .. } | Self::Refused { .. })
    }

    /// One error of several writes that do not depend on each other; refusals count more than what
    /// a repetition may heal.
    pub fn of_several(mut errors: Vec<Self>) -> Option<Self> {
        if errors.iter().any(Self::is_refusal) {
            errors.retain(Self::is_refusal);
        } else {
            errors.truncate(1);
        }
        if errors.len() < 2 {
            return errors.pop();
        }
        let first: Vec<String> = errors.iter().take(NAMED_ERRORS).map(Self::chain).collect();
        Some(Self::Several { count: errors.len(), what: first.join("; ") })
    }

    /// Whether the object is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// A failure of a part of the process, with its cause.
    pub fn process(what: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::Process { what: what.into(), source: Some(source.into()) }
    }

    /// Classifies a client's error; `what` names the request, as in `get secrets/x`.
    pub fn from_kube(what: impl Into<String>, error: kube::Error) -> Self {
        let what = what.into();
        let kube::Error::Api(status) = error else {
            return Self::from_transport(what, error.into());
        };
        match status.code {
            409 if status.reason == "AlreadyExists" => Self::AlreadyExists { what, status },
            // 422 is a conflict only for JSON patches with a test, which nobody here sends.
            409 => Self::Conflict { what, status },
            404 => Self::NotFound { what, status },
            401 | 403 => Self::Forbidden { what, status },
            400 | 413 | 422 => Self::Invalid { what, status },
            429 | 503 | 504 => Self::Busy { what, status },
            _ => Self::Refused { what, status },
        }
    }

    fn from_transport(what: String, source: BoxError) -> Self {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(source.as_ref());
        while let Some(it) = cause {
            if let Some(timed_out) = it.downcast_ref::<crate::client::TimedOut>() {
                return Self::Timeout { what, after: timed_out.0 };
            }
            cause = it.source();
        }
        Self::Transport { what, source }
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::from_kube("request", error)
    }
}

/// Names the request in a client's error.
pub trait During<T> {
    /// Turns the error into ours; `what` names the request, as in `get secrets/x`.
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
        let cases = [
            (409, "Conflict", "Conflict"),
            (409, "AlreadyExists", "AlreadyExists"),
            (404, "NotFound", "NotFound"),
            (403, "Forbidden", "Forbidden"),
            (422, "Invalid", "Invalid"),
            (429, "TooManyRequests", "ServerBusy"),
            (500, "InternalError", "ServerError"),
        ];
        for (code, reason, expected) in cases {
            assert_eq!(api(code, reason).reason(), expected, "{code} {reason}");
        }
    }

    #[test]
    fn no_part_of_a_message_is_said_twice() {
        let text = api(403, "Forbidden").chain();
        assert_eq!(text.matches("told so").count(), 1, "{text}");
        assert!(text.starts_with("get nodes/a: not allowed"), "{text}");
    }

    #[test]
    fn several_refusals_are_told_together_and_hide_what_heals_by_itself() {
        assert!(Error::of_several(vec![]).is_none());
        let one = Error::of_several(vec![api(409, "Conflict"), api(422, "Invalid")]);
        assert_eq!(one.unwrap().reason(), "Invalid");
        let conflicts = Error::of_several(vec![api(409, "Conflict"), api(409, "Conflict")]);
        assert!(conflicts.unwrap().is_conflict());
        let many = (0..7).map(|_| api(422, "Invalid")).collect();
        let text = Error::of_several(many).filter(Error::is_refusal).unwrap().chain();
        assert!(text.starts_with("7 writes were refused: get nodes/a"), "{text}");
        assert_eq!(text.matches("nodes/a").count(), NAMED_ERRORS, "{text}");
    }

    #[test]
    fn a_request_without_an_answer_in_time_is_a_timeout() {
        let timed_out = crate::client::TimedOut(Duration::from_secs(15));
        let error = Error::from_kube("get x", kube::Error::Service(Box::new(timed_out)));
        assert_eq!(error.reason(), "Timeout");
    }
}
