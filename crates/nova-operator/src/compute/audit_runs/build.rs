//! The run that audits hosts.

use std::collections::BTreeMap;

use api::ansibleee::AnsibleEe;
use api::shared::VolMounts;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    KeyToPath, ProjectedVolumeSource, SecretProjection, Volume, VolumeMount, VolumeProjection,
};
use kube::ResourceExt;
use nova_config::rendered_secret::compute_secret_name;
use nova_config::services::NOVA_TYPE;
use operator_core::hash;
use operator_core::plan::{Step, Target};
use operator_core::run_engine::batches::Batch;
use operator_core::run_engine::build::{run_name, run_spec};
use operator_core::run_engine::layout::Layout;
use operator_core::run_engine::run::{Attempt, SERVICE_LABEL};
use operator_core::run_engine::run_template::{
    DeploymentOptions, HostConnection, Play, RunTemplate,
};
use serde_json::{Value, json};

use crate::compute::audit_runs::observed::AuditedHost;
use crate::compute::deploy::build::{self, plain_run_template};
use crate::compute::deploy::migration_key;
use crate::compute::host_layout;
use crate::shared_caches::audit_runs::LABEL;

/// The playbook.
const PLAYBOOK: &str = "osp.edpm.nova_audit";
/// The name of the service in names of runs.
const SERVICE: &str = "nova-audit";
/// How long an audit may take in seconds.
const DEADLINE: i64 = 900;
/// The volume with the rendered files, and where it is mounted: a folder for each host.
const FILES_VOLUME: &str = "edpm-audited-files";
const FILES_DIR: &str = "/var/lib/openstack/audited";
/// The mode of the files, for the group of the pod.
const FILE_MODE: i32 = 0o440;

/// Returns what hosts that share a run have in common; equal for hosts that may.
pub fn group(host: &AuditedHost) -> String {
    let spec = &host.compute.spec;
    let pod = (
        &spec.ansible_ee_container_image,
        &spec.env,
        &spec.extra_mounts,
        &spec.network_attachments,
        &spec.dns_config,
    );
    let images = (&spec.nova_compute_container_image, &spec.nova_libvirt_container_image);
    let where_from = format!("{:?} {:?}", layout(host), host.sources);
    hash::digest(&(where_from, pod, images, &host.audited.playbooks))
}

/// Returns where the run finds the inventory of a host: the one that it shares with others of its role
/// where its compute uses the node's own.
fn layout(host: &AuditedHost) -> Layout {
    let named = host.compute.spec.inventory_config_map_name.as_ref();
    let status =
        host.node.status.as_ref().filter(|it| {
            named == it.inventory_config_map_name.as_ref() || host.compute.is_observed()
        });
    match status.and_then(|it| Some((it, it.shared_inventory_config_map_name.clone()?))) {
        Some((status, inventory)) => {
            let beside = status.shared_inventory_secret_name.clone();
            Layout::Parent { inventory, beside, tls: vec![] }
        }
        None => host_layout::layout(&host.compute, Some(&host.node), vec![]),
    }
}

/// Returns the step that creates the audit of hosts of one group; `None` without hosts.
///
/// Its name depends on the minute and on `kind`, the value of its label: one that was deleted for a
/// deployment, or that the deployment of its hosts followed at once, is not taken for its
/// successor.
pub fn run(owner: &Target, hosts: &[&AuditedHost], kind: &str, now: Timestamp) -> Option<Step> {
    let template = template(owner, hosts)?;
    let name = |it: &AuditedHost| it.node.name_any();
    let attempt = Attempt { hash: String::new(), attempt: 1 };
    let batch = Batch {
        service: SERVICE.to_owned(),
        group: format!("{}-{kind}", now.as_second() / 60),
        attempts: hosts.iter().map(|it| (name(it), attempt.clone())).collect(),
    };
    let connections = hosts.iter().map(|it| (name(it), connection(it))).collect();
    let target = Target::named::<AnsibleEe>(&owner.namespace, run_name(&template, &batch));
    let mut spec = run_spec(&template, &batch, &connections);
    spec["activeDeadlineSeconds"] = json!(DEADLINE);
    let object = json!({
        "metadata": {
            "labels": { LABEL: kind, SERVICE_LABEL: SERVICE },
            // It goes with its owner; the owner's own runs are those that it controls.
            "ownerReferences": [{
                "apiVersion": owner.kind.api_version(),
                "kind": owner.kind.kind,
                "name": owner.name,
                "uid": owner.uid,
            }],
        },
        "spec": spec,
    });
    let because = format!("{} hosts are to be audited", hosts.len());
    Some(Step::create(target, object, "/spec/inputHash", because))
}

