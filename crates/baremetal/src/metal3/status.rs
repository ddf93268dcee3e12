//! The status of a set with machines of Metal3.

use std::collections::BTreeMap;

use api::baremetal::HostStatus;
use api::conditions::ConditionDraft;
use api::metal3::BareMetalHost;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::plan::Step;
use operator_core::rejected_write::RejectedWrite;

use super::bare_metal_host::{DRIVE, host_of, state, title};
use super::image::NoImage;
use super::owned_machines::may_run;
use super::remediation::lost;
use crate::ironic::hosts::{GONE, POWERING_ON};
use crate::ironic::remediation::{in_use, retained};
use crate::metal3::host::{EvaluatedHost, Host, HostState, Next};
use crate::metal3::owned_machines::{PROVISIONED, is_retained};
use crate::observe::Observed;
use crate::status::{
    INPUT_READY, Matter, PROVISIONED as PROVISIONING, SERVER_READY, UP_TO_DATE, input_of,
    ip_addresses, provisioned_of, status_of, unknown, up_to_date_of, whole, worries,
};

/// Returns the status step, if the status changes.
pub fn step(
    seen: &Observed,
    evaluated: &EvaluatedHost<'_>,
    rejection: Option<&RejectedWrite>,
    now: Timestamp,
) -> Option<Step> {
    let matters: Vec<Matter<'_>> =
        evaluated.hosts.iter().filter_map(|it| matter(seen, it)).collect();
    let hosts = hosts(seen, evaluated, &matters);
    let drive = |it: &Host<'_>| Some((it.name.clone(), it.drive.as_ref()?.digest(&seen.keys)));
    let drives = evaluated.hosts.iter().filter_map(drive).collect();
    if seen.metal3.machines.is_none() {
        let conditions = vec![absent(), not_asked(), unknown(PROVISIONING)];
        return whole(seen, conditions, unknown(UP_TO_DATE), (hosts, &drives), rejection, now);
    }
    let texts: Vec<&str> = evaluated.faults.iter().map(|it| it.text.as_str()).collect();
    let input = input_of(&texts, evaluated.faults.iter().all(|it| it.is_missing));
    let n_wanted = evaluated.hosts.iter().filter(|it| it.desired.is_some()).count();
    let is_done = |it: &&Host<'_>| matches!(it.state, HostState::At(_, Next::Done { .. }));
    let n_done = evaluated.hosts.iter().filter(is_done).count();
    let conditions =
        vec![input, server(evaluated), provisioned_of(seen, (n_done, n_wanted), &matters)];
    let is_old =
        |it: &&Host<'_>| matches!(it.state, HostState::At(_, Next::Done { is_current: false }));
    let old: Vec<&str> = evaluated.hosts.iter().filter(is_old).map(|it| it.name.as_str()).collect();
    whole(seen, conditions, up_to_date_of(seen, &old), (hosts, &drives), rejection, now)
}

fn absent() -> ConditionDraft {
    let text = "spec.provisioner: the cluster has no Metal3, for it does not know the kind BareMetalHost \
                of metal3.io; install Metal3, or set spec.provisioner to ironic, and say in spec.ironic \
                where it is.";
    ConditionDraft::error(INPUT_READY, "ProvisionerNotFound", text)
}

fn not_asked() -> ConditionDraft {
    let text = "Nobody is asked before there is the provisioner that InputReady tells of.";
    ConditionDraft::unknown(SERVER_READY, "InputMissing", text)
}

fn server(evaluated: &EvaluatedHost<'_>) -> ConditionDraft {
    match &evaluated.image {
        Ok(image) => {
            let text = format!("Metal3 provisions, and its hosts get the image at {}.", image.url);
            ConditionDraft::good(SERVER_READY, "Answering", text)
        }
        Err(NoImage::Waiting(text)) => {
            ConditionDraft::waiting(SERVER_READY, "ImageNotServed", format!("{text}."))
        }
        Err(NoImage::Fault(_)) => {
            let text = "There is no image before what InputReady tells of is corrected.";
            ConditionDraft::unknown(SERVER_READY, "InputMissing", text)
        }
    }
}

