//! The lab's EDPM hosts: systemd pods at fixed addresses, with their ssh keys.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::{controlplane, lab, paths, sh};

/// The namespace of the hosts.
pub(crate) const NAMESPACE: &str = "edpm-hosts";
/// The name of the ssh Secret in the example.
const SSH_SECRET: &str = "dataplane-ansible-ssh-private-key-secret";
/// The timeout from the creation of a pod until sshd listens.
const BOOT: Duration = Duration::from_mins(15);

/// One host.
#[derive(Clone, Copy)]
pub(crate) struct Host {
    /// The name of its pod and its host name.
    pub(crate) name: &'static str,
    /// The address of its sshd.
    pub(crate) address: &'static str,
}

/// The hosts of the example.
pub(crate) const HOSTS: [Host; 2] = [
    Host { name: "edpm-compute-0", address: "192.168.122.100" },
    Host { name: "edpm-compute-1", address: "192.168.122.101" },
];

/// The host to which guests of the first cell move.
pub(crate) const THIRD: Host = Host { name: "edpm-compute-3", address: "192.168.122.103" };

/// Starts the hosts of the example.
pub(crate) fn up(env: &lab::Env, image: &str) -> Result<()> {
    start(env, image, &HOSTS, controlplane::NAMESPACE)
}

/// Starts hosts, and creates their ssh Secret in a namespace.
///
/// # Guarantees
///
/// A second call with the same image changes nothing; a host of another image is replaced.
pub(crate) fn start(env: &lab::Env, image: &str, hosts: &[Host], namespace: &str) -> Result<()> {
    let user_key = key("user")?;
    let mut known_hosts = String::new();
    sh::step("start the EDPM hosts", || {
        for host in hosts {
            let host_key = key(host.name)?;
            known_hosts += &format!("{} {}\n", host.address, public(&host_key)?);
            replace_if_other(env, host, image)?;
            controlplane::apply(env, &manifest(host, image, &user_key, &host_key)?)?;
        }
        Ok(())
    })?;
    controlplane::apply(env, &ssh_secret(&user_key, &known_hosts, namespace)?)?;
    sh::step("wait for sshd on each host", || {
        hosts.iter().try_for_each(|host| {
            let what = format!("sshd of {}", host.name);
            // Failed services on the host are a subject of tests and demos.
            let booted = "systemctl is-system-running | grep -qE '^(running|degraded)$'";
            sh::wait_for(&what, BOOT, || ssh(host, booted).map(drop))
        })
    })
}

/// Connects hosts by a tenant network, as an administrator does before guests are wanted there.
pub(crate) fn join_tenant_network(hosts: &[Host]) -> Result<()> {
    sh::step("connect the hosts by a tenant network", || {
        hosts
            .iter()
            .try_for_each(|host| ssh(host, "sudo systemctl start edpm-tenant.service").map(drop))
    })
}

/// Returns the address of a host in the tenant network.
fn tenant_address(host: &Host) -> Result<String> {
    let (_, last) = host.address.rsplit_once('.').context("an address without a dot")?;
    Ok(format!("172.19.0.{last}"))
}

/// Creates a Secret with the lab's ssh key and its `authorized_keys` for hosts that are not
/// deployed yet.
pub(crate) fn open_to_us(env: &lab::Env, name: &str, namespace: &str) -> Result<()> {
    let user_key = key("user")?;
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": name, "namespace": namespace },
        "stringData": {
            "ssh-privatekey": fs::read_to_string(&user_key)?,
            "authorized_keys": public(&user_key)?,
        },
    });
    controlplane::apply(env, &secret.to_string())
}

/// Creates the Secret with the key for logins between hosts during migrations; generates the key at
/// the first call.
pub(crate) fn migration_key(env: &lab::Env, namespace: &str) -> Result<()> {
    let key = key("migration")?;
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": "nova-migration-ssh-key", "namespace": namespace },
        "stringData": {
            "ssh-privatekey": fs::read_to_string(&key)?,
            "ssh-publickey": fs::read_to_string(key.with_extension("pub"))?,
        },
    });
    controlplane::apply(env, &secret.to_string())
}

