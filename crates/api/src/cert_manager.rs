//! Kinds of cert-manager.io, which another operator serves: certificates for hosts.
//!
//! Only the fields that are used stand here, and no definition of them is ever installed.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

use crate::infra::ForeignCondition;

/// The issuer of certificates; nothing of its spec is read.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "cert-manager.io",
    version = "v1",
    kind = "Issuer",
    plural = "issuers",
    namespaced,
    schema = "disabled",
    derive = "PartialEq"
)]
pub struct IssuerSpec {}

/// A certificate that is asked for.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "cert-manager.io",
    version = "v1",
    kind = "Certificate",
    plural = "certificates",
    namespaced,
    schema = "disabled",
    status = "CertificateStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSpec {
    /// The Secret that gets key and certificate.
    pub secret_name: String,
    /// What that Secret is labelled with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_template: Option<SecretTemplate>,
    /// The certificate's own name; at most 64 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_name: Option<String>,
    /// The names that it is good for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns_names: Vec<String>,
    /// The addresses that it is good for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_addresses: Vec<String>,
    /// Whom it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// How long it holds, as `43800h0m0s`; cert-manager's own default when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// How long before its end it is renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew_before: Option<String>,
    /// What the key may be used for.
    #[serde(default)]
    pub usages: Vec<String>,
    /// Who signs it.
    pub issuer_ref: IssuerRef,
}

/// What a certificate's Secret is labelled with.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct SecretTemplate {
    /// The labels.
    #[serde(default)]
    pub labels: std::collections::BTreeMap<String, String>,
}

/// Whom a certificate is for.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Subject {
    /// The organizations.
    #[serde(default)]
    pub organizations: Vec<String>,
}

/// Who signs a certificate.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct IssuerRef {
    /// Its name.
    pub name: String,
    /// Its API group.
    #[serde(default)]
    pub group: String,
    /// Its kind.
    #[serde(default)]
    pub kind: String,
}

impl CertificateStatus {
    /// Whether another certificate is being made for it.
    pub fn is_issuing(&self) -> bool {
        self.conditions.iter().any(|it| it.type_ == "Issuing" && it.status == "True")
    }
}

/// What became of a certificate.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatus {
    /// Its conditions.
    #[serde(default)]
    pub conditions: Vec<ForeignCondition>,
}
