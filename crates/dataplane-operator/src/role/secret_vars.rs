//! The Secrets with the variables of a group's hosts, which runs mount beside its inventory.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use operator_core::hash;
use operator_core::keyed::Digest;
use operator_core::plan::{Step, Target};
use operator_core::run_engine::secret_vars::{GROUP_KEY, files};
use serde_json::{Value, json};

use crate::host::effective_spec::EffectiveSpec;
use crate::host::inventory_metadata::{INVENTORY_HASH, Inventory};
use crate::host::vars::{Objects, Origin};
use crate::role::observed::Observed;
use crate::role::resolved::ResolvedHost;

/// File → variable → origin.
type Layout<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a Origin>>;

/// Returns whether a host has variables from Secrets; one with unknown variables counts as one
/// without.
pub fn is_mounted(host: &ResolvedHost<'_>) -> bool {
    !host.has_unknown_vars && has_secret_vars(&host.effective)
}

fn has_secret_vars(host: &EffectiveSpec) -> bool {
    !host.group_secrets.is_empty() || host.host_secrets().next().is_some()
}

/// Returns the parts of the role's inventory with variables from Secrets, as [`is_mounted`] judges.
pub fn mounted_shards(hosts: &[&ResolvedHost<'_>]) -> BTreeSet<usize> {
    hosts.iter().filter(|it| is_mounted(it)).map(|it| it.shard).collect()
}

/// Returns the step that writes the Secret beside an inventory; `None` when it is up to date.
///
/// It is deleted only together with the inventory, because an earlier run may still mount it. A
/// Secret that is no longer needed is emptied.
pub fn secret(seen: &Observed, name: &str, hosts: &[&EffectiveSpec]) -> Option<Step> {
    let layout = layout(hosts);
    let known = seen.inventory_secrets.get(name);
    if layout.is_empty() && known.is_none() {
        return None;
    }
    let hash = digest(&layout);
    let keys = || layout.keys().copied();
    let is_intact = |it: &Inventory| {
        hash.is_certainly(&it.hash) && it.managed_fields.has([INVENTORY_HASH], keys())
    };
    if known.is_some_and(is_intact) {
        return None;
    }
    let target = Target::named::<Secret>(&seen.namespace, name);
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

fn layout<'a>(hosts: &[&'a EffectiveSpec]) -> Layout<'a> {
    let mut layout = Layout::new();
    if !hosts.iter().any(|it| has_secret_vars(it)) {
        return layout;
    }
    // Every host of a role has the same ones.
    let group = hosts.first().map(|it| it.group_secrets.iter()).into_iter().flatten();
    layout.insert(GROUP_KEY, group.map(|(name, it)| (name.as_str(), it)).collect());
    for host in hosts {
        let own = host.host_secrets().map(|(name, it)| (name.as_str(), it));
        layout.insert(&host.name, own.collect());
    }
    layout
}

/// Combines digests only, so that the annotation reveals no more than a status does.
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
