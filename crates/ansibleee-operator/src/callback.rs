//! The Ansible callback that every runner pod gets: how a run tells what it did to each host.

use common::hash;
use common::plan::{Kind, Step, Target};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

/// The callback's source.
const SOURCE: &str = include_str!("../../../ansible/callback/edpm_result.py");
/// The callback's file name.
const FILE: &str = "edpm_result.py";
/// Label of the callback's `ConfigMaps`.
pub const LABEL: (&str, &str) = ("edpm.openstack.org/component", "ansible-callback");

/// The name of the `ConfigMap`: another content, another name.
pub fn config_map_name() -> String {
    format!("edpm-ansible-callback-{}", &hash::of_bytes(SOURCE)[..10])
}

/// Creates the `ConfigMap` in a namespace.
///
/// It is immutable and has no owner: runs of several versions of the operator may use theirs.
pub fn creation(namespace: &str) -> Step {
    let target = Target {
        kind: Kind::of::<ConfigMap>(),
        namespace: namespace.into(),
        name: config_map_name(),
        uid: None,
    };
    let object = json!({
        "metadata": { "labels": { LABEL.0: LABEL.1 } },
        "immutable": true,
        "data": { FILE: SOURCE },
    });
    Step::create(target, object, "/data", "the namespace's runs need the callback")
}
