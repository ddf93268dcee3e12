//! A client that reaches its cluster through a proxy.
//!
//! kube's own support applies `NO_PROXY` to the proxy in the place of the cluster, and refuses to
//! start where that list ends with a comma.

use http::Uri;
use hyper::rt::{Read, Write};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt as _, retry::RetryPolicy};
use kube::{Client, Config};
use tower::retry::RetryLayer;
use tower::{BoxError, Service, ServiceBuilder};

use crate::error::root_cause;

/// The port of a SOCKS proxy that names none.
const SOCKS_PORT: u16 = 1080;

/// An error on the way through a proxy.
#[derive(Debug, thiserror::Error)]
#[error("proxy {proxy}: {cause}")]
struct ProxyError {
    proxy: String,
    cause: String,
}

/// Creates the client.
pub fn client(config: &Config, proxy: &Intercept) -> kube::Result<Client> {
    let mut plain = HttpConnector::new();
    plain.enforce_http(false);
    plain.set_connect_timeout(config.connect_timeout);
    let name = proxy.uri().authority().map(ToString::to_string).unwrap_or_default();
    match proxy.uri().scheme_str() {
        Some("socks5" | "socks5h") => {
            let mut socks = SocksV5::new(with_port(proxy.uri()), plain);
            if let Some((user, password)) = proxy.raw_auth() {
                socks = socks.with_auth(user.to_owned(), password.to_owned());
            }
            through(socks, config, name)
        }
        Some("https") => {
            let secured = config.rustls_https_connector_with_connector(plain)?;
            through(tunnel(proxy, secured), config, name)
        }
        _ => through(tunnel(proxy, plain), config, name),
    }
}

fn tunnel<C>(proxy: &Intercept, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), connector);
    match proxy.basic_auth() {
        Some(login) => tunnel.with_auth(login.clone()),
        None => tunnel,
    }
}

fn with_port(proxy: &Uri) -> Uri {
    let host = proxy.host().unwrap_or_default();
    let port = proxy.port_u16().unwrap_or(SOCKS_PORT);
    let with_port = Uri::builder().scheme("socks5").authority(format!("{host}:{port}"));
    with_port.path_and_query("/").build().unwrap_or_else(|_| proxy.clone())
}

/// Creates the client over a connector, with the layers of kube's own.
fn through<C>(connector: C, config: &Config, proxy: String) -> kube::Result<Client>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: std::error::Error + Send + Sync + 'static,
{
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let client: legacy::Client<_, Body> =
        legacy::Client::builder(TokioExecutor::new()).build(connector);
    let named = move |error: legacy::Error| -> BoxError {
        if error.is_connect() {
            ProxyError { proxy: proxy.clone(), cause: root_cause(&error) }.into()
        } else {
            error.into()
        }
    };
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.default_retry.then_some(RetryLayer::new(RetryPolicy::server_retry())))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(named)
        .service(client);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}
