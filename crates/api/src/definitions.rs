//! The definitions of all kinds, as they are installed into a cluster.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Container, EnvVar, LocalObjectReference, PodDNSConfig, ResourceRequirements, Toleration,
    Volume, VolumeMount,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON,
};
use kube::CustomResourceExt;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::{ansibleee, baremetal, dataplane, nova};

pub mod limits;

/// The definitions of all kinds that the operators serve.
pub fn all() -> Vec<CustomResourceDefinition> {
    let foreign = kubernetes_texts();
    [
        ansibleee::AnsibleEe::crd(),
        dataplane::DataPlane::crd(),
        dataplane::Deployment::crd(),
        dataplane::Node::crd(),
        dataplane::NodeSet::crd(),
        dataplane::Role::crd(),
        dataplane::Service::crd(),
        nova::Cell::crd(),
        nova::ExternalCompute::crd(),
        baremetal::BaremetalSet::crd(),
    ]
    .map(|it| finished(it, &foreign))
    .map(without_spec)
    .into()
}

/// The kinds whose objects may be empty: their conditions report what is missing.
const MAY_BE_EMPTY: [&str; 4] = [
    "OpenStackAnsibleEE",
    "OpenStackDataPlane",
    "OpenStackDataPlaneNode",
    "OpenStackDataPlaneRole",
];

/// The definition, by which the API server completes an object without `spec` where it may be empty.
fn without_spec(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    if !MAY_BE_EMPTY.contains(&crd.spec.names.kind.as_str()) {
        return crd;
    }
    for version in &mut crd.spec.versions {
        let schema = version.schema.as_mut().and_then(|it| it.open_api_v3_schema.as_mut());
        let Some(schema) = schema else { continue };
        let required = schema.required.take().map(|it| without("spec", it));
        schema.required = required.filter(|it| !it.is_empty());
        let spec = schema.properties.as_mut().and_then(|it| it.get_mut("spec"));
        if let Some(spec) = spec {
            spec.default = Some(JSON(json!({})));
        }
    }
    crd
}

fn without(name: &str, mut names: Vec<String>) -> Vec<String> {
    names.retain(|it| it != name);
    names
}

/// The definition with a limit for each field, and with our own descriptions alone, which a terminal
/// wraps, instead of the source code's lines.
fn finished(crd: CustomResourceDefinition, foreign: &BTreeSet<String>) -> CustomResourceDefinition {
    let mut value = serde_json::to_value(crd).expect("a definition is JSON");
    each_description(&mut value, &mut |text| (!foreign.contains(text)).then(|| joined(text)));
    for version in value["spec"]["versions"].as_array_mut().into_iter().flatten() {
        limits::add(&mut version["schema"]["openAPIV3Schema"]);
    }
    serde_json::from_value(value).expect("only texts and limits were changed")
}

/// Returns the descriptions of Kubernetes' own types that our kinds contain. Its reference has them,
/// and Helm stores each definition twice in a Secret of at most 1 MiB.
fn kubernetes_texts() -> BTreeSet<String> {
    let types: [fn(&mut SchemaGenerator) -> Schema; 8] = [
        SchemaGenerator::subschema_for::<Container>,
        SchemaGenerator::subschema_for::<EnvVar>,
        SchemaGenerator::subschema_for::<LocalObjectReference>,
        SchemaGenerator::subschema_for::<PodDNSConfig>,
        SchemaGenerator::subschema_for::<ResourceRequirements>,
        SchemaGenerator::subschema_for::<Toleration>,
        SchemaGenerator::subschema_for::<Volume>,
        SchemaGenerator::subschema_for::<VolumeMount>,
    ];
    let mut generator = SchemaGenerator::default();
    for of_type in types {
        of_type(&mut generator);
    }
    let mut texts = BTreeSet::new();
    for schema in generator.definitions().values() {
        each_description(&mut schema.clone(), &mut |text| {
            texts.insert(text.to_owned());
            None
        });
    }
    texts
}

/// Replaces each description; `None` removes it.
fn each_description(value: &mut Value, replaced: &mut impl FnMut(&str) -> Option<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(text)) = map.get("description") {
                match replaced(text) {
                    Some(text) => map.insert("description".to_owned(), Value::String(text)),
                    None => map.remove("description"),
                };
            }
            map.values_mut().for_each(|it| each_description(it, replaced));
        }
        Value::Array(items) => items.iter_mut().for_each(|it| each_description(it, replaced)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The text with its paragraphs and list items on one line each.
fn joined(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let starts_anew = line.trim().is_empty() || line.trim_start().starts_with(['-', '*']);
        if !out.is_empty() {
            out.push(if starts_anew || out.ends_with('\n') { '\n' } else { ' ' });
        }
        out.push_str(line.trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_short_name_of_its_own_and_is_among_edpm() {
        let mut seen = BTreeSet::new();
        for crd in all() {
            let names = crd.spec.names;
            assert_eq!(names.categories.unwrap_or_default(), ["edpm"], "{}", names.kind);
            let short = names.short_names.unwrap_or_default();
            assert!(!short.is_empty(), "{} has no short name", names.kind);
            for name in short {
                assert!(seen.insert(name.clone()), "{name} is {}'s too", names.kind);
            }
        }
    }

    #[test]
    fn paragraphs_and_lists_keep_their_lines() {
        assert_eq!(joined("a\nb\n\nc\n- d\n- e"), "a b\n\nc\n- d\n- e");
    }
}
