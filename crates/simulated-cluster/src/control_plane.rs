//! etcd, API server and controller manager: the lab's own builds, without root, on loopback ports.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::{Value, json};

use crate::folder::Folder;
use crate::ports;
use crate::processes::{Process, Processes};

/// Time limit for the API server to become ready on a busy machine; it takes 4 s on an idle one.
const WITHIN: Duration = Duration::from_mins(15);
const POLL: Duration = Duration::from_millis(50);
/// The administrator's token. The API server listens on the loopback address only and lives for one
/// test run.
const ADMIN: &str = "administrator-of-the-simulated-cluster";

/// At the default of 100, garbage collection took a tenth of the API server's time; memory is not
/// scarce.
const GC_PERCENT: &str = "400";

/// The audit log of the API server.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The policy, which says what is logged.
    pub policy: PathBuf,
    /// The log, which is never rotated.
    pub log: PathBuf,
}

/// The running components, and how to reach them.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    /// The API server's address as a URL.
    url: String,
    authority: String,
    parts: Vec<Process>,
    /// The administrator's kubeconfig.
    pub(crate) kubeconfig: PathBuf,
}

impl ControlPlane {
    /// Starts all components; resolves when the API server is ready.
    pub(crate) async fn start(
        bin: &Path,
        folder: &Folder,
        processes: &Processes,
        audit: Option<&Audit>,
    ) -> Result<Self> {
        let authority = certificates(folder)?;
        let (etcd, peer, api) = (ports::free()?, ports::free()?, ports::free()?);
        let url = format!("https://127.0.0.1:{api}");
        let kubeconfig = folder.at("admin.kubeconfig");
        let mut plane = Self { url, authority, parts: Vec::new(), kubeconfig };
        plane.write_kubeconfig(&plane.kubeconfig, ADMIN)?;
        std::fs::write(folder.at("tokens.csv"), format!("{ADMIN},admin,admin,system:masters\n"))?;
        let start = |name: &str, flags: Vec<String>| -> Result<Process> {
            let log = folder.at(&format!("{name}.log"));
            processes.start(name, &bin.join(name), &log, |it| {
                it.args(flags).env("GOGC", GC_PERCENT);
            })
        };
        plane.parts.push(start("etcd", etcd_flags(folder, etcd, peer))?);
        let mut flags = api_server_flags(folder, etcd, api);
        flags.extend(audit.into_iter().flat_map(audit_flags));
        plane.parts.push(start("kube-apiserver", flags)?);
        plane.ready().await?;
        // The controller manager exits when the API server is not ready within ten seconds.
        let flags = controller_manager_flags(folder, &plane.kubeconfig);
        plane.parts.push(start("kube-controller-manager", flags)?);
        Ok(plane)
    }

    /// Returns a client with the administrator's permissions.
    pub(crate) async fn client(&self) -> Result<Client> {
        let file = Kubeconfig::read_from(&self.kubeconfig)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// Writes a kubeconfig with this token.
    pub(crate) fn write_kubeconfig(&self, path: &Path, token: &str) -> Result<()> {
        use base64::Engine as _;
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.authority);
        let cluster = json!({ "server": self.url, "certificate-authority-data": authority });
        let named = |what: &str, it: Value| json!([{ "name": "simulated", what: it }]);
        let file = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "simulated",
            "clusters": named("cluster", cluster),
            "users": named("user", json!({ "token": token })),
            "contexts": named("context", json!({ "cluster": "simulated", "user": "simulated" })),
        });
        std::fs::write(path, file.to_string()).with_context(|| path.display().to_string())
    }

    async fn ready(&self) -> Result<()> {
        let client = self.client().await?;
        let begin = Instant::now();
        loop {
            for part in &self.parts {
                part.check()?;
            }
            let request = http::Request::get("/readyz").body(Vec::new())?;
            match client.request_text(request).await {
                Ok(_) => return Ok(()),
                Err(error) if begin.elapsed() > WITHIN => {
                    bail!("the API server is not ready: {error}")
                }
                Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    }
}

fn etcd_flags(folder: &Folder, client: u16, peer: u16) -> Vec<String> {
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    vec![
        format!("--data-dir={}", folder.at("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // Durability is not needed: the data is never read after a power loss.
        "--unsafe-no-fsync".to_owned(),
    ]
}

fn api_server_flags(folder: &Folder, etcd: u16, port: u16) -> Vec<String> {
    let at = |name: &str| folder.at(name).display().to_string();
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        // The endpoint address of the `kubernetes` Service, which is not used here.
        "--advertise-address=192.0.2.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        format!("--token-auth-file={}", at("tokens.csv")),
        format!("--tls-cert-file={}", at("server.crt")),
        format!("--tls-private-key-file={}", at("server.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", at("accounts.pub")),
        format!("--service-account-signing-key-file={}", at("accounts.key")),
    ]
}

fn audit_flags(audit: &Audit) -> [String; 3] {
    [
        format!("--audit-policy-file={}", audit.policy.display()),
        format!("--audit-log-path={}", audit.log.display()),
        // In megabytes: a reader finds all requests in one file.
        "--audit-log-maxsize=100000".to_owned(),
    ]
}

fn controller_manager_flags(folder: &Folder, kubeconfig: &Path) -> Vec<String> {
    let at = |name: &str| folder.at(name).display().to_string();
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        // It needs no endpoint: its effects are visible in the API.
        "--secure-port=0".to_owned(),
        format!("--service-account-private-key-file={}", at("accounts.key")),
        format!("--root-ca-file={}", at("authority.crt")),
        // The player's worker sends no heartbeats and is lost only when a test says so.
        "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller".to_owned(),
        // Quotas of our kinds count from the next such time on.
        "--resource-quota-sync-period=5s".to_owned(),
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
    ]
}

/// Creates the server's certificate and the service account key; returns the CA certificate.
fn certificates(folder: &Folder) -> Result<String> {
    let authority_key = KeyPair::generate()?;
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "simulated-cluster");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let certificate = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate()?;
    let mut server = CertificateParams::new(["127.0.0.1".to_owned()])?;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let server = server.signed_by(&key, &issuer)?;
    let accounts = KeyPair::generate()?;
    for (name, text) in [
        ("authority.crt", certificate.clone()),
        ("server.crt", server.pem()),
        ("server.key", key.serialize_pem()),
        ("accounts.key", accounts.serialize_pem()),
        ("accounts.pub", accounts.public_key_pem()),
    ] {
        std::fs::write(folder.at(name), text)?;
    }
    Ok(certificate)
}
