//! What the runs of one service and group have in common, and how each of their hosts is reached.

use std::collections::{BTreeMap, BTreeSet};

use api::ansibleee::HostKeyScan;
use api::shared::{SourceKind, VolMounts};
use k8s_openapi::api::core::v1::{EnvVar, PodDNSConfig};
use serde_json::Value;

use crate::plan::Target;
use crate::run_engine::host_key::HostKeyTrust;
use crate::run_engine::layout::Layout;
use crate::run_engine::limit;
use crate::run_engine::ssh_secret::SshSecret;

/// What a service executes.
#[derive(Clone, Debug, PartialEq)]
pub enum Play {
    /// A playbook by path or collection name.
    Playbook(String),
    /// The text of a playbook.
    Contents(String),
    /// A role by name, run without a playbook.
    Role(String),
}

/// An object whose keys become files in the pod.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct MountedSource {
    /// Whether it is a Secret; otherwise it is a ConfigMap.
    pub kind: SourceKind,
    /// Its name.
    pub name: String,
    /// The keys to mount.
    pub keys: Vec<String>,
}

/// Ansible's options that narrow a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnsibleOptions {
    /// `--tags`.
    pub tags: Option<String>,
    /// `--skip-tags`.
    pub skip_tags: Option<String>,
    /// `--limit`, as the user wrote it.
    pub limit: Option<String>,
}

impl AnsibleOptions {
    /// Returns whether any option narrows the run.
    pub fn is_partial(&self) -> bool {
        self.tags.is_some() || self.skip_tags.is_some() || self.limit.is_some()
    }

    /// Returns the command line, quoted as for a shell: `ansible-runner` splits it like one.
    ///
    /// Unless `is_everywhere`, the limit is reduced to the run's own hosts.
    pub(super) fn cmd_line(&self, is_everywhere: bool) -> String {
        let limit = match &self.limit {
            limit if is_everywhere => limit.clone(),
            limit => Some(limit::of_run(limit.as_deref())),
        };
        let options =
            [("--limit", &limit), ("--tags", &self.tags), ("--skip-tags", &self.skip_tags)];
        let words = options
            .into_iter()
            .filter_map(|(option, value)| Some(format!("{option} {}", quoted(value.as_ref()?))));
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Quotes a word so that a POSIX shell reads it back unchanged.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Everything that the runs of one service and group have in common.
#[derive(Clone, Debug)]
pub struct RunTemplate {
    /// The object that owns the runs.
    pub parent: Target,
    /// What the run executes.
    pub play: Play,
    /// The service's type, which is the directory of its data sources.
    pub service_type: String,
    /// Runner image; `None` means the operator's default.
    pub image: Option<String>,
    /// The user's environment variables for the pod.
    pub env: Vec<EnvVar>,
    /// The user's mounts.
    pub extra_mounts: Vec<VolMounts>,
    /// Network attachments of the pod.
    pub network_attachments: Vec<String>,
    /// DNS of the pod.
    pub dns_config: Option<PodDNSConfig>,
    /// Where the runs find their inventory and keys, and how their volumes are named.
    pub layout: Layout,
    /// Objects whose keys become files.
    pub sources: Vec<MountedSource>,
    /// The options that narrow the runs.
    pub options: AnsibleOptions,
    /// Facts of the hosts that the plays get as variables.
    pub fact_variables: Vec<String>,
    /// Variables that take precedence over all others except those that select the run's hosts;
    /// Ansible evaluates no text in them.
    pub extra_vars: BTreeMap<String, Value>,
    /// The same with texts that Ansible evaluates: their author is trusted like a playbook's.
    pub template_vars: BTreeMap<String, Value>,
    /// Options that only runs of deployments use.
    pub deployed: DeploymentOptions,
}

impl RunTemplate {
    /// Returns the template of runs that start with nothing else.
    pub fn of(parent: Target, play: Play, service_type: &str, layout: Layout) -> Self {
        Self {
            parent,
            play,
            service_type: service_type.to_owned(),
            image: None,
            env: Vec::new(),
            extra_mounts: Vec::new(),
            network_attachments: Vec::new(),
            dns_config: None,
            layout,
            sources: Vec::new(),
            options: AnsibleOptions::default(),
            fact_variables: Vec::new(),
            extra_vars: BTreeMap::new(),
            template_vars: BTreeMap::new(),
            deployed: DeploymentOptions::default(),
        }
    }
}

/// Options that only the runs of deployments use.
#[derive(Clone, Debug, Default)]
pub struct DeploymentOptions {
    /// Parts of the run's name after the service; if empty, the parent's name.
    pub names: Vec<String>,
    /// Labels in addition to the engine's own.
    pub labels: BTreeMap<String, String>,
    /// Labels of the Kubernetes nodes that the pods may run on.
    pub node_selector: BTreeMap<String, String>,
    /// The `ConfigMap` whose keys become environment variables; `None` means the run's default one.
    pub env_config_map: Option<String>,
    /// Whether a Job is deleted soon after its result was recorded.
    pub lets_jobs_go: bool,
    /// Whether the play targets all hosts that can be reached, not only those whose attempts the run
    /// carries.
    pub is_everywhere: bool,
    /// Hosts of the inventory that such a play leaves out.
    pub left_out: BTreeSet<String>,
}

/// How hosts are reached, by name.
pub type Connections = BTreeMap<String, HostConnection>;

/// How one host of a run is reached: its address and its ssh Secret.
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
    /// Token of what is trusted as the host's own key; see
    /// [`token`](super::host_key::HostKeyTrust::token).
    pub trusted: String,
}

impl HostConnection {
    /// Creates the connection to a host at `address` (`host:port`).
    ///
    /// `scans_known` says whether the run scans the host's key even though one is known.
    pub fn new(
        address: String,
        ssh: SshSecret<'_>,
        trust: &HostKeyTrust,
        scans_known: bool,
    ) -> Self {
        Self {
            address,
            ssh_secret: ssh.name.to_owned(),
            ssh_version: ssh.version.to_owned(),
            has_known_hosts: ssh.has_known_hosts,
            scan: trust.scan(scans_known),
            trusted: trust.token(),
        }
    }
}
