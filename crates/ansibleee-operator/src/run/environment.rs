//! Ansible's environment: what the operator enforces in every run, and what ConfigMaps may set.

use api::ansibleee::AnsibleEeSpec;
use k8s_openapi::api::core::v1::{ConfigMapKeySelector, EnvVar, EnvVarSource};
use serde_json::{Value, json};

use crate::run::deadline::deadline;
use crate::run::settings::Settings;

/// Ansible's own variable for the seconds that a task may take on a host.
pub const TASK_TIMEOUT: &str = "ANSIBLE_TASK_TIMEOUT";

/// Maximum of Ansible's time limits, in seconds.
const LONGEST: i64 = i32::MAX as i64;

/// Makes an unknown or changed host key end the connection, whatever a run sets.
const HOST_KEYS: [(&str, &str); 4] = [
    ("ANSIBLE_HOST_KEY_CHECKING", "True"),
    // These variables do the same and take precedence.
    ("ANSIBLE_SSH_HOST_KEY_CHECKING", "True"),
    ("ANSIBLE_PARAMIKO_HOST_KEY_CHECKING", "True"),
    ("ANSIBLE_PARAMIKO_HOST_KEY_AUTO_ADD", "False"),
];

/// Other variables that control ssh, set by the operator.
///
/// Of an option that is given twice ssh uses the first, and a `ProxyCommand` is a program. A host's
/// own arguments belong to its variables, where they are visible.
const SSH: [(&str, &str); 11] = [
    (
        "ANSIBLE_SSH_ARGS",
        "-o ControlMaster=auto -o ControlPersist=60s -o ServerAliveInterval=15 \
         -o ServerAliveCountMax=4",
    ),
    // Otherwise ssh would ask whether to trust an unknown host, and wait forever.
    ("ANSIBLE_SSH_COMMON_ARGS", "-o StrictHostKeyChecking=yes"),
    ("ANSIBLE_SSH_EXTRA_ARGS", ""),
    ("ANSIBLE_SCP_EXTRA_ARGS", ""),
    ("ANSIBLE_SFTP_EXTRA_ARGS", ""),
    ("ANSIBLE_SSH_EXECUTABLE", "ssh"),
    ("ANSIBLE_SCP_EXECUTABLE", "scp"),
    ("ANSIBLE_SFTP_EXECUTABLE", "sftp"),
    // Otherwise a program of the run could answer whether to trust an unknown host.
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("ANSIBLE_PKCS11_PROVIDER", ""),
    ("ANSIBLE_PARAMIKO_PROXY_COMMAND", ""),
];

/// Keeps facts from being variables.
///
/// Facts in a host's answer would take precedence over role defaults and inventory variables, and
/// roles read files of the runner whose paths are variables.
const FACTS: (&str, &str) = ("ANSIBLE_INJECT_FACT_VARS", "False");

/// How many bytes a host may answer at once, and how many seconds the removal of files after a task
/// may take; these are the plugins' own defaults.
const BOUNDS: [(&str, &str); 4] = [
    ("EDPM_OUTPUT_LIMIT", "8388608"),
    ("EDPM_CLEANUP_LIMIT", "30"),
    // These follow from the task timeout.
    ("EDPM_SLOW_LIMIT", ""),
    ("EDPM_COMPUTE_LIMIT", ""),
];

/// What a namespace's default ConfigMap may set: parallelism, time limits and the look of the log.
///
/// None of these names a program, a file or a host, and Ansible treats none as a template, as it
/// does with `ANSIBLE_REMOTE_USER`.
pub const FROM_DEFAULT_CONFIG_MAP: [&str; 29] = [
    "ANSIBLE_ACTION_WARNINGS",
    "ANSIBLE_CALLBACKS_ENABLED",
    "ANSIBLE_CALLBACK_FORMAT_PRETTY",
    "ANSIBLE_CALLBACK_RESULT_FORMAT",
    "ANSIBLE_COMMAND_WARNINGS",
    "ANSIBLE_DEPRECATION_WARNINGS",
    "ANSIBLE_DISPLAY_OK_HOSTS",
    "ANSIBLE_DISPLAY_SKIPPED_HOSTS",
    "ANSIBLE_FORCE_COLOR",
    "ANSIBLE_FORKS",
    "ANSIBLE_GATHERING",
    "ANSIBLE_GATHER_SUBSET",
    "ANSIBLE_GATHER_TIMEOUT",
    "ANSIBLE_NOCOLOR",
    "ANSIBLE_PIPELINING",
    "ANSIBLE_SSH_PIPELINING",
    "ANSIBLE_SSH_RETRIES",
    "ANSIBLE_SSH_TIMEOUT",
    "ANSIBLE_STDOUT_CALLBACK",
    "ANSIBLE_SYSTEM_WARNINGS",
    "ANSIBLE_TIMEOUT",
    "ANSIBLE_VERBOSITY",
    "RUNNER_IDLE_TIMEOUT",
    "RUNNER_JOB_TIMEOUT",
    "RUNNER_PEXPECT_TIMEOUT",
    "RUNNER_PEXPECT_USE_POLL",
    "RUNNER_SUPPRESS_ANSIBLE_OUTPUT",
    "RUNNER_SUPPRESS_OUTPUT_FILE",
    "TZ",
];

