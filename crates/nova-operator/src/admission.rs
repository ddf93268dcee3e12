//! The admission webhooks: default images and option checks for computes, and the immutable cell of
//! nodes and roles.
//!
//! The controllers apply the same functions, so every rule also holds without a webhook.

pub mod caches;
pub mod cell;
pub mod release_cache;

use api::conditions::join_with_more;
use api::nova::ExternalComputeSpec;
use nova_config::conditions::CONFIG_WARNINGS;
use nova_config::conf::fixed_options;
use nova_config::oslo::{self, FIELD, Text};
use nova_config::release::{Chosen, not_judged};
use operator_core::object_key::Key;
use operator_runtime::webhook::{AdmissionDecision, Request, Webhook};
use serde_json::{Value, json};

use crate::admission::release_cache::Releases;
use crate::images::{Images, default_images};

use caches::AdmissionCaches;

/// Path of the mutating webhook for computes.
pub const MUTATE: &str = "/mutate-nova-openstack-org-v1beta1-novaexternalcompute";
/// Path of the validating webhook for computes.
pub const VALIDATE: &str = "/validate-nova-openstack-org-v1beta1-novaexternalcompute";

/// CEL condition: a deletion of a compute with options, of which the webhook warns.
pub const LOSES_OPTIONS: &str = "has(oldObject.spec) && (oldObject.spec.?customServiceConfig\
     .orValue('') != '' || oldObject.spec.?defaultConfigOverwrite.orValue({}).size() > 0)";

/// The number of options that get a warning of their own; the API server truncates longer lists.
const WARNED: usize = 12;

/// Returns all webhooks; those for nodes and roles answer from the caches in `known`.
pub fn webhook(images: Images, releases: Releases, known: &AdmissionCaches) -> Webhook {
    let defaulted = move |request: &Request| defaulted(request, &images);
    let evaluated = move |request: &Request| validate_compute(request, |it| releases.of(it));
    cell::add(Webhook::new().mutate(MUTATE, defaulted).validate(VALIDATE, evaluated), known)
}

/// Fills the images that a compute leaves unset.
pub(crate) fn defaulted(request: &Request, images: &Images) -> AdmissionDecision {
    spec(request.object.as_ref()).map_or_else(AdmissionDecision::allow, |it| mutate(&it, images))
}

/// Validates a compute; `release` returns the release of its cell, or `None` while it is unknown.
pub(crate) fn validate_compute(
    request: &Request,
    release: impl FnOnce(&Key) -> Option<Chosen>,
) -> AdmissionDecision {
    let old = spec(request.old_object.as_ref());
    let Some(new) = spec(request.object.as_ref()) else { return deletion(request) };
    let cell = text(&new, "cellName").unwrap_or_default();
    let key = Key::new(request.namespace.clone().unwrap_or_default(), cell);
    validate(old.as_ref(), &new, release(&key).as_ref())
}

/// Says what goes with a compute that is deleted: the controller makes it again from the defaults.
fn deletion(request: &Request) -> AdmissionDecision {
    let allowed = AdmissionDecision::allow();
    let Some(spec) = spec(request.old_object.as_ref()) else { return allowed };
    let options = text(&spec, "customServiceConfig").unwrap_or_default();
    let has_files = spec["defaultConfigOverwrite"].as_object().is_some_and(|it| !it.is_empty());
    if options.trim().is_empty() && !has_files {
        return allowed;
    }
    allowed.warn(format!(
        "the options in the spec of NovaExternalCompute {} go with it: if its node stays, a compute \
         that is made again for it begins with the defaults, and an Event of \
         OpenStackDataPlaneNode {} names the Secret that keeps them",
        request.name,
        text(&spec, "dataplaneNodeName").unwrap_or_default()
    ))
}

/// Returns the spec as the user wrote it: a mutating webhook sees objects before schema defaults.
fn spec(object: Option<&kube::core::DynamicObject>) -> Option<Value> {
    object?.data.get("spec").cloned()
}

