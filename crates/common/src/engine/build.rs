//! How a run is written down: the AnsibleEE of a shard.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVar, PodDNSConfig};
use serde_json::{Value, json};

use crate::api::ansibleee::{AnsibleEe, HostKeyScan, RunHost};
use crate::api::shared::VolMounts;
use crate::engine::inventory::{RUN_GROUP, run_inventory};
use crate::engine::limit;
use crate::engine::mounts::{self, Layout};
use crate::engine::run::{ATTEMPTS, HOST_KEYS, PARTIAL_LABEL, SERVICE_LABEL, SSH_KEYS};
use crate::engine::shards::Shard;
use crate::names;
use crate::plan::{Kind, Step, Target};

/// Longest name of an AnsibleEE: it leaves room for the suffixes of its Job and pods.
const NAME_LIMIT: usize = 52;
/// Key of the private key in an ssh Secret.
pub const PRIVATE_KEY: &str = "ssh-privatekey";
/// Key of the known host keys in an ssh Secret.
pub const KNOWN_HOSTS: &str = "known_hosts";

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
pub struct Source {
    /// Whether it is a Secret; else a ConfigMap.
    pub is_secret: bool,
    /// Its name.
    pub name: String,
    /// Its keys.
    pub keys: Vec<String>,
}

/// Ansible's options that narrow what a run does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// `--tags`.
    pub tags: Option<String>,
    /// `--skip-tags`.
    pub skip_tags: Option<String>,
    /// `--limit`, in the human's own terms.
    pub limit: Option<String>,
}

impl Options {
    /// Whether anything is narrowed.
    pub fn is_partial(&self) -> bool {
        self.tags.is_some() || self.skip_tags.is_some() || self.limit.is_some()
    }

    /// The command line, quoted as a shell would need it: `ansible-runner` splits it like one.
    fn cmd_line(&self) -> String {
        let limit = match &self.limit {
            Some(limit) => format!("{},&{RUN_GROUP}", limit::terms(limit).join(",")),
            None => RUN_GROUP.to_owned(),
        };
        let mut words = vec!["--limit".to_owned(), quoted(&limit)];
        for (option, value) in [("--tags", &self.tags), ("--skip-tags", &self.skip_tags)] {
            if let Some(value) = value {
                words.extend([option.to_owned(), quoted(value)]);
            }
        }
        words.join(" ")
    }
}

/// A word as a POSIX shell reads it back unchanged.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Everything that the runs of one service and group have in common.
#[derive(Clone, Debug)]
pub struct Recipe {
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
    pub sources: Vec<Source>,
    /// What narrows the runs.
    pub options: Options,
    /// Variables that win over all others.
    pub extra_vars: BTreeMap<String, Value>,
}

/// One host of a run: where it is and with which Secret it is reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reach {
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

/// The name of a shard's run.
pub fn name(recipe: &Recipe, shard: &Shard) -> String {
    let identity = shard.identity();
    names::derived(&[&shard.service, &recipe.parent.name, &identity[..10]], NAME_LIMIT)
}

/// The step that creates a shard's run, once.
pub fn run(recipe: &Recipe, shard: &Shard, reach: &BTreeMap<String, Reach>) -> Step {
    let namespace = recipe.parent.namespace.clone();
    let target =
        Target { kind: Kind::of::<AnsibleEe>(), namespace, name: name(recipe, shard), uid: None };
    let keys: BTreeMap<&str, &str> =
        reached(shard, reach).map(|it| (it.ssh_secret.as_str(), it.ssh_version.as_str())).collect();
    let mut object = json!({
        "metadata": {
            "labels": {
                SERVICE_LABEL: shard.service,
                PARTIAL_LABEL: recipe.options.is_partial().to_string(),
            },
            "annotations": {
                ATTEMPTS: serde_json::to_string(&shard.attempts).unwrap_or_default(),
                SSH_KEYS: serde_json::to_string(&keys).unwrap_or_default(),
            },
            "ownerReferences": [owner(&recipe.parent)],
        },
        "spec": spec(recipe, shard, reach),
    });
    let trusted: BTreeMap<&str, &str> = shard
        .attempts
        .keys()
        .filter_map(|it| Some((it.as_str(), reach.get(it)?.trusted.as_str())))
        .filter(|(_, word)| !word.is_empty())
        .collect();
    if !trusted.is_empty() {
        let words = serde_json::to_string(&trusted).unwrap_or_default();
        object["metadata"]["annotations"][HOST_KEYS] = json!(words);
    }
    let because = format!("service {} is to be deployed on {}", shard.service, hosts_text(shard));
    Step::create(target, object, "/spec/inputHash", because)
}

