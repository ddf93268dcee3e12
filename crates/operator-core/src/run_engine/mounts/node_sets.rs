//! The mounts of a run for node sets, the same as in upstream's Jobs.
//!
//! There is one volume for each key of a data source, then certificates, ssh keys and inventories.
//! If Kubernetes would reject a Job because of upstream's volume name, the form that upstream uses
//! for long names is used.

use std::collections::BTreeSet;
use std::fmt;

use api::names;
use api::shared::{SourceKind, VolMounts};
use k8s_openapi::api::core::v1::{Volume, VolumeMount};
use sha2::{Digest, Sha224};

use super::pod_files::{
    CONFIGS_DIR, KEY_MODE, item, of_config_map, of_secret, projected, projection,
};
use super::tls_files;
use crate::hash::hex;
use crate::run_engine::inventory::{INVENTORY_KEY, KNOWN_HOSTS_DIR, KNOWN_HOSTS_KEY, SSH_KEY_DIR};
use crate::run_engine::layout::{NodeSets, Tls};
use crate::run_engine::run_template::{MountedSource, RunTemplate};
use crate::run_engine::ssh_secret::{KNOWN_HOSTS, PRIVATE_KEY};

/// File name of the learned host keys, beside the file of a Secret's [`KNOWN_HOSTS`].
const LEARNED: &str = "learned";

/// Returns the name of the inventory Secret of a node set.
pub fn inventory_name(node_set: &str) -> String {
    format!("dataplanenodeset-{node_set}")
}

/// Returns the path of a node set's ssh key in the pod.
pub fn ssh_key_file(node_set: &str) -> String {
    format!("{SSH_KEY_DIR}/ssh_key_{node_set}")
}

/// Returns the paths of a node set's known hosts in the pod.
///
/// The first has the user's keys from the ssh Secret, the second the learned ones. Either may be
/// absent.
pub fn known_hosts_files(node_set: &str) -> [String; 2] {
    [KNOWN_HOSTS, LEARNED].map(|it| format!("{KNOWN_HOSTS_DIR}/{node_set}/{it}"))
}

/// A key of a data source that is not a plain file name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SourceFault {
    /// The object, as `ConfigMap x`.
    pub object: String,
    /// The key.
    pub key: String,
}

impl fmt::Display for SourceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, key } = self;
        write!(
            f,
            "key {key:?} of {object} is no plain file name: rename it, a service's files lie in one \
             folder"
        )
    }
}

/// Returns the invalid keys among objects whose keys a service gets as files.
pub fn faults(sources: &[MountedSource]) -> Vec<SourceFault> {
    let is_bad = |it: &&str| it.is_empty() || *it == "." || *it == ".." || it.contains('/');
    let of_source = |source| {
        let fault = |key: &str| SourceFault { object: title(source), key: key.to_owned() };
        sorted(source).into_iter().filter(is_bad).map(fault).collect::<Vec<_>>()
    };
    in_order(sources).flat_map(of_source).collect()
}

/// Returns all ConfigMaps before all Secrets, each in the order in which the service names them.
fn in_order(sources: &[MountedSource]) -> impl Iterator<Item = &MountedSource> {
    let of = |kind| sources.iter().filter(move |it| it.kind == kind);
    of(SourceKind::ConfigMap).chain(of(SourceKind::Secret))
}

/// Returns the distinct keys, sorted by their bytes.
fn sorted(source: &MountedSource) -> BTreeSet<&str> {
    source.keys.iter().map(String::as_str).collect()
}

fn title(source: &MountedSource) -> String {
    source.kind.title(&source.name)
}

impl NodeSets {
    /// Returns one entry for each object, in upstream's order.
    ///
    /// The user's mounts come before them, and the user's volume names are not reused.
    pub(super) fn mounts(&self, template: &RunTemplate) -> Vec<VolMounts> {
        let human = template.extra_mounts.iter().filter(|it| it.reaches_runs());
        let taken = human.flat_map(|it| &it.volumes).map(|it| it.name.clone()).collect();
        let mut volumes = Volumes { taken };
        let mut entries = sources(&mut volumes, &template.sources, &template.service_type);
        entries.extend(self.tls.iter().map(|it| tls(&mut volumes, it)));
        for (node_set, secret) in &self.ssh_secrets {
            entries.push(ssh_key(&mut volumes, node_set, secret));
        }
        for (idx, node_set) in self.ssh_secrets.keys().enumerate() {
            entries.push(self.inventory(&mut volumes, idx, node_set));
        }
        for (node_set, secret) in &self.ssh_secrets {
            entries.push(known_hosts(&mut volumes, node_set, secret));
        }
        entries
    }

