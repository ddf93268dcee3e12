//! The provisioning state of one host's machine, and when its services may begin.

use std::time::Duration;

use api::baremetal::{BaremetalSet, HostStatus, UNASSIGNED};
use api::conditions::{Condition, ConditionStatus, READY, RECONCILING, STALLED, Severity, find};
use api::dataplane::HostMachine;
use api::problem::Problem;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_core::finalizers::is_terminating;
use operator_core::hash;

/// How long services wait for an ssh server that does not answer the operator. The wait is limited,
/// because run pods may reach addresses that the operator's pod cannot; the first run then reports
/// the problem.
pub const PATIENCE: SignedDuration = SignedDuration::from_mins(10);
/// Minimum interval between two ssh probes.
pub const ASK_AGAIN: Duration = operator_runtime::ssh_probe::PAUSE;

/// How long a set may stay without any reconciliation before that is reported.
const ATTENTION: SignedDuration = SignedDuration::from_mins(5);

/// The states in which a machine has its operating system: Ironic's, then Metal3's.
const INSTALLED: [&str; 3] = ["active", "provisioned", "externally provisioned"];
/// The state of a machine before its provisioner reports one.
const REQUESTED: &str = "requested";
/// The set's condition on its inputs.
const INPUT: &str = "InputReady";
/// The set's condition on its provisioner.
const SERVER: &str = "OpenStackBaremetalSetProvServerReady";
/// The set's condition that summarizes its machines.
const SUM: &str = "OpenStackBaremetalSetBmhProvisioningReady";

/// The provisioning state of a host's machine.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ProvisioningState {
    /// Whether an operating system is installed on it.
    pub is_installed: bool,
    /// Whether this installation was unknown before.
    pub is_new: bool,
    /// Whether services wait for its ssh server.
    pub waits_for_ssh: bool,
    /// The record for the status of its host.
    pub record: HostMachine,
    /// The provisioner's error message, and what the user can do.
    pub error: Option<String>,
    /// Whether only a user can fix it.
    pub is_final: bool,
    /// Whether it was deployed with another config drive than it would get now.
    pub has_drifted: bool,
    /// The fault that keeps all machines of the set from coming, if this one is not installed.
    pub fault: Option<ProvisioningFault>,
    /// Whether the set has not been reconciled yet.
    pub is_unheard: bool,
}

/// A fault that keeps all machines of a set from coming.
#[derive(Clone, Debug, PartialEq)]
pub struct ProvisioningFault {
    /// The fault as the rest of a sentence about the set: `says: …`, `is …`.
    pub text: String,
    /// Whether only a user can fix it.
    pub is_final: bool,
}

/// What is known of a host besides its set.
#[derive(Clone, Debug, Default)]
pub struct Known<'a> {
    /// On a node set: the host's key in `spec.nodes`.
    pub node: Option<&'a str>,
    /// The record in the host's status.
    pub recorded: Option<&'a HostMachine>,
    /// Fingerprint of the ssh key that was known before.
    pub key: Option<String>,
    /// Whether the operator can probe its ssh server.
    pub can_be_asked: bool,
    /// Whether its ssh server has just answered.
    pub answers: bool,
    /// Whether it is in service on a machine of no set, which is not to be adopted.
    pub keeps_unmanaged_machine: bool,
}

impl ProvisioningState {
    /// Evaluates a host by its set, which may not exist yet.
    pub fn of(set: Option<&BaremetalSet>, host: &str, known: &Known<'_>, now: Timestamp) -> Self {
        let reported = set.and_then(|it| it.host_status(host));
        let recorded = known.recorded;
        let machine = reported.map(|it| &it.bmh_ref).filter(|it| *it != UNASSIGNED).cloned();
        let installation =
            set.zip(reported).and_then(|(set, reported)| installed(set, host, reported));
        let before = recorded.and_then(|it| it.installation.clone());
        // The status of a host that was just added to the set may still describe an earlier state.
        let is_seen = before.is_some() || set.is_none_or(is_observed);
        let installation = installation.filter(|_| is_seen);
        let is_installed = installation.is_some();
        let is_another = is_installed && installation != before;
        // The system of an adopted machine must not be deployed again.
        let is_taken_over = is_another
            && before.is_none()
            && set.zip(reported).is_some_and(|it| is_adopted(it, host));
        let adopted = is_taken_over || !is_another && recorded.is_some_and(|it| it.adopted);
        let is_new = is_another && !is_taken_over;
        let state = reported.map(|it| it.provisioning_state.as_str()).filter(|it| !it.is_empty());
        let state = state.unwrap_or(REQUESTED).to_owned();
        let is_same = |it: &&HostMachine| it.state == state && it.machine == machine;
        let changed = || Time(whole_seconds(now));
        let since = recorded.filter(is_same).map_or_else(changed, |it| it.since.clone());
        let was_reachable = !is_new && recorded.is_some_and(|it| it.reachable);
        let reachable = is_installed && known.answers || was_reachable;
        let mut record = HostMachine {
            host: Some(host.to_owned()),
            node: known.node.map(str::to_owned),
            machine,
            state,
            since,
            installation: installation.or(before),
            installed: recorded.and_then(|it| it.installed.clone()),
            adopted,
            reachable,
            ready: false,
            former_key: recorded.and_then(|it| it.former_key.clone()),
        };
        if is_new {
            record.installed = Some(Time(whole_seconds(now)));
            record.former_key = known.key.clone().or(record.former_key);
        }
        let is_in_time = waits_until(&record).is_some_and(|it| now < it);
        let waits_for_ssh = is_installed && known.can_be_asked && !record.reachable && is_in_time;
        record.ready = is_installed && !waits_for_ssh;
        Self {
            is_installed,
            is_new,
            waits_for_ssh,
            record,
            error: reported.and_then(|it| it.error.clone()),
            is_final: reported.is_some_and(|it| it.needs_human),
            has_drifted: reported.is_some_and(|it| it.is_current == Some(false)),
            fault: set.filter(|_| !is_installed).and_then(|it| trouble(it, now)),
            is_unheard: set.is_some_and(is_unheard),
        }
    }
}

