//! A client connection, plain or with TLS, and the CA certificates it trusts.

use std::{fmt, io, net::SocketAddr, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
};
use tokio_rustls::TlsConnector;

use crate::allowed_networks::{AllowedNetworks, REFUSED};

/// A bidirectional byte stream.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The CA certificates that a client trusts.
#[derive(Clone)]
pub struct CaTrust(Arc<ClientConfig>);

/// Why a trust store could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustFault {
    /// The bundle holds no certificate, or one that cannot be read.
    Bundle,
}

impl fmt::Display for TrustFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundle => f.write_str("holds no readable certificate; it must be PEM"),
        }
    }
}

impl fmt::Debug for CaTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trust")
    }
}

impl CaTrust {
    /// Returns whether a text is a usable PEM bundle.
    pub fn is_bundle(text: &str) -> bool {
        Self::new(Some(text)).is_ok()
    }

    /// Trusts only the CA certificates of a PEM bundle; without one, those of the container image.
    pub fn new(bundle: Option<&str>) -> Result<Self, TrustFault> {
        let mut roots = RootCertStore::empty();
        match bundle {
            Some(bundle) => {
                for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
                    let certificate = certificate.map_err(|_| TrustFault::Bundle)?;
                    roots.add(certificate).map_err(|_| TrustFault::Bundle)?;
                }
                if roots.is_empty() {
                    return Err(TrustFault::Bundle);
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        Ok(Self(Arc::new(client_config(roots))))
    }
}

fn client_config(roots: RootCertStore) -> ClientConfig {
    // The provider is named so that it does not matter which one the process has installed.
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring serves the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Why a connection failed.
#[derive(Debug)]
pub enum ConnectFault {
    /// The host cannot be reached, or the connection is refused.
    Unreachable(io::Error),
    /// The TLS handshake failed, or the certificate is not trusted.
    Tls(io::Error),
}

/// Connects to a server, with TLS if `trust` is given, at those of its addresses that are allowed: a name
/// counts as what it resolves to.
pub(crate) async fn connect_within(
    networks: &AllowedNetworks,
    host: &str,
    port: u16,
    trust: Option<&CaTrust>,
) -> Result<Box<dyn Stream>, ConnectFault> {
    let found = lookup_host((host, port)).await.map_err(ConnectFault::Unreachable)?;
    let allowed: Vec<SocketAddr> = found.filter(|it| networks.allows(it.ip())).collect();
    if allowed.is_empty() {
        return Err(ConnectFault::Unreachable(io::Error::other(REFUSED)));
    }
    let tcp = TcpStream::connect(&*allowed).await.map_err(ConnectFault::Unreachable)?;
    secured(tcp, host, trust).await
}

async fn secured(
    tcp: TcpStream,
    host: &str,
    trust: Option<&CaTrust>,
) -> Result<Box<dyn Stream>, ConnectFault> {
    let Some(CaTrust(config)) = trust else { return Ok(Box::new(tcp)) };
    let name = ServerName::try_from(host.to_owned())
        .map_err(|it| ConnectFault::Tls(io::Error::other(it)))?;
    let tls = TlsConnector::from(Arc::clone(config)).connect(name, tcp).await;
    Ok(Box::new(tls.map_err(ConnectFault::Tls)?))
}
