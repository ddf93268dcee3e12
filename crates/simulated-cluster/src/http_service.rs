//! Serves the fakes of HTTP APIs.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Listens at an address; `name` is that of the service, for errors.
pub(crate) async fn bind(address: SocketAddr, name: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("listen as {name}"))
}

/// Serves until the returned task is aborted.
pub(crate) fn serve(listener: TcpListener, router: Router) -> JoinHandle<()> {
    tokio::spawn(async move {
        // It serves until it is aborted.
        let _ = axum::serve(listener, router).await;
    })
}
