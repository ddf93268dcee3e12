//! The state of each host of a set at Metal3: its machine, and the next step for it.

use std::collections::{BTreeMap, BTreeSet};

use api::baremetal::BaremetalHost;
use api::metal3::{BareMetalHost, Image};
use api::problem::Problem;
use kube::ResourceExt;

use super::bare_metal_host::{
    DRIVE, LONGEST_NAME, has_image, host_of, is_detached, is_paused, state, title,
};
use super::host::{BareMetalHosts, Host, HostState, Next};
use super::image::{NoImage, image};
use super::owned_machines::{PROVISIONED, is_retained, lost, owned, twice, unseen};
use super::selection::select;
use super::writes;
use crate::hosts::{Evaluated, invalid, wanted};
use crate::observe::Observed;
use crate::reasons;

/// States in which a host's data is on a machine's disk, or is about to be written or erased.
pub(super) const BUSY: [&str; 3] = ["provisioning", PROVISIONED, "deprovisioning"];

/// Evaluates all hosts.
pub(super) fn evaluate(seen: &Observed) -> Evaluated<'_, BareMetalHosts> {
    let image = image(&seen.set.spec, seen.metal3.server.as_deref());
    let of_set = set_faults(seen);
    let mut hosts = wanted(seen, &of_set, |name, host| host_faults(seen, name, host));
    if let Err(NoImage::Fault(text)) = &image {
        // A config drive needs no image.
        for host in &mut hosts {
            host.faults.push(invalid(text.clone()));
        }
    }
    if seen.sees_machines() {
        place(seen, image.as_ref(), &mut hosts);
    }
    Evaluated::new(hosts, of_set)
}

/// Returns the faults that affect all hosts.
fn set_faults(seen: &Observed) -> Vec<Problem> {
    let spec = &seen.set.spec;
    let (namespace, length) = (&spec.template.bmh_namespace, seen.set.name_any().len());
    let mut texts = Vec::new();
    if !seen.metal3.is_watched(namespace) {
        texts.push(format!(
            "spec.bmhNamespace: \"{namespace}\" is not a namespace that the operators watch; add \
             it to watchNamespaces of the chart"
        ));
    }
    if length > LONGEST_NAME {
        texts.push(format!(
            "metadata.name: with {length} characters it cannot be a label of BareMetalHosts; \
             create a set with a name of at most {LONGEST_NAME}"
        ));
    }
    texts.extend(spec.vendor_data.iter().map(|_| no_vendor_data("spec.vendorData")));
    texts.into_iter().map(invalid).collect()
}

/// Returns the faults of a host that Metal3 cannot serve, or must not.
fn host_faults(seen: &Observed, name: &str, host: &BaremetalHost) -> Vec<Problem> {
    let mut taken = writes::names(&seen.set, name).into_iter();
    let namespace = &seen.set.spec.template.bmh_namespace;
    let mut texts = Vec::new();
    if let Some(name) = taken.find(|it| seen.metal3.taken.contains(it)) {
        texts.push(format!(
            "metadata.name: Secret {namespace}/{name} belongs to another object, maybe a set of \
             the same name; rename the set or the host, or delete the Secret"
        ));
    }
    let path = format!("spec.baremetalHosts[{name}]");
    texts.extend(host.vendor_data.iter().map(|_| no_vendor_data(&format!("{path}.vendorData"))));
    if host.adopt {
        texts.push(format!(
            "{path}.adopt: Metal3 cannot adopt a running machine; remove it, or use provisioner \
             ironic"
        ));
    }
    texts.into_iter().map(invalid).collect()
}

fn no_vendor_data(path: &str) -> String {
    format!("{path}: Metal3 does not support vendor data; remove it, and put it into userData")
}

