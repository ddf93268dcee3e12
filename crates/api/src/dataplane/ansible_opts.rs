//! How Ansible reaches the hosts of a node set, and which variables it gets for them.
#![expect(clippy::struct_field_names, reason = "the names are upstream's")]

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::shared::{AnyMap, DataSource, any_map};

/// How Ansible reaches hosts, and their variables; what a node sets wins over its node set.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AnsibleOpts {
    /// The user with which Ansible logs in over ssh; it needs sudo without a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[^\s-][^\s]*$"))]
    pub ansible_user: Option<String>,
    /// The address by which the host is reached over ssh; the host's name when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9:][A-Za-z0-9.:%_-]*$"))]
    pub ansible_host: Option<String>,
    /// Ansible variables of any type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "any_map")]
    pub ansible_vars: AnyMap,
    /// `ConfigMaps` and Secrets whose keys become Ansible variables; later entries win over earlier
    /// ones, and the fields and `ansibleVars` beside the list win over it. A value that begins with
    /// JSON keeps its type; values of Secrets are data and never templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new(
        r"self.all(it, (has(it.configMapRef) && has(it.configMapRef.name)) || (!has(it.configMapRef) && has(it.secretRef) && has(it.secretRef.name)))")
        .message("each entry names a ConfigMap (configMapRef.name) or a Secret (secretRef.name)"))]
    pub ansible_vars_from: Vec<DataSource>,
    /// The port of the host's ssh server; 22 when neither node nor node set give one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub ansible_port: Option<i32>,
}
