//! `OpenStackDataPlane`: the roles and nodes of a data plane in one object, and how far all are.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::node::NodeSpec;
use super::node_section::DeployStrategy;
use super::role::RoleSpec;
use crate::conditions::Condition;
use crate::shared::{AnyMap, NEVER};

/// How many roles one data plane may list.
const MAX_ROLES: u32 = 1000;
/// How many nodes one data plane may list: more do not fit into one object of etcd.
const MAX_NODES: u32 = 10_000;

/// The roles and nodes of a data plane.
///
/// An entry is kept as it was written: only what it states is applied to the object of its name.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "dataplane.openstack.org",
    version = "v1beta1",
    kind = "OpenStackDataPlane",
    root = "DataPlane",
    doc = "OpenStackDataPlane lists roles and nodes, creates an object for each, and reports their \
           overall progress.",
    namespaced,
    status = "DataPlaneStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "edpm",
    shortname = "osdataplane",
    shortname = "osdataplanes",
    shortname = "osdp",
    label("edpm.openstack.org/managed-by", "edpm-operators"),
    validation = Rule::new("!has(self.spec.roles) || self.spec.roles.all(name, !has(self.spec.roles[name].dataPlane) || self.spec.roles[name].dataPlane == self.metadata.name)")
        .message("a role in the map belongs to this data plane: remove its dataPlane field"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(name = "Roles", type_ = "integer", json_path = ".status.roles"),
    printcolumn(name = "ReadyRoles", type_ = "integer", json_path = ".status.readyRoles"),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.nodes"),
    printcolumn(name = "ReadyNodes", type_ = "integer", json_path = ".status.readyNodes"),
    printcolumn(name = "UpToDate", type_ = "integer", json_path = ".status.upToDateNodes"),
    printcolumn(name = "Orphans", type_ = "integer", json_path = ".status.orphans"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct DataPlaneSpec {
    /// The roles of the data plane: each key is the name of an `OpenStackDataPlaneRole`, each value
    /// what its spec must say. Fields that are left out may be set on the role itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "roles")]
    pub roles: BTreeMap<String, AnyMap>,
    /// The nodes of the data plane: each key is the name of an `OpenStackDataPlaneNode`, each value
    /// what its spec must say. Fields that are left out may be set on the node itself; the key is
    /// also the `hostName` of an entry that gives no address.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "nodes")]
    pub nodes: BTreeMap<String, AnyMap>,
    /// How deployments are steered where neither node nor role says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deploy_strategy: Option<DeployStrategy>,
    /// Whether a role or node whose key was taken out of the maps is deleted; else it goes on as it
    /// is, and the condition `Orphaned` names it.
    #[serde(default)]
    pub prune: bool,
}

/// What was seen of the data plane's roles and nodes.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DataPlaneStatus {
    /// The `metadata.generation` that the status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The aspects of the data plane, `Ready` first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// True when every service has succeeded on all nodes; absent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed: Option<bool>,
    /// How many roles the map has.
    #[serde(default)]
    pub roles: i64,
    /// How many of them are ready.
    #[serde(default)]
    pub ready_roles: i64,
    /// How many nodes the map has.
    #[serde(default)]
    pub nodes: i64,
    /// How many of them are ready.
    #[serde(default)]
    pub ready_nodes: i64,
    /// How many of them carry the present configuration.
    #[serde(default)]
    pub up_to_date_nodes: i64,
    /// How many roles and nodes belong to the data plane and are no longer in its maps.
    #[serde(default)]
    pub orphans: i64,
}

fn roles(generator: &mut SchemaGenerator) -> Schema {
    entries::<RoleSpec>(generator, MAX_ROLES)
}

fn nodes(generator: &mut SchemaGenerator) -> Schema {
    entries::<NodeSpec>(generator, MAX_NODES)
}

/// A map whose values are specs of which any part may be left out.
fn entries<T: JsonSchema>(generator: &mut SchemaGenerator, limit: u32) -> Schema {
    let mut entry = T::json_schema(generator).to_value();
    only_stated(&mut entry);
    json_schema!({ "type": "object", "maxProperties": limit, "additionalProperties": entry })
}

/// Takes out of a schema what is not the entry's own word: a default would be applied as if it had
/// been stated. The rules go too, but for those that cost nothing: over thousands of entries they cost
/// more than the API server allows; the kinds themselves keep them.
fn only_stated(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    schema.remove("default");
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    if rules.is_some_and(|it| it.iter().any(|it| it["rule"] != NEVER)) {
        schema.remove("x-kubernetes-validations");
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(only_stated);
    }
    for below in ["items", "additionalProperties"] {
        if let Some(below) = schema.get_mut(below) {
            only_stated(below);
        }
    }
}
