//! The fields of a compute that the operator owns, and nothing of the human's.

use api::nova::ExternalCompute;
use kube::ResourceExt;
use operator_core::plan::{Step, Target, Write};
use operator_core::run_engine::build::owner;
use serde_json::{Map, Value, json};

use crate::cell_immutability::owns;
use crate::compute_lifecycle::observe::Observed;
use crate::finalizers;
use crate::images::default_images;

/// The field manager of defaults: what it once filled is never taken back by a later apply.
const DEFAULTS_MANAGER: &str = "nova-operator-defaults";

/// The fields that follow the node; `cell` is the compute's own once it exists.
pub fn fields(seen: &Observed, cell: &str) -> Map<String, Value> {
    let (node, role) = (&seen.node, seen.role.as_deref());
    let status = node.status.clone().unwrap_or_default();
    let present = spec_of(seen.compute.as_deref());
    let mut fields = Map::new();
    fields.insert("dataplaneNodeName".into(), json!(node.name_any()));
    fields.insert("cellName".into(), json!(cell));
    let texts = [
        ("inventoryConfigMapName", status.inventory_config_map_name),
        ("sshKeySecretName", status.ssh_key_secret_name),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            fields.insert(name.into(), json!(value));
        }
    }
    if let Some(deploy) = status.deploy {
        fields.insert("deploy".into(), json!(deploy));
    }
    let lists = [
        ("networkAttachments", json!(status.network_attachments)),
        ("env", json!(node.effective_env(role))),
        ("extraMounts", json!(node.effective_extra_mounts(role))),
    ];
    for (name, value) in lists {
        // An emptied list is written as such: a field left out might belong to someone else too.
        let is_empty = value.as_array().is_some_and(Vec::is_empty);
        if !is_empty || present.contains_key(name) {
            fields.insert(name.into(), value);
        }
    }
    fields
}

/// The names of the fields in which the compute differs; unset ones do not count if `only_set`.
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

/// The step that makes a compute follow its node, and makes or adopts it where it does not yet.
pub fn follow(seen: &Observed, fields: &Map<String, Value>, because: &str) -> Step {
    let node = Target::of(&*seen.node);
    let mut object = json!({
        // Named in every apply: a manager gives up what it leaves out.
        "metadata": { "ownerReferences": [owner(&node)], "finalizers": [finalizers::COMPUTE] },
        "spec": fields,
    });
    // Fields are taken over only of the node's own compute, as it was seen: not of one that a human
    // wrote first, nor of one that came under its name meanwhile (D8).
    let own = seen.compute.as_deref().filter(|it| owns(&seen.node, it));
    if let Some(uid) = own.and_then(ResourceExt::uid) {
        object["metadata"]["uid"] = json!(uid);
    }
    let mut step = Step::apply(target(seen), object, because);
    if let Write::Apply { force, .. } = &mut step.write {
        *force = own.is_some();
    }
    step
}

/// The step that fills images that are unset, where no webhook did.
pub fn fill_images(seen: &Observed, compute: &ExternalCompute) -> Option<Step> {
    let mut spec = compute.spec.clone();
    if !default_images(&mut spec, &seen.images) {
        return None;
    }
    // The images that are there already are named too: a manager gives up what it leaves out.
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
