//! The Secret with the inventory of a node set.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use operator_core::hash;
use operator_core::node_set_host::Host;
use operator_core::plan::{Step, Target};
use operator_core::run_engine::host_owner::ACCEPTED;
use operator_core::run_engine::inventory::{INVENTORY_KEY, KNOWN_HOSTS_KEY};
use operator_core::run_engine::known_hosts::covers;
use operator_core::run_engine::mounts::node_sets::inventory_name;
use serde_json::json;

use crate::host::inventory_metadata::INVENTORY_HASH;
use crate::node_set::inventory_entries::with_variable_of;
use crate::node_set::observed::Observed;

/// The Secret's content, by key.
pub type Content = BTreeMap<&'static str, String>;

/// Returns the desired content of the Secret.
///
/// While a deployment is under way, the inventory stays as it was when the deployment began, unless
/// another field manager has changed it. What the user accepts meanwhile is added: owners from which
/// hosts are taken over, and newly learned keys. Keys for addresses in that inventory are kept.
pub fn content(
    seen: &Observed,
    hosts: &[Host<'_>],
    inventory: String,
    known_hosts: String,
) -> Content {
    let kept =
        seen.written.as_ref().filter(|_| seen.is_in_use() && is_intact(seen, [INVENTORY_KEY]));
    let text = |key: &str| kept.and_then(|it| it.text(key));
    let others = of_others(text(KNOWN_HOSTS_KEY).unwrap_or_default(), &known_hosts, hosts);
    let known_hosts = known_hosts + &others;
    let inventory = match text(INVENTORY_KEY) {
        Some(kept) => with_variable_of(kept, &inventory, ACCEPTED),
        None => inventory,
    };
    BTreeMap::from([(INVENTORY_KEY, inventory), (KNOWN_HOSTS_KEY, known_hosts)])
}

/// Returns the earlier known-hosts lines that are not new and match none of the hosts at its
/// present address.
fn of_others(before: &str, present: &str, hosts: &[Host<'_>]) -> String {
    let present: BTreeSet<&str> = present.lines().collect();
    let is_of = |line: &str| hosts.iter().any(|it| covers(line, &it.ansible_host, it.ansible_port));
    let others = before.lines().filter(|it| !present.contains(it) && !is_of(it));
    others.flat_map(|it| [it, "\n"]).collect()
}

/// Returns whether no other field manager has changed these keys of the Secret.
pub fn is_intact<'a>(seen: &Observed, keys: impl IntoIterator<Item = &'a str>) -> bool {
    seen.inventory.as_ref().is_some_and(|it| it.managed_fields.has([INVENTORY_HASH], keys))
}

/// Returns the step that writes the Secret, if it differs.
///
/// The Secret has no owner reference: a run created before its node set was deleted may still mount
/// it.
pub fn secret(seen: &Observed, content: &Content) -> Option<Step> {
    let labels = labels(seen);
    let all = &(&labels, content);
    let hash = seen.keys.digest(hash::canonical(all).as_bytes(), hash::short(all));
    let is_current =
        seen.inventory.as_ref().is_some_and(|it| hash.is_certainly(&it.hash) && !it.has_owner);
    if is_current && is_intact(seen, content.keys().copied()) {
        return None;
    }
    let data: BTreeMap<&str, ByteString> =
        content.iter().map(|(key, text)| (*key, ByteString(text.clone().into_bytes()))).collect();
    let object = json!({
        "metadata": { "annotations": { INVENTORY_HASH: hash.text() }, "labels": labels },
        "type": "Opaque",
        "data": data,
    });
    Some(Step::apply(target(seen), object, "the inventory differs from what holds for its hosts"))
}

/// Returns the step that deletes the Secret, if it exists.
pub fn removal(seen: &Observed) -> Option<Step> {
    let because = "its node set is being deleted, and has no other finalizer";
    seen.inventory.is_some().then(|| Step::delete(target(seen), because))
}

fn target(seen: &Observed) -> Target {
    Target::named::<Secret>(&seen.namespace, inventory_name(&seen.set.name_any()))
}

/// Returns the node set's own labels, and those by which others select inventories.
fn labels(seen: &Observed) -> BTreeMap<String, String> {
    let mut labels = seen.set.labels().clone();
    let name = seen.set.name_any();
    let ours = [
        ("edpm.openstack.org/inventory", "true"),
        ("inventory", "true"),
        ("openstack.org/operator-name", "dataplane"),
        ("openstackdataplanenodeset", name.as_str()),
    ];
    labels.extend(ours.map(|(key, value)| (key.to_owned(), value.to_owned())));
    labels
}