fn matter<'a>(seen: &Observed, host: &'a Host<'_>) -> Option<Matter<'a>> {
    use api::conditions::Severity::{Error, Info, Warning};
    let of = |severity, reason, message: String| {
        Some(Matter { host: host.name.as_str(), severity, reason, message })
    };
    let (machine, next) = match &host.state {
        HostState::Unseen => return None,
        HostState::Faulty(_) => {
            let texts: Vec<&str> = host.faults.iter().map(|it| it.text.as_str()).collect();
            return of(Error, "InputMissing", status_of(&texts, "; "));
        }
        HostState::NoImage(text) => return of(Warning, "ImageNotServed", text.clone()),
        HostState::Without(none) => return of(Warning, "NoMachine", none.to_string()),
        HostState::Lost(machine, loss) => {
            let (reason, text) = lost(seen, &host.name, machine, loss);
            return of(Error, reason, text);
        }
        HostState::Kept(machine) => {
            return of(Warning, "HostInUse", in_use(&host.name, &title(machine)));
        }
        HostState::At(machine, next) | HostState::Leaving(machine, next) => (machine, next),
    };
    let name = title(machine);
    match next {
        Next::Done { .. } => None,
        Next::Stop(reason, text) => of(Error, *reason, text.clone()),
        Next::Off => {
            let text = format!(
                "BareMetalHost {name} is provisioned and not powered on; set its spec.online to true if \
                 it does not come up by itself"
            );
            of(Warning, "PowerFailed", text)
        }
        Next::Secrets | Next::Reserve(_) => of(
            Info,
            "MachineInProgress",
            format!("BareMetalHost {name} is about to be provisioned"),
        ),
        Next::Free if is_retained(seen, machine) => {
            of(Warning, "MachineRetained", retained(seen, &host.name, &name))
        }
        Next::TakeBack | Next::Free => {
            of(Info, "MachineInProgress", format!("BareMetalHost {name} is given back"))
        }
        Next::Wait => {
            let text = format!("BareMetalHost {name} is in state {}", state(machine));
            of(Info, "MachineInProgress", text)
        }
    }
}

/// Returns the status entries of the hosts. All are kept while the machines cannot be observed.
fn hosts(
    seen: &Observed,
    evaluated: &EvaluatedHost<'_>,
    matters: &[Matter<'_>],
) -> BTreeMap<String, HostStatus> {
    let worries = worries(matters);
    if seen.metal3.machines.is_none() {
        return seen.set.status.iter().flat_map(|it| it.baremetal_hosts.clone()).collect();
    }
    let entry = |host: &Host<'_>| {
        let blank = HostStatus::unassigned(&host.name);
        let before = seen.set.told(&host.name);
        let entry = match &host.state {
            HostState::Unseen
            | HostState::Faulty(None)
            | HostState::NoImage(_)
            | HostState::Without(_) => blank,
            HostState::Lost(machine, _) => {
                let (bmh_ref, provisioning_state) = (machine.clone(), GONE.to_owned());
                HostStatus { bmh_ref, provisioning_state, ..before.cloned().unwrap_or(blank) }
            }
            // Chosen but not reserved yet; another set may have taken it.
            HostState::At(machine, _) if host_of(machine, &seen.set).is_none() => blank,
            HostState::At(machine, next) => at(machine, *next == Next::Off, before, blank),
            HostState::Faulty(Some(machine))
            | HostState::Leaving(machine, _)
            | HostState::Kept(machine) => at(machine, false, before, blank),
        };
        let worry = worries.get(host.name.as_str());
        let (error, needs_human) =
            (worry.map(|it| it.text.clone()), worry.is_some_and(|it| it.needs_human));
        // A removed host's machine keeps its address until it is given back.
        let kept = || before.map(|it| it.ip_addresses.clone()).unwrap_or_default();
        let ip_addresses = host.desired.map_or_else(kept, ip_addresses);
        let is_current = if let HostState::At(_, Next::Done { is_current }) = host.state {
            Some(is_current)
        } else {
            None
        };
        let annotated_for_deletion =
            host.desired.is_none() && !matches!(host.state, HostState::Kept(_));
        let entry = HostStatus {
            ip_addresses,
            error,
            needs_human,
            is_current,
            annotated_for_deletion,
            ..entry
        };
        (host.name.clone(), entry)
    };
    evaluated.hosts.iter().map(entry).collect()
}

/// Returns the entry of a host with that machine; `before` is the previous entry.
fn at(
    machine: &BareMetalHost,
    is_off: bool,
    before: Option<&HostStatus>,
    blank: HostStatus,
) -> HostStatus {
    let spec = &machine.spec;
    let name = |it: &Option<k8s_openapi::api::core::v1::SecretReference>| {
        it.as_ref().and_then(|it| it.name.clone()).unwrap_or_default()
    };
    let now = state(machine);
    let before = before.filter(|it| it.bmh_ref == title(machine));
    let drive = machine.annotations().get(DRIVE).filter(|_| now == PROVISIONED);
    let history = machine.status.as_ref().map(|it| &it.operation_history);
    let installed = now == PROVISIONED || (may_run(now) && before.is_some_and(|it| it.installed));
    // Removing the history from a running machine does not mean that it was provisioned again.
    let kept = before.filter(|_| now == PROVISIONED).and_then(|it| it.instance.clone());
    let state = if is_off { POWERING_ON } else { now };
    HostStatus {
        bmh_ref: title(machine),
        provisioning_state: state.to_owned(),
        user_data_secret_name: name(&spec.user_data),
        network_data_secret_name: name(&spec.network_data),
        // Each provisioning is another installation.
        instance: history.and_then(|it| it.provision.start.clone()).or(kept),
        config_drive_hash: drive.cloned(),
        installed,
        ..blank
    }
}
