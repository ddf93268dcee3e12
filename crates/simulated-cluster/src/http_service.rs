//! Serves the fakes of HTTP APIs.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Serves at an address until the returned task is aborted; `name` is that of the service, for errors.
pub(crate) async fn serve(
    address: SocketAddr,
    router: Router,
    name: &str,
) -> Result<JoinHandle<()>> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("listen as {name}"))?;
    Ok(tokio::spawn(async move {
        // It serves until it is aborted.
        let _ = axum::serve(listener, router).await;
    }))
}
