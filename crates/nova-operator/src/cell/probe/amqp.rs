//! A login to each broker of a message bus, as nova-compute itself would do it.
//!
//! A login of AMQP 0-9-1 consists of four exchanges, so it is implemented here: a client library
//! would bring an I/O loop that outlives a probe whose broker accepts the connection and sends
//! nothing.

pub(crate) mod login;
pub(crate) mod outcome;
mod wire;

use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use nova_config::transport_url::{Broker, TransportUrl};
use operator_runtime::http_client::HttpClients;
use operator_runtime::tls_stream::{CaTrust, ConnectFault, Stream};
use outcome::{HostOutcome, Login};
use tokio::time::timeout;

use super::deadline::DEADLINE;

/// Time limit for the broker's response to the logout.
const LOGOUT: Duration = Duration::from_secs(1);

/// How many brokers of one URL are logged in to at a time.
const AT_A_TIME: usize = 8;

/// Logs in to every broker of the URL, a few at a time, and logs out again; `clients` connect only where
/// the operator may.
///
/// # Guarantees
/// One outcome per broker in the URL's order, each within [`DEADLINE`] and a second for the logout.
pub async fn amqp_login(
    url: &TransportUrl,
    trust: &CaTrust,
    clients: &HttpClients,
) -> Vec<HostOutcome> {
    let trust = url.tls.then_some(trust);
    let outcome = |broker| async move {
        let login = outcome(broker, &url.virtual_host, trust, clients).await;
        HostOutcome { address: Broker::address(broker), login }
    };
    let logins: Vec<_> = url.brokers.iter().map(outcome).collect();
    stream::iter(logins).buffered(AT_A_TIME).collect().await
}

async fn outcome(
    broker: &Broker,
    virtual_host: &str,
    trust: Option<&CaTrust>,
    clients: &HttpClients,
) -> Login {
    match timeout(DEADLINE, login(broker, virtual_host, trust, clients)).await {
        Ok((login, stream)) => {
            if let (Login::Ok, Some(mut stream)) = (&login, stream) {
                // A timeout here does not matter: the broker has accepted the login.
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
    trust: Option<&CaTrust>,
    clients: &HttpClients,
) -> (Login, Option<Box<dyn Stream>>) {
    match clients.connect(&broker.host, broker.port, trust).await {
        Ok(mut stream) => (login::login(&mut stream, broker, virtual_host).await, Some(stream)),
        Err(ConnectFault::Unreachable(cause)) => (Login::Unreachable(cause.to_string()), None),
        Err(ConnectFault::Tls(cause)) => (Login::Untrusted(cause.to_string()), None),
    }
}
