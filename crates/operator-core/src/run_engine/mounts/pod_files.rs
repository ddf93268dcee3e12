//! Where the files of services are in the pod, the mode of its key files, and parts of volumes.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, KeyToPath, ProjectedVolumeSource, SecretProjection, SecretVolumeSource,
    Volume, VolumeProjection,
};

/// Directory of the data sources in the pod, by service type.
pub(super) const CONFIGS_DIR: &str = "/var/lib/openstack/configs";

/// Mode of key files: readable by the runner's group, which is root's.
///
/// ssh accepts that for a file of another owner.
pub(super) const KEY_MODE: i32 = 0o440;

/// Returns a volume of a Secret: these keys of it, or all.
pub(super) fn of_secret(
    name: String,
    secret: &str,
    items: Option<Vec<KeyToPath>>,
    default_mode: Option<i32>,
) -> Volume {
    let secret_name = Some(secret.to_owned());
    let secret = SecretVolumeSource { secret_name, items, default_mode, ..Default::default() };
    Volume { name, secret: Some(secret), ..Default::default() }
}

/// Returns a volume of a ConfigMap: these keys of it, or all.
pub(super) fn of_config_map(
    name: String,
    config_map: &str,
    items: Option<Vec<KeyToPath>>,
) -> Volume {
    let map = ConfigMapVolumeSource { name: config_map.to_owned(), items, ..Default::default() };
    Volume { name, config_map: Some(map), ..Default::default() }
}

/// Returns a Secret in a projected volume: these keys of it, or all.
pub(super) fn projection(
    secret: &str,
    items: Option<Vec<KeyToPath>>,
    is_optional: bool,
) -> VolumeProjection {
    VolumeProjection {
        secret: Some(SecretProjection {
            name: secret.to_owned(),
            items,
            optional: is_optional.then_some(true),
        }),
        ..Default::default()
    }
}

/// Returns a volume of these sources.
pub(super) fn projected(
    name: String,
    sources: Vec<VolumeProjection>,
    default_mode: Option<i32>,
) -> Volume {
    let projected = ProjectedVolumeSource { default_mode, sources: Some(sources) };
    Volume { name, projected: Some(projected), ..Default::default() }
}

/// Returns a key under another file name.
pub(super) fn item(key: &str, path: &str) -> KeyToPath {
    KeyToPath { key: key.to_owned(), path: path.to_owned(), mode: None }
}