/// Returns whether to probe a host's ssh server: its machine is installed and has not answered yet.
pub fn is_awaited(set: &BaremetalSet, host: &str, known: &Known<'_>) -> bool {
    // The timestamps do not matter here.
    let provisioning = ProvisioningState::of(Some(set), host, known, Timestamp::UNIX_EPOCH);
    // Adopted machines are not waited for.
    let is_own = provisioning.record.own_installation().is_some();
    provisioning.is_installed && is_own && known.can_be_asked && !provisioning.record.reachable
}

/// Returns the record of a machine. While a fault keeps its state from being followed, that is the
/// recorded one, and no services begin.
pub fn record(
    machine: &Result<ProvisioningState, Problem>,
    recorded: Option<&HostMachine>,
) -> Option<HostMachine> {
    match machine {
        Ok(provisioning) => Some(provisioning.record.clone()),
        Err(_) => recorded.map(|it| HostMachine { ready: false, ..it.clone() }),
    }
}

/// Returns when services begin although ssh has not answered; `None` before the first known
/// installation.
pub fn waits_until(record: &HostMachine) -> Option<Timestamp> {
    record.installed.as_ref().map(|it| it.0 + PATIENCE)
}

/// Truncates to seconds, as timestamps of objects are. Otherwise an object created right after
/// would count as older.
fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Returns the id of a host's installation; `None` while its machine is not installed or is being
/// given back.
fn installed(set: &BaremetalSet, host: &str, reported: &HostStatus) -> Option<String> {
    let is_complete = INSTALLED.contains(&reported.provisioning_state.as_str());
    let goes = is_terminating(set) || reported.annotated_for_deletion;
    let is_asked = set.spec.baremetal_hosts.contains_key(host);
    (is_complete && !goes && is_asked)
        .then(|| hash::short(&(&reported.bmh_ref, &reported.instance)))
}

/// Returns whether the status of a set is of its present generation.
pub fn is_observed(set: &BaremetalSet) -> bool {
    set.status.as_ref().is_some_and(|it| it.observed_generation == set.metadata.generation)
}

/// Returns whether the machine of a host was running before and was adopted as it is.
fn is_adopted((set, reported): (&BaremetalSet, &HostStatus), host: &str) -> bool {
    let is_to_be = set.spec.baremetal_hosts.get(host).is_some_and(|it| it.adopt);
    // A machine that was deployed after all has a config drive.
    is_to_be && reported.config_drive_hash.is_none()
}

/// Returns whether a set has not been reconciled yet.
fn is_unheard(set: &BaremetalSet) -> bool {
    let observed = set.status.as_ref().and_then(|it| it.observed_generation);
    observed.is_none() && !is_terminating(set)
}

/// Returns the fault that keeps all machines of a set from coming and that does not heal by itself.
fn trouble(set: &BaremetalSet, now: Timestamp) -> Option<ProvisioningFault> {
    if is_terminating(set) {
        let text = "is to be deleted, which cannot be undone. Its machines stay until every host \
                    that has one is done with it: delete these hosts too; those that come after \
                    get a new set.";
        return Some(ProvisioningFault { text: text.into(), is_final: true });
    }
    let made = set.metadata.creation_timestamp.as_ref().map(|it| it.0);
    if is_unheard(set) && made.is_some_and(|it| it + ATTENTION <= now) {
        let text = "was not reconciled by any operator since it was made: see in the log of \
                    dataplane-operator whether it reconciles sets, and restart it if it does not.";
        return Some(ProvisioningFault { text: text.into(), is_final: false });
    }
    worst(set)
}

/// Returns the worst condition that keeps all machines from coming. The condition that summarizes
/// the machines is skipped, because it reports other machines as well; this machine has its own
/// entry. The condition on inputs is skipped once the provisioner answers; before that, no machine
/// has an entry.
fn worst(set: &BaremetalSet) -> Option<ProvisioningFault> {
    let is_answered = answers(set);
    let is_sum = |it: &Condition| {
        [READY, STALLED, RECONCILING, SUM].contains(&&*it.type_)
            || (is_answered && it.type_ == INPUT)
    };
    let is_bad = |it: &&Condition| {
        let is_serious = matches!(it.severity, Some(Severity::Error | Severity::Warning));
        it.status == ConditionStatus::False && is_serious && !is_sum(it)
    };
    let worst = set.conditions().iter().filter(is_bad).min_by_key(|it| it.severity)?;
    let text = format!("says: {}: {}", worst.type_, worst.message);
    Some(ProvisioningFault { text, is_final: worst.severity == Some(Severity::Error) })
}

/// Returns whether the provisioner of a set answers, so that its status is what that reads now.
pub fn answers(set: &BaremetalSet) -> bool {
    find(set.conditions(), SERVER).is_some_and(|it| it.status == ConditionStatus::True)
}

/// Returns whether a set has a host, or has not given back its machine yet.
pub fn knows(set: &BaremetalSet, host: &str) -> bool {
    set.spec.baremetal_hosts.contains_key(host)
        || set.status.iter().any(|it| it.baremetal_hosts.contains_key(host))
}

/// Returns whether a host is no longer part of a set in any way.
pub fn is_given_back(set: Option<&BaremetalSet>, host: &str) -> bool {
    set.is_none_or(|it| !knows(it, host) && is_observed(it))
}
