//! What the operator decides about Ansible in every run, and what a namespace's ConfigMap may decide.

use api::ansibleee::AnsibleEeSpec;
use k8s_openapi::api::core::v1::{ConfigMapKeySelector, EnvVar, EnvVarSource};
use serde_json::{Value, json};

use crate::run::settings::{Settings, deadline};

/// Seconds that a task may take on a host; Ansible's own variable.
pub const TASK_TIMEOUT: &str = "ANSIBLE_TASK_TIMEOUT";

/// Seconds that a time limit of Ansible can have at most.
const LONGEST: i64 = i32::MAX as i64;

/// Whether an unknown or changed host key ends the connection; whatever a run says, it does.
const HOST_KEYS: [(&str, &str); 4] = [
    ("ANSIBLE_HOST_KEY_CHECKING", "True"),
    // The stronger names of the same.
    ("ANSIBLE_SSH_HOST_KEY_CHECKING", "True"),
    ("ANSIBLE_PARAMIKO_HOST_KEY_CHECKING", "True"),
    ("ANSIBLE_PARAMIKO_HOST_KEY_AUTO_ADD", "False"),
];

/// What else decides about ssh. Of an option that is given twice ssh takes the first, and a
/// `ProxyCommand` is a program; so these are the operator's, and a host's own arguments stand among
/// its variables, where they are seen.
const SSH: [(&str, &str); 11] = [
    (
        "ANSIBLE_SSH_ARGS",
        "-o ControlMaster=auto -o ControlPersist=60s -o ServerAliveInterval=15 \
         -o ServerAliveCountMax=4",
    ),
    // Else ssh would ask whether an unknown host may be trusted, and wait for ever.
    ("ANSIBLE_SSH_COMMON_ARGS", "-o StrictHostKeyChecking=yes"),
    ("ANSIBLE_SSH_EXTRA_ARGS", ""),
    ("ANSIBLE_SCP_EXTRA_ARGS", ""),
    ("ANSIBLE_SFTP_EXTRA_ARGS", ""),
    ("ANSIBLE_SSH_EXECUTABLE", "ssh"),
    ("ANSIBLE_SCP_EXECUTABLE", "scp"),
    ("ANSIBLE_SFTP_EXECUTABLE", "sftp"),
    // Else a program of the run's answers whether an unknown host may be trusted.
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("ANSIBLE_PKCS11_PROVIDER", ""),
    ("ANSIBLE_PARAMIKO_PROXY_COMMAND", ""),
];

/// What a host's answer carries as facts would beat role defaults and the inventory's variables, and
/// roles read files of the runner whose paths are variables: so facts are never variables.
const FACTS: (&str, &str) = ("ANSIBLE_INJECT_FACT_VARS", "False");

/// How many bytes a host may answer at once, and how many seconds the removal of files after a task
/// may take; the plugins' own defaults.
const BOUNDS: [(&str, &str); 4] = [
    ("EDPM_OUTPUT_LIMIT", "8388608"),
    ("EDPM_CLEANUP_LIMIT", "30"),
    // These follow the limit of tasks.
    ("EDPM_SLOW_LIMIT", ""),
    ("EDPM_COMPUTE_LIMIT", ""),
];

/// What the ConfigMap that every run of a namespace reads may decide: how much is done at a time, how
/// long it may take and what the log looks like. None of them names a program, a file or a host, and none
/// is a text that Ansible takes for a template, as it does with `ANSIBLE_REMOTE_USER`.
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

/// What the names of ansible-runner's settings begin with.
const SETTING: &str = "RUNNER_";
/// What stands before these names where the value is the default `ConfigMap`'s: upstream's images put
/// `RUNNER_…` into YAML as they are, so that a value with two lines could name a program. The entry point
/// of our image judges each value, and knows these names.
const UNJUDGED: &str = "EDPM_DEFAULT_";

/// The variables that win over image, ConfigMap, `spec.env` and every mounted `ansible.cfg`.
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

/// The same as `/runner/env/envvars`, which ansible-runner puts over the environment: else that of an
/// image would win.
pub fn envvars(spec: &AnsibleEeSpec, settings: &Settings) -> String {
    let forced = forced(spec, settings).into_iter().map(|it| (it.name, json!(it.value)));
    Value::Object(forced.collect()).to_string()
}

/// Whether a variable decides about ssh, so that a run's `env` may not set it.
pub fn is_ssh(name: &str) -> bool {
    SSH.iter().any(|it| it.0 == name)
}

/// Seconds that a task may take: as the run says, else as the installation does, and never longer
/// than the run itself may.
fn task_timeout(spec: &AnsibleEeSpec, settings: &Settings) -> i64 {
    let named = spec.env.iter().find(|it| it.name == TASK_TIMEOUT);
    let asked = named.and_then(|it| it.value.as_deref()?.trim().parse().ok());
    let seconds = asked.filter(|it| *it > 0).unwrap_or(settings.task_timeout);
    seconds.min(deadline(spec).unwrap_or(LONGEST)).min(LONGEST)
}

/// The ConfigMap that the run names itself, all of whose keys it takes.
pub fn named_config_map(spec: &AnsibleEeSpec) -> Option<Value> {
    let map = &spec.env_config_map_name;
    let is_named = *map != AnsibleEeSpec::default().env_config_map_name;
    is_named.then(|| json!({ "configMapRef": { "name": map, "optional": true } }))
}

/// What a run that names no ConfigMap takes from the default one: only settings that are known to be
/// harmless, for whoever may write a ConfigMap may not thereby run programs.
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

/// The name for which a variable of the default `ConfigMap` stands.
pub fn wanted(name: &str) -> &str {
    name.strip_prefix(UNJUDGED).unwrap_or(name)
}

/// A variable with that value.
pub fn plain(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.into(), value: Some(value.into()), value_from: None }
}
