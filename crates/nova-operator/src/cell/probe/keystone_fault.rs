//! Why a URL is not one of a Keystone that answers.

use api::conditions::Reason;

use std::fmt;

use crate::reasons;

/// Why no Keystone answers at a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeystoneFault {
    /// The text is not an http or https URL, or one with a user, query or fragment.
    NotUrl,
    /// No connection, or no response in time; the text says which.
    Unreachable(String),
    /// The server does not use TLS, or its certificate is not trusted; the text says which.
    Untrusted(String),
    /// The server answers with this status, or with 200 and another document than Keystone's.
    NotKeystone(u16),
}

impl KeystoneFault {
    /// Returns the condition reason.
    pub fn reason(&self) -> &'static Reason {
        match self {
            Self::NotUrl => &reasons::cell::INVALID_URL,
            Self::Unreachable(_) => &reasons::cell::UNREACHABLE,
            Self::Untrusted(_) => &reasons::cell::CERTIFICATE_NOT_TRUSTED,
            Self::NotKeystone(_) => &reasons::cell::NOT_KEYSTONE,
        }
    }
}

impl fmt::Display for KeystoneFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUrl => f.write_str("keystoneAuthURL is no http or https URL"),
            Self::Unreachable(cause) => write!(f, "Keystone cannot be reached: {cause}"),
            Self::Untrusted(cause) => write!(f, "Keystone's certificate is not trusted: {cause}"),
            Self::NotKeystone(200) => {
                f.write_str("what answers at keystoneAuthURL is no Keystone of version 3")
            }
            Self::NotKeystone(status) => {
                write!(f, "keystoneAuthURL answers with HTTP status {status} instead of a version")
            }
        }
    }
}
