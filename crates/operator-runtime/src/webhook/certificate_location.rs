//! Location of a webhook's certificate and its CA.

use crate::args::CertificateMaker;

/// Location of a webhook's certificate and its CA.
#[derive(Clone, Debug)]
pub struct CertificateLocation {
    /// The operator's own namespace.
    pub namespace: String,
    /// Name of the Secret with the certificate.
    pub secret: String,
    /// DNS name or IP address that the certificate is issued for.
    pub host: String,
    /// Name of the mutating webhook configuration; `None` when there are no mutating handlers.
    pub mutating: Option<String>,
    /// Name of the validating webhook configuration; `None` when there are no validating handlers.
    pub validating: Option<String>,
    /// Who issues the certificate and publishes its CA.
    pub maker: CertificateMaker,
}
