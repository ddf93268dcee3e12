//! The mounts of a run beside the user's volumes: inventory, keys and the files of its service.

pub mod node_sets;
mod pod_files;
mod tls_files;

use std::collections::BTreeSet;

use api::shared::{MAX_EXTRA_MOUNTS, MAX_MOUNTS, MAX_VOLUMES, SourceKind, VolMounts};
use k8s_openapi::api::core::v1::VolumeMount;

use self::pod_files::{CONFIGS_DIR, KEY_MODE, of_config_map, of_secret};
use crate::run_engine::inventory::{INVENTORY_KEY, KNOWN_HOSTS_DIR, NETWORK_DIR, SSH_KEY_DIR};
use crate::run_engine::layout::{Layout, Tls};
use crate::run_engine::run_template::{HostConnection, MountedSource, RunTemplate};
use crate::run_engine::secret_vars;
use crate::run_engine::ssh_secret::{KNOWN_HOSTS, PRIVATE_KEY};

/// The volume with the inventory of a parent.
const INVENTORY_VOLUME: &str = "edpm-inventory";
/// The volume with the variables that come from Secrets.
const VARS_VOLUME: &str = "edpm-secret-vars";

/// Returns everything that a run mounts, the user's volumes first.
pub(super) fn run_mounts(template: &RunTemplate, reached: &[&HostConnection]) -> Vec<VolMounts> {
    let mut all: Vec<VolMounts> =
        template.extra_mounts.iter().filter(|it| it.reaches_runs()).cloned().collect();
    match &template.layout {
        Layout::Parent { inventory, beside, tls } => {
            let mut ours = of_parent(template, reached, inventory, beside.as_deref());
            for (idx, it) in tls.iter().enumerate() {
                mount_tls(&mut ours, idx, it);
            }
            all.push(ours);
        }
        Layout::NodeSets(node_sets) => all.extend(node_sets.mounts(template)),
    }
    fitted(all)
}

fn of_parent(
    template: &RunTemplate,
    reached: &[&HostConnection],
    inventory: &str,
    beside: Option<&str>,
) -> VolMounts {
    let mut ours = VolMounts::default();
    mount_inventory(&mut ours, inventory);
    if let Some(secret) = beside {
        ours.mounts.extend(secret_vars::mounts(VARS_VOLUME));
        ours.volumes.push(of_secret(VARS_VOLUME.into(), secret, None, Some(KEY_MODE)));
    }
    let secrets: BTreeSet<(&str, bool)> =
        reached.iter().map(|it| (it.ssh_secret.as_str(), it.has_known_hosts)).collect();
    for (idx, (secret, has_known_hosts)) in secrets.into_iter().enumerate() {
        mount_ssh(&mut ours, idx, secret, has_known_hosts);
    }
    for (idx, source) in template.sources.iter().enumerate() {
        mount_source(&mut ours, idx, source, &template.service_type);
    }
    ours
}

fn mount_inventory(ours: &mut VolMounts, config_map: &str) {
    ours.volumes.push(of_config_map(INVENTORY_VOLUME.into(), config_map, None));
    ours.mounts.push(file(INVENTORY_VOLUME, "/runner/inventory/hosts", INVENTORY_KEY));
    ours.mounts.push(VolumeMount {
        name: INVENTORY_VOLUME.into(),
        mount_path: NETWORK_DIR.into(),
        read_only: Some(true),
        ..Default::default()
    });
}

/// `known_hosts` is mounted only if the Secret has it: a missing key becomes an empty directory.
fn mount_ssh(ours: &mut VolMounts, idx: usize, secret: &str, has_known_hosts: bool) {
    let volume = format!("edpm-ssh-{idx}");
    ours.mounts.push(file(&volume, &format!("{SSH_KEY_DIR}/{secret}"), PRIVATE_KEY));
    if has_known_hosts {
        ours.mounts.push(file(&volume, &format!("{KNOWN_HOSTS_DIR}/{secret}"), KNOWN_HOSTS));
    }
    ours.volumes.push(of_secret(volume, secret, None, Some(KEY_MODE)));
}

fn mount_source(ours: &mut VolMounts, idx: usize, source: &MountedSource, service_type: &str) {
    let volume = format!("edpm-source-{idx}");
    for key in &source.keys {
        ours.mounts.push(file(&volume, &format!("{CONFIGS_DIR}/{service_type}/{key}"), key));
    }
    ours.volumes.push(if source.kind == SourceKind::Secret {
        of_secret(volume, &source.name, None, Some(KEY_MODE))
    } else {
        of_config_map(volume, &source.name, None)
    });
}

fn mount_tls(ours: &mut VolMounts, idx: usize, tls: &Tls) {
    let name = format!("edpm-tls-{idx}");
    let (volume, mount_path) = tls_files::volume(name.clone(), tls);
    let read_only = Some(true);
    ours.mounts.push(VolumeMount { name, mount_path, read_only, ..Default::default() });
    ours.volumes.push(volume);
}

