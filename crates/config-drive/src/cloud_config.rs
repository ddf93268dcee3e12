//! The cloud-config that is the default `user_data`: names, users and the root partition.

use api::secret::Secret;
use serde_json::{Value, json};

use crate::host::is_hash;
use crate::input::{Host, User};
use crate::json;

/// Returns the cloud-config as JSON, which is valid YAML and always rendered the same.
///
/// # Assumptions
/// The host has no faults: texts with control characters would not be valid YAML.
pub(crate) fn text(host: &Host) -> String {
    format!("#cloud-config\n{}", json::text(&config(host)))
}

fn config(host: &Host) -> Value {
    let mut config = json!({
        "hostname": host.host_name,
        // Without it, an image may keep the name with which it was built.
        "preserve_hostname": false,
        "users": [user(&host.user)],
        // By default cloud-init makes root's keys only print a refusal.
        "disable_root": !is_root(&host.user),
        // The password is only for the console.
        "ssh_pwauth": false,
        "growpart": {"mode": "auto", "devices": ["/"]},
        "resize_rootfs": true,
    });
    if let Some(fqdn) = &host.fqdn {
        config["fqdn"] = json!(fqdn);
        // Images may leave /etc/hosts alone; then the whole name is known only where DNS has it.
        config["manage_etc_hosts"] = json!("localhost");
    }
    if let Some(password) = &host.root_password {
        config["chpasswd"] = json!({"expire": false, "users": [root(password)]});
    }
    config
}

fn is_root(user: &User) -> bool {
    user.name == "root"
}

/// Ansible becomes root by sudo, and its modules need a POSIX shell.
fn user(user: &User) -> Value {
    let mut entry = json!({
        "name": user.name,
        "ssh_authorized_keys": user.authorized_keys,
        "shell": "/bin/bash",
        "lock_passwd": true,
    });
    if !is_root(user) {
        entry["sudo"] = json!("ALL=(ALL) NOPASSWD:ALL");
    }
    entry
}

fn root(password: &Secret<String>) -> Value {
    let type_ = if is_hash(password.expose()) { "hash" } else { "text" };
    json!({"name": "root", "type": type_, "password": password.expose()})
}