/// The controller's owner reference to an object that was read.
pub fn owner(parent: &Target) -> Value {
    json!({
        "apiVersion": parent.kind.api_version(),
        "kind": parent.kind.kind,
        "name": parent.name,
        "uid": parent.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

fn hosts_text(shard: &Shard) -> String {
    match shard.attempts.len() {
        1 => shard.attempts.keys().next().cloned().unwrap_or_default(),
        n_hosts => format!("{n_hosts} hosts"),
    }
}

fn reached<'a>(
    shard: &'a Shard,
    reach: &'a BTreeMap<String, Reach>,
) -> impl Iterator<Item = &'a Reach> {
    shard.attempts.keys().filter_map(|it| reach.get(it))
}

fn spec(recipe: &Recipe, shard: &Shard, reach: &BTreeMap<String, Reach>) -> Value {
    let run_host = |name: &String| {
        let Reach { address, scan, .. } = reach.get(name)?.clone();
        Some(RunHost { name: name.clone(), address, scan_host_key: scan })
    };
    let hosts: Vec<RunHost> = shard.attempts.keys().filter_map(run_host).collect();
    let mut spec = json!({
        "inputHash": shard.identity(),
        "hosts": hosts,
        "inventory": run_inventory(shard.attempts.keys()),
        "cmdLine": recipe.options.cmd_line(),
        "extraVars": extra_vars(recipe),
        "extraMounts": mounts::of(recipe, &reached(shard, reach).collect::<Vec<_>>()),
        "env": recipe.env,
        "networkAttachments": recipe.network_attachments,
        // Every further attempt is a new run over only the hosts that need it (D4).
        "backoffLimit": 0,
        "restartPolicy": "Never",
    });
    match &recipe.play {
        Play::Playbook(name) => spec["playbook"] = json!(name),
        Play::Contents(text) => spec["playbookContents"] = json!(text),
        Play::Role(name) => spec["role"] = json!(name),
    }
    if let Some(image) = &recipe.image {
        spec["image"] = json!(image);
    }
    if let Some(dns) = &recipe.dns_config {
        spec["dnsConfig"] = json!(dns);
    }
    spec
}

/// One bad host must not stop the others: play keywords see extra variables only (D4).
fn extra_vars(recipe: &Recipe) -> Value {
    let mut vars: BTreeMap<String, Value> = BTreeMap::from([
        ("edpm_override_hosts".into(), json!(RUN_GROUP)),
        ("edpm_service_type".into(), json!(recipe.service_type)),
        ("edpm_any_errors_fatal".into(), json!(false)),
        ("edpm_max_fail_percentage".into(), json!(100)),
    ]);
    vars.extend(recipe.extra_vars.clone());
    json!(vars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_quoted_for_a_shell() {
        let options =
            Options { tags: Some("a b".into()), limit: Some("it's".into()), ..Options::default() };
        assert_eq!(options.cmd_line(), r"--limit 'it'\''s,&edpm_run' --tags 'a b'");
        assert_eq!(Options::default().cmd_line(), "--limit 'edpm_run'");
        let limit = |it: &str| Options { limit: Some(it.into()), ..Options::default() };
        assert_eq!(limit("compute:!n2").cmd_line(), "--limit 'compute,!n2,&edpm_run'");
    }

    fn recipe() -> Recipe {
        Recipe {
            parent: Target {
                kind: Kind::of::<AnsibleEe>(),
                namespace: "ns".into(),
                name: "compute".into(),
                uid: Some("u".into()),
            },
            play: Play::Playbook("a.b.c".into()),
            service_type: "a".into(),
            image: None,
            env: vec![],
            extra_mounts: vec![],
            network_attachments: vec![],
            dns_config: None,
            layout: Layout::Parent { inventory: "inventory".into(), beside: None },
            sources: vec![],
            options: Options::default(),
            extra_vars: BTreeMap::new(),
        }
    }

    fn reach(has_known_hosts: bool, scan: Option<HostKeyScan>, trusted: &str) -> Reach {
        Reach {
            address: "192.0.2.7:22".into(),
            ssh_secret: "key".into(),
            ssh_version: "1".into(),
            has_known_hosts,
            scan,
            trusted: trusted.into(),
        }
    }

    fn created(reach: Reach) -> Value {
        let attempt = crate::engine::run::Attempt { hash: "h".into(), attempt: 1 };
        let attempts = BTreeMap::from([("n0".to_owned(), attempt)]);
        let shard = Shard { service: "a".into(), group: "g".into(), attempts };
        let step = run(&recipe(), &shard, &BTreeMap::from([("n0".to_owned(), reach)]));
        let crate::plan::Write::Create { object, .. } = step.write else { panic!("no creation") };
        object
    }

    #[test]
    fn a_run_asks_for_host_keys_only_where_its_host_says_so() {
        let of_host = |it: &Value| it["spec"]["hosts"][0].clone();
        let known = created(reach(true, None, ""));
        assert_eq!(of_host(&known), json!({ "name": "n0", "address": "192.0.2.7:22" }));
        assert_eq!(known["metadata"]["annotations"].get(HOST_KEYS), None);
        let fingerprint = Some("SHA256:x".to_owned());
        let asked = created(reach(true, Some(HostKeyScan { fingerprint }), "word"));
        assert_eq!(of_host(&asked)["scanHostKey"], json!({ "fingerprint": "SHA256:x" }));
        assert_eq!(asked["metadata"]["annotations"][HOST_KEYS], json!(r#"{"n0":"word"}"#));
        let any = created(reach(true, Some(HostKeyScan::default()), ""));
        assert_eq!(of_host(&any)["scanHostKey"], json!({}));
        // It is the same run all the same: what was learned is no input.
        for pointer in ["/metadata/name", "/spec/inputHash"] {
            assert_eq!(known.pointer(pointer), asked.pointer(pointer));
            assert!(known.pointer(pointer).is_some());
        }
    }

    #[test]
    fn known_hosts_are_mounted_only_where_the_secret_has_them() {
        let paths = |has_known_hosts| {
            let run = created(reach(has_known_hosts, None, ""));
            let mounts = run["spec"]["extraMounts"][0]["mounts"].as_array().unwrap().clone();
            mounts.iter().filter(|it| it["subPath"] == KNOWN_HOSTS).count()
        };
        assert_eq!((paths(true), paths(false)), (1, 0));
    }
}
