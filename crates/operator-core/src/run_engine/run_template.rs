//! What the runs of one service and group have in common, and how each of their hosts is reached.

use std::collections::BTreeMap;

use api::ansibleee::HostKeyScan;
use api::shared::VolMounts;
use k8s_openapi::api::core::v1::{EnvVar, PodDNSConfig};
use serde_json::Value;

use crate::plan::Target;
use crate::run_engine::inventory::RUN_GROUP;
use crate::run_engine::layout::Layout;
use crate::run_engine::limit;

/// What a service executes.
#[derive(Clone, Debug, PartialEq)]
pub enum Play {
    /// A playbook by path or collection name.
    Playbook(String),
    /// The text of a playbook.
    Contents(String),
    /// A role by name, run as it is.
    Role(String),
}

/// An object whose keys become files in the pod.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct MountedSource {
    /// Whether it is a Secret; else a ConfigMap.
    pub is_secret: bool,
    /// Its name.
    pub name: String,
    /// Its keys.
    pub keys: Vec<String>,
}

/// Ansible's options that narrow what a run does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnsibleOptions {
    /// `--tags`.
    pub tags: Option<String>,
    /// `--skip-tags`.
    pub skip_tags: Option<String>,
    /// `--limit`, in the human's own terms.
    pub limit: Option<String>,
}

impl AnsibleOptions {
    /// Whether anything is narrowed.
    pub fn is_partial(&self) -> bool {
        self.tags.is_some() || self.skip_tags.is_some() || self.limit.is_some()
    }

    /// The command line, quoted as a shell would need it: `ansible-runner` splits it like one.
    pub(super) fn cmd_line(&self, is_everywhere: bool) -> String {
        let limit = match &self.limit {
            Some(limit) if is_everywhere => Some(limit.clone()),
            Some(limit) => Some(format!("{},&{RUN_GROUP}", limit::terms(limit).join(","))),
            None => (!is_everywhere).then(|| RUN_GROUP.to_owned()),
        };
        let options =
            [("--limit", &limit), ("--tags", &self.tags), ("--skip-tags", &self.skip_tags)];
        let words = options
            .into_iter()
            .filter_map(|(option, value)| Some(format!("{option} {}", quoted(value.as_ref()?))));
        words.collect::<Vec<_>>().join(" ")
    }
}

/// A word as a POSIX shell reads it back unchanged.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Everything that the runs of one service and group have in common.
#[derive(Clone, Debug)]
pub struct RunTemplate {
    /// The object that owns the runs.
    pub parent: Target,
    /// What is executed.
    pub play: Play,
    /// The service's type: folder of its data sources.
    pub service_type: String,
    /// Runner image; the operator's default when absent.
    pub image: Option<String>,
    /// The human's environment for the pod.
    pub env: Vec<EnvVar>,
    /// The human's mounts.
    pub extra_mounts: Vec<VolMounts>,
    /// Network attachments of the pod.
    pub network_attachments: Vec<String>,
    /// DNS of the pod.
    pub dns_config: Option<PodDNSConfig>,
    /// Where the runs find their inventory and keys, and how their volumes are called.
    pub layout: Layout,
    /// Objects whose keys become files.
    pub sources: Vec<MountedSource>,
    /// What narrows the runs.
    pub options: AnsibleOptions,
    /// Facts of the hosts that are variables of the plays.
    pub fact_variables: Vec<String>,
    /// Variables that win over all others but those by which a run finds its hosts.
    pub extra_vars: BTreeMap<String, Value>,
    /// What runs of deployments have beyond those of roles and computes.
    pub deployed: DeploymentOptions,
}

/// What only the runs of deployments have.
#[derive(Clone, Debug, Default)]
pub struct DeploymentOptions {
    /// What the names of runs have after the service instead of the parent's name alone.
    pub names: Vec<String>,
    /// Labels beside the engine's own.
    pub labels: BTreeMap<String, String>,
    /// Labels of the Kubernetes nodes that the pods may run on.
    pub node_selector: BTreeMap<String, String>,
    /// The `ConfigMap` whose keys become environment variables; the run's default one when absent.
    pub env_config_map: Option<String>,
    /// Whether a Job goes soon after its result was recorded.
    pub lets_jobs_go: bool,
    /// Whether the play is for all hosts that can be reached, not only those whose attempts the run
    /// carries.
    pub is_everywhere: bool,
}

/// One host of a run: where it is and with which Secret it is reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostConnection {
    /// `host:port`.
    pub address: String,
    /// The ssh Secret.
    pub ssh_secret: String,
    /// The Secret's resource version.
    pub ssh_version: String,
    /// Whether the Secret has known hosts.
    pub has_known_hosts: bool,
    /// Whether and how the run asks for the host's own key.
    pub scan: Option<HostKeyScan>,
    /// What is trusted as the host's own key, in a word.
    pub trusted: String,
}
