//! Writes for the hosts of a set: their Secrets and their `BareMetalHosts`.

use std::collections::BTreeSet;

use api::baremetal::{BaremetalSet, Provisioner};
use api::metal3::{BareMetalHost, Image};
use config_drive::Drive;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Resource, ResourceExt};
use operator_core::object_key::Key;
use operator_core::plan::{Kind, Step, Target};
use serde_json::{Value, json};

use super::bare_metal_host::{DRIVE, NAME, NAMESPACE, UID, host_label};
use super::host::{Host, HostState, Next};
use super::owned_machines::is_retained;
use crate::observe::{HostSecret, Observed};

/// The parts of a config drive that Metal3 uses: file, key that Metal3 reads, and infix of the
/// Secret's name.
const PARTS: [(&str, &str, &str); 3] = [
    ("user_data", "userData", "userdata"),
    ("network_data.json", "networkData", "networkdata"),
    ("meta_data.json", "metaData", "metadata"),
];

/// Returns all writes except those to the set itself.
///
/// # Guarantees
/// The writes are independent of each other: dependent ones are made in a later pass.
pub(super) fn steps(seen: &Observed, hosts: &[Host<'_>]) -> Vec<Step> {
    let of_host = |host: &Host<'_>| -> Vec<Step> {
        let HostState::At(machine, next) = &host.state else { return Vec::new() };
        match next {
            Next::Secrets => secrets(seen, host, machine),
            Next::Reserve(image) => {
                host.drive.iter().map(|it| reserve(seen, host, machine, image, it)).collect()
            }
            Next::TakeBack => vec![take_back(seen, host, machine)],
            Next::Free => vec![free(seen, machine)],
            Next::Wait | Next::Off | Next::Done { .. } | Next::Stop(_) => Vec::new(),
        }
    };
    let mut steps: Vec<Step> = hosts.iter().flat_map(of_host).collect();
    steps.extend(swept(seen, hosts));
    steps
}

/// Returns the name of the Secret with a part of a host's config drive.
fn secret_name(set: &BaremetalSet, part: &str, host: &str) -> String {
    format!("{}-cloudinit-{part}-{host}", set.name_any())
}

/// Returns the names of a host's Secrets, whether its drive has each part or not.
pub fn names(set: &BaremetalSet, host: &str) -> [String; PARTS.len()] {
    PARTS.map(|(_, _, part)| secret_name(set, part, host))
}

/// Returns the keys of the Secrets of a set's hosts, whether they exist or not.
pub fn of_hosts(set: &BaremetalSet) -> Vec<Key> {
    if set.spec.effective_provisioner() != Provisioner::Metal3 {
        return Vec::new();
    }
    let namespace = &set.spec.template.bmh_namespace;
    let key = |host: &String| names(set, host).map(|it| Key::new(namespace.as_str(), it));
    let reported = set.status.iter().flat_map(|it| it.baremetal_hosts.keys());
    set.spec.baremetal_hosts.keys().chain(reported).flat_map(key).collect()
}

/// Returns the parts of a drive whose Secrets are missing or outdated: file, key, and name.
pub fn missing(
    seen: &Observed,
    host: &str,
    machine: &BareMetalHost,
    drive: &Drive,
) -> Vec<(&'static str, &'static str, String)> {
    let (files, digest) = (drive.files(), drive.digest(&seen.keys));
    let namespace = machine.namespace().unwrap_or_default();
    let is_made = |name: &str| {
        seen.metal3.secrets.iter().any(|it| {
            it.name == name
                && it.namespace == namespace
                && it.machine == machine.metadata.uid
                && it.drive.as_ref().is_some_and(|it| digest.is_certainly(it))
        })
    };
    let parts = PARTS.into_iter().filter(|(file, ..)| files.contains_key(file));
    let named = parts.map(|(file, key, part)| (file, key, secret_name(&seen.set, part, host)));
    named.filter(|it| !is_made(&it.2)).collect()
}

fn secrets(seen: &Observed, host: &Host<'_>, machine: &BareMetalHost) -> Vec<Step> {
    let Some(drive) = &host.drive else { return Vec::new() };
    let files = drive.files();
    let of_part = |(file, key, name): (&str, &str, String)| {
        let target = Target::named::<Secret>(machine.namespace().unwrap_or_default(), name);
        // The set may be in another namespace, from which it cannot own the Secret; the machine
        // can.
        let owner = json!({
            "apiVersion": BareMetalHost::api_version(&()), "kind": BareMetalHost::kind(&()),
            "name": machine.name_any(), "uid": machine.metadata.uid,
        });
        let fields = json!({
            "metadata": {
                "labels": labels(seen, &host.name),
                "annotations": { DRIVE: drive.digest(&seen.keys).text() },
                "ownerReferences": [owner],
            },
            "data": { key: ByteString(files[file].expose().clone().into_bytes()) },
        });
        Step::apply(target, fields, format!("host {} is made from it", host.name))
    };
    missing(seen, &host.name, machine, drive).into_iter().map(of_part).collect()
}

