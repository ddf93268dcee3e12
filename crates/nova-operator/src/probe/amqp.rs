//! A login to each broker of a message bus, as nova-compute itself would do it.
//!
//! AMQP 0-9-1's login is four exchanges, so it is spoken here: a client library would bring an I/O
//! loop that outlives a probe whose broker accepts and then says nothing.

pub(crate) mod login;
mod wire;

use super::{Broker, DEADLINE, TransportUrl, Trust};
use futures::future::join_all;
use shell::stream::{ConnectFault, Stream, connect};
use std::{fmt, time::Duration};
use tokio::time::timeout;

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

/// How long a broker may take to answer the logout.
const LOGOUT: Duration = Duration::from_secs(1);

/// Logs in to every broker of the URL at the same time, and out again.
///
/// # Guarantees
/// One outcome per broker in the URL's order, within [`DEADLINE`] and a second for the logout.
pub async fn amqp_login(url: &TransportUrl, trust: &Trust) -> Vec<HostOutcome> {
    let trust = url.tls.then_some(trust);
    let outcome = |broker| async move {
        let login = outcome(broker, &url.virtual_host, trust).await;
        HostOutcome { address: Broker::address(broker), login }
    };
    join_all(url.brokers.iter().map(outcome)).await
}

async fn outcome(broker: &Broker, virtual_host: &str, trust: Option<&Trust>) -> Login {
    match timeout(DEADLINE, login(broker, virtual_host, trust)).await {
        Ok((login, stream)) => {
            if let (Login::Ok, Some(mut stream)) = (&login, stream) {
                // A broker that is slow here has let the user in all the same.
                let _ = timeout(LOGOUT, login::logout(&mut stream)).await;
            }
            login
        }
        Err(_) => Login::Unreachable(format!("no answer within {} s", DEADLINE.as_secs())),
    }
}

async fn login(
    broker: &Broker,
    virtual_host: &str,
    trust: Option<&Trust>,
) -> (Login, Option<Box<dyn Stream>>) {
    match connect(&broker.host, broker.port, trust).await {
        Ok(mut stream) => (login::login(&mut stream, broker, virtual_host).await, Some(stream)),
        Err(ConnectFault::Unreachable(cause)) => (Login::Unreachable(cause.to_string()), None),
        Err(ConnectFault::Tls(cause)) => (Login::Untrusted(cause.to_string()), None),
    }
}