/// Finds each host's machine and its next step.
fn place<'a>(seen: &'a Observed, image: Result<&Image, &NoImage>, hosts: &mut Vec<Host<'a>>) {
    let machines = seen.metal3.machines.as_deref().unwrap_or_default();
    let mine = owned(seen);
    let spec = &seen.set.spec.template;
    let mut without: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for host in &mut *hosts {
        let Some(expected) = host.desired else { continue };
        let is_good = host.faults.is_empty();
        if let Some(own @ [machine, ..]) = mine.get(&host.name).map(Vec::as_slice) {
            host.state = match twice(seen, &host.name, own) {
                Some(stop) => HostState::At(machine, stop),
                None if !is_good && !BUSY.contains(&state(machine)) => {
                    HostState::Faulty(Some(machine))
                }
                None => HostState::At(machine, next(seen, host, machine, image.ok())),
            };
            continue;
        }
        host.state = match (lost(seen, &host.name), image) {
            (Some(lost), _) => HostState::Lost(lost),
            // No machine is taken for a set that is being deleted.
            (None, _) if seen.is_needed() => HostState::Without(None),
            (None, _) if !is_good => HostState::Faulty(None),
            (None, Err(NoImage::Waiting(text) | NoImage::Fault(text))) => {
                HostState::Without(Some(Problem::new(&reasons::HOST_WITHOUT_IMAGE, text.clone())))
            }
            (None, Ok(_)) => {
                let mut labels = spec.bmh_label_selector.clone();
                labels.extend(expected.bmh_label_selector.clone());
                without.insert(host.name.clone(), labels);
                continue;
            }
        };
    }
    let mut chosen = select(spec, &without, machines);
    for host in &mut *hosts {
        let Some(chosen) = chosen.remove(&host.name) else { continue };
        host.state = match chosen {
            Ok(machine) => HostState::At(machine, next(seen, host, machine, image.ok())),
            Err(none) => HostState::Without(Some(Problem::new(&reasons::NO_MACHINE, none))),
        };
    }
    let leaving = leaving(seen, &mine, hosts);
    hosts.extend(leaving);
}

/// Returns the removed hosts, as known from the machines and, for machines that cannot be observed,
/// from the status. Several machines of one host are given back one after the other.
fn leaving<'a>(
    seen: &Observed,
    mine: &BTreeMap<String, Vec<&'a BareMetalHost>>,
    present: &[Host<'_>],
) -> Vec<Host<'a>> {
    let present: BTreeSet<&str> = present.iter().map(|it| it.name.as_str()).collect();
    let of_machine = |(name, own): (&String, &Vec<&'a BareMetalHost>)| {
        let machine = *own.first()?;
        let state = if seen.is_taken_out_by_hand(name) {
            HostState::Kept(machine)
        } else {
            HostState::At(machine, given_back(seen, machine))
        };
        Some(Host::removed(seen, name, state))
    };
    let reported = seen.set.status.iter().flat_map(|it| &it.baremetal_hosts);
    let unseen = reported.filter(|(name, _)| !mine.contains_key(*name)).filter_map(|(name, it)| {
        Some(Host::removed(seen, name, HostState::Lost(unseen(seen, name, it)?)))
    });
    let all = mine.iter().filter_map(of_machine).chain(unseen);
    all.filter(|it| !present.contains(it.name.as_str())).collect()
}

/// Returns the next step for a host's machine, which may only be chosen so far.
fn next(seen: &Observed, host: &Host<'_>, machine: &BareMetalHost, image: Option<&Image>) -> Next {
    let now = state(machine);
    let is_reserved = host_of(machine, &seen.set).is_some();
    let present = machine.annotations().get(DRIVE);
    let digest = host.drive.as_ref().map(|it| it.digest(&seen.keys));
    // Without the annotation, it was taken back and Metal3 has not noticed yet.
    let is_provisioned = is_reserved && now == PROVISIONED && present.is_some();
    if let Some(stop) = stop(machine, is_provisioned) {
        // Inputs that caused the error may still be corrected.
        return correction(seen, host, machine, image).filter(|_| !is_provisioned).unwrap_or(stop);
    }
    if is_provisioned {
        let is_current = digest.is_none_or(|it| present.is_some_and(|text| it.is(text)));
        return if is_off(machine) { Next::Off } else { Next::Done { is_current } };
    }
    let is_begun = is_reserved && BUSY.contains(&now);
    correction(seen, host, machine, image).filter(|_| !is_begun).unwrap_or(Next::Wait)
}

