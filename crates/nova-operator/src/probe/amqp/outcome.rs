//! What came of a login, as a reason of a condition and as a sentence.

use std::fmt;

/// What came of the login to one broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOutcome {
    /// `host:port` of the broker.
    pub address: String,
    /// What came of it.
    pub login: Login,
}

/// What came of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// The broker let this user into the virtual host.
    Ok,
    /// No connection, or no answer in time; the text says which.
    Unreachable(String),
    /// The server speaks no TLS, or its certificate is not believed; the text says which.
    Untrusted(String),
    /// Something answers there that is no AMQP 0-9-1 broker with passwords.
    NotAmqp,
    /// User or password are wrong.
    AccessRefused,
    /// The virtual host does not exist.
    VhostMissing,
    /// The user may not use the virtual host.
    VhostRefused,
    /// The broker refused for another reason, given by its code and text.
    Refused(u16, String),
}

impl Login {
    /// Whether a service could work with this broker.
    pub fn is_ok(&self) -> bool {
        *self == Self::Ok
    }

    /// The outcome's name, fit for a condition's reason.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Ok => "LoggedIn",
            Self::Unreachable(_) => "Unreachable",
            Self::Untrusted(_) => "CertificateNotTrusted",
            Self::NotAmqp => "NotAMQP",
            Self::AccessRefused => "AccessRefused",
            Self::VhostMissing => "VhostMissing",
            Self::VhostRefused => "VhostRefused",
            Self::Refused(..) => "Refused",
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
