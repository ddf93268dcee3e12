//! The part of one host in the inventories that describe it, and the contents made of such parts.

use std::collections::BTreeMap;

use api::dataplane::Role;
use kube::ResourceExt;
use operator_core::hash;
use operator_core::run_engine::host_owner::HostOwner;
use operator_core::run_engine::inventory::{
    HostEntry, INVENTORY_KEY, KNOWN_HOSTS_KEY, NETWORK_DIR, NETWORK_KEY, inventory,
};
use operator_core::run_engine::known_hosts::line;

use crate::role::resolved::ResolvedHost;

/// The part of a host in its role's inventory.
#[derive(Debug, Eq, PartialEq)]
pub struct InventoryPart {
    /// The host's inventory name.
    pub name: String,
    /// Its lines in the inventory.
    lines: String,
    /// The lines of its learned ssh host key; `None` when its key is not learned.
    known_hosts: Option<String>,
    /// The key and the body of its nic template, where that differs from its role's.
    template: Option<(String, String)>,
}

impl InventoryPart {
    /// Returns the part of a host.
    ///
    /// A host whose template differs from the role's has its own file, so that the node's template also
    /// applies in a shared run.
    pub fn of(role: Option<&Role>, host: &ResolvedHost<'_>) -> Self {
        let effective = &host.effective;
        let of_role = role.and_then(template_of);
        let own = effective.nic_template.as_ref().filter(|it| Some(it.as_str()) != of_role);
        let key = |_| format!("{NETWORK_KEY}-{}", effective.name);
        let template = own.map(|it| (key(it), it.clone()));
        let key = template.as_ref().map_or(NETWORK_KEY, |it| it.0.as_str());
        let lines = entry(host, key).lines();
        Self { name: effective.name.clone(), lines, known_hosts: known_hosts(host), template }
    }
}

/// What is compared of the content of an inventory object.
#[derive(Debug)]
pub struct ContentMark {
    /// The hash of the content.
    pub hash: String,
    /// Its keys.
    pub keys: Vec<String>,
}

impl ContentMark {
    /// Returns the mark of a content.
    pub fn of(content: &BTreeMap<String, String>) -> Self {
        Self { hash: hash::short(content), keys: content.keys().cloned().collect() }
    }
}

/// Returns the content of a node's own inventory object; `part` is that of its host in the role's.
pub fn node_content(host: &ResolvedHost<'_>, part: &InventoryPart) -> BTreeMap<String, String> {
    // A template of its own has another key beside those of others.
    let own = part.template.as_ref().map(|_| entry(host, NETWORK_KEY).lines());
    let lines = own.as_ref().unwrap_or(&part.lines);
    let mut content = BTreeMap::from([
        (INVENTORY_KEY.to_owned(), inventory("all", [lines.as_str()])),
        (NETWORK_KEY.to_owned(), host.effective.nic_template.clone().unwrap_or_default()),
    ]);
    content.extend(part.known_hosts.iter().map(|it| (KNOWN_HOSTS_KEY.to_owned(), it.clone())));
    content
}

/// Returns the content of a role's inventory object; the parts are sorted by name.
///
/// The key with the learned host keys is written even without lines, so that no other writer can own it.
pub fn role_content<'a>(
    role: &Role,
    parts: impl Iterator<Item = &'a InventoryPart> + Clone,
) -> BTreeMap<String, String> {
    let lines = parts.clone().map(|it| it.lines.as_str());
    let of_role = template_of(role).unwrap_or_default().to_owned();
    let mut content = BTreeMap::from([
        (INVENTORY_KEY.to_owned(), inventory(&role.name_any(), lines)),
        (NETWORK_KEY.to_owned(), of_role),
    ]);
    content.extend(parts.clone().filter_map(|it| it.template.clone()));
    if parts.clone().any(|it| it.known_hosts.is_some()) {
        let known = parts.filter_map(|it| it.known_hosts.as_deref()).collect();
        content.insert(KNOWN_HOSTS_KEY.to_owned(), known);
    }
    content
}

fn template_of(role: &Role) -> Option<&str> {
    role.spec.node_template.as_ref()?.network_config.as_ref()?.template.as_deref()
}

/// Returns the lines of a host's learned ssh key; `None` when its key is not learned.
fn known_hosts(host: &ResolvedHost<'_>) -> Option<String> {
    let ResolvedHost { effective, trust, .. } = host;
    let key = trust.key.as_ref();
    let lines = key.and_then(|it| line(&effective.ansible_host, effective.ansible_port, it));
    trust.is_learned.then(|| lines.unwrap_or_default())
}

fn entry(resolved: &ResolvedHost<'_>, template_key: &str) -> HostEntry {
    let host = &resolved.effective;
    HostEntry {
        name: host.name.clone(),
        ansible_host: host.ansible_host.clone(),
        ansible_port: host.ansible_port,
        ansible_user: host.ansible_user.clone(),
        host_name: host.host_name.clone(),
        ssh_secret: host.ssh_secret.clone().unwrap_or_default(),
        is_learned: resolved.trust.is_learned,
        nic_template: host.nic_template.as_ref().map(|_| format!("{NETWORK_DIR}/{template_key}")),
        management_network: host.management_network.clone(),
        vars: host.vars.clone(),
        owner: HostOwner::of(resolved.node),
        elsewhere: host.secret_names(),
    }
}
