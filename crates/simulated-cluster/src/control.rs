//! What another process has a simulated cluster do: one order a connection, on a Unix socket.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use simulated_cluster::{Operator, Simulation};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// With what nova-operator logs in to the fake Keystone.
const USER: &str = "nova";
const PASSWORD: &str = "password of nova";

/// Creates the socket.
pub(crate) fn listen(socket: &Path) -> Result<UnixListener> {
    UnixListener::bind(socket).with_context(|| format!("listen at {}", socket.display()))
}

/// Carries out orders until it is dropped; without a socket there are none.
pub(crate) async fn serve(simulation: &Simulation, socket: Option<&UnixListener>) -> Result<()> {
    let Some(listener) = socket else { return std::future::pending().await };
    loop {
        let (stream, _) = listener.accept().await?;
        // A client that disconnects early is not an error of the cluster.
        let _ = answer(simulation, stream).await;
    }
}

/// Reads an order, and answers `ok` with what it returns, or the reason why it failed.
async fn answer(simulation: &Simulation, stream: UnixStream) -> Result<()> {
    let mut stream = BufReader::new(stream);
    let mut order = String::new();
    stream.read_line(&mut order).await?;
    let answer = match carry_out(simulation, &order).await {
        Ok(result) => format!("ok {result}"),
        Err(error) => format!("{error:#}"),
    };
    Ok(stream.write_all(answer.as_bytes()).await?)
}

async fn carry_out(simulation: &Simulation, order: &str) -> Result<String> {
    let words: Vec<&str> = order.split_whitespace().collect();
    match words[..] {
        ["restart"] => restart(simulation).await?,
        ["cell"] => return cell(simulation),
        ["down", host] => simulation.nova.report(host, false),
        ["up", host] => simulation.nova.report(host, true),
        _ => bail!("there is no order {order:?}"),
    }
    Ok(String::new())
}

/// Ends the operators as Kubernetes ends pods, and waits until new processes lead and are ready.
async fn restart(simulation: &Simulation) -> Result<()> {
    let operators = &simulation.operators;
    for operator in Operator::ALL {
        operators.restart(operator).await?;
    }
    for operator in Operator::ALL {
        operators.ready(operator).await?;
    }
    Ok(())
}

/// Lets nova's user in, and returns what a cell names: its message bus, Keystone and the password.
fn cell(simulation: &Simulation) -> Result<String> {
    simulation.keystone.admit(USER, PASSWORD);
    let broker = simulation.brokers.first().context("no broker")?;
    let found = json!({
        "transportURL": broker.transport_url(), "keystoneURL": simulation.keystone.url(),
        "password": PASSWORD,
    });
    Ok(found.to_string())
}
