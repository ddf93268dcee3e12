//! What nodes and roles say of phase -1, the provisioning of their machines.

use api::conditions::ConditionDraft;

use crate::baremetal_request::{ProvisioningState, machine_conditions};
use crate::role::host::EvaluatedHost;
use crate::role::machine_request::MachineRequest;

/// Phase -1 of a node.
pub const BAREMETAL_READY: &str = "BaremetalReady";
/// Phase -1 of all nodes of a role; absent where their machines are no business of it.
pub const PROVISION_READY: &str = "RoleBaremetalProvisionReady";

/// The finding on the machine of one host; `refusal` is what is said of a set that could not be
/// written.
pub fn of(
    host: &EvaluatedHost,
    machine_request: Option<&MachineRequest>,
    rejected: Option<&ConditionDraft>,
) -> ConditionDraft {
    let address = host.effective.address().unwrap_or_default();
    let is_open = |it: &ProvisioningState| !it.is_installed && it.error.is_none();
    match (&host.machine, machine_request) {
        (Some(Ok(provisioning)), Some(request)) => match rejected.filter(|_| is_open(provisioning))
        {
            Some(rejected) => rejected.clone().with_type(BAREMETAL_READY),
            None => machine_conditions::condition(
                BAREMETAL_READY,
                &request.owner,
                provisioning,
                &address,
            ),
        },
        (Some(Err(fault)), _) => machine_conditions::fault(BAREMETAL_READY, fault),
        (Some(Ok(_)) | None, _) => not_required(host),
    }
}

/// A machine that was provisioned once is told of: nobody follows it any more.
fn not_required(host: &EvaluatedHost) -> ConditionDraft {
    let machine = host.record.as_ref().and_then(|it| it.machine.as_ref());
    let text = match machine {
        None => "The host is provisioned by others.".to_owned(),
        Some(machine) => format!(
            "Nobody asks for a machine any more. Machine {machine}, which was provisioned for the host, \
             stays in its OpenStackBaremetalSet until that is deleted."
        ),
    };
    ConditionDraft::good(BAREMETAL_READY, "NotRequired", text)
}

/// What a role says of all machines.
pub struct ProvisioningSummary {
    /// Whether all are there.
    pub condition: ConditionDraft,
    /// How many are.
    pub n_there: i64,
}

/// The sum over the hosts of a role.
pub fn of_all<'a>(
    machine_request: &MachineRequest,
    rejected: Option<&ConditionDraft>,
    hosts: impl Iterator<Item = &'a EvaluatedHost>,
) -> ProvisioningSummary {
    let one = |it: &'a EvaluatedHost| {
        (it.effective.name.as_str(), of(it, Some(machine_request), rejected))
    };
    let all: Vec<(&str, ConditionDraft)> = hosts.map(one).collect();
    let n_there = all.iter().filter(|(_, it)| it.holds()).count();
    let condition =
        machine_conditions::sum(PROVISION_READY, all.iter().map(|(name, it)| (*name, it)));
    ProvisioningSummary { condition, n_there: i64::try_from(n_there).unwrap_or(i64::MAX) }
}
