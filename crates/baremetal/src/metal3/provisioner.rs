//! Metal3 as the provisioner of a set: when the set may go, and what its status tells of the
//! machines.

use std::time::Duration;

use api::baremetal::{HostStatus, UNASSIGNED};
use api::conditions::ConditionDraft;
use api::metal3::BareMetalHost;
use api::problem::Problem;
use ironic::Cause;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::SecretReference;
use kube::ResourceExt;
use operator_core::plan::Step;

use super::bare_metal_host::{DRIVE, host_of, state, title};
use super::host::{BareMetalHosts, Host, Next};
use super::hosts::{evaluate, is_off};
use super::image::{NoImage, image};
use super::owned_machines::{PROVISIONED, is_retained, may_run};
use super::writes;
use crate::hosts::{Evaluated, Provisioner};
use crate::observe::Observed;
use crate::reasons;
use crate::remediation::retained;
use crate::status::{POWERING_ON, SERVER_READY};

/// Requeue interval. Machines and Secrets are watched; this notices CRDs, whose arrival no watch
/// reports.
const REQUEUE_AFTER: Duration = Duration::from_mins(1);

impl Provisioner for BareMetalHosts {
    type Machine = BareMetalHost;
    type Next = Next;

    fn evaluate(seen: &Observed, _: Timestamp) -> Evaluated<'_, Self> {
        evaluate(seen)
    }

    // Without the CRD there are neither machines nor their Secrets.
    fn is_over(seen: &Observed, hosts: &[Host<'_>]) -> bool {
        let is_done = hosts.is_empty() && seen.metal3.secrets.is_empty();
        (seen.lacks_metal3() || is_done) && !has_anothers(seen)
    }

    fn writes(seen: &Observed, hosts: &[Host<'_>]) -> Vec<Step> {
        writes::steps(seen, hosts)
    }

    fn pace(_: &Observed, _: &[Host<'_>], _: Timestamp) -> Duration {
        REQUEUE_AFTER
    }

    fn server(seen: &Observed) -> ConditionDraft {
        if seen.lacks_metal3() {
            let text = "No request is sent until the provisioner named in InputReady exists.";
            return reasons::SERVER_NOT_ASKED.condition(SERVER_READY, text);
        }
        match image(&seen.set.spec, seen.metal3.server.as_deref()) {
            Ok(image) => {
                let text =
                    format!("Metal3 is the provisioner; hosts get the image at {}.", image.url);
                reasons::ANSWERING.condition(SERVER_READY, text)
            }
            Err(NoImage::Waiting(text)) => {
                reasons::IMAGE_NOT_SERVED.condition(SERVER_READY, format!("{text}."))
            }
            Err(NoImage::Fault(_)) => {
                let text = "There is no image until the error in InputReady is corrected.";
                reasons::SERVER_NOT_ASKED.condition(SERVER_READY, text)
            }
        }
    }

    fn title(machine: &BareMetalHost) -> String {
        title(machine)
    }

    fn is_current(next: &Next) -> Option<bool> {
        if let Next::Done { is_current } = next { Some(*is_current) } else { None }
    }

    fn matter(
        seen: &Observed,
        host: &Host<'_>,
        (machine, next): (&BareMetalHost, &Next),
        _: usize,
    ) -> Option<Problem> {
        let name = title(machine);
        let in_progress = |text: String| Some(Problem::new(Cause::Working.reason(), text));
        match next {
            Next::Done { .. } => None,
            Next::Stop(problem) => Some(problem.clone()),
            Next::Off => {
                let text = format!(
                    "BareMetalHost {name} is provisioned but not powered on; set its spec.online \
                     to true if it does not come up automatically"
                );
                Some(Problem::new(&reasons::MACHINE_OFF, text))
            }
            Next::Secrets | Next::Reserve(_) => {
                in_progress(format!("BareMetalHost {name} is about to be provisioned"))
            }
            Next::Free if is_retained(seen, machine) => {
                let text = retained(seen, &host.name, &name);
                Some(Problem::new(&reasons::MACHINE_RETAINED, text))
            }
            Next::TakeBack | Next::Free => {
                in_progress(format!("BareMetalHost {name} is being released"))
            }
            Next::Wait => {
                in_progress(format!("BareMetalHost {name} is in state {}", state(machine)))
            }
        }
    }

    fn entry(
        seen: &Observed,
        host: &Host<'_>,
        (machine, next): (&BareMetalHost, Option<&Next>),
        blank: HostStatus,
        _: usize,
    ) -> HostStatus {
        // Chosen but not reserved yet; another set may have taken it.
        if host_of(machine, &seen.set).is_none() {
            return blank;
        }
        let spec = &machine.spec;
        let name = |it: &Option<SecretReference>| {
            it.as_ref().and_then(|it| it.name.clone()).unwrap_or_default()
        };
        let now = state(machine);
        let before = seen.set.host_status(&host.name).filter(|it| it.bmh_ref == title(machine));
        let drive = machine.annotations().get(DRIVE).filter(|_| now == PROVISIONED);
        let history = machine.status.as_ref().map(|it| &it.operation_history);
        let installed =
            now == PROVISIONED || (may_run(now) && before.is_some_and(|it| it.installed));
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
            powered_off: now == PROVISIONED && is_off(machine),
            is_current: next.and_then(Self::is_current),
            ..blank
        }
    }
}

/// Returns whether the status has machines of another provisioner, which must give them back.
/// Metal3's have a namespace in their reference.
fn has_anothers(seen: &Observed) -> bool {
    let reported = seen.set.status.iter().flat_map(|it| it.baremetal_hosts.values());
    reported.into_iter().any(|it| it.bmh_ref != UNASSIGNED && !it.bmh_ref.contains('/'))
}
