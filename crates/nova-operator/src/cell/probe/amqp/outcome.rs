//! The outcome of a login, with its condition reason and its message.

use api::conditions::Reason;

use std::fmt;

use crate::reasons;

/// The outcome of the login to one broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOutcome {
    /// `host:port` of the broker.
    pub address: String,
    /// The result of the login.
    pub login: Login,
}

/// The result of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// The broker accepted the user for the virtual host.
    Ok,
    /// No connection, or no response in time; the text says which.
    Unreachable(String),
    /// The server does not use TLS, or its certificate is not trusted; the text says which.
    Untrusted(String),
    /// The server is not an AMQP 0-9-1 broker with password logins.
    NotAmqp,
    /// User or password are wrong.
    AccessRefused,
    /// The virtual host does not exist.
    VhostMissing,
    /// The user may not use the virtual host.
    VhostRefused,
    /// The broker rejected the login for another reason: its code and text.
    Refused(u16, String),
}

impl Login {
    /// Whether a service could work with this broker.
    pub fn is_ok(&self) -> bool {
        *self == Self::Ok
    }

    /// Returns the condition reason.
    pub fn reason(&self) -> &'static Reason {
        match self {
            Self::Ok => &reasons::cell::LOGGED_IN,
            Self::Unreachable(_) => &reasons::cell::UNREACHABLE,
            Self::Untrusted(_) => &reasons::cell::CERTIFICATE_NOT_TRUSTED,
            Self::NotAmqp => &reasons::cell::NOT_AMQP,
            Self::AccessRefused => &reasons::cell::ACCESS_REFUSED,
            Self::VhostMissing => &reasons::cell::VHOST_MISSING,
            Self::VhostRefused => &reasons::cell::VHOST_REFUSED,
            Self::Refused(..) => &reasons::cell::REFUSED,
        }
    }
}

impl fmt::Display for HostOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, login } = self;
        match login {
            Login::Ok => write!(f, "RabbitMQ at {address} accepts the login"),
            Login::Unreachable(cause) => {
                write!(f, "RabbitMQ at {address} cannot be reached: {cause}")
            }
            Login::Untrusted(cause) => {
                write!(f, "RabbitMQ at {address} cannot be trusted with the password: {cause}")
            }
            Login::NotAmqp => write!(f, "what answers at {address} is no AMQP 0-9-1 broker"),
            Login::AccessRefused => {
                write!(f, "RabbitMQ at {address} refuses the user or password of transport_url")
            }
            Login::VhostMissing => {
                write!(f, "RabbitMQ at {address} has no virtual host of transport_url's name")
            }
            Login::VhostRefused => write!(
                f,
                "RabbitMQ at {address} does not let the user into the virtual host of transport_url"
            ),
            Login::Refused(code, text) => {
                write!(f, "RabbitMQ at {address} refuses the login: {code} {text}")
            }
        }
    }
}
