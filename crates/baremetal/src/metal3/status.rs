//! What the status of a set tells of Metal3 and its machines.

use api::baremetal::HostStatus;
use api::conditions::{ConditionDraft, Severity};
use api::metal3::BareMetalHost;
use kube::ResourceExt;

use super::BareMetalHosts;
use super::bare_metal_host::{DRIVE, host_of, state, title};
use super::hosts::Host;
use super::image::{NoImage, image};
use super::next::Next;
use super::owned_machines::{PROVISIONED, is_retained, may_run};
use crate::observe::Observed;
use crate::provisioner::Provisioner;
use crate::remediation::retained;
use crate::status::{POWERING_ON, SERVER_READY};

/// Returns the condition on Metal3 itself.
pub(super) fn server(seen: &Observed) -> ConditionDraft {
    if seen.lacks_metal3() {
        let text = "Nobody is asked before there is the provisioner that InputReady tells of.";
        return ConditionDraft::unknown(SERVER_READY, "InputMissing", text);
    }
    match image(&seen.set.spec, seen.metal3.server.as_deref()) {
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

/// Returns what keeps a host with that machine from being ready; `None` if nothing does.
pub(super) fn matter(
    seen: &Observed,
    host: &Host<'_>,
    (machine, next): (&BareMetalHost, &Next),
) -> Option<(Severity, &'static str, String)> {
    let name = title(machine);
    let in_progress = |text| Some((Severity::Info, "MachineInProgress", text));
    match next {
        Next::Done { .. } => None,
        Next::Stop(reason, text) => Some((Severity::Error, *reason, text.clone())),
        Next::Off => {
            let text = format!(
                "BareMetalHost {name} is provisioned and not powered on; set its spec.online to true if \
                 it does not come up by itself"
            );
            Some((Severity::Warning, "PowerFailed", text))
        }
        Next::Secrets | Next::Reserve(_) => {
            in_progress(format!("BareMetalHost {name} is about to be provisioned"))
        }
        Next::Free if is_retained(seen, machine) => {
            Some((Severity::Warning, "MachineRetained", retained(seen, &host.name, &name)))
        }
        Next::TakeBack | Next::Free => in_progress(format!("BareMetalHost {name} is given back")),
        Next::Wait => in_progress(format!("BareMetalHost {name} is in state {}", state(machine))),
    }
}

/// Returns the status entry of a host with that machine, made from its `blank` one.
pub(super) fn entry(
    seen: &Observed,
    host: &Host<'_>,
    (machine, next): (&BareMetalHost, Option<&Next>),
    blank: HostStatus,
) -> HostStatus {
    // Chosen but not reserved yet; another set may have taken it.
    if host_of(machine, &seen.set).is_none() {
        return blank;
    }
    let spec = &machine.spec;
    let name = |it: &Option<k8s_openapi::api::core::v1::SecretReference>| {
        it.as_ref().and_then(|it| it.name.clone()).unwrap_or_default()
    };
    let now = state(machine);
    let before = seen.set.told(&host.name).filter(|it| it.bmh_ref == title(machine));
    let drive = machine.annotations().get(DRIVE).filter(|_| now == PROVISIONED);
    let history = machine.status.as_ref().map(|it| &it.operation_history);
    let installed = now == PROVISIONED || (may_run(now) && before.is_some_and(|it| it.installed));
    // Removing the history from a running machine does not mean that it was provisioned again.
    let kept = before.filter(|_| now == PROVISIONED).and_then(|it| it.instance.clone());
    let state = if next == Some(&Next::Off) { POWERING_ON } else { now };
    HostStatus {
        bmh_ref: title(machine),
        provisioning_state: state.to_owned(),
        user_data_secret_name: name(&spec.user_data),
        network_data_secret_name: name(&spec.network_data),
        // Each provisioning is another installation.
        instance: history.and_then(|it| it.provision.start.clone()).or(kept),
        config_drive_hash: drive.cloned(),
        installed,
        is_current: next.and_then(BareMetalHosts::is_current),
        ..blank
    }
}
