//! A host for one test: a systemd pod with sshd at a fixed address of the lab.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt};

use crate::run;

/// The namespace of the lab's hosts; its Pod Security level allows privileged pods.
const NAMESPACE: &str = "edpm-hosts";
/// The directory with the lab's data that outlives a host's pod.
const STATE: &str = "/var/lib/edpm-lab";
/// The timeout from the creation of a pod until sshd listens.
const BOOT: Duration = Duration::from_mins(15);

/// A running host, its address and its keys.
pub struct Host {
    client: Client,
    /// The name of its pod, and its host name.
    pub name: String,
    /// The address of its sshd.
    pub address: String,
    folder: PathBuf,
}

impl Host {
    /// Starts a host, after removing one of the same name from an earlier run.
    pub async fn start(client: &Client, name: &str, address: &str) -> Result<Self> {
        let mut host = Self::prepare(client, name, address).await?;
        host.boot().await?;
        Ok(host)
    }

    /// Starts another host, which the same key opens.
    pub async fn start_beside(&self, name: &str, address: &str) -> Result<Self> {
        let mut host = Self::prepare(&self.client, name, address).await?;
        for key in ["user", "user.pub"] {
            std::fs::copy(self.folder.join(key), host.folder.join(key))?;
        }
        host.boot().await?;
        Ok(host)
    }

