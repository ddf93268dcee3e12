//! The fields of a compute that the operator owns; fields of the user are never written.

use api::nova::{ExternalCompute, Management};
use kube::ResourceExt;
use operator_core::plan::{Step, Target, Write};
use operator_core::run_engine::build::owner;
use serde_json::{Map, Value, json};

use crate::compute::lifecycle::observed::Observed;
use crate::finalizers;
use crate::group::Group;
use crate::images::default_images;

/// A separate field manager for defaults, so that no later apply by the other manager removes them.
const DEFAULTS_MANAGER: &str = "nova-operator-defaults";

/// Returns the fields of a compute that the operator deploys, which follow the node; `cell` is the
/// compute's own cell once it exists.
pub fn fields(seen: &Observed, cell: &str) -> Map<String, Value> {
    let mut fields = of_node(seen);
    fields.insert("cellName".into(), json!(cell));
    if let Some(deploy) = seen.node.status.as_ref().and_then(|it| it.deploy) {
        fields.insert("deploy".into(), json!(deploy));
    }
    fields
}

/// Returns the fields of a compute that a service deploys; `cell` is empty while it is not known.
pub fn observed_fields(seen: &Observed, cell: &str) -> Map<String, Value> {
    let mut fields = of_node(seen);
    fields.insert("management".into(), json!(Management::Observed));
    if !cell.is_empty() {
        fields.insert("cellName".into(), json!(cell));
    }
    fields
}

/// Returns what runs on the host need, also those of a service.
fn of_node(seen: &Observed) -> Map<String, Value> {
    let node = &seen.node;
    let (env, mounts) = match &seen.group {
        Some(group) => (group.env(node), group.extra_mounts(node)),
        None => (node.effective_env(None), node.effective_extra_mounts(None)),
    };
    let status = node.status.clone().unwrap_or_default();
    let present = spec_of(seen.compute.as_deref());
    let mut fields = Map::new();
    fields.insert("dataplaneNodeName".into(), json!(node.name_any()));
    let texts = [
        ("inventoryConfigMapName", status.inventory_config_map_name),
        ("sshKeySecretName", status.ssh_key_secret_name),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            fields.insert(name.into(), json!(value));
        }
    }
    if let Some(dns_config) = seen.group.as_ref().and_then(Group::dns_config) {
        fields.insert("dnsConfig".into(), json!(dns_config));
    }
    let lists = [
        ("networkAttachments", json!(status.network_attachments)),
        ("env", json!(env)),
        ("extraMounts", json!(mounts)),
    ];
    for (name, value) in lists {
        // An emptied list is written as `[]`: an omitted field might stay, owned by another
        // manager.
        let is_empty = value.as_array().is_some_and(Vec::is_empty);
        if !is_empty || present.contains_key(name) {
            fields.insert(name.into(), value);
        }
    }
    fields
}

/// Returns the names of the fields that differ; with `only_set`, unset ones do not count.
pub fn differences(
    compute: &ExternalCompute,
    fields: &Map<String, Value>,
    only_set: bool,
) -> Vec<String> {
    let present = spec_of(Some(compute));
    fields
        .iter()
        .filter(|(name, value)| match present.get(*name) {
            Some(found) => found != *value,
            None => !only_set,
        })
        .map(|(name, _)| name.clone())
        .collect()
}

/// Whether a compute is deployed by another than these fields say; it is set once.
pub fn is_other_management(compute: &ExternalCompute, fields: &Map<String, Value>) -> bool {
    compute.is_observed() != fields.contains_key("management")
}

/// Returns the step that makes a compute follow its node: its own one, or `None` for one that it creates
/// or adopts.
pub fn follow(
    seen: &Observed,
    own: Option<&ExternalCompute>,
    fields: &Map<String, Value>,
    because: &str,
) -> Step {
    let node = Target::of(&*seen.node);
    let mut object = json!({
        // Included in every apply: server-side apply removes the fields that a manager omits.
        "metadata": { "ownerReferences": [owner(&node)], "finalizers": [finalizers::COMPUTE] },
        "spec": fields,
    });
    // Ownership is forced only for the node's own compute, by its observed UID: not for one that a
    // user wrote first, nor for one that was recreated under its name meanwhile (D8).
    if let Some(uid) = own.and_then(ResourceExt::uid) {
        object["metadata"]["uid"] = json!(uid);
    }
    let mut step = Step::apply(target(seen), object, because);
    if let Write::Apply { force, .. } = &mut step.write {
        *force = own.is_some();
    }
    step
}

/// Returns the step that fills unset images when no webhook did, or `None` when all are set.
pub fn fill_images(seen: &Observed, compute: &ExternalCompute) -> Option<Step> {
    let mut spec = compute.spec.clone();
    if !default_images(&mut spec, &seen.images) {
        return None;
    }
    // Includes the images that are already set: server-side apply removes what a manager omits.
    let mut object = json!({ "spec": {
        "novaComputeContainerImage": spec.nova_compute_container_image,
        "novaLibvirtContainerImage": spec.nova_libvirt_container_image,
        "ansibleEEContainerImage": spec.ansible_ee_container_image,
    }});
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.retain(|_, it| !it.is_null());
    }
    let mut step = Step::apply(target(seen), object, "the compute names no image");
    if let Write::Apply { force, manager, .. } = &mut step.write {
        *force = false;
        *manager = Some(DEFAULTS_MANAGER.to_owned());
    }
    Some(step)
}

fn target(seen: &Observed) -> Target {
    Target::named::<ExternalCompute>(
        seen.node.namespace().unwrap_or_default(),
        seen.node.name_any(),
    )
}

fn spec_of(compute: Option<&ExternalCompute>) -> Map<String, Value> {
    let spec = compute.map(|it| serde_json::to_value(&it.spec).unwrap_or_default());
    spec.and_then(|it| it.as_object().cloned()).unwrap_or_default()
}
