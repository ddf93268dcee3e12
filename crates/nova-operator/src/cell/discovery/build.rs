//! Builds the Job that maps the hosts of a cell.

use api::names;
use api::nova::Cell;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use operator_core::hash;
use operator_core::plan::{Step, Target};
use operator_core::run_engine::build::owner;
use serde_json::{Value, json};

use crate::cell::discovery::observed::{Unmapped, uid};
use crate::cell::discovery::settings::Settings;

/// Label of the Jobs and their pods; its value is always `true`.
pub const LABEL: &str = "nova.openstack.org/host-discovery";
/// Maximum length of a Job's name, which leaves room for the suffix of its pod.
const NAME_LIMIT: usize = 52;
/// The user and the group of nova in the images of Kolla and of their derivatives.
const NOVA: i64 = 42436;
/// How long a Job may take, in seconds.
const DEADLINE_SECONDS: i64 = 600;
/// Where nova reads files of its configuration.
const CONFIG_FOLDER: &str = "/etc/nova/nova.conf.d";
/// The program of the container.
pub(crate) const SCRIPT: &str = include_str!("discover-hosts.sh");

/// Returns the name of an attempt's Job, derived from the cell, its unmapped hosts, the number of
/// the attempt and the time of its record.
pub fn job_name(cell: &Cell, hosts: &[Unmapped], attempt: i64, since: Timestamp) -> String {
    let hosts: Vec<&str> = hosts.iter().map(|it| it.host.as_str()).collect();
    let identity = hash::short(&(uid(cell), hosts, attempt, since.as_second()));
    names::hashed(&[&cell.name_any(), "host-discovery", &identity], NAME_LIMIT).replace('.', "-")
}

/// Returns the digest of what Jobs are made from: a correction ends the backoff.
pub fn inputs(settings: &Settings, secret_version: &str) -> String {
    hash::short(&(&settings.secret, secret_version, &settings.image))
}

/// Returns the step that creates the Job of an attempt.
pub fn job(cell: &Cell, settings: &Settings, name: &str) -> Step {
    let labels = json!({ LABEL: "true" });
    let object = json!({
        "metadata": {
            "labels": labels,
            "ownerReferences": [owner(&Target::of::<Cell>(cell))],
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": DEADLINE_SECONDS,
            "template": { "metadata": { "labels": labels }, "spec": pod(cell, settings) },
        },
    });
    let target = Target::named::<Job>(cell.namespace().unwrap_or_default(), name);
    Step::create(target, object, "/metadata/name", "hosts of the cell are not mapped")
}

fn pod(cell: &Cell, settings: &Settings) -> Value {
    json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": NOVA,
            "runAsGroup": NOVA,
            "fsGroup": NOVA,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "containers": [container(cell, settings)],
        "volumes": [
            // Readable for the group of nova alone.
            { "name": "config", "secret": { "secretName": settings.secret, "defaultMode": 0o440 } },
            { "name": "tmp", "emptyDir": { "sizeLimit": "64Mi" } },
            { "name": "log", "emptyDir": { "sizeLimit": "64Mi" } },
        ],
    })
}

fn container(cell: &Cell, settings: &Settings) -> Value {
    json!({
        "name": "discover-hosts",
        "image": settings.image,
        "command": ["sh", "-ec", SCRIPT, "discover-hosts"],
        "args": [CONFIG_FOLDER, cell.spec.cell_name],
        "env": [{ "name": "HOME", "value": "/tmp" }],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {
            "requests": { "cpu": "100m", "memory": "192Mi" },
            "limits": { "memory": "512Mi" },
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
        "volumeMounts": [
            { "name": "config", "mountPath": CONFIG_FOLDER, "readOnly": true },
            { "name": "tmp", "mountPath": "/tmp" },
            // For a log file that the configuration names.
            { "name": "log", "mountPath": "/var/log/nova" },
        ],
    })
}
