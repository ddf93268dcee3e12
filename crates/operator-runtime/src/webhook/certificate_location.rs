//! Location of a webhook's certificate and its CA.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::core::ApiResource;

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

impl CertificateLocation {
    /// Returns the kind and the name of each webhook configuration.
    pub(super) fn configurations(&self) -> Vec<(ApiResource, String)> {
        let mutating = ApiResource::erase::<MutatingWebhookConfiguration>(&());
        let validating = ApiResource::erase::<ValidatingWebhookConfiguration>(&());
        let all = [(mutating, &self.mutating), (validating, &self.validating)];
        all.into_iter().filter_map(|(kind, name)| Some((kind, name.clone()?))).collect()
    }
}