fn template(owner: &Target, hosts: &[&AuditedHost]) -> Option<RunTemplate> {
    let first = hosts.first()?;
    let play = play(&first.audited.playbooks);
    let mut template = plain_run_template(&first.compute, layout(first), play, NOVA_TYPE);
    template.parent = owner.clone();
    if first.compute.is_observed() {
        // The files are those of the service, and the images stand in the inventory.
        template.sources = first.sources.clone().unwrap_or_default();
    } else {
        template.extra_mounts.push(files(hosts));
        template.extra_vars = extra_vars(first);
        let files = format!("{FILES_DIR}/{{{{ inventory_hostname }}}}");
        template.template_vars = [("edpm_nova_config_src".to_owned(), json!(files))].into();
    }
    template.deployed = DeploymentOptions { lets_jobs_go: true, ..DeploymentOptions::default() };
    Some(template)
}

/// Returns the playbooks of the services, which add to what is expected of the hosts, before the
/// one that compares all of it.
fn play(of_services: &[String]) -> Play {
    if of_services.is_empty() {
        return Play::Playbook(PLAYBOOK.to_owned());
    }
    let all = of_services.iter().map(String::as_str).chain([PLAYBOOK]);
    let import = |it: &str| format!("- import_playbook: {}\n", Value::from(it));
    Play::Contents(all.map(import).collect())
}

fn extra_vars(host: &AuditedHost) -> BTreeMap<String, Value> {
    let spec = &host.compute.spec;
    let vars = [
        ("edpm_nova_compute_image", json!(spec.nova_compute_container_image)),
        ("edpm_nova_libvirt_image", json!(spec.nova_libvirt_container_image)),
    ];
    vars.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the mount of the rendered files and of the key for migrations: the same that the deployments
/// of the hosts had.
fn files(hosts: &[&AuditedHost]) -> VolMounts {
    let source = |name: String, items: Vec<KeyToPath>| VolumeProjection {
        secret: Some(SecretProjection {
            name,
            items: Some(items),
            // A host that has just been removed does not keep the others from their audit.
            optional: Some(true),
        }),
        ..VolumeProjection::default()
    };
    let rendered = |it: &&AuditedHost| {
        let files = it.compute.status.as_ref().map(|it| it.config_files.as_slice());
        let names = files.unwrap_or_default().iter().map(|it| it.name.as_str());
        source(compute_secret_name(&it.compute.name_any()), items(it, names))
    };
    let key = |it: &&AuditedHost| {
        source(migration_key::SECRET.to_owned(), items(it, migration_key::KEYS))
    };
    let with_key = hosts.iter().filter(|it| migration_key::is_deployed(&it.compute));
    let projected = ProjectedVolumeSource {
        default_mode: Some(FILE_MODE),
        sources: Some(hosts.iter().map(rendered).chain(with_key.map(key)).collect()),
    };
    let volume =
        Volume { name: FILES_VOLUME.into(), projected: Some(projected), ..Volume::default() };
    let mount = VolumeMount {
        name: FILES_VOLUME.into(),
        mount_path: FILES_DIR.into(),
        read_only: Some(true),
        ..VolumeMount::default()
    };
    VolMounts { volumes: vec![volume], mounts: vec![mount], ..VolMounts::default() }
}

/// Returns the keys of these names, below the folder of a host.
fn items<'a>(host: &AuditedHost, names: impl IntoIterator<Item = &'a str>) -> Vec<KeyToPath> {
    let node = host.node.name_any();
    let item = |name: &str| KeyToPath {
        key: name.to_owned(),
        path: format!("{node}/{name}"),
        ..KeyToPath::default()
    };
    names.into_iter().map(item).collect()
}

fn connection(host: &AuditedHost) -> HostConnection {
    // Keys are learned by deployments alone.
    let of_deployment =
        build::connection(&host.compute, Some(&host.node), host.ssh.as_ref(), false);
    HostConnection { scan: None, ..of_deployment }
}
