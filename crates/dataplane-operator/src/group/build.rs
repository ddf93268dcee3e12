//! The objects of a group: inventories, and the recipe of its runs.

use std::collections::BTreeMap;

use common::api::dataplane::{Role, Service};
use common::engine::build::{Play, Reach, Recipe, Source};
use common::engine::inventory::{HostEntry, INVENTORY_KEY, NETWORK_DIR, NETWORK_KEY, inventory};
use common::hash;
use common::plan::{Kind, Step, Target};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde_json::json;

use crate::effective::Effective;
use crate::group::faults::sources_of;
use crate::group::host::{Judged, ssh_version};
use crate::group::observe::{Inventory, Observed};
use crate::inputs::{contents, service_type};

/// Annotation with the hash of an inventory object's content.
pub const INVENTORY_HASH: &str = "edpm.openstack.org/content-hash";

/// Name of the inventory object of a node.
pub fn node_inventory_name(node: &str) -> String {
    format!("dataplanenode-{node}")
}

/// Name of the inventory object of a role.
pub fn role_inventory_name(role: &str) -> String {
    format!("dataplanerole-{role}")
}

/// The inventory objects that are not as they should be.
pub fn inventories(seen: &Observed, hosts: &[Judged]) -> Vec<Step> {
    let reachable: Vec<&Judged> = hosts.iter().filter(|it| is_reachable(&it.effective)).collect();
    let mut steps = Vec::new();
    for host in &reachable {
        let name = node_inventory_name(&host.effective.name);
        let content = node_content(&host.effective);
        steps.extend(config_map(seen, &name, &content, &Target::of(&*host.node)));
    }
    if let Some(role) = &seen.role {
        let name = role_inventory_name(&role.name_any());
        let effective: Vec<&Effective> = reachable.iter().map(|it| &it.effective).collect();
        steps.extend(config_map(
            seen,
            &name,
            &role_content(role, &effective),
            &Target::of(&**role),
        ));
    }
    steps
}

/// A host without address or key has no place in an inventory.
fn is_reachable(host: &Effective) -> bool {
    !host.ansible_host.is_empty() && host.ssh_secret.is_some()
}

fn node_content(host: &Effective) -> BTreeMap<String, String> {
    let entry = entry(host, NETWORK_KEY);
    let template = host.nic_template.clone().unwrap_or_default();
    BTreeMap::from([
        (INVENTORY_KEY.to_owned(), inventory("all", &[entry])),
        (NETWORK_KEY.to_owned(), template),
    ])
}

/// Each host has its own template's file, so that a node's template holds in a shared run too.
fn role_content(role: &Role, hosts: &[&Effective]) -> BTreeMap<String, String> {
    let mut content = BTreeMap::new();
    let of_role = role.spec.node_template.as_ref();
    let of_role = of_role.and_then(|it| it.network_config.as_ref()?.template.clone());
    content.insert(NETWORK_KEY.to_owned(), of_role.clone().unwrap_or_default());
    let mut entries = Vec::new();
    for host in hosts {
        let is_own = host.nic_template.is_some() && host.nic_template != of_role;
        let key =
            if is_own { format!("{NETWORK_KEY}-{}", host.name) } else { NETWORK_KEY.to_owned() };
        entries.push(entry(host, &key));
        if let Some(template) = host.nic_template.clone().filter(|_| is_own) {
            content.insert(key, template);
        }
    }
    content.insert(INVENTORY_KEY.to_owned(), inventory(&role.name_any(), &entries));
    content
}

fn entry(host: &Effective, template_key: &str) -> HostEntry {
    HostEntry {
        name: host.name.clone(),
        ansible_host: host.ansible_host.clone(),
        ansible_port: host.ansible_port,
        ansible_user: host.ansible_user.clone(),
        host_name: host.host_name.clone(),
        ssh_secret: host.ssh_secret.clone().unwrap_or_default(),
        nic_template: host.nic_template.as_ref().map(|_| format!("{NETWORK_DIR}/{template_key}")),
        management_network: host.management_network.clone(),
        vars: host.vars.clone(),
    }
}

fn config_map(
    seen: &Observed,
    name: &str,
    content: &BTreeMap<String, String>,
    owner: &Target,
) -> Option<Step> {
    let hash = hash::short(content);
    let is_intact = |it: &Inventory| {
        it.hash == hash && it.owned.has([INVENTORY_HASH], content.keys().map(String::as_str))
    };
    if seen.inventories.get(name).is_some_and(is_intact) {
        return None;
    }
    let target = Target {
        kind: Kind::of::<ConfigMap>(),
        namespace: seen.namespace.clone(),
        name: name.to_owned(),
        uid: None,
    };
    let object = json!({
        "metadata": {
            "annotations": { INVENTORY_HASH: hash },
            "labels": { "edpm.openstack.org/inventory": "true" },
            "ownerReferences": [common::engine::build::owner(owner)],
        },
        "data": content,
    });
    Some(Step::apply(target, object, "the inventory differs from what holds for its hosts"))
}

/// What the runs of a service have in common; `host` is any host of the group.
pub fn recipe(seen: &Observed, role: &Role, name: &str, host: &Judged) -> Option<Recipe> {
    let service = seen.services.get(name)?;
    let effective = &host.effective;
    Some(Recipe {
        parent: Target::of(role),
        play: play(service),
        service_type: service_type(&service.spec, name),
        image: service.spec.open_stack_ansible_ee_runner_image.clone(),
        env: effective.env.clone(),
        extra_mounts: effective.extra_mounts.clone(),
        network_attachments: effective.network_attachments.clone(),
        dns_config: None,
        inventory: role_inventory_name(&role.name_any()),
        sources: sources(seen, service),
        options: effective.options.clone(),
        extra_vars: BTreeMap::new(),
    })
}

/// The inline text wins over the name, as upstream has it; a role is run where there is neither.
fn play(service: &Service) -> Play {
    let spec = &service.spec;
    match (contents(spec), &spec.playbook, &spec.role) {
        (Some(text), _, _) => Play::Contents(text.clone()),
        (None, None, Some(role)) => Play::Role(role.clone()),
        (None, playbook, _) => Play::Playbook(playbook.clone().unwrap_or_default()),
    }
}

fn sources(seen: &Observed, service: &Service) -> Vec<Source> {
    let source = |named: crate::group::faults::Named| {
        let digests = seen.sources.get(&named.source(&seen.namespace))?;
        let keys = digests.keys.keys().cloned().collect();
        Some(Source { is_secret: named.is_secret, name: named.name, keys })
    };
    sources_of(&service.spec).into_iter().filter_map(source).collect()
}

/// How a host is reached by a run.
pub fn reach(seen: &Observed, host: &Judged) -> Reach {
    let ssh_secret = host.effective.ssh_secret.clone().unwrap_or_default();
    let ssh_version = ssh_version(seen, &ssh_secret);
    Reach { address: host.effective.address().unwrap_or_default(), ssh_secret, ssh_version }
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
    }
}