/// Fills the images that are unset.
fn mutate(spec: &Value, images: &Images) -> AdmissionDecision {
    let mut named = ExternalComputeSpec {
        management: serde_json::from_value(spec["management"].clone()).unwrap_or_default(),
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
    AdmissionDecision::replace(&json!({ "spec": spec }), &json!({ "spec": defaulted }))
}

/// Denies options that cannot be parsed, unless they are unchanged: other writers must still be
/// able to update the object.
///
/// `release` is `None` until the cells are cached. Then the warnings cover only what does not
/// depend on a release; the compute's condition reports everything later.
fn validate(old: Option<&Value>, new: &Value, release: Option<&Chosen>) -> AdmissionDecision {
    let custom = text(new, "customServiceConfig").unwrap_or_default();
    let before = old.and_then(|it| text(it, "customServiceConfig")).unwrap_or_default();
    if old.is_some() && custom == before {
        return AdmissionDecision::allow();
    }
    let faults = oslo::faults(&custom);
    if !faults.first.is_empty() {
        let reported = faults.first.into_iter().map(|it| it.message).collect();
        return AdmissionDecision::deny(join_with_more(reported, "; ", faults.n_more));
    }
    let texts = [Text { source: FIELD, text: &custom }];
    let release_of_cell = release.and_then(Chosen::release);
    let conditions = oslo::warnings(&texts, &fixed_options(), release_of_cell, WARNED);
    let n_more = conditions.n_more;
    let mut warnings: Vec<String> = conditions.first.into_iter().map(|it| it.message).collect();
    if n_more > 0 {
        warnings.push(format!("{FIELD}: {n_more} more stand in condition {CONFIG_WARNINGS}"));
    }
    if let (Some(Chosen::Unknown(named)), false) = (release, custom.trim().is_empty()) {
        warnings.push(not_judged(&text(new, "cellName").unwrap_or_default(), named));
    }
    warnings.into_iter().fold(AdmissionDecision::allow(), AdmissionDecision::warn)
}

fn text(spec: &Value, field: &str) -> Option<String> {
    spec[field].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use nova_config::oslo::Release;

    use super::*;

    fn images() -> Images {
        Images {
            nova_compute: "a/compute:1".into(),
            nova_libvirt: "a/libvirt:1".into(),
            ansible_ee: String::new(),
        }
    }

    #[test]
    fn a_compute_that_a_service_deploys_gets_no_image_of_nova() {
        let images = Images { ansible_ee: "a/runner:1".into(), ..images() };
        let patches = mutate(&json!({ "management": "Observed" }), &images).patches;
        let path = "/spec/ansibleEEContainerImage";
        assert_eq!(patches, [json!({ "op": "add", "path": path, "value": "a/runner:1" })]);
    }

    #[test]
    fn only_images_that_are_unset_are_filled() {
        let spec = json!({ "novaLibvirtContainerImage": "mine", "novaComputeContainerImage": "" });
        let patches = mutate(&spec, &images()).patches;
        let path = "/spec/novaComputeContainerImage";
        assert_eq!(patches, [json!({ "op": "replace", "path": path, "value": "a/compute:1" })]);
    }

    fn newest() -> Chosen {
        Chosen::Release(Release::newest())
    }

    fn config(text: &str) -> Value {
        json!({ "cellName": "nova-cell1", "customServiceConfig": text })
    }

    #[test]
    fn options_that_cannot_be_read_are_refused_with_line_and_column() {
        let decision = validate(None, &config("[libvirt]\ncpu_mode custom"), Some(&newest()));
        assert!(!decision.allowed);
        assert!(decision.message.contains("line 2, column 1"), "{}", decision.message);
    }

    #[test]
    fn of_many_faults_twenty_are_told_and_the_others_counted() {
        let decision = validate(None, &config(&"x\n".repeat(100_000)), None);
        assert_eq!(decision.message.matches("Config, line ").count(), 20, "{}", decision.message);
        assert!(decision.message.ends_with("; and 99980 more"), "{}", decision.message);
        let decision = validate(None, &config(&"x\n".repeat(200_000)), None);
        assert!(!decision.allowed && decision.message.contains("longer than 256 KiB"));
    }

    #[test]
    fn a_deletion_is_told_that_the_options_go_and_where_they_are_kept() {
        let deleted = |spec: &Value| {
            let object = json!({
                "apiVersion": "nova.openstack.org/v1beta1", "kind": "NovaExternalCompute",
                "metadata": { "name": "n0" }, "spec": spec,
            });
            let kind = json!({ "group": "nova.openstack.org", "version": "v1beta1", "kind": "x" });
            let resource = json!({ "group": "x", "version": "x", "resource": "x" });
            let request = json!({
                "uid": "u", "kind": kind, "resource": resource, "name": "n0", "namespace": "ns",
                "operation": "DELETE", "userInfo": {}, "oldObject": object,
            });
            validate_compute(&serde_json::from_value(request).unwrap(), |_| None)
        };
        let options =
            json!({ "dataplaneNodeName": "n0", "customServiceConfig": "[DEFAULT]\na = b\n" });
        let decision = deleted(&options);
        assert!(decision.allowed && decision.warnings.len() == 1, "{decision:?}");
        assert!(
            decision.warnings[0].contains("Event of OpenStackDataPlaneNode n0"),
            "{decision:?}"
        );
        let files = json!({ "defaultConfigOverwrite": { "provider.yaml": "x" } });
        assert_eq!(deleted(&files).warnings.len(), 1);
        for nothing in [json!({}), json!({ "customServiceConfig": "\n" })] {
            assert_eq!(deleted(&nothing), AdmissionDecision::allow());
        }
    }

    #[test]
    fn options_that_were_there_before_hinder_nobody_else() {
        let spec = |deploy| json!({ "customServiceConfig": "[libvirt", "deploy": deploy });
        assert!(validate(Some(&spec(false)), &spec(true), None).allowed);
        assert!(!validate(Some(&json!({})), &spec(true), None).allowed);
    }

    #[test]
    fn an_option_of_the_operators_is_accepted_with_a_warning() {
        let decision = validate(None, &config("[DEFAULT]\ntransport_url = rabbit://x"), None);
        assert!(decision.allowed && decision.warnings.len() == 1, "{decision:?}");
    }

    #[test]
    fn what_the_cells_release_does_not_know_is_a_warning_once_the_release_is_known() {
        let new = config("[libvirt]\ncpu_modles = Nehalem");
        let decision = validate(None, &new, Some(&newest()));
        assert!(decision.allowed && decision.warnings.len() == 1, "{decision:?}");
        assert!(decision.warnings[0].ends_with("did you mean cpu_models?"), "{decision:?}");
        assert_eq!(validate(None, &new, None), AdmissionDecision::allow());
        let unknown = Chosen::Unknown("zed".to_owned());
        let decision = validate(None, &new, Some(&unknown));
        assert!(decision.warnings[0].contains("NovaCell nova-cell1 names zed"), "{decision:?}");
        assert_eq!(validate(None, &config(""), Some(&unknown)), AdmissionDecision::allow());
    }

    #[test]
    fn more_warnings_than_a_terminal_shows_are_counted() {
        let many: Vec<String> = (0..40).map(|it| format!("o{it} = 1\n")).collect();
        let decision =
            validate(None, &config(&format!("[libvirt]\n{}", many.concat())), Some(&newest()));
        assert_eq!(decision.warnings.len(), WARNED + 1);
        let last = decision.warnings.last().unwrap();
        assert!(last.contains("28 more stand in condition ConfigWarnings"), "{last}");
        // The API server keeps 4,096 characters of all warnings together.
        let n_chars: usize = decision.warnings.iter().map(|it| it.chars().count()).sum();
        assert!(n_chars < 4_096, "{n_chars}");
    }
}
