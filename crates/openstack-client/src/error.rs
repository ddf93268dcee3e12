//! Why a request to a service of OpenStack failed.

use std::fmt;

use http::StatusCode;
use operator_runtime::answer_memory::NoMemory;
use operator_runtime::http_client::HttpFault;

use crate::message::message;

/// A service of OpenStack.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Service {
    /// Keystone: tokens and the catalog.
    Identity,
    /// Nova's API.
    Compute,
    /// Placement: resource providers and allocations.
    Placement,
    /// Neutron: agents.
    Network,
}

impl Service {
    /// All of them.
    pub(crate) const ALL: [Self; 4] =
        [Self::Identity, Self::Compute, Self::Placement, Self::Network];

    /// Returns the name of the project, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "Keystone",
            Self::Compute => "nova's API",
            Self::Placement => "placement",
            Self::Network => "neutron",
        }
    }

    /// Returns the service type in Keystone's catalog.
    pub const fn catalog_type(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Compute => "compute",
            Self::Placement => "placement",
            Self::Network => "network",
        }
    }
}

/// Why a request failed; it does not say of which service, see [`Fault`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Error {
    /// The text is not an http or https URL, or one with a user, query or fragment.
    NotUrl,
    /// No connection, or no response in time; the text says which.
    Unreachable(String),
    /// The server has no TLS, or its certificate is not trusted; the text says which.
    Untrusted(String),
    /// What answers is another kind of server, or another version than is understood.
    NotTheService,
    /// A response exceeds a limit; the text says which.
    TooLarge(String),
    /// There is no memory for a response now.
    NoMemory,
    /// The catalog has no endpoint of the service in this region.
    NoEndpoint {
        /// The region that was looked for.
        region: String,
    },
    /// The service does not support the microversion that is needed.
    Version {
        /// The microversion that is needed.
        needed: &'static str,
        /// The microversions that it supports, or used.
        supported: String,
    },
    /// Keystone refuses the credentials; or another service refuses a token, although it was renewed.
    Unauthorized,
    /// The credentials are valid, and their user lacks a role.
    Forbidden(String),
    /// The object does not exist.
    NotFound,
    /// The state of the object does not allow the request.
    Conflict(String),
    /// The service asks to try later.
    Busy(String),
    /// The service rejects the request.
    Refused(String),
    /// The service itself fails, with this HTTP status.
    Failed(u16, String),
    /// Nothing was sent, because this process is no longer the leader of its operator.
    NotLeader,
}

impl From<NoMemory> for Error {
    fn from(_: NoMemory) -> Self {
        Self::NoMemory
    }
}

impl Error {
    /// Returns the error for a response; `None` for a successful one.
    pub fn of_response(status: StatusCode, body: &[u8]) -> Option<Self> {
        let message = || message(body);
        match status.as_u16() {
            200..=299 => None,
            401 => Some(Self::Unauthorized),
            403 => Some(Self::Forbidden(message())),
            404 => Some(Self::NotFound),
            409 => Some(Self::Conflict(message())),
            429 | 503 => Some(Self::Busy(message())),
            400..=499 => Some(Self::Refused(message())),
            code => Some(Self::Failed(code, message())),
        }
    }

    /// Converts an HTTP error; `largest` is the size limit of the response in bytes.
    pub(crate) fn of_http(fault: HttpFault, largest: usize) -> Self {
        match fault {
            HttpFault::NotUrl => Self::NotUrl,
            HttpFault::Unreachable(cause) => Self::Unreachable(cause),
            HttpFault::Untrusted(cause) => Self::Untrusted(cause),
            HttpFault::Cut(status) => {
                Self::Unreachable(format!("its answer of HTTP status {status} broke off"))
            }
            HttpFault::TooLong(_) => {
                Self::TooLarge(format!("an answer of more than {} MiB", largest >> 20))
            }
            HttpFault::NoMemory(left) => left.into(),
        }
    }

    /// Returns the error word for metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Self::NotUrl => "InvalidURL",
            Self::Unreachable(_) => "Unreachable",
            Self::Untrusted(_) => "CertificateNotTrusted",
            Self::NotTheService => "NotTheService",
            Self::TooLarge(_) | Self::NoMemory => "AnswerTooLarge",
            Self::NoEndpoint { .. } => "EndpointNotFound",
            Self::Version { .. } => "VersionNotSupported",
            Self::Unauthorized => "CredentialsRefused",
            Self::Forbidden(_) => "RoleMissing",
            Self::NotFound => "NotFound",
            Self::Conflict(_) => "Conflict",
            Self::Busy(_) => "Busy",
            Self::Refused(_) => "RequestRefused",
            Self::Failed(..) => "ServiceFailed",
            Self::NotLeader => "NotLeader",
        }
    }
}

/// An error and the service that it is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// The service.
    pub service: Service,
    /// The error.
    pub error: Error,
}

impl Fault {
    /// Returns the fault of a service.
    pub const fn of(service: Service, error: Error) -> Self {
        Self { service, error }
    }

    /// Whether a service refuses a token that Keystone has issued.
    pub fn is_of_token(&self) -> bool {
        self.error == Error::Unauthorized && self.service != Service::Identity
    }

    /// Returns the error word for metrics and messages.
    pub fn word(&self) -> &'static str {
        if self.is_of_token() { "TokenRefused" } else { self.error.word() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.service.name();
        match &self.error {
            Error::NotUrl => write!(
                f,
                "the URL of {name} is not an http or https URL without user, query and fragment"
            ),
            Error::Unreachable(cause) => write!(f, "{name} cannot be reached: {cause}"),
            Error::Untrusted(cause) => {
                write!(f, "the certificate of {name} is not trusted: {cause}")
            }
            Error::NotTheService => write!(f, "what answers at the URL is not {name}"),
            Error::TooLarge(what) => write!(f, "{name} sends more than is read: {what}"),
            Error::NoMemory => write!(f, "{name} sends more than is read: {NoMemory}"),
            Error::NoEndpoint { region } => write!(
                f,
                "Keystone's catalog has no internal or public endpoint of type {} in region \
                 {region}",
                self.service.catalog_type()
            ),
            Error::Version { needed, supported } => {
                write!(f, "{name} supports microversion {supported}, and {needed} is needed")
            }
            Error::Unauthorized if self.is_of_token() => {
                write!(f, "{name} refuses the token that Keystone has just issued")
            }
            Error::Unauthorized => write!(f, "{name} refuses the credentials"),
            Error::Forbidden(message) => write!(f, "{name} denies access: {message}"),
            Error::NotFound => write!(f, "{name} does not know the object"),
            Error::Conflict(message) => write!(f, "{name} reports a conflict: {message}"),
            Error::Busy(message) => write!(f, "{name} asks to try later: {message}"),
            Error::Refused(message) => write!(f, "{name} rejects the request: {message}"),
            Error::Failed(status, message) => {
                write!(f, "{name} fails with HTTP status {status}: {message}")
            }
            Error::NotLeader => {
                write!(f, "nothing is sent to {name}, because another replica leads now")
            }
        }
    }
}

impl std::error::Error for Fault {}