/// Reserves a machine in one write, which fails if the machine has changed since it was read: of
/// two sets that want it, one gets it.
fn reserve(
    seen: &Observed,
    host: &Host<'_>,
    machine: &BareMetalHost,
    image: &Image,
    drive: &Drive,
) -> Step {
    let namespace = machine.namespace();
    let mut spec = json!({
        "online": true,
        "image": image,
        "automatedCleaningMode": seen.set.spec.template.automated_cleaning_mode,
    });
    let files = drive.files();
    for (_, key, part) in PARTS.into_iter().filter(|(file, ..)| files.contains_key(file)) {
        let name = secret_name(&seen.set, part, &host.name);
        spec[key] = json!({ "name": name, "namespace": namespace });
    }
    let of_ramdisk = host.desired.and_then(|it| it.preprovisioning_network_data_name.as_ref());
    if let Some(name) = of_ramdisk.filter(|it| !it.is_empty()) {
        spec["preprovisioningNetworkDataName"] = json!(name);
    }
    let annotations = json!({ DRIVE: drive.digest(&seen.keys).text() });
    apply(machine, &labels(seen, &host.name), &annotations, blocked(seen, spec))
}

/// Removes image, data and power. The power stays on if Metal3 may not switch it off. The settings
/// for cleaning and its network stay until the machine is clean.
fn take_back(seen: &Observed, host: &Host<'_>, machine: &BareMetalHost) -> Step {
    let spec = json!({
        "online": machine.spec.disable_power_off,
        "automatedCleaningMode": machine.spec.automated_cleaning_mode,
        "preprovisioningNetworkDataName": machine.spec.preprovisioning_network_data_name,
    });
    apply(machine, &labels(seen, &host.name), &json!({}), blocked(seen, spec))
}

/// Releases a machine from the set. A retained machine keeps its image and stays powered on.
fn free(seen: &Observed, machine: &BareMetalHost) -> Step {
    let is_retained = is_retained(seen, machine);
    let mut spec = json!({ "online": is_retained || machine.spec.disable_power_off });
    if is_retained {
        spec["image"] = json!(machine.spec.image);
        spec["automatedCleaningMode"] = json!(machine.spec.automated_cleaning_mode);
    }
    apply(machine, &json!({}), &json!({}), spec)
}

/// Returns the labels that name the owner of a machine or Secret.
fn labels(seen: &Observed, host: &str) -> Value {
    let set = seen.set.name_any();
    json!({ UID: seen.uid(), NAMESPACE: seen.namespace, NAME: set, host_label(&set): host })
}

fn blocked(seen: &Observed, mut spec: Value) -> Value {
    spec["consumerRef"] = json!({
        "apiVersion": BaremetalSet::api_version(&()), "kind": BaremetalSet::kind(&()),
        "namespace": seen.namespace, "name": seen.set.name_any(),
    });
    spec
}

/// Applies fields to a machine. The UID keeps the apply from recreating a deleted one.
fn apply(machine: &BareMetalHost, labels: &Value, annotations: &Value, mut spec: Value) -> Step {
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|_, it| !it.is_null());
    }
    let fields = json!({
        "metadata": {
            "uid": machine.metadata.uid, "resourceVersion": machine.metadata.resource_version,
            "labels": labels, "annotations": annotations,
        },
        "spec": spec,
    });
    Step::apply(Target::of(machine), fields, "a host of the set has it, or gives it back")
}

/// Deletes Secrets of hosts that have no machine in that namespace: removed hosts, and hosts that
/// got another machine elsewhere.
fn swept(seen: &Observed, hosts: &[Host<'_>]) -> Vec<Step> {
    let mut kept: BTreeSet<(String, String)> = BTreeSet::new();
    for host in hosts {
        let (HostState::At(machine, _)
        | HostState::Kept(machine)
        | HostState::Faulty(Some(machine))) = &host.state
        else {
            continue;
        };
        let namespace = machine.namespace().unwrap_or_default();
        kept.extend(names(&seen.set, &host.name).map(|it| (namespace.clone(), it)));
    }
    let delete = |it: &HostSecret| {
        let HostSecret { namespace, name, uid, .. } = it.clone();
        let target = Target { kind: Kind::of::<Secret>(), namespace, name, uid };
        Step::delete(target, "no machine of the set is made from it")
    };
    let is_left = |it: &&HostSecret| !kept.contains(&(it.namespace.clone(), it.name.clone()));
    seen.metal3.secrets.iter().filter(is_left).map(delete).collect()
}
