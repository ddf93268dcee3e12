//! Sends requests to Ironic: a few in parallel, within one pass.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ironic::Error;
use ironic_client::{Session, SessionSlot};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::backoff::LastRequest;
use crate::ironic::hosts::Order;

/// How many requests of one set are in flight at once.
const MAX_CONCURRENT: usize = 8;
/// How long new requests are started. The next pass decides the rest again.
const WINDOW: Duration = Duration::from_secs(8);
/// Timeout of one request, once it has its turn. The next list shows whether it took effect.
const DEADLINE: Duration = Duration::from_secs(20);

/// Sends the requests and returns their outcomes.
///
/// # Guarantees
/// No request is started once `may` returns false, because another replica may lead by then. A
/// rejection by a machine whose state has changed meanwhile is not an error.
pub async fn send_requests(
    session: &Arc<Session>,
    orders: Vec<Order>,
    may: impl Fn() -> bool + Clone + Send + 'static,
) -> Vec<LastRequest> {
    ask_within(WINDOW, session, orders, may).await
}

async fn ask_within(
    window: Duration,
    session: &Arc<Session>,
    orders: Vec<Order>,
    may: impl Fn() -> bool + Clone + Send + 'static,
) -> Vec<LastRequest> {
    let begun = Instant::now();
    let orders = Arc::new(Mutex::new(VecDeque::from(orders)));
    let mut tasks = JoinSet::new();
    for _ in 0..MAX_CONCURRENT {
        let (session, orders, may) = (Arc::clone(session), Arc::clone(&orders), may.clone());
        tasks.spawn(async move {
            let mut asked = Vec::new();
            while let Some(left) = window.checked_sub(begun.elapsed()) {
                // Requests of other sets to the same Ironic may come first.
                let Ok(slot) = timeout(left, session.slot()).await else { break };
                if !may() {
                    break;
                }
                let order = orders.lock().pop_front();
                let Some(order) = order else { break };
                let outcome = send_request(&slot, &order).await;
                asked.push(LastRequest { node: order.node, state: order.state, outcome });
            }
            asked
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

async fn send_request(slot: &SessionSlot<'_>, order: &Order) -> Result<(), Error> {
    let Order { host, node, request, state } = order;
    tracing::info!(
        host,
        node,
        method = %request.method,
        path = request.path,
        "request to Ironic"
    );
    let asked = async {
        let refused = match slot.ask(request).await {
            Ok(_) => return Ok(()),
            Err(error @ Error::Refused(_)) => error,
            Err(error) => return Err(error),
        };
        // Ironic answers 400 to requests that are impossible in a machine's state.
        if slot.node(node).await?.provision_state == *state { Err(refused) } else { Ok(()) }
    };
    let late = || Error::Unreachable(format!("no answer within {} s", DEADLINE.as_secs()));
    let answer = timeout(DEADLINE, asked).await.unwrap_or_else(|_| Err(late()));
    if let Err(error) = &answer {
        tracing::info!(
            host,
            node,
            reason = error.reason().word,
            %error,
            "Ironic did not carry it out"
        );
    }
    answer
}

#[cfg(test)]
mod tests {
    use api::secret::Secret;
    use ironic::{Request, State, Verb};
    use ironic_client::Credentials;
    use operator_runtime::http_client::HttpClients;
    use operator_runtime::tls_stream::CaTrust;
    use serde_json::Value;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const VERSIONS: &str =
        r#"{"default_version": {"min_version": "1.1", "version": "1.61"}, "versions": []}"#;

    /// Starts an Ironic that rejects every request, and whose machines are in that state.
    async fn session(state: &'static str) -> Arc<Session> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut text = vec![0; 64 * 1024];
                let n_read = stream.read(&mut text).await.unwrap();
                let text = String::from_utf8_lossy(&text[..n_read]).into_owned();
                let (status, body) = if text.starts_with("GET / ") {
                    (200, VERSIONS.to_owned())
                } else if text.starts_with("GET ") {
                    (200, format!(r#"{{"uuid": "m", "provision_state": "{state}"}}"#))
                } else {
                    (400, r#"{"error_message": "not so"}"#.to_owned())
                };
                let length = body.len();
                let answer =
                    format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let http = HttpClients::with_loopback().of("ns", CaTrust::new(None).unwrap());
        Arc::new(Session::new(&endpoint, Credentials::None, http))
    }

    fn orders(hosts: &[&str]) -> Vec<Order> {
        let order = |host: &&str| Order {
            host: (*host).to_owned(),
            node: "m".into(),
            state: State::Available,
            request: Request::provision("m", Verb::Provide),
        };
        hosts.iter().map(order).collect()
    }

    #[tokio::test]
    async fn a_refusal_is_a_mistake_only_if_the_machine_is_still_where_it_was() {
        let asked = send_requests(&session("available").await, orders(&["a", "b"]), || true).await;
        let reason = |it: &LastRequest| it.outcome.clone().unwrap_err().reason().word;
        assert_eq!(asked.iter().map(reason).collect::<Vec<_>>(), ["RequestRefused"; 2]);
        let asked = send_requests(&session("cleaning").await, orders(&["a"]), || true).await;
        assert!(asked[0].outcome.is_ok());
    }

    #[tokio::test]
    async fn whose_turn_does_not_come_is_not_asked_for_and_not_blamed() {
        let session = session("available").await;
        let mut turns = Vec::new();
        for _ in 0..8 {
            turns.push(session.slot().await);
        }
        let window = Duration::from_millis(50);
        assert!(ask_within(window, &session, orders(&["a"]), || true).await.is_empty());
        drop(turns);
        assert_eq!(send_requests(&session, orders(&["a"]), || true).await.len(), 1);
    }

    #[tokio::test]
    async fn who_does_not_lead_any_more_begins_nothing() {
        let session = session("available").await;
        assert!(send_requests(&session, orders(&["a"]), || false).await.is_empty());
    }

    #[test]
    fn an_order_does_not_show_its_drive() {
        let drive = Secret::new(Value::from("hunter2"));
        let order = Order { request: Request::deploy("m", &drive), ..orders(&["a"]).remove(0) };
        assert!(!format!("{order:?}").contains("hunter2"));
    }
}
