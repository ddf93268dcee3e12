//! The objects of a group: its inventories and the run templates of its services.

use std::collections::BTreeMap;

use api::dataplane::{Node, Role, Service};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Resource, ResourceExt};
use operator_core::data_sources::{SourceRef, service_type, sources_of};
use operator_core::hash;
use operator_core::plan::{Step, Target};
use operator_core::run_engine::host_owner::{self, HostOwner, TAKE_OVER};
use operator_core::run_engine::inventory::{
    HostEntry, INVENTORY_KEY, KNOWN_HOSTS_KEY, NETWORK_DIR, NETWORK_KEY, inventory,
};
use operator_core::run_engine::layout::Layout;
use operator_core::run_engine::run_template::{
    DeploymentOptions, HostConnection, MountedSource, Play, RunTemplate,
};
use operator_core::run_engine::sources::mounted;
use operator_core::run_engine::ssh_secret::KNOWN_HOSTS;
use operator_runtime::source_cache::Digests;
use serde_json::json;

use crate::effective_spec::EffectiveSpec;
use crate::inputs::contents;
use crate::role::host::{EvaluatedHost, ssh_digests};
use crate::role::host_key_trust::known_host;
use crate::role::inventory::{INVENTORY_HASH, Inventory, node_inventory_name};
use crate::role::observed::{NodeGroup, Observed};
use crate::role::{inventory_shards, secret_vars};

/// Returns the steps that write those inventory objects that differ from the desired ones.
pub fn inventories(seen: &Observed, hosts: &[EvaluatedHost]) -> Vec<Step> {
    // The object of a host whose variables are unknown at present stays as it was written.
    let reachable: Vec<&EvaluatedHost> =
        hosts.iter().filter(|it| is_reachable(&it.effective) && !it.has_unknown_vars).collect();
    let mut steps = Vec::new();
    for host in &reachable {
        let name = node_inventory_name(&host.effective.name);
        let content = node_content(host);
        steps.extend(config_map(seen, &name, &content));
        steps.extend(secret_vars::secret(seen, &name, &[&host.effective]));
    }
    let is_told = !reachable.is_empty() || hosts.iter().all(|it| !it.has_unknown_vars);
    if let Some(role) = seen.role.as_ref().filter(|_| is_told) {
        let n_parts = inventory_shards::count(seen);
        let mut members: Vec<Vec<&EvaluatedHost>> = vec![Vec::new(); n_parts];
        for host in reachable {
            members[host.part].push(host);
        }
        for (part, hosts) in members.iter().enumerate() {
            let name = inventory_shards::name(&role.name_any(), part, n_parts);
            let effective: Vec<&EffectiveSpec> = hosts.iter().map(|it| &it.effective).collect();
            steps.extend(secret_vars::secret(seen, &name, &effective));
            steps.extend(config_map(seen, &name, &role_content(role, hosts)));
        }
        steps.extend(inventory_shards::left_over(seen).iter().flat_map(|it| removal(seen, it)));
    }
    steps
}

/// Returns whether a host has the address and the ssh key that an inventory needs.
pub fn is_reachable(host: &EffectiveSpec) -> bool {
    !host.ansible_host.is_empty() && host.ssh_secret.is_some()
}

fn node_content(host: &EvaluatedHost) -> BTreeMap<String, String> {
    let template = host.effective.nic_template.clone().unwrap_or_default();
    let mut content = BTreeMap::from([
        (INVENTORY_KEY.to_owned(), inventory("all", &[entry(host, NETWORK_KEY)])),
        (NETWORK_KEY.to_owned(), template),
    ]);
    content.extend(known_hosts(&[host]));
    content
}

/// Returns the key and the lines of the learned host keys; `None` when no host's key is learned.
///
/// The key is written even without lines, so that no other writer can own it.
fn known_hosts(hosts: &[&EvaluatedHost]) -> Option<(String, String)> {
    let lines = hosts.iter().filter_map(|it| known_host(&it.effective, &it.trust)).collect();
    hosts.iter().any(|it| it.trust.is_learned).then(|| (KNOWN_HOSTS_KEY.to_owned(), lines))
}

