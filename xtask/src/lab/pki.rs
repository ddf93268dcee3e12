//! The lab's certificates: one CA, one certificate per part, all removed with the lab.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::{ADDRESS, NODE};

/// The subject of a certificate, and its use.
struct Subject {
    file: &'static str,
    common_name: String,
    /// The user's group for the API server.
    organization: Option<&'static str>,
    /// Names and addresses of a server; empty for a client.
    names: &'static [&'static str],
}

/// Clients that get a kubeconfig, by the name of their certificate.
pub(super) const CLIENTS: [&str; 5] =
    ["admin", "controller-manager", "scheduler", "kubelet", "proxy"];

const API_NAMES: &[&str] = &[
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "localhost",
    "127.0.0.1",
    "10.96.0.1",
    ADDRESS,
];

fn subjects() -> Vec<Subject> {
    let client = |file, common_name: &str, organization| Subject {
        file,
        common_name: common_name.to_owned(),
        organization,
        names: &[],
    };
    vec![
        Subject {
            file: "apiserver",
            common_name: "kube-apiserver".to_owned(),
            organization: None,
            names: API_NAMES,
        },
        Subject {
            file: "kubelet",
            common_name: format!("system:node:{NODE}"),
            organization: Some("system:nodes"),
            names: &[NODE, "127.0.0.1", ADDRESS],
        },
        client("admin", "lab-admin", Some("system:masters")),
        client("apiserver-kubelet", "kube-apiserver-kubelet", Some("system:masters")),
        client("controller-manager", "system:kube-controller-manager", None),
        client("scheduler", "system:kube-scheduler", None),
        client("proxy", "system:kube-proxy", None),
    ]
}

/// Writes all keys and certificates into `folder`, unless they exist.
///
/// # Guarantees
///
/// A directory that an interrupted run left incomplete is recreated.
pub(super) fn provide(folder: &Path) -> Result<()> {
    let marker = folder.join("complete");
    if marker.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let authority_key = KeyPair::generate()?;
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "edpm-lab");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = authority.self_signed(&authority_key)?;
    write(folder, "ca.crt", &certificate.pem())?;
    write(folder, "ca.key", &authority_key.serialize_pem())?;
    let issuer = Issuer::new(authority, authority_key);
    for subject in subjects() {
        let key = KeyPair::generate()?;
        let certificate = subject.params()?.signed_by(&key, &issuer)?;
        write(folder, &format!("{}.crt", subject.file), &certificate.pem())?;
        write(folder, &format!("{}.key", subject.file), &key.serialize_pem())?;
    }
    let accounts = KeyPair::generate()?;
    write(folder, "service-accounts.key", &accounts.serialize_pem())?;
    write(folder, "service-accounts.pub", &accounts.public_key_pem())?;
    fs::write(marker, "").context("write the marker of a complete PKI")
}

impl Subject {
    fn params(&self) -> Result<CertificateParams> {
        let names: Vec<String> = self.names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, self.common_name.as_str());
        if let Some(organization) = self.organization {
            params.distinguished_name.push(DnType::OrganizationName, organization);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if !self.names.is_empty() {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        Ok(params)
    }
}

fn write(folder: &Path, name: &str, content: &str) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let path = folder.join(name);
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("write {}", path.display()))?;
    Ok(file.write_all(content.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_folder_is_made_anew_and_a_complete_one_is_kept() {
        let folder = std::env::temp_dir().join(format!("pki-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("ca.crt"), "half").unwrap();
        provide(&folder).unwrap();
        let first = fs::read_to_string(folder.join("ca.crt")).unwrap();
        assert!(first.starts_with("-----BEGIN CERTIFICATE-----"), "{first}");
        provide(&folder).unwrap();
        assert_eq!(fs::read_to_string(folder.join("ca.crt")).unwrap(), first);
        for client in CLIENTS {
            assert!(folder.join(format!("{client}.key")).exists(), "{client}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