    fn inventory(&self, volumes: &mut Volumes, idx: usize, node_set: &str) -> VolMounts {
        let numbered = format!("inventory-{idx}");
        let (name, file) =
            if self.is_global { (&*numbered, &*numbered) } else { (INVENTORY_KEY, "hosts") };
        let items = Some(vec![item(INVENTORY_KEY, name)]);
        let volume = volumes.name("inventory", name.to_owned());
        let volume = of_secret(volume, &inventory_name(node_set), items, None);
        single_mount(volume, &format!("/runner/inventory/{file}"), Some(name))
    }
}

/// The volume names that are in use.
struct Volumes {
    taken: BTreeSet<String>,
}

impl Volumes {
    /// Reserves the name, or upstream's hashed form for long names.
    ///
    /// The hashed form is also used if the name is taken or is not a valid volume name, such as the
    /// name of an object with a dot.
    fn name(&mut self, prefix: &str, name: String) -> String {
        let is_free = names::is_dns_label(&name) && !self.taken.contains(&name);
        let name = if is_free { name } else { format!("{prefix}{}", hex(&Sha224::digest(name))) };
        self.taken.insert(name.clone());
        name
    }
}

/// Mounts the keys of data sources. Each key is in only one object: see
/// [`crate::run_engine::sources::mounted`].
fn sources(volumes: &mut Volumes, all: &[MountedSource], service_type: &str) -> Vec<VolMounts> {
    let entry = |source: &MountedSource| {
        let mut entry = VolMounts::default();
        for (idx, key) in sorted(source).into_iter().enumerate() {
            let is_secret = source.kind == SourceKind::Secret;
            let prefix = if is_secret { "sec" } else { "cm" };
            let name = volumes.name(prefix, format!("{}-{idx}", source.name));
            let items = Some(vec![item(key, key)]);
            let volume = if is_secret {
                of_secret(name, &source.name, items, None)
            } else {
                of_config_map(name, &source.name, items)
            };
            let path = format!("{CONFIGS_DIR}/{service_type}/{key}");
            let VolMounts { volumes, mounts, .. } = single_mount(volume, &path, Some(key));
            entry.volumes.extend(volumes);
            entry.mounts.extend(mounts);
        }
        entry
    };
    in_order(all).map(entry).filter(|it| !it.volumes.is_empty()).collect()
}

fn tls(volumes: &mut Volumes, tls: &Tls) -> VolMounts {
    let name = match tls {
        Tls::Bundle { service, secret, .. } => {
            volumes.name("cacert", format!("{service}-{secret}"))
        }
        Tls::Certificates { secrets, .. } => {
            volumes.name("cert", secrets.first().cloned().unwrap_or_default())
        }
        Tls::OfHosts { service_type, key, .. } => {
            volumes.name("cert", format!("{service_type}-{key}"))
        }
    };
    let (volume, path) = tls_files::volume(name, tls);
    single_mount(volume, &path, None)
}

/// Mounts the ssh key readable by the group that all runs have.
///
/// Upstream's mode allows only the owner, who is root.
fn ssh_key(volumes: &mut Volumes, node_set: &str, secret: &str) -> VolMounts {
    let file = format!("ssh_key_{node_set}");
    let volume = volumes.name("sshkey", format!("ssh-key-{node_set}"));
    let items = Some(vec![item(PRIVATE_KEY, &file)]);
    let volume = of_secret(volume, secret, items, Some(KEY_MODE));
    single_mount(volume, &ssh_key_file(node_set), Some(&file))
}

/// Mounts known hosts. Both objects may lack the key: an absent file knows no host.
fn known_hosts(volumes: &mut Volumes, node_set: &str, ssh_secret: &str) -> VolMounts {
    let name = volumes.name("known", format!("known-hosts-{node_set}"));
    let given = projection(ssh_secret, Some(vec![item(KNOWN_HOSTS, KNOWN_HOSTS)]), true);
    let learned = Some(vec![item(KNOWN_HOSTS_KEY, LEARNED)]);
    let learned = projection(&inventory_name(node_set), learned, true);
    let volume = projected(name, vec![given, learned], Some(KEY_MODE));
    single_mount(volume, &format!("{KNOWN_HOSTS_DIR}/{node_set}"), None)
}

fn single_mount(volume: Volume, path: &str, sub_path: Option<&str>) -> VolMounts {
    let mount = VolumeMount {
        name: volume.name.clone(),
        mount_path: path.to_owned(),
        sub_path: sub_path.map(str::to_owned),
        ..Default::default()
    };
    VolMounts { volumes: vec![volume], mounts: vec![mount], ..Default::default() }
}

#[cfg(test)]
#[path = "node_sets_tests.rs"]
mod tests;