    /// Generates the keys of a host without starting it.
    pub async fn prepare(client: &Client, name: &str, address: &str) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("e2e-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        for key in ["user", "host", "other"] {
            let file = folder.join(key).display().to_string();
            run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", key, "-f", &file]).await?;
        }
        let host = Self {
            client: client.clone(),
            name: name.to_owned(),
            address: address.to_owned(),
            folder,
        };
        host.stop().await?;
        Ok(host)
    }

    /// Returns the content of an ssh Secret for this host.
    pub fn ssh_secret(&self) -> Result<Vec<(&'static str, String)>> {
        Ok(vec![
            ("ssh-privatekey", self.private("user")?),
            ("known_hosts", format!("{} {}\n", self.address, self.public("host")?)),
        ])
    }

    /// Returns a private key that the host does not accept.
    pub fn refused_key(&self) -> Result<String> {
        self.private("other")
    }

    /// Returns `known_hosts` content with a key that is not the host's.
    pub fn wrong_known_hosts(&self) -> Result<String> {
        Ok(format!("{} {}\n", self.address, self.public("other")?))
    }

    /// Replaces the host key and restarts the host.
    pub async fn rekey(&mut self) -> Result<()> {
        self.stop().await?;
        for (from, to) in [("other", "host"), ("other.pub", "host.pub")] {
            std::fs::copy(self.folder.join(from), self.folder.join(to))?;
        }
        self.boot().await
    }

    /// Returns the host key, as `ssh-ed25519 AAAA…`.
    pub fn host_key(&self) -> Result<String> {
        self.public("host")
    }

    /// Returns the fingerprint of the host key, as `SHA256:…`.
    pub async fn fingerprint(&self) -> Result<String> {
        let file = self.folder.join("host.pub").display().to_string();
        let printed = run("ssh-keygen", &["-l", "-f", &file]).await?;
        let word = printed.split_whitespace().find(|it| it.starts_with("SHA256:"));
        word.map(str::to_owned).context("ssh-keygen prints no fingerprint")
    }

    /// Runs a shell command over ssh and verifies the host key.
    pub async fn ssh(&self, command: &str) -> Result<String> {
        let known_hosts = self.folder.join("known_hosts");
        std::fs::write(&known_hosts, format!("{} {}\n", self.address, self.public("host")?))?;
        let known_hosts = format!("UserKnownHostsFile={}", known_hosts.display());
        let key = self.folder.join("user").display().to_string();
        let login = format!("cloud-admin@{}", self.address);
        let options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", &known_hosts];
        run("ssh", &[&options[..], &["-i", &key, &login, command]].concat()).await
    }

    /// Deletes the host's pod and waits until it is gone.
    pub async fn stop(&self) -> Result<()> {
        let found = self.pods().get_opt(&self.name).await?.and_then(|it| it.uid());
        match found {
            Some(uid) => removed(self.pods(), &self.name, &uid).await,
            None => Ok(()),
        }
    }

    /// Starts the host and waits until its sshd listens.
    pub async fn boot(&mut self) -> Result<()> {
        let text = include_str!("../../lab/hosts/host.yaml")
            .replace("{{name}}", &self.name)
            .replace("{{namespace}}", NAMESPACE)
            .replace("{{address}}", &self.address)
            .replace("{{tenant-address}}", &self.tenant_address())
            .replace("{{state}}", STATE)
            .replace("{{image}}", &self.image().await?)
            .replace("{{public-key}}", &self.public("user")?)
            .replace("{{host-key}}", &self.private("host")?.replace('\n', "\\n"));
        let manifest = self.folder.join("host.yaml");
        std::fs::write(&manifest, text)?;
        run("kubectl", &["apply", "-f", &manifest.display().to_string()]).await?;
        booted(self.pods(), &self.name).await
    }

    /// Returns its address in the lab's tenant network, which it has once `edpm-tenant.service` runs.
    pub fn tenant_address(&self) -> String {
        let last = self.address.rsplit_once('.').map_or("", |it| it.1);
        format!("172.19.0.{last}")
    }

    /// Returns the image of the lab's own hosts.
    async fn image(&self) -> Result<String> {
        let hosts = self.pods().list(&ListParams::default().labels("app=edpm-host")).await?;
        let image = hosts.iter().find_map(|it| it.spec.as_ref()?.containers[0].image.clone());
        image.context("no host runs in the lab: cargo xtask demo starts them")
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    fn private(&self, key: &str) -> Result<String> {
        Ok(std::fs::read_to_string(self.folder.join(key))?)
    }

    fn public(&self, key: &str) -> Result<String> {
        let path: &Path = &self.folder.join(key).with_extension("pub");
        let text = std::fs::read_to_string(path)?;
        Ok(text.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
    }
}

/// Replaces a host of the lab by a machine with empty disks at its address, which has nothing of the
/// old one but the ssh keys that the lab gives it.
pub async fn install_anew(client: &Client, name: &str) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let old = pods.get(name).await?;
    let (uid, new) = (old.uid().unwrap_or_default(), Box::new(anew(name, old)));
    // This disk alone outlives the pod.
    let wipe = "systemctl stop edpm_nova_compute; podman rm --force --time 0 nova_compute; \
                find /var/lib/nova -mindepth 1 -delete";
    run("kubectl", &["exec", "-n", NAMESPACE, name, "--", "sh", "-c", wipe]).await?;
    removed(pods.clone(), name, &uid).await?;
    pods.create(&PostParams::default(), &new).await?;
    booted(pods, name).await
}

/// Returns the pod of a host as it is created again.
fn anew(name: &str, old: Pod) -> Pod {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        labels: old.metadata.labels,
        annotations: old.metadata.annotations,
        ..ObjectMeta::default()
    };
    let spec = old.spec.map(|it| PodSpec { node_name: None, ..it });
    Pod { metadata, spec, ..Pod::default() }
}

/// Deletes a host's pod and waits until it is gone.
async fn removed(pods: Api<Pod>, name: &str, uid: &str) -> Result<()> {
    pods.delete(name, &DeleteParams::default().grace_period(0)).await?;
    let gone = await_condition(pods, name, conditions::is_deleted(uid));
    tokio::time::timeout(BOOT, gone).await.context("an old host does not go")??;
    Ok(())
}

/// Waits until a host's sshd listens.
async fn booted(pods: Api<Pod>, name: &str) -> Result<()> {
    let ready = |pod: Option<&Pod>| {
        let conditions = pod.and_then(|it| it.status.as_ref()?.conditions.as_ref());
        conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True")
    };
    let booted = await_condition(pods, name, ready);
    tokio::time::timeout(BOOT, booted).await.context("the host does not boot")??;
    Ok(())
}
