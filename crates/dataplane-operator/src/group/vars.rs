//! Variables from ConfigMaps and Secrets: what is missing of them, and the Secret beside an inventory.

use std::collections::BTreeMap;

use common::api::shared::DataSource;
use common::engine::secret_vars::{GROUP_KEY, files};
use common::hash;
use common::keyed::Digest;
use common::plan::Step;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::effective::Effective;
use crate::group::build::{INVENTORY_HASH, target_of};
use crate::group::faults::Fault;
use crate::group::host::Judged;
use crate::group::observe::{Inventory, Observed};
use crate::vars::{Objects, Origin, named};

/// The reason of a variable's object that is missing.
pub const NOT_FOUND: &str = "VariablesNotFound";
/// The reason of a variable's object that cannot be used.
pub const INVALID: &str = "VariablesInvalid";

/// What is wrong with the objects that a level's list names; `place` says where the list stands.
pub fn faults(
    namespace: &str,
    objects: &Objects,
    entries: &[DataSource],
    place: &str,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    for named in named(entries) {
        let title = named.title();
        match objects.get(&named.source(namespace)) {
            None if named.is_optional => {}
            None => faults.push(Fault::missing(
                NOT_FOUND,
                format!(
                    "{title}, named in {place}, does not exist: create it, or set optional: true \
                     there."
                ),
            )),
            Some(content) => {
                let binary = content.keys().find(|it| content.text(it).is_none());
                faults.extend(binary.map(|key| {
                    Fault::missing(
                        INVALID,
                        format!(
                            "{title}, named in {place}, has a key {key} that is no text, and a \
                             variable can hold nothing else: take it out."
                        ),
                    )
                }));
            }
        }
    }
    faults.dedup();
    faults
}

/// The faults of the role's list.
pub fn of_role(seen: &Observed) -> Vec<Fault> {
    let Some(role) = &seen.role else { return Vec::new() };
    let Some(template) = &role.spec.node_template else { return Vec::new() };
    let place =
        format!("spec.nodeTemplate.ansibleVarsFrom of OpenStackDataPlaneRole {}", role.name_any());
    faults(&seen.namespace, &seen.objects, &template.ansible_vars_from, &place)
}

/// The faults of the node's list.
pub fn of_node(seen: &Observed, node: &common::api::dataplane::Node) -> Vec<Fault> {
    let Some(section) = &node.spec.node else { return Vec::new() };
    let place = format!("spec.node.ansibleVarsFrom of OpenStackDataPlaneNode {}", node.name_any());
    faults(&seen.namespace, &seen.objects, &section.ansible_vars_from, &place)
}

/// Whether faults say that variables of the host cannot be told at present.
pub fn are_unknown(faults: &[Fault]) -> bool {
    faults.iter().any(|it| [NOT_FOUND, INVALID].contains(&it.reason))
}

/// Whether any of these hosts has variables that come from Secrets.
pub fn is_needed(hosts: &[&Effective]) -> bool {
    hosts.iter().any(|it| !it.group_secrets.is_empty() || it.host_secrets().next().is_some())
}

/// The same of hosts that were judged; one whose variables cannot be told has none.
pub fn is_mounted(hosts: &[&Judged]) -> bool {
    let known: Vec<&Effective> =
        hosts.iter().filter(|it| !it.has_unknown_vars).map(|it| &it.effective).collect();
    is_needed(&known)
}

/// File → variable → origin.
type Layout<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a Origin>>;

fn layout<'a>(hosts: &[&'a Effective]) -> Layout<'a> {
    let mut layout = Layout::new();
    if !is_needed(hosts) {
        return layout;
    }
    // Every host of a role carries the same.
    let group = hosts.first().map(|it| it.group_secrets.iter()).into_iter().flatten();
    layout.insert(GROUP_KEY, group.map(|(name, it)| (name.as_str(), it)).collect());
    for host in hosts {
        let own = host.host_secrets().map(|(name, it)| (name.as_str(), it));
        layout.insert(&host.name, own.collect());
    }
    layout
}

/// The Secret beside an inventory, where it is not as it should be.
///
/// It goes with the inventory and not before: a run that was made before may still mount it, so
/// what nobody needs any more is emptied.
pub fn secret(seen: &Observed, name: &str, hosts: &[&Effective]) -> Option<Step> {
    let layout = layout(hosts);
    let known = seen.inventory_secrets.get(name);
    if layout.is_empty() && known.is_none() {
        return None;
    }
    let hash = digest(&layout);
    let keys = || layout.keys().copied();
    let is_intact =
        |it: &Inventory| hash.is_certainly(&it.hash) && it.owned.has([INVENTORY_HASH], keys());
    if known.is_some_and(is_intact) {
        return None;
    }
    let target = target_of::<Secret>(seen, name);
    let object = json!({
        "metadata": {
            "annotations": { INVENTORY_HASH: hash.text() },
            "labels": { "edpm.openstack.org/inventory": "true" },
        },
        "type": "Opaque",
        "data": content(&layout, &seen.objects),
    });
    Some(Step::apply(target, object, "the variables from Secrets differ from what holds"))
}

/// Made of digests alone, so that the annotation tells nothing that a status does not tell.
fn digest(layout: &Layout<'_>) -> Digest {
    let all = layout.values().flat_map(|it| it.values()).map(|it| &it.digest);
    Digest::combined(all, |view| {
        let file = |vars: &BTreeMap<&str, &Origin>| -> BTreeMap<String, String> {
            let text = |(name, it): (&&str, &&Origin)| {
                ((*name).to_owned(), view.of(&it.digest).to_owned())
            };
            vars.iter().map(text).collect()
        };
        let files: BTreeMap<&str, _> = layout.iter().map(|(name, it)| (*name, file(it))).collect();
        hash::short(&files)
    })
}

fn content(layout: &Layout<'_>, objects: &Objects) -> BTreeMap<String, ByteString> {
    if layout.is_empty() {
        return BTreeMap::new();
    }
    let values = |vars: &BTreeMap<&str, &Origin>| -> BTreeMap<String, Value> {
        let value = |(name, it): (&&str, &&Origin)| Some(((*name).to_owned(), it.value(objects)?));
        vars.iter().filter_map(value).collect()
    };
    let group = layout.get(GROUP_KEY).map(&values).unwrap_or_default();
    let hosts = layout.iter().filter(|(file, _)| **file != GROUP_KEY);
    let hosts = hosts.map(|(file, vars)| ((*file).to_owned(), values(vars))).collect();
    let encoded = |(file, text): (String, String)| (file, ByteString(text.into_bytes()));
    files(group, hosts).into_iter().map(encoded).collect()
}
