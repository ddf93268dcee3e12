//! The conditions of nodes and roles for phase -1, the provisioning of their machines.

use api::conditions::ConditionDraft;
use api::dataplane::condition_types::BAREMETAL_READY;
use api::problem::Problem;

use crate::host::machines::{ProvisioningState, machine_conditions};
use crate::reasons;
use crate::role::machine_request::MachineRequest;
use crate::role::resolved::ResolvedHost;

/// The condition type for phase -1 of all nodes of a role; absent when it requests no machines.
pub const PROVISION_READY: &str = "RoleBaremetalProvisionReady";

/// Returns the condition of one host's machine; `rejected` is the condition of a rejected write of
/// the set.
pub fn machine_condition(
    host: &ResolvedHost<'_>,
    machine_request: Option<&MachineRequest<'_>>,
    rejected: Option<&ConditionDraft>,
) -> ConditionDraft {
    let address = host.effective.address().unwrap_or_default();
    let is_open = |it: &Result<ProvisioningState, Problem>| {
        it.as_ref().is_ok_and(|it| !it.is_installed && it.error.is_none())
    };
    let Some((machine, request)) = host.machine.as_ref().zip(machine_request) else {
        return not_required(host);
    };
    match rejected.filter(|_| is_open(machine)) {
        Some(rejected) => rejected.clone().with_type(BAREMETAL_READY),
        None => machine_conditions::condition(
            BAREMETAL_READY,
            &request.request.owner,
            machine,
            &address,
        ),
    }
}

/// Returns the condition of a host without a machine request; it names a machine that the host had.
fn not_required(host: &ResolvedHost<'_>) -> ConditionDraft {
    let machine = host.record.as_ref().and_then(|it| it.machine.as_ref());
    let text = match machine {
        None => "The host is provisioned by others.".to_owned(),
        Some(machine) => format!(
            "No machine is requested any more. Machine {machine}, which was provisioned for the \
             host, stays in its OpenStackBaremetalSet until that is deleted."
        ),
    };
    reasons::machines::NOT_REQUIRED.condition(BAREMETAL_READY, text)
}
