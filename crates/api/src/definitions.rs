//! The definitions of all kinds, as they are installed into a cluster.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON,
};
use kube::CustomResourceExt;
use serde_json::{Value, json};

use super::{ansibleee, baremetal, dataplane, nova};

pub mod limits;

/// The definitions of all kinds that the operators serve.
pub fn all() -> Vec<CustomResourceDefinition> {
    [
        ansibleee::AnsibleEe::crd(),
        dataplane::DataPlane::crd(),
        dataplane::Deployment::crd(),
        dataplane::HostReadiness::crd(),
        dataplane::Node::crd(),
        dataplane::NodeSet::crd(),
        dataplane::Role::crd(),
        dataplane::Service::crd(),
        nova::Cell::crd(),
        nova::ExternalCompute::crd(),
        baremetal::BaremetalSet::crd(),
    ]
    .map(finished)
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

/// The definition with a limit for each field, and with descriptions that a terminal wraps, instead of
/// the source code's lines.
fn finished(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let mut value = serde_json::to_value(crd).expect("a definition is JSON");
    join_lines(&mut value);
    for version in value["spec"]["versions"].as_array_mut().into_iter().flatten() {
        limits::add(&mut version["schema"]["openAPIV3Schema"]);
    }
    serde_json::from_value(value).expect("only texts and limits were changed")
}

fn join_lines(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if let (Value::String(text), "description") = (&mut *value, key.as_str()) {
                    *text = joined(text);
                } else {
                    join_lines(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(join_lines),
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
    use std::collections::BTreeSet;

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
