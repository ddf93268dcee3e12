//! Builds the Jobs of a cell that run nova-manage, and the one among them that maps its hosts.

use std::collections::BTreeMap;

use api::names;
use api::nova::Cell;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use operator_core::hash;
use operator_core::plan::{Step, Target};
use operator_core::run_engine::build::owner;
use serde_json::{Value, json};

use crate::cell::observed::discovery::uid;
use crate::requested::host_discovery::Settings;
use crate::shared_caches::discovery_jobs::LABEL;

/// Maximum length of a Job's name, which leaves room for the suffix of its pod.
const NAME_LIMIT: usize = 52;
/// The user and the group of nova in the images of Kolla and of their derivatives.
const NOVA: i64 = 42436;
/// How long a Job that maps hosts may take, in seconds.
const DEADLINE_SECONDS: i64 = 600;
/// Where nova reads files of its configuration.
pub const CONFIG_FOLDER: &str = "/etc/nova/nova.conf.d";
/// The program that maps hosts.
pub(crate) const SCRIPT: &str = include_str!("discover-hosts.sh");

/// What a Job runs.
pub struct Program<'a> {
    /// The name of its container, and of what the Job is for.
    pub name: &'a str,
    /// The script.
    pub script: &'a str,
    /// Its arguments.
    pub args: Vec<&'a str>,
    /// Labels beside [`LABEL`], each with the value `true`.
    pub labels: &'a [&'a str],
    /// How long it may take, in seconds.
    pub deadline_seconds: i64,
    /// Why the Job is created.
    pub because: &'static str,
}

/// Returns the name of an attempt's Job, derived from the cell, what the Job is for, the hosts that it is
/// about, the number of the attempt and the time of its record.
pub fn job_name(
    cell: &Cell,
    purpose: &str,
    hosts: &[&str],
    attempt: i64,
    since: Timestamp,
) -> String {
    let identity = hash::short(&(uid(cell), hosts, attempt, since.as_second()));
    names::hashed(&[&cell.name_any(), purpose, &identity], NAME_LIMIT).replace('.', "-")
}

/// Returns the digest of what Jobs are made from: a correction ends the backoff.
pub fn inputs(settings: &Settings, secret_version: &str) -> String {
    hash::short(&(&settings.secret, secret_version, &settings.image))
}

/// Returns the step that creates the Job of an attempt to map hosts.
pub fn discovery_job(cell: &Cell, settings: &Settings, name: &str) -> Step {
    let program = Program {
        name: "discover-hosts",
        script: SCRIPT,
        args: vec![CONFIG_FOLDER, &cell.spec.cell_name],
        labels: &[],
        deadline_seconds: DEADLINE_SECONDS,
        because: "hosts of the cell are not mapped",
    };
    job(cell, settings, name, &program)
}

/// Returns the step that creates a Job of this name.
pub fn job(cell: &Cell, settings: &Settings, name: &str, program: &Program<'_>) -> Step {
    let all = program.labels.iter().copied().chain([LABEL]);
    let labels: BTreeMap<&str, &str> = all.map(|it| (it, "true")).collect();
    let object = json!({
        "metadata": {
            "labels": labels,
            "ownerReferences": [owner(&Target::of::<Cell>(cell))],
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": program.deadline_seconds,
            "template": { "metadata": { "labels": labels }, "spec": pod(settings, program) },
        },
    });
    let target = Target::named::<Job>(cell.namespace().unwrap_or_default(), name);
    Step::create(target, object, "/metadata/name", program.because)
}

fn pod(settings: &Settings, program: &Program<'_>) -> Value {
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
        "containers": [container(settings, program)],
        "volumes": [
            // Readable for the group of nova alone.
            { "name": "config", "secret": { "secretName": settings.secret, "defaultMode": 0o440 } },
            { "name": "tmp", "emptyDir": { "sizeLimit": "64Mi" } },
            { "name": "log", "emptyDir": { "sizeLimit": "64Mi" } },
        ],
    })
}

fn container(settings: &Settings, program: &Program<'_>) -> Value {
    json!({
        "name": program.name,
        "image": settings.image,
        "command": ["sh", "-ec", program.script, program.name],
        "args": program.args,
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