/// Prefix of ansible-runner's settings.
const SETTING: &str = "RUNNER_";
/// Prefix of these names if the value comes from the default `ConfigMap`.
///
/// Upstream's images insert `RUNNER_…` into YAML unchanged, so a value with two lines could name a
/// program. The entry point of our image validates each value, and knows these names.
const UNJUDGED: &str = "EDPM_DEFAULT_";

/// Returns the variables that win over image, ConfigMap, `spec.env` and every mounted
/// `ansible.cfg`.
pub fn forced(spec: &AnsibleEeSpec, settings: &Settings) -> Vec<EnvVar> {
    let mut forced: Vec<EnvVar> = HOST_KEYS
        .into_iter()
        .chain([FACTS])
        .chain(SSH)
        .chain(BOUNDS)
        .map(|(name, value)| plain(name, value))
        .collect();
    forced.push(plain(TASK_TIMEOUT, &task_timeout(spec, settings).to_string()));
    forced
}

/// Returns the same variables as the file `/runner/env/envvars`.
///
/// ansible-runner applies it over the environment; otherwise the file of an image would win.
pub fn envvars(spec: &AnsibleEeSpec, settings: &Settings) -> String {
    let forced = forced(spec, settings).into_iter().map(|it| (it.name, json!(it.value)));
    Value::Object(forced.collect()).to_string()
}

/// Returns whether a variable controls ssh, so that a run's `env` may not set it.
pub fn is_ssh(name: &str) -> bool {
    SSH.iter().any(|it| it.0 == name)
}

/// Returns how many seconds a task may take: the run's value or else the installation's, and at
/// most the run's deadline.
fn task_timeout(spec: &AnsibleEeSpec, settings: &Settings) -> i64 {
    let named = spec.env.iter().find(|it| it.name == TASK_TIMEOUT);
    let asked = named.and_then(|it| it.value.as_deref()?.trim().parse().ok());
    let seconds = asked.filter(|it| *it > 0).unwrap_or(settings.task_timeout);
    seconds.min(deadline(spec).unwrap_or(LONGEST)).min(LONGEST)
}

/// Returns the ConfigMap that the run itself names; all its keys are used.
pub fn named_config_map(spec: &AnsibleEeSpec) -> Option<Value> {
    let map = &spec.env_config_map_name;
    let is_named = *map != AnsibleEeSpec::default().env_config_map_name;
    is_named.then(|| json!({ "configMapRef": { "name": map, "optional": true } }))
}

/// Returns what a run that names no ConfigMap takes from the default one.
///
/// Only harmless settings are taken, because a user who may write a ConfigMap must not thereby run
/// programs.
pub fn from_default_config_map(spec: &AnsibleEeSpec) -> Vec<EnvVar> {
    if named_config_map(spec).is_some() {
        return Vec::new();
    }
    let one = |name: &str| {
        let map = spec.env_config_map_name.clone();
        let key = ConfigMapKeySelector { name: map, key: name.into(), optional: Some(true) };
        let from = EnvVarSource { config_map_key_ref: Some(key), ..EnvVarSource::default() };
        let prefix = if name.starts_with(SETTING) { UNJUDGED } else { "" };
        EnvVar { name: format!("{prefix}{name}"), value: None, value_from: Some(from) }
    };
    FROM_DEFAULT_CONFIG_MAP.into_iter().map(one).collect()
}

/// Returns the setting that a variable from the default `ConfigMap` stands for.
pub fn requested(name: &str) -> &str {
    name.strip_prefix(UNJUDGED).unwrap_or(name)
}

/// Returns a variable with that value.
pub fn plain(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.into(), value: Some(value.into()), value_from: None }
}