fn file(volume: &str, path: &str, key: &str) -> VolumeMount {
    VolumeMount {
        name: volume.into(),
        mount_path: path.into(),
        sub_path: Some(key.into()),
        read_only: Some(true),
        ..Default::default()
    }
}

/// Regroups the mounts into entries that the schema of an AnsibleEE accepts.
///
/// Volumes and mounts stay the same and in order. Too long entries are split; neighbours are merged
/// only if there would be too many entries.
fn fitted(all: Vec<VolMounts>) -> Vec<VolMounts> {
    let split: Vec<VolMounts> = all.into_iter().flat_map(split).collect();
    if split.len() <= MAX_EXTRA_MOUNTS {
        return split;
    }
    let mut fitted: Vec<VolMounts> = Vec::new();
    for entry in split {
        let has_room = |it: &VolMounts| {
            it.volumes.len() + entry.volumes.len() <= MAX_VOLUMES
                && it.mounts.len() + entry.mounts.len() <= MAX_MOUNTS
        };
        match fitted.last_mut().filter(|it| has_room(it)) {
            Some(last) => {
                last.volumes.extend(entry.volumes);
                last.mounts.extend(entry.mounts);
            }
            // `propagation` and type have been evaluated above, so this entry may be merged with
            // others.
            None => fitted.push(VolMounts { propagation: vec![], extra_vol_type: None, ..entry }),
        }
    }
    fitted
}

fn split(entry: VolMounts) -> Vec<VolMounts> {
    let (n_volumes, n_mounts) = (entry.volumes.len(), entry.mounts.len());
    let n_entries = n_volumes.div_ceil(MAX_VOLUMES).max(n_mounts.div_ceil(MAX_MOUNTS)).max(1);
    if n_entries == 1 {
        return vec![entry];
    }
    let VolMounts { propagation, extra_vol_type, volumes, mounts } = entry;
    let (mut volumes, mut mounts) = (volumes.into_iter(), mounts.into_iter());
    let next = |_| VolMounts {
        propagation: propagation.clone(),
        extra_vol_type: extra_vol_type.clone(),
        volumes: volumes.by_ref().take(MAX_VOLUMES).collect(),
        mounts: mounts.by_ref().take(MAX_MOUNTS).collect(),
    };
    (0..n_entries).map(next).collect()
}

#[cfg(test)]
mod tests {
    use api::ansibleee::AnsibleEe;
    use k8s_openapi::api::core::v1::Volume;
    use kube::CustomResourceExt as _;
    use proptest::prelude::*;

    use super::*;

    fn entry(name: &str, n_mounts: usize) -> VolMounts {
        let mounts = (0..n_mounts).map(|it| file(name, &format!("/{name}/{it}"), "k")).collect();
        let volumes = vec![of_secret(name.into(), "s", None, None)];
        VolMounts { volumes, mounts, ..Default::default() }
    }

    fn flat(all: &[VolMounts]) -> (Vec<Volume>, Vec<VolumeMount>) {
        let volumes = all.iter().flat_map(|it| it.volumes.clone()).collect();
        (volumes, all.iter().flat_map(|it| it.mounts.clone()).collect())
    }

    #[test]
    fn the_limits_are_those_of_the_schema() {
        let definition = serde_json::to_value(AnsibleEe::crd()).unwrap();
        let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/extraMounts";
        let list = definition.pointer(path).unwrap();
        let of = |it: &str| list["items"]["properties"][it]["maxItems"].as_u64().unwrap();
        assert_eq!(list["maxItems"], MAX_EXTRA_MOUNTS);
        assert_eq!((of("volumes"), of("mounts")), (MAX_VOLUMES as u64, MAX_MOUNTS as u64));
    }

    #[test]
    fn entries_that_fit_stay_as_they_are() {
        let human = VolMounts { extra_vol_type: Some("Ceph".into()), ..entry("ceph", 1) };
        let all = vec![human, entry("a", MAX_MOUNTS), entry("b", 0)];
        assert_eq!(fitted(all.clone()), all);
    }

    proptest! {
        #[test]
        fn what_is_mounted_stays_the_same_in_entries_of_the_schemas_size(
            sizes in prop::collection::vec(0_usize..80, 0..40),
        ) {
            let all: Vec<VolMounts> =
                sizes.iter().enumerate().map(|(idx, it)| entry(&format!("v{idx}"), *it)).collect();
            let found = fitted(all.clone());
            prop_assert_eq!(flat(&found), flat(&all));
            prop_assert!(found.iter().all(|it| it.mounts.len() <= MAX_MOUNTS));
            prop_assert!(found.iter().all(|it| it.volumes.len() <= MAX_VOLUMES));
            let n_mounts: usize = sizes.iter().sum();
            // Any two neighbours that were not merged fill at least one entry.
            prop_assert!(found.len() <= MAX_EXTRA_MOUNTS.max(2 * n_mounts / MAX_MOUNTS + 2));
        }
    }
}
