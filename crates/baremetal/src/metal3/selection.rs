//! Selection of a `BareMetalHost` for each host, and the reasons if none fits.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::baremetal::template::HardwareReqs;
use api::metal3::{BareMetalHost, Cpu, Disk};
use kube::ResourceExt;

use super::bare_metal_host::{UID, consumer_title, has_image, is_detached, is_paused, state};

/// States in which a machine can be provisioned at once; older releases use `ready`.
const FREE: [&str; 2] = ["available", "ready"];
const BYTES_OF_GB: i64 = 1_000_000_000;
const MIB_OF_GB: i64 = 1024;

/// The requirements of a host for its machine.
#[derive(Clone, Debug, Default)]
pub struct SelectionTerms<'a> {
    /// The namespace of the machine.
    pub namespace: &'a str,
    /// The labels that it must have.
    pub labels: BTreeMap<String, String>,
    /// The required hardware.
    pub hardware: Option<&'a HardwareReqs>,
}

/// Returns a machine for each host, or the reason why there is none.
///
/// As many hosts as possible get one ([`ironic::matching::matched`]). Apart from that, the first
/// host by name gets the first machine by name.
pub fn select<'a>(
    hosts: &BTreeMap<String, SelectionTerms<'_>>,
    machines: &'a [Arc<BareMetalHost>],
) -> BTreeMap<String, Result<&'a BareMetalHost, String>> {
    let fits = |terms: &SelectionTerms<'_>| -> Vec<usize> {
        (0..machines.len()).filter(|idx| lack(&machines[*idx], terms).is_none()).collect()
    };
    let fits: Vec<Vec<usize>> = hosts.values().map(fits).collect();
    let given = ironic::matching::matched(&fits, machines.len());
    let evaluated = hosts.iter().zip(given).map(|((host, terms), given)| {
        let machine = given.map(|idx| &*machines[idx]);
        (host.clone(), machine.ok_or_else(|| no_machine(machines, terms)))
    });
    evaluated.collect()
}

/// Returns why no machine is taken for a host: the number of machines excluded by each reason, in
/// the order of the checks, each counted once.
fn no_machine(machines: &[Arc<BareMetalHost>], terms: &SelectionTerms<'_>) -> String {
    let namespace = terms.namespace;
    let here: Vec<_> =
        machines.iter().filter(|it| it.namespace().as_deref() == Some(namespace)).collect();
    if here.is_empty() {
        return format!(
            "there is no BareMetalHost in namespace {namespace}; create one, or correct \
             spec.bmhNamespace"
        );
    }
    let mut excluded: Vec<(usize, String, usize)> = Vec::new();
    for machine in &here {
        let (order, lack) = lack(machine, terms)
            .unwrap_or_else(|| (usize::MAX, "assigned to other hosts of the set".to_owned()));
        match excluded.iter_mut().find(|it| it.1 == lack) {
            Some((_, _, n)) => *n += 1,
            None => excluded.push((order, lack, 1)),
        }
    }
    excluded.sort();
    let reported: Vec<String> = excluded.iter().map(|(_, lack, n)| format!("{n} {lack}")).collect();
    format!(
        "none of {} BareMetalHosts in namespace {namespace} is suitable: {}; add or free one, or \
         relax the requirements",
        here.len(),
        reported.join(", ")
    )
}

/// Returns the first unmet requirement of a machine, with its position in the order of checks. The
/// user's requirements come before conditions that change by themselves.
fn lack(machine: &BareMetalHost, terms: &SelectionTerms<'_>) -> Option<(usize, String)> {
    let is_here = machine.namespace().as_deref() == Some(terms.namespace);
    let mut lacks = vec![(!is_here).then(|| "in other namespaces".to_owned())];
    let has = machine.labels();
    lacks.extend(terms.labels.iter().map(|(key, value)| {
        (has.get(key) != Some(value)).then(|| format!("without label {key}={value}"))
    }));
    lacks.extend(terms.hardware.iter().flat_map(|it| hardware(machine, it)));
    lacks.extend(ready(machine));
    lacks.into_iter().enumerate().find_map(|(idx, it)| Some((idx, it?)))
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
    let is_taken =
        machine.labels().contains_key(UID) || has_image(machine) || spec.custom_deploy.is_some();
    let state = match state(machine) {
        "" => "none",
        state => state,
    };
    vec![
        reported(machine.metadata.deletion_timestamp.is_some(), "being deleted"),
        reported(spec.externally_provisioned, "provisioned by others"),
        consumer_title(machine).map(|_| "used by others".to_owned()),
        reported(is_taken, "used by others"),
        reported(is_detached(machine), "detached"),
        reported(is_paused(machine), "paused"),
        reported(!status.error_type.is_empty(), "with an error"),
        (!FREE.contains(&state)).then(|| format!("in state {state}")),
    ]
}
