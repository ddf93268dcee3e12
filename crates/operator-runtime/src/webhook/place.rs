//! Where a webhook's certificate and its authority live.

use crate::args::CertificateMaker;

/// Where the certificate and its authority live.
#[derive(Clone, Debug)]
pub struct Place {
    /// The operator's own namespace.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// The name that the certificate is for.
    pub host: String,
    /// Name of the mutating configuration, where there is one.
    pub mutating: Option<String>,
    /// Name of the validating configuration, where there is one.
    pub validating: Option<String>,
    /// Who fills all of them.
    pub maker: CertificateMaker,
}
