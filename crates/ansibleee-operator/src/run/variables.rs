//! The runner container's environment: the user's variables, and those of image and callback.

use api::ansibleee::AnsibleEeSpec;
use k8s_openapi::api::core::v1::EnvVar;

use super::environment::{self, plain};
use super::{host_keys, playbook};
use crate::callback;
use crate::run::deadline::deadline;
use crate::run::settings::{Settings, is_engines};

/// How many seconds ansible-runner stops before Kubernetes does, so that it can report the timeout.
const MARGIN: i64 = 120;
/// The file from which kubelet reads a container's termination message.
const RESULT_FILE: &str = "/dev/termination-log";

/// A variable with Ansible's plugin directories, ours in addition to the user's.
struct Plugins {
    variable: &'static str,
    /// Where Ansible looks by default, as far as an image may have plugins there.
    usual: &'static str,
    /// The variable that holds the user's own directories if their value comes from another object.
    alias: &'static str,
    /// Our own directories.
    ours: &'static [&'static str],
}

/// The variables of the plugin directories.
///
/// The callback plugin reports the result. The same file is also a vars plugin, which reports a
/// limit that matches no host, because then Ansible ends before it calls any callback.
const PLUGINS: [Plugins; 2] = [
    Plugins {
        variable: "ANSIBLE_CALLBACK_PLUGINS",
        usual: "",
        alias: "EDPM_OTHER_CALLBACK_PLUGINS",
        ours: &[callback::RESULT.folder, callback::BOUNDS.folder, callback::KEY_CHECKS.folder],
    },
    Plugins {
        variable: "ANSIBLE_VARS_PLUGINS",
        usual: "~/.ansible/plugins/vars:/usr/share/ansible/plugins/vars",
        alias: "EDPM_OTHER_VARS_PLUGINS",
        ours: &[callback::RESULT.folder],
    },
];

/// Returns how many bytes a container's termination message may have.
///
/// kubelet keeps 12 KiB of all messages of a pod, shared evenly among its containers, and at most 4
/// KiB of one (`MaxPodTerminationMessageLogLength` in its container package).
fn result_limit(spec: &AnsibleEeSpec) -> usize {
    let containers = 1 + spec.init_containers.len() + usize::from(host_keys::is_asking(spec));
    (12 * 1024 / containers).min(4096)
}

/// Returns the ConfigMap's variables, the user's, then ours, which win.
pub fn env(spec: &AnsibleEeSpec, settings: &Settings) -> Vec<EnvVar> {
    let hosts: Vec<&str> = spec.hosts.iter().map(|it| it.name.as_str()).collect();
    let mut ours = environment::forced(spec, settings);
    ours.extend([
        plain("EDPM_RUN_HOSTS", &hosts.join(",")),
        plain("EDPM_RESULT_FILE", RESULT_FILE),
        plain("EDPM_RESULT_LIMIT", &result_limit(spec).to_string()),
        plain("EDPM_AEE_TERMINATION_LOG", "/tmp/edpm-summary"),
    ]);
    let (roles, path) = playbook::ROLES_PATH;
    if is_engines(spec) && spec.role.is_some() && spec.env.iter().all(|it| it.name != roles) {
        ours.push(plain(roles, path));
    }
    let is_ours = |name: &str| {
        ours.iter().any(|it| it.name == name) || PLUGINS.iter().any(|it| it.alias == name)
    };
    let mut env: Vec<EnvVar> = Vec::new();
    let mut folders: Vec<String> = PLUGINS.iter().map(|it| it.with(it.usual)).collect();
    for variable in &spec.env {
        let idx = PLUGINS.iter().position(|it| it.variable == variable.name);
        match (idx, &variable.value_from) {
            (Some(idx), None) => {
                let own = variable.value.as_deref().filter(|it| !it.is_empty());
                folders[idx] = PLUGINS[idx].with(own.unwrap_or(PLUGINS[idx].usual));
            }
            (Some(idx), Some(_)) => {
                let alias = PLUGINS[idx].alias;
                env.push(EnvVar { name: alias.into(), ..variable.clone() });
                folders[idx] = PLUGINS[idx].with(&format!("$({alias})"));
            }
            (None, _) if is_ours(&variable.name) => {}
            (None, _) => env.push(variable.clone()),
        }
    }
    ours.extend(PLUGINS.iter().zip(&folders).map(|(it, folders)| plain(it.variable, folders)));
    ours.extend(limits(spec));
    env.extend(ours);
    let is_given = |name: &str| env.iter().any(|it| it.name == name);
    let mut all = environment::from_default_config_map(spec);
    all.retain(|it| !is_given(&it.name) && !is_given(environment::requested(&it.name)));
    all.extend(env);
    all
}

impl Plugins {
    /// Returns the variable's value: the user's directories, then ours.
    fn with(&self, folders: &str) -> String {
        let theirs = Some(folders).filter(|it| !it.is_empty());
        theirs.into_iter().chain(self.ours.iter().copied()).collect::<Vec<_>>().join(":")
    }
}

/// Returns ansible-runner's own time limits, below the Job's.
///
/// ansible-runner stops Ansible in order and reports the timeout.
fn limits(spec: &AnsibleEeSpec) -> Vec<EnvVar> {
    let Some(deadline) = deadline(spec).filter(|_| is_engines(spec)) else { return Vec::new() };
    let limit = (deadline - MARGIN.min(deadline / 2)).max(1).to_string();
    let is_set = |name: &str| spec.env.iter().any(|it| it.name == name);
    let names = ["RUNNER_JOB_TIMEOUT", "RUNNER_IDLE_TIMEOUT"];
    names.into_iter().filter(|it| !is_set(it)).map(|it| plain(it, &limit)).collect()
}