/// Stores the host key of a host that generated it itself, read from its pod as from a console.
pub(crate) fn learn_key(env: &lab::Env, host: &Host, pod: &str) -> Result<()> {
    let mut console = env.kubectl();
    console.args(["-n", NAMESPACE, "exec", pod, "--", "cat", "/etc/ssh/ssh_host_ed25519_key.pub"]);
    let key = sh::run(&mut console)?;
    sh::write_if_changed(&folder().join(host.name).with_extension("pub"), &key).map(drop)
}

/// Runs a shell command on a host over ssh and verifies the host key.
pub(crate) fn ssh(host: &Host, command: &str) -> Result<String> {
    let known_hosts = folder().join("known_hosts");
    let line = format!("{} {}\n", host.address, public(&folder().join(host.name))?);
    let old = fs::read_to_string(&known_hosts).unwrap_or_default();
    if !old.contains(&line) {
        fs::write(&known_hosts, old + &line)?;
    }
    let mut ssh = Command::new("ssh");
    ssh.args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "GlobalKnownHostsFile=none"])
        .arg("-o")
        .arg(format!("UserKnownHostsFile={}", known_hosts.display()))
        .arg("-i")
        .arg(key("user")?)
        .arg(format!("cloud-admin@{}", host.address))
        .arg(command);
    sh::run(&mut ssh)
}

fn folder() -> PathBuf {
    paths::state().join("ssh")
}

/// Returns the path of a private key; generates it at the first call.
pub(crate) fn key(name: &str) -> Result<PathBuf> {
    let path = folder().join(name);
    if !path.exists() {
        fs::create_dir_all(folder())?;
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(&path);
        sh::run(&mut keygen)?;
    }
    Ok(path)
}

/// Returns a public key as `ssh-ed25519 AAAA…`, without a comment.
fn public(key: &Path) -> Result<String> {
    let text = fs::read_to_string(key.with_extension("pub"))?;
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    Ok(words.join(" "))
}

fn manifest(host: &Host, image: &str, user_key: &Path, host_key: &Path) -> Result<String> {
    let path = paths::repo().join("lab/hosts/host.yaml");
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    // The template quotes its values as JSON strings.
    let private = fs::read_to_string(host_key)?.replace('\n', "\\n");
    let values = BTreeMap::from([
        ("name".to_owned(), host.name.to_owned()),
        ("namespace".to_owned(), NAMESPACE.to_owned()),
        ("address".to_owned(), host.address.to_owned()),
        ("tenant-address".to_owned(), tenant_address(host)?),
        ("image".to_owned(), image.to_owned()),
        ("state".to_owned(), paths::state().display().to_string()),
        ("public-key".to_owned(), public(user_key)?),
        ("host-key".to_owned(), private),
    ]);
    controlplane::fill(&text, &values)
}

fn ssh_secret(user_key: &Path, known_hosts: &str, namespace: &str) -> Result<String> {
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": SSH_SECRET, "namespace": namespace },
        "stringData": {
            "ssh-privatekey": fs::read_to_string(user_key)?,
            "known_hosts": known_hosts,
        },
    });
    Ok(secret.to_string())
}

/// Deletes the pod of a host with another image, because most of a pod is immutable.
fn replace_if_other(env: &lab::Env, host: &Host, image: &str) -> Result<()> {
    let mut get = env.kubectl();
    get.args(["-n", NAMESPACE, "get", "pod", host.name, "--ignore-not-found"]);
    get.args(["-o", "jsonpath={.spec.containers[0].image} {.status.phase}"]);
    let seen = sh::run(&mut get)?;
    let is_good = ["Running", "Pending"].iter().any(|it| seen == format!("{image} {it}"));
    if seen.trim().is_empty() || is_good {
        return Ok(());
    }
    let mut delete = env.kubectl();
    delete.args(["-n", NAMESPACE, "delete", "pod", host.name, "--wait=true"]);
    sh::run(&mut delete).map(drop)
}
