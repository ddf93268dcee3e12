//! The query run, which asks a host's running nova-compute for an option; derived from the last run
//! there.

use std::collections::BTreeMap;

use api::ansibleee::{AnsibleEe, AnsibleEeSpec, RunHost};
use api::shared::VolMounts;
use kube::ResourceExt;
use operator_core::hash;
use operator_core::run_engine::inventory::{RUN_GROUP, run_inventory};
use serde_json::json;

use crate::config_files::has_secret_name;
use crate::host::Host;

/// The label of query runs; its value is the subject of the query.
pub const LABEL: &str = "edpm.openstack.org/question";
/// The value for an option of nova.
pub const NOVA_OPTION: &str = "nova-option";

/// The play. It is embedded so that it works with any version of the collection.
const PLAY: &str = include_str!("../plays/nova-option.yaml");
/// The mount path of the services' files; a query run needs none of them.
const FILES: &str = "/var/lib/openstack/";
/// The deadline of the run, from its start.
const DEADLINE_SECONDS: i64 = 300;

/// Returns the last run that an operator made for a host, as it has the connection settings, or
/// `None` when none is kept.
pub fn pattern<'a>(host: &Host<'a>) -> Option<&'a AnsibleEe> {
    let is_it = |it: &&&AnsibleEe| {
        let is_asking = it.labels().contains_key(LABEL);
        it.spec.input_hash.is_some() && !is_asking && of_host(it, host.name).is_some()
    };
    host.runs.iter().rfind(is_it).copied()
}

/// Returns a query run with the connection settings of `pattern`, or `None` when `pattern` does not
/// target the host.
pub fn question(
    pattern: &AnsibleEe,
    host: &str,
    (section, option): (&str, &str),
) -> Option<AnsibleEe> {
    let as_before = pattern.spec.clone();
    let target = of_host(pattern, host)?;
    let vars = [
        ("edpm_override_hosts", json!(RUN_GROUP)),
        ("edpm_ask_section", json!(section)),
        ("edpm_ask_option", json!(option)),
        ("edpm_ask_hide", json!(has_secret_name(option))),
    ];
    let extra_vars: BTreeMap<_, _> = vars.map(|(name, value)| (name.to_owned(), value)).into();
    let spec = AnsibleEeSpec {
        playbook_contents: Some(PLAY.to_owned()),
        // The host key was learned at deployment.
        hosts: vec![RunHost { scan_host_key: None, ..target.clone() }],
        inventory: Some(run_inventory([&target.name])),
        cmd_line: Some(format!("--limit {RUN_GROUP}")),
        input_hash: Some(hash::digest(&extra_vars)),
        extra_vars,
        extra_mounts: as_before.extra_mounts.into_iter().filter_map(without_files).collect(),
        image: as_before.image,
        env: as_before.env,
        env_config_map_name: as_before.env_config_map_name,
        network_attachments: as_before.network_attachments,
        dns_config: as_before.dns_config,
        service_account_name: as_before.service_account_name,
        node_selector: as_before.node_selector,
        tolerations: as_before.tolerations,
        resources: as_before.resources,
        image_pull_secrets: as_before.image_pull_secrets,
        backoff_limit: 0,
        active_deadline_seconds: Some(DEADLINE_SECONDS),
        ..AnsibleEeSpec::default()
    };
    let mut run = AnsibleEe::new("", spec);
    run.metadata.name = None;
    run.metadata.generate_name = Some("edpm-question-".to_owned());
    run.metadata.namespace = pattern.namespace();
    run.labels_mut().insert(LABEL.to_owned(), NOVA_OPTION.to_owned());
    Some(run)
}

fn of_host<'a>(run: &'a AnsibleEe, host: &str) -> Option<&'a RunHost> {
    run.spec.hosts.iter().find(|it| it.name == host)
}

/// Keeps the mounts for the connection, such as keys, and their volumes. Returns `None` when no
/// mount is left.
fn without_files(mut all: VolMounts) -> Option<VolMounts> {
    all.mounts.retain(|it| !it.mount_path.starts_with(FILES));
    all.volumes.retain(|it| all.mounts.iter().any(|mount| mount.name == it.name));
    (!all.mounts.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn asked(option: &str) -> AnsibleEe {
        let snapshot = testdata::snapshot();
        let host = snapshot.host("openstack", "edpm-compute-0").unwrap();
        let pattern = pattern(&host).unwrap();
        assert_eq!(pattern.name_any(), "nova-edpm-compute-0-5555555555");
        question(pattern, "edpm-compute-0", ("libvirt", option)).unwrap()
    }

    #[test]
    fn it_reaches_the_host_as_the_last_run_did_and_gets_none_of_its_files() {
        let run = asked("cpu_models");
        let spec = serde_json::to_value(&run.spec).unwrap();
        let host = json!({ "name": "edpm-compute-0", "address": "192.168.122.100:22" });
        assert_eq!(spec["hosts"], json!([host]));
        let mounts = spec["extraMounts"][0]["mounts"].as_array().unwrap();
        let paths: Vec<&str> = mounts.iter().map(|it| it["mountPath"].as_str().unwrap()).collect();
        assert_eq!(paths, ["/runner/inventory/hosts", "/runner/env/ssh_key/key"]);
        let volumes = spec["extraMounts"][0]["volumes"].as_array().unwrap();
        let names: Vec<&str> = volumes.iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["edpm-inventory", "edpm-ssh-0"]);
        assert_eq!(spec["cmdLine"], "--limit edpm_run");
        assert_eq!(spec["backoffLimit"], 0);
        assert_eq!(spec.get("playbook"), None);
    }

    #[test]
    fn it_is_nobodys_and_no_operator_takes_it_for_a_deployment() {
        let run = asked("cpu_models");
        assert_eq!((run.metadata.name.clone(), run.owner_references().len()), (None, 0));
        assert_eq!(run.labels().get(LABEL).map(String::as_str), Some(NOVA_OPTION));
        assert!(operator_core::run_engine::Run::of(&run).is_none());
    }

    #[test]
    fn values_of_secret_names_are_hidden_by_the_host_itself() {
        assert_eq!(asked("cpu_models").spec.extra_vars["edpm_ask_hide"], false);
        assert_eq!(asked("password").spec.extra_vars["edpm_ask_hide"], true);
    }

    #[test]
    fn a_host_that_no_run_has_reached_cannot_be_asked() {
        let mut snapshot = testdata::snapshot();
        snapshot.runs.retain(|it| it.name_any() == "by-hand");
        assert!(pattern(&snapshot.host("openstack", "edpm-compute-3").unwrap()).is_none());
        assert!(pattern(&snapshot.host("openstack", "edpm-compute-0").unwrap()).is_none());
    }
}
