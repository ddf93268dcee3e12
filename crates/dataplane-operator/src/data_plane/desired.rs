//! The desired object of an entry, and whether an object has these fields.

use api::dataplane::DataPlane;
use api::dataplane::node_section::STRATEGY_OF_ROLES;
use api::names;
use api::shared::AnyMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};
use operator_core::applied::{APPLIED, contains_desired};
use operator_core::hash;
use operator_core::plan::{Step, Target, Write};
use operator_core::run_engine::build::owner;
use serde::Serialize;
use serde_json::{Value, json};

use crate::data_plane::map::Map;

/// Field manager of what the maps state. It differs from the operator's own, because these fields
/// are the user's.
pub const MANAGER: &str = "dataplane-operator-maps";
/// Label with the data plane's name.
const PLANE_LABEL: &str = "openstackdataplane";
/// Label with the name of a node's role.
const ROLE_LABEL: &str = "openstackdataplanerole";

/// An object that exists under an entry's name.
pub struct Found<'a> {
    /// Its metadata.
    pub meta: &'a ObjectMeta,
    spec: Value,
}

impl<'a> Found<'a> {
    /// Wraps an object that was read.
    pub fn of<K: Resource>(object: &'a K, spec: &impl Serialize) -> Self {
        Self { meta: object.meta(), spec: serde_json::to_value(spec).unwrap_or_default() }
    }

    /// Returns the value of an annotation.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.meta.annotations.as_ref()?.get(name).map(String::as_str)
    }
}

/// The desired labels and spec of an entry's object.
pub struct DesiredChild {
    spec: Value,
    labels: Value,
    /// Hash of the labels and spec.
    pub hash: String,
}

impl DesiredChild {
    /// Builds the desired object from what an entry states, plus the fields that follow from its
    /// position in the data plane.
    pub fn of(data_plane: &DataPlane, map: Map, name: &str, stated: &AnyMap) -> Self {
        let data_plane = data_plane.name_any();
        let mut spec = stated.clone();
        // An explicit null states nothing.
        spec.retain(|_, it| !it.is_null());
        let mut labels = AnyMap::new();
        label(&mut labels, PLANE_LABEL, &data_plane);
        match map {
            Map::Roles => {
                spec.insert("dataPlane".into(), json!(data_plane));
            }
            Map::Nodes => {
                if !spec.contains_key("hostName") && !spec.contains_key("ansibleHost") {
                    spec.insert("hostName".into(), json!(name));
                }
                if let Some(Value::Object(strategy)) = spec.get_mut("deployStrategy") {
                    // A data plane stored by an earlier release may state them.
                    strategy.retain(|it, _| !STRATEGY_OF_ROLES.contains(&it.as_str()));
                }
                let role = spec.get("role").and_then(Value::as_str).unwrap_or_default();
                label(&mut labels, ROLE_LABEL, role);
            }
        }
        let hash = hash::short(&(&spec, &labels));
        Self { spec: json!(spec), labels: json!(labels), hash }
    }

    /// Returns whether an object has all desired labels and spec fields.
    pub fn is_kept_by(&self, found: &Found<'_>) -> bool {
        let labels = json!(found.meta.labels);
        contains_desired(Some(&found.spec), &self.spec)
            && contains_desired(Some(&labels), &self.labels)
    }

    /// Returns the step that applies these fields. `uid` is the UID of the observed object, if
    /// there is one.
    pub fn step(
        self,
        data_plane: &DataPlane,
        map: Map,
        name: &str,
        uid: Option<String>,
        because: &str,
    ) -> Step {
        let namespace = data_plane.namespace().unwrap_or_default();
        let target = Target { kind: map.kind(), namespace, name: name.to_owned(), uid };
        let metadata = json!({
            "annotations": { APPLIED: self.hash },
            "labels": self.labels,
            "ownerReferences": [owner(&Target::of(data_plane))],
        });
        let fields = json!({ "metadata": metadata, "spec": self.spec });
        let mut step = Step::apply_observed(target, fields, because);
        if let Write::Apply { manager, .. } = &mut step.write {
            *manager = Some(MANAGER.to_owned());
        }
        step
    }
}

/// Sets a label, unless the value is empty or too long for a label.
fn label(labels: &mut AnyMap, key: &str, value: &str) {
    if !value.is_empty() && value.len() <= names::LABEL_LIMIT {
        labels.insert(key.to_owned(), json!(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_gets_no_part_of_the_strategy_that_steers_all_hosts_of_a_role() {
        let all =
            json!({ "deploy": true, "batchSize": 3, "maxUnavailable": 1, "pauseOnFailure": true });
        let stated = AnyMap::from_iter([("deployStrategy".to_owned(), all.clone())]);
        let of = |map| {
            DesiredChild::of(&DataPlane::default(), map, "a", &stated).spec["deployStrategy"]
                .clone()
        };
        assert_eq!(of(Map::Nodes), json!({ "deploy": true }));
        assert_eq!(of(Map::Roles), all);
    }

    #[test]
    fn an_object_says_what_is_wanted_whatever_else_it_says() {
        let found = json!({ "a": 1, "b": { "c": [{ "d": 1, "more": 2 }], "more": 3 }, "more": 4 });
        let cases = [
            (json!({}), true),
            (json!({ "a": 1, "b": { "c": [{ "d": 1 }] } }), true),
            (json!({ "a": 2 }), false),
            (json!({ "a": "1" }), false),
            (json!({ "z": 1 }), false),
            (json!({ "b": { "c": [] } }), false),
            (json!({ "b": { "c": [{ "d": 1 }, { "d": 1 }] } }), false),
            (json!({ "b": { "c": [{ "d": 2 }] } }), false),
            // What is empty may be absent.
            (json!({ "z": [], "y": {}, "x": null, "b": { "z": { "y": [] } } }), true),
            (json!({ "z": false }), false),
        ];
        for (desired, expected) in cases {
            assert_eq!(contains_desired(Some(&found), &desired), expected, "{desired}");
        }
    }
}
