//! The volumes of TLS files, and where they are mounted: CA bundles and hosts' certificates.

use k8s_openapi::api::core::v1::{Volume, VolumeProjection};

use super::pod_files::{KEY_MODE, item, of_secret, projected, projection};
use crate::run_engine::layout::{CERTIFICATE_FILES, Tls};

/// Directory of CA bundles in the pod, by service type.
const CA_DIR: &str = "/var/lib/openstack/cacerts";
/// Directory of hosts' certificates in the pod, by service type and name of the certificate.
const CERTS_DIR: &str = "/var/lib/openstack/certs";

/// Returns the volume of that name, and the directory at which it is mounted.
pub(super) fn volume(name: String, tls: &Tls) -> (Volume, String) {
    match tls {
        Tls::Bundle { service_type, secret, .. } => {
            (of_secret(name, secret, None, None), format!("{CA_DIR}/{service_type}"))
        }
        Tls::Certificates { secrets, service_type, key } => {
            let all = secrets.iter().map(|it| projection(it, None, false));
            let volume = projected(name, all.collect(), None);
            (volume, format!("{CERTS_DIR}/{service_type}/{key}"))
        }
        Tls::OfHosts { secrets, service_type, key } => {
            let all = secrets.iter().flat_map(|(host, secret)| of_host(host, secret));
            let volume = projected(name, all.collect(), Some(KEY_MODE));
            (volume, format!("{CERTS_DIR}/{service_type}/{key}"))
        }
    }
}

/// Returns the files of a host, under the names that they have in the Secrets of all hosts.
fn of_host(host: &str, secret: &str) -> [VolumeProjection; 2] {
    let [authority, certificate, key] =
        CERTIFICATE_FILES.map(|it| item(it, &format!("{host}-{it}")));
    // Not every issuer knows the authority that signed the certificate.
    [
        projection(secret, Some(vec![certificate, key]), false),
        projection(secret, Some(vec![authority]), true),
    ]
}
