//! Types and schema fragments that several kinds have in common.

use k8s_openapi::api::core::v1::{Volume, VolumeMount};
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What an id in nova and placement looks like: those of computes are UUIDs.
pub(crate) const ID: &str = "^[0-9A-Fa-f-]{1,64}$";
/// What Kubernetes accepts as the name of most objects.
pub(crate) const DNS_SUBDOMAIN: &str =
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// How many entries `extraMounts` of a run may have.
pub const MAX_EXTRA_MOUNTS: usize = 32;
/// How many volumes one of them may have.
pub const MAX_VOLUMES: usize = 64;
/// How many mounts one of them may have: the rules over them stay affordable.
pub const MAX_MOUNTS: usize = 32;

/// Why no run gets a path of the machine that its pod is on, and what to take instead.
pub const HOST_PATH: &str = "a run gets no path of the Kubernetes node: take a persistentVolumeClaim, \
                             configMap, secret, projected, emptyDir, csi or nfs volume";
/// The CEL rule of a field that must not be set: it costs nothing, however often the field may be
/// there.
pub(crate) const NEVER: &str = "false";

/// Any mapping, kept as it was written.
pub type AnyMap = std::collections::BTreeMap<String, Value>;

/// Volumes and where they are mounted in the pods of the runs.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolMounts {
    /// Which pods get the mounts: empty, or a list with `All` or `Compute`, for every run; a list
    /// of other words for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 253)))]
    pub propagation: Vec<String>,
    /// A free label that says what the volumes are for, for example `Ceph`; it has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub extra_vol_type: Option<String>,
    /// The volumes that the pods get: every kind but `hostPath`.
    #[schemars(schema_with = "volumes")]
    pub volumes: Vec<Volume>,
    /// Where the volumes are mounted in the runner container.
    #[schemars(schema_with = "volume_mounts")]
    pub mounts: Vec<VolumeMount>,
}

impl VolMounts {
    /// Whether pods that run Ansible get these mounts.
    pub fn reaches_runs(&self) -> bool {
        self.propagation.is_empty()
            || self.propagation.iter().any(|it| it == "All" || it == "Compute")
    }
}

/// A reference to a Secret that bare metal provisioning reads.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// Name of the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// Namespace of the Secret; the object's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}

/// A ConfigMap or Secret whose keys are handed to plays.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DataSource {
    /// A text that is put before each key where the keys become variables; mounted files keep
    /// their names.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), regex(pattern = r"^([A-Za-z_][A-Za-z0-9_]*)?$"))]
    pub prefix: Option<String>,
    /// The ConfigMap to take; it wins when a Secret is named too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<LocalSourceRef>,
    /// The Secret to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalSourceRef>,
}

impl DataSource {
    /// Returns the object to take, with its kind; `None` if the entry names none.
    pub fn object(&self) -> Option<(SourceKind, &LocalSourceRef)> {
        let config_map = self.config_map_ref.as_ref().map(|it| (SourceKind::ConfigMap, it));
        config_map.or_else(|| Some((SourceKind::Secret, self.secret_ref.as_ref()?)))
    }
}

/// The kind of an object whose keys are handed to plays or read as variables.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SourceKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

impl SourceKind {
    /// Returns the kind as in `kind:`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// Returns `Secret x` or `ConfigMap x`.
    pub fn title(self, name: &str) -> String {
        format!("{} {name}", self.as_str())
    }
}

/// The name of a ConfigMap or Secret in the object's own namespace.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalSourceRef {
    /// Name of the ConfigMap or Secret.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub name: String,
    /// Whether the run goes on without it when it does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_zero(number: &i64) -> bool {
    *number == 0
}

pub(crate) fn default_env_config_map_name() -> String {
    "openstack-aee-default-env".into()
}

pub(crate) fn default_true() -> bool {
    true
}

pub(crate) fn default_backoff_limit() -> i32 {
    6
}

/// The schema of a mapping that is kept as it was written.
pub(crate) fn any_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// The schema of an optional mapping that is kept as it was written.
pub(crate) fn optional_any_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "nullable": true,
        "x-kubernetes-preserve-unknown-fields": true
    })
}

/// The schema of volumes, without those that give a pod the files of its Kubernetes node.
fn volumes(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = <Vec<Volume>>::json_schema(generator);
    schema.insert("maxItems".into(), MAX_VOLUMES.into());
    let mut item = generator.subschema_for::<Volume>().to_value();
    if let Some(path) = item.pointer_mut("/properties/hostPath").and_then(Value::as_object_mut) {
        let never = json!([{ "rule": NEVER, "message": HOST_PATH }]);
        path.insert("x-kubernetes-validations".into(), never);
    }
    schema.insert("items".into(), item);
    schema
}

/// The schema of mounts, with the limits that keep CEL rules over them affordable.
fn volume_mounts(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = <Vec<VolumeMount>>::json_schema(generator);
    schema.insert("maxItems".into(), MAX_MOUNTS.into());
    let mut item = generator.subschema_for::<VolumeMount>().to_value();
    if let Some(path) = item.pointer_mut("/properties/mountPath").and_then(Value::as_object_mut) {
        path.insert("maxLength".into(), 512.into());
    }
    schema.insert("items".into(), item);
    schema
}
