//! The admission webhooks. Of computes: images by default, and options that oslo.config can read. Of
//! nodes and roles: the cell is set once.
//!
//! The controllers keep the same rules by the same functions, so nothing hangs on a webhook.

use common::api::nova::ExternalComputeSpec;
use serde_json::{Value, json};
use shell::webhook::{Request, Verdict, Webhook};

use crate::compute_creation::{Images, default_images};
use crate::oslo;

pub mod cell;
pub mod known;

pub use known::{Known, stand_by};

/// Path of the defaulting webhook.
pub const MUTATE: &str = "/mutate-nova-openstack-org-v1beta1-novaexternalcompute";
/// Path of the validating webhook.
pub const VALIDATE: &str = "/validate-nova-openstack-org-v1beta1-novaexternalcompute";

/// All webhooks; those of nodes and roles answer from what is known.
pub fn webhook(images: Images, known: &Known) -> Webhook {
    let defaulted = move |request: &Request| {
        spec(request.object.as_ref()).map_or_else(Verdict::allow, |it| mutate(&it, &images))
    };
    let judged = |request: &Request| {
        let old = spec(request.old_object.as_ref());
        spec(request.object.as_ref()).map_or_else(Verdict::allow, |it| validate(old.as_ref(), &it))
    };
    cell::add(Webhook::new().mutate(MUTATE, defaulted).validate(VALIDATE, judged), known)
}

/// The spec as it was written: a mutating webhook sees objects before their schema is applied.
fn spec(object: Option<&kube::core::DynamicObject>) -> Option<Value> {
    object?.data.get("spec").cloned()
}

/// Fills the images that are unset.
fn mutate(spec: &Value, images: &Images) -> Verdict {
    let mut named = ExternalComputeSpec {
        nova_compute_container_image: text(spec, "novaComputeContainerImage"),
        nova_libvirt_container_image: text(spec, "novaLibvirtContainerImage"),
        ansible_ee_container_image: text(spec, "ansibleEEContainerImage"),
        ..ExternalComputeSpec::default()
    };
    default_images(&mut named, images);
    let mut defaulted = spec.clone();
    for (field, image) in [
        ("novaComputeContainerImage", named.nova_compute_container_image),
        ("novaLibvirtContainerImage", named.nova_libvirt_container_image),
        ("ansibleEEContainerImage", named.ansible_ee_container_image),
    ] {
        if let Some(image) = image {
            defaulted[field] = json!(image);
        }
    }
    Verdict::replace(&json!({ "spec": spec }), &json!({ "spec": defaulted }))
}

/// Refuses options that cannot be read, unless they were there before: others must still be able to
/// write what is theirs.
fn validate(old: Option<&Value>, new: &Value) -> Verdict {
    let custom = text(new, "customServiceConfig").unwrap_or_default();
    let before = old.and_then(|it| text(it, "customServiceConfig")).unwrap_or_default();
    if old.is_some() && custom == before {
        return Verdict::allow();
    }
    let faults: Vec<String> = oslo::faults(&custom).into_iter().map(|it| it.message).collect();
    if !faults.is_empty() {
        return Verdict::deny(faults.join("; "));
    }
    let findings = oslo::findings(&custom).into_iter();
    findings.fold(Verdict::allow(), |verdict, it| verdict.warn(it.message))
}

fn text(spec: &Value, field: &str) -> Option<String> {
    spec[field].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images() -> Images {
        Images {
            nova_compute: "a/compute:1".into(),
            nova_libvirt: "a/libvirt:1".into(),
            ansible_ee: String::new(),
        }
    }

    #[test]
    fn only_images_that_are_unset_are_filled() {
        let spec = json!({ "novaLibvirtContainerImage": "mine", "novaComputeContainerImage": "" });
        let patches = mutate(&spec, &images()).patches;
        let path = "/spec/novaComputeContainerImage";
        assert_eq!(patches, [json!({ "op": "replace", "path": path, "value": "a/compute:1" })]);
    }

    #[test]
    fn options_that_cannot_be_read_are_refused_with_line_and_column() {
        let verdict =
            validate(None, &json!({ "customServiceConfig": "[libvirt]\ncpu_mode custom" }));
        assert!(!verdict.allowed);
        assert!(verdict.message.contains("line 2, column 1"), "{}", verdict.message);
    }

    #[test]
    fn options_that_were_there_before_hinder_nobody_else() {
        let spec = |deploy| json!({ "customServiceConfig": "[libvirt", "deploy": deploy });
        assert!(validate(Some(&spec(false)), &spec(true)).allowed);
        assert!(!validate(Some(&json!({})), &spec(true)).allowed);
    }

    #[test]
    fn an_option_of_the_operators_is_accepted_with_a_warning() {
        let config = "[DEFAULT]\ntransport_url = rabbit://x";
        let verdict = validate(None, &json!({ "customServiceConfig": config }));
        assert!(verdict.allowed && verdict.warnings.len() == 1, "{verdict:?}");
    }
}
