//! Selection of a `BareMetalHost` for each host, and the reasons if none fits.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::baremetal::template::{BaremetalSetTemplate, HardwareReqs};
use api::metal3::{BareMetalHost, Cpu, Disk};
use ironic::matching::{Excluded, assigned};
use kube::ResourceExt;

use super::bare_metal_host::{UID, has_image, is_detached, is_paused, state};

/// States in which a machine can be provisioned at once; older releases use `ready`.
const FREE: [&str; 2] = ["available", "ready"];
const BYTES_OF_GB: i64 = 1_000_000_000;
const MIB_OF_GB: i64 = 1024;

/// Returns a machine for each host, or the reason why there is none; `hosts` have the labels that
/// their machines must have. See [`assigned`].
pub fn select<'a>(
    set: &BaremetalSetTemplate,
    hosts: &BTreeMap<String, BTreeMap<String, String>>,
    machines: &'a [Arc<BareMetalHost>],
) -> BTreeMap<String, Result<&'a BareMetalHost, String>> {
    let namespace = &set.bmh_namespace;
    let is_here = |it: &&BareMetalHost| it.metadata.namespace.as_ref() == Some(namespace);
    let here: Vec<&BareMetalHost> = machines.iter().map(|it| &**it).filter(is_here).collect();
    let hardware_reqs = set.hardware_reqs.as_ref();
    let lack = |machine: &BareMetalHost, labels: &_| lack(machine, labels, hardware_reqs);
    let none = |excluded: Excluded| {
        if here.is_empty() {
            return format!(
                "there is no BareMetalHost in namespace {namespace}; create one, or correct \
                 spec.bmhNamespace"
            );
        }
        let reported: Vec<String> =
            excluded.iter().map(|(lack, n)| format!("{n} {lack}")).collect();
        format!(
            "none of {} BareMetalHosts in namespace {namespace} is suitable: {}; add or free one, \
             or relax the requirements",
            here.len(),
            reported.join(", ")
        )
    };
    let assigned = assigned(hosts, &here, lack).into_iter();
    assigned.map(|(host, it)| (host, it.map_err(none))).collect()
}

/// Returns the first unmet requirement of a machine, with its position in the order of checks. The
/// user's requirements come before conditions that change by themselves.
fn lack(
    machine: &BareMetalHost,
    labels: &BTreeMap<String, String>,
    hardware_reqs: Option<&HardwareReqs>,
) -> Option<(usize, String)> {
    let has = machine.labels();
    let labels = labels.iter().map(|(key, value)| {
        (has.get(key) != Some(value)).then(|| format!("without label {key}={value}"))
    });
    let hardware = hardware_reqs.into_iter().flat_map(|it| hardware(machine, it));
    let lacks = labels.chain(hardware).chain(ready(machine));
    lacks.enumerate().find_map(|(idx, it)| Some((idx, it?)))
}

/// Returns the unmet hardware requirements of the user.
fn hardware(machine: &BareMetalHost, reqs: &HardwareReqs) -> Vec<Option<String>> {
    let HardwareReqs { cpu_reqs, mem_reqs, disk_reqs } = reqs;
    if cpu_reqs.is_none() && mem_reqs.is_none() && disk_reqs.is_none() {
        return Vec::new();
    }
    let Some(found) = machine.status.as_ref().and_then(|it| it.hardware.as_ref()) else {
        return vec![Some("without details of its hardware".to_owned())];
    };
    let Cpu { arch, count, clock_megahertz } = &found.cpu;
    let mut lacks = Vec::new();
    if let Some(cpu) = cpu_reqs {
        let desired = cpu.arch.map(|it| serde_json::to_value(it).unwrap_or_default());
        let desired = desired.as_ref().and_then(|it| it.as_str());
        lacks.push(
            desired
                .filter(|it| it != arch)
                .map(|it| format!("with an architecture other than {it}")),
        );
        let of_count = cpu.count_req.as_ref();
        lacks.push(of_count.and_then(|it| amount(*count, it.count, it.exact_match, " CPUs")));
        // Clock rates are reported with fractions.
        #[expect(clippy::cast_possible_truncation, reason = "a cast to i64 saturates")]
        let clock = clock_megahertz.round() as i64;
        let of_clock = cpu.mhz_req.as_ref();
        lacks.push(of_clock.and_then(|it| amount(clock, it.mhz, it.exact_match, " MHz")));
    }
    let memory = mem_reqs.as_ref().and_then(|it| it.gb_req.as_ref());
    lacks.push(memory.and_then(|it| {
        amount(found.ram_mebibytes / MIB_OF_GB, it.gb, it.exact_match, " GB of memory")
    }));
    let disk = disk_reqs.as_ref().filter(|reqs| {
        !found.storage.iter().any(|disk| {
            let Disk { size_bytes, rotational } = disk;
            let size = size_bytes / BYTES_OF_GB;
            let is_large =
                reqs.gb_req.as_ref().is_none_or(|it| is_enough(size, it.gb, it.exact_match));
            let is_kind = reqs.ssd_req.as_ref().is_none_or(|it| {
                let is_free_choice = !it.ssd && !it.exact_match;
                is_free_choice || it.ssd != *rotational
            });
            is_large && is_kind
        })
    });
    lacks.push(disk.map(|_| "without such a disk".to_owned()));
    lacks
}

fn is_enough(found: i64, desired: i64, is_exact: bool) -> bool {
    // An exact amount of zero requires nothing.
    if is_exact && desired > 0 { found == desired } else { found >= desired }
}

fn amount(found: i64, desired: i64, is_exact: bool, unit: &str) -> Option<String> {
    let more = if is_exact { "other than" } else { "fewer than" };
    (!is_enough(found, desired, is_exact)).then(|| format!("with {more} {desired}{unit}"))
}

/// Returns the unmet conditions that change by themselves or through other consumers.
fn ready(machine: &BareMetalHost) -> Vec<Option<String>> {
    let reported = |is: bool, text: &str| is.then(|| text.to_owned());
    let spec = &machine.spec;
    let status = machine.status.clone().unwrap_or_default();
    let is_taken = spec.consumer_ref.is_some()
        || machine.labels().contains_key(UID)
        || has_image(machine)
        || spec.custom_deploy.is_some();
    let state = match state(machine) {
        "" => "none",
        state => state,
    };
    vec![
        reported(machine.metadata.deletion_timestamp.is_some(), "being deleted"),
        reported(spec.externally_provisioned, "provisioned by others"),
        reported(is_taken, "used by others"),
        reported(is_detached(machine), "detached"),
        reported(is_paused(machine), "paused"),
        reported(!status.error_type.is_empty(), "with an error"),
        (!FREE.contains(&state)).then(|| format!("in state {state}")),
    ]
}