/// Returns the content of a role's inventory object.
///
/// A host whose template differs from the role's has its own file, so that the node's template also
/// applies in a shared run.
fn role_content(role: &Role, hosts: &[&EvaluatedHost]) -> BTreeMap<String, String> {
    let mut content: BTreeMap<String, String> = known_hosts(hosts).into_iter().collect();
    let of_role = role.spec.node_template.as_ref();
    let of_role = of_role.and_then(|it| it.network_config.as_ref()?.template.clone());
    content.insert(NETWORK_KEY.to_owned(), of_role.clone().unwrap_or_default());
    let mut entries = Vec::new();
    for host in hosts {
        let EffectiveSpec { name, nic_template, .. } = &host.effective;
        let is_own = nic_template.is_some() && *nic_template != of_role;
        let key = if is_own { format!("{NETWORK_KEY}-{name}") } else { NETWORK_KEY.to_owned() };
        entries.push(entry(host, &key));
        if let Some(template) = nic_template.clone().filter(|_| is_own) {
            content.insert(key, template);
        }
    }
    content.insert(INVENTORY_KEY.to_owned(), inventory(&role.name_any(), &entries));
    content
}

fn entry(evaluated: &EvaluatedHost, template_key: &str) -> HostEntry {
    let host = &evaluated.effective;
    HostEntry {
        name: host.name.clone(),
        ansible_host: host.ansible_host.clone(),
        ansible_port: host.ansible_port,
        ansible_user: host.ansible_user.clone(),
        host_name: host.host_name.clone(),
        ssh_secret: host.ssh_secret.clone().unwrap_or_default(),
        is_learned: evaluated.trust.is_learned,
        nic_template: host.nic_template.as_ref().map(|_| format!("{NETWORK_DIR}/{template_key}")),
        management_network: host.management_network.clone(),
        vars: host.vars.clone(),
        owner: owner(evaluated),
        elsewhere: host.secret_names(),
    }
}

/// Returns the node itself as the owner of the host, whatever its role.
fn owner(evaluated: &EvaluatedHost) -> HostOwner {
    let node = &*evaluated.node;
    HostOwner {
        object: format!(
            "{}/{}/{}",
            node.namespace().unwrap_or_default(),
            Node::kind(&()),
            node.name_any()
        ),
        uid: node.uid().unwrap_or_default(),
        accepted: host_owner::accepted(node.annotations().get(TAKE_OVER)),
    }
}

/// Returns the step that writes an inventory object; `None` when it is intact.
///
/// It has no ownerReference: the last work of phase 1 on a host needs the inventory while the node
/// is being deleted.
fn config_map(seen: &Observed, name: &str, content: &BTreeMap<String, String>) -> Option<Step> {
    let hash = hash::short(content);
    let is_intact = |it: &Inventory| {
        it.hash == hash
            && !it.has_owner
            && it.managed_fields.has([INVENTORY_HASH], content.keys().map(String::as_str))
    };
    if seen.inventories.get(name).is_some_and(is_intact) {
        return None;
    }
    let target = Target::named::<ConfigMap>(&seen.namespace, name);
    let object = json!({
        "metadata": {
            "annotations": { INVENTORY_HASH: hash },
            "labels": { "edpm.openstack.org/inventory": "true" },
        },
        "data": content,
    });
    Some(Step::apply(target, object, "the inventory differs from what holds for its hosts"))
}

/// Returns the steps that delete an inventory object and the Secret beside it, where they exist.
pub fn removal(seen: &Observed, name: &str) -> Vec<Step> {
    let because = "what it describes is being deleted, and nobody else holds that";
    let has = |all: &BTreeMap<String, Inventory>| all.contains_key(name);
    let beside =
        has(&seen.inventory_secrets).then(|| Target::named::<Secret>(&seen.namespace, name));
    let inventory =
        has(&seen.inventories).then(|| Target::named::<ConfigMap>(&seen.namespace, name));
    beside.into_iter().chain(inventory).map(|it| Step::delete(it, because)).collect()
}