/// Returns whether Metal3 reads the power of a machine as off.
pub(super) fn is_off(machine: &BareMetalHost) -> bool {
    machine.status.as_ref().and_then(|it| it.powered_on) == Some(false)
}

/// Returns what a machine still needs to be provisioned; `None` if drive or image is unknown, or if
/// the set is being deleted while another finalizer holds it.
fn correction(
    seen: &Observed,
    host: &Host<'_>,
    machine: &BareMetalHost,
    image: Option<&Image>,
) -> Option<Next> {
    let (drive, image) = (host.drive.as_ref()?, image.filter(|_| !seen.is_needed())?);
    if !writes::missing(seen, &host.name, machine, drive).is_empty() {
        return Some(Next::Secrets);
    }
    let is_current = host_of(machine, &seen.set).is_some()
        && machine.annotations().get(DRIVE).is_some_and(|it| drive.digest(&seen.keys).is(it))
        && machine.spec.image.as_ref() == Some(image);
    (!is_current).then(|| Next::Reserve(image.clone()))
}

/// Returns why a machine cannot proceed by itself; `None` if it can.
fn stop(machine: &BareMetalHost, is_provisioned: bool) -> Option<Next> {
    let (name, status) = (title(machine), machine.status.clone().unwrap_or_default());
    if machine.metadata.deletion_timestamp.is_some() {
        let text = format!(
            "BareMetalHost {name} is being deleted; remove the host, or wait until \
                            it is gone and another one can be used"
        );
        return Some(Next::Stop(Problem::new(&reasons::MACHINE_GOING, text)));
    }
    if !status.error_type.is_empty() {
        let text = format!(
            "Metal3 reports for BareMetalHost {name}, which is {}: {}: {}; correct the cause, and \
             Metal3 retries automatically",
            state(machine),
            status.error_type,
            status.error_message.trim().trim_end_matches('.')
        );
        return Some(Next::Stop(Problem::new(&reasons::MACHINE_FAILED, text)));
    }
    let alone = [
        (is_detached(machine), "detached", &reasons::MACHINE_DETACHED),
        (is_paused(machine), "paused", &reasons::MACHINE_PAUSED),
    ];
    let (_, how, reason) = alone.into_iter().find(|(is, ..)| *is && !is_provisioned)?;
    let text = format!(
        "BareMetalHost {name} is {how}, so Metal3 does not manage it; run the command `kubectl \
         annotate -n {} bmh {} baremetalhost.metal3.io/{how}-`",
        machine.namespace().unwrap_or_default(),
        machine.name_any()
    );
    Some(Next::Stop(Problem::new(reason, text)))
}

/// Returns the next step for the machine of a removed host.
///
/// # Guarantees
/// A machine that is deprovisioned stays with the set until the host's data is erased, so that no
/// half-erased machine is taken.
fn given_back(seen: &Observed, machine: &BareMetalHost) -> Next {
    if is_retained(seen, machine) {
        return Next::Free;
    }
    let is_reserved = machine.annotations().contains_key(DRIVE);
    let has_image = has_image(machine);
    if is_reserved {
        return Next::TakeBack;
    }
    if has_image {
        let (namespace, name) = (machine.namespace().unwrap_or_default(), machine.name_any());
        let text = format!(
            "another field manager also set spec.image of BareMetalHost {namespace}/{name}, so it \
             stays; run the command `kubectl patch -n {namespace} bmh {name} --type merge -p \
             '{{\"spec\":{{\"image\":null}}}}'`"
        );
        return Next::Stop(Problem::new(&reasons::IMAGE_HELD, text));
    }
    if !BUSY.contains(&state(machine)) {
        return Next::Free;
    }
    stop(machine, false).unwrap_or(Next::Wait)
}