/// Returns the name of the inventory object that the group's runs on the hosts of a part mount.
fn inventory_name(seen: &Observed, part: usize) -> String {
    match &seen.group {
        NodeGroup::Role(name) => inventory_shards::name(name, part, inventory_shards::count(seen)),
        NodeGroup::Node(name) => node_inventory_name(name),
    }
}

/// Returns the run template of a service; `host` is any host of the run.
///
/// Returns `None` when the service does not exist or the runs have no parent.
pub fn run_template(
    seen: &Observed,
    name: &str,
    host: &EvaluatedHost,
    all: &[&EvaluatedHost],
) -> Option<RunTemplate> {
    let service = seen.services.get(name)?;
    let effective = &host.effective;
    let inventory = inventory_name(seen, host.part);
    let beside: Vec<&EvaluatedHost> =
        all.iter().filter(|it| it.part == host.part).copied().collect();
    Some(RunTemplate {
        parent: seen.parent()?,
        play: play(service),
        service_type: service_type(&service.spec, name),
        image: service.spec.open_stack_ansible_ee_runner_image.clone(),
        env: effective.env.clone(),
        extra_mounts: effective.extra_mounts.clone(),
        network_attachments: effective.network_attachments.clone(),
        dns_config: None,
        layout: Layout::Parent {
            beside: secret_vars::is_mounted(&beside).then(|| inventory.clone()),
            inventory,
        },
        sources: sources(&seen.sources, &seen.namespace, service),
        options: effective.options.clone(),
        fact_variables: service.spec.fact_variables.clone(),
        extra_vars: BTreeMap::new(),
        deployed: DeploymentOptions::default(),
    })
}

/// Returns what a service runs: the inline playbook, else the named one, as upstream does; a role
/// only when neither is set. An empty field counts as unset.
pub fn play(service: &Service) -> Play {
    let spec = &service.spec;
    let set = |it: Option<&String>| it.filter(|it| !it.is_empty()).cloned();
    match (set(contents(spec)), set(spec.playbook.as_ref()), set(spec.role.as_ref())) {
        (Some(text), _, _) => Play::Contents(text),
        (None, None, Some(role)) => Play::Role(role),
        (None, playbook, _) => Play::Playbook(playbook.unwrap_or_default()),
    }
}

/// Returns the existing objects whose keys a service gets as files.
pub fn sources(
    known: &BTreeMap<SourceRef, Digests>,
    namespace: &str,
    service: &Service,
) -> Vec<MountedSource> {
    let source = |named: operator_core::data_sources::NamedSource| {
        let digests = known.get(&named.source(namespace))?;
        let keys = digests.keys.keys().cloned().collect();
        Some(MountedSource { kind: named.kind, name: named.name, keys })
    };
    mounted(sources_of(&service.spec).into_iter().filter_map(source).collect())
}

/// Returns how a run connects to a host.
pub fn connection(seen: &Observed, host: &EvaluatedHost) -> HostConnection {
    let ssh_secret = host.effective.ssh_secret.clone().unwrap_or_default();
    let digests = ssh_digests(seen, &ssh_secret);
    HostConnection {
        address: host.effective.address().unwrap_or_default(),
        ssh_version: digests.map(|it| it.version.clone()).unwrap_or_default(),
        has_known_hosts: digests.is_some_and(|it| it.keys.contains_key(KNOWN_HOSTS)),
        ssh_secret,
        scan: host.trust.scan(host.sequence.was_key_refused()),
        trusted: host.trust.token(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_runs_its_text_else_its_playbook_else_its_role() {
        let of = |spec: serde_json::Value| {
            play(&Service::new("s", serde_json::from_value(spec).unwrap()))
        };
        let (text, name) = (json!("[]"), json!("a.b.c"));
        let contents = Play::Contents("[]".into());
        assert_eq!(of(json!({ "playbookContents": text, "playbook": name })), contents);
        assert_eq!(of(json!({ "play": text, "role": name })), contents);
        let playbook = Play::Playbook("a.b.c".into());
        assert_eq!(of(json!({ "playbook": name, "role": "x" })), playbook);
        assert_eq!(of(json!({ "role": name })), Play::Role("a.b.c".into()));
        assert_eq!(of(json!({ "role": name, "playbook": "" })), Play::Role("a.b.c".into()));
    }
}
