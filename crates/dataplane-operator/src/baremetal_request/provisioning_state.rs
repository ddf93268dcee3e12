//! How far the machine of one host is, and when its services may begin.

use std::time::Duration;

use api::baremetal::{BaremetalSet, HostStatus, UNASSIGNED};
use api::conditions::{Condition, ConditionStatus, READY, RECONCILING, STALLED, Severity, find};
use api::dataplane::HostMachine;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_core::finalizers::is_terminating;
use operator_core::hash;
use operator_core::run_engine::host_key::HostKey;

/// How long services wait for an ssh server that does not answer the operator. Not for ever, for the
/// pods of runs may reach what the operator's own pod cannot; the first run then tells what is wrong.
pub const PATIENCE: SignedDuration = SignedDuration::from_mins(10);
/// How long it is at least until ssh is asked again.
pub const ASK_AGAIN: Duration = operator_runtime::ssh_probe::PAUSE;

/// How long a set may be looked at by nobody before that is told.
const ATTENTION: SignedDuration = SignedDuration::from_mins(5);

/// The states in which a machine is a host: Ironic's, then Metal3's.
const INSTALLED: [&str; 3] = ["active", "provisioned", "externally provisioned"];
/// The state of a machine before its provisioner says anything.
const REQUESTED: &str = "requested";
/// The condition of a set on what its hosts are made from.
const INPUT: &str = "InputReady";
/// The condition of a set on whoever provisions its machines.
const SERVER: &str = "OpenStackBaremetalSetProvServerReady";
/// The condition of a set that sums up its machines.
const SUM: &str = "OpenStackBaremetalSetBmhProvisioningReady";

/// How far the machine of a host is.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ProvisioningState {
    /// Whether an operating system is on it.
    pub is_installed: bool,
    /// Whether this installation was not known before.
    pub is_new: bool,
    /// Whether its ssh server is waited for.
    pub waits_for_ssh: bool,
    /// What the status of its host is to say of it.
    pub record: HostMachine,
    /// The provisioner's words on what is wrong with it, and what a human does about it.
    pub error: Option<String>,
    /// Whether only a human can help.
    pub is_final: bool,
    /// Whether it was deployed with another config drive than it would get now.
    pub has_drifted: bool,
    /// What the set says of all its machines, where it says that they do not come.
    pub fault: Option<ProvisioningFault>,
    /// Whether nobody has looked at the set yet.
    pub is_unheard: bool,
}

/// What keeps all machines of a set from coming.
#[derive(Clone, Debug, PartialEq)]
pub struct ProvisioningFault {
    /// What is the matter with the set, as a sentence about it goes on: `says: …`, `is …`.
    pub text: String,
    /// Whether only a human can help.
    pub is_final: bool,
}

/// What is known of a host beside what its set says.
#[derive(Clone, Debug, Default)]
pub struct Known<'a> {
    /// What its status says of its machine.
    pub recorded: Option<&'a HostMachine>,
    /// The ssh key by which it was known.
    pub key: Option<HostKey>,
    /// Whether the operator can ask its ssh server.
    pub can_be_asked: bool,
    /// Whether its ssh server has answered just now.
    pub answers: bool,
}

impl ProvisioningState {
    /// Of a host by its set, which may not be there yet.
    pub fn of(set: Option<&BaremetalSet>, host: &str, known: &Known<'_>, now: Timestamp) -> Self {
        let reported = set.and_then(|it| it.told(host));
        let recorded = known.recorded;
        let machine = reported.map(|it| &it.bmh_ref).filter(|it| *it != UNASSIGNED).cloned();
        let installation =
            set.zip(reported).and_then(|(set, reported)| installed(set, host, reported));
        let before = recorded.and_then(|it| it.installation.clone());
        // Of a host that has just come into the set its status may still tell what was before.
        let is_seen = before.is_some() || set.is_none_or(is_observed);
        let installation = installation.filter(|_| is_seen);
        let is_installed = installation.is_some();
        let is_another = is_installed && installation != before;
        // What ran there before is not to be deployed again.
        let is_taken_over = is_another
            && before.is_none()
            && set.zip(reported).is_some_and(|it| is_adopted(it, host));
        let adopted = is_taken_over || !is_another && recorded.is_some_and(|it| it.adopted);
        let is_new = is_another && !is_taken_over;
        let state = reported.map(|it| it.provisioning_state.as_str()).filter(|it| !it.is_empty());
        let state = state.unwrap_or(REQUESTED).to_owned();
        let is_same = |it: &&HostMachine| it.state == state && it.machine == machine;
        let since = recorded
            .filter(is_same)
            .map_or_else(|| Time(whole_seconds(now)), |it| it.since.clone());
        let was_reachable = !is_new && recorded.is_some_and(|it| it.reachable);
        let reachable = is_installed && known.answers || was_reachable;
        let is_replaced = is_new && before.is_some();
        let mut record = HostMachine {
            host: None,
            node: None,
            machine,
            state,
            since,
            installation: installation.or(before),
            installed: recorded.and_then(|it| it.installed.clone()),
            adopted,
            replaced: is_replaced || recorded.is_some_and(|it| it.replaced),
            reachable,
            ready: false,
            former_key: recorded.and_then(|it| it.former_key.clone()),
        };
        if is_new {
            record.installed = Some(Time(whole_seconds(now)));
            let key = known.key.as_ref().map(HostKey::fingerprint);
            record.former_key = key.or(record.former_key);
        }
        let waits_until = waits_until(&record);
        let waits_for_ssh = is_installed
            && known.can_be_asked
            && !record.reachable
            && waits_until.is_some_and(|it| now < it);
        record.ready = is_installed && !waits_for_ssh;
        let error = reported.and_then(|it| it.error.clone());
        Self {
            is_installed,
            is_new,
            waits_for_ssh,
            record,
            error,
            is_final: reported.is_some_and(|it| it.needs_human),
            has_drifted: reported.is_some_and(|it| it.is_current == Some(false)),
            fault: set.filter(|_| !is_installed).and_then(|it| trouble(it, now)),
            is_unheard: set.is_some_and(is_unheard),
        }
    }

    /// Whether services may begin on the host.
    pub fn may_begin(&self) -> bool {
        self.record.ready
    }

    /// When services begin although ssh has not answered.
    pub fn waits_until(&self) -> Option<Timestamp> {
        waits_until(&self.record)
    }
}

/// Whether a host's ssh server is to be asked: its machine is there, and it was not seen to answer.
pub fn is_awaited(set: &BaremetalSet, host: &str, known: &Known<'_>) -> bool {
    // What is told of times does not matter here.
    let provisioning = ProvisioningState::of(Some(set), host, known, Timestamp::UNIX_EPOCH);
    // What was adopted is not waited for.
    let is_own = provisioning.record.own_installation().is_some();
    provisioning.is_installed && is_own && known.can_be_asked && !provisioning.record.reachable
}

fn waits_until(record: &HostMachine) -> Option<Timestamp> {
    record.installed.as_ref().map(|it| it.0 + PATIENCE)
}

/// Times of objects have no fractions: with them, what was made right after would count as older.
fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Which installation a host is on; none while its machine is not a host, or about to be given back.
fn installed(set: &BaremetalSet, host: &str, reported: &HostStatus) -> Option<String> {
    let is_complete = INSTALLED.contains(&reported.provisioning_state.as_str());
    let goes = is_terminating(set) || reported.annotated_for_deletion;
    let is_asked = set.spec.baremetal_hosts.contains_key(host);
    (is_complete && !goes && is_asked)
        .then(|| hash::short(&(&reported.bmh_ref, &reported.instance)))
}

/// Whether the status of a set speaks of its present spec.
pub fn is_observed(set: &BaremetalSet) -> bool {
    set.status.as_ref().is_some_and(|it| it.observed_generation == set.metadata.generation)
}

/// Whether the machine of a host ran before, and was taken over as it is.
fn is_adopted((set, reported): (&BaremetalSet, &HostStatus), host: &str) -> bool {
    let is_to_be = set.spec.baremetal_hosts.get(host).is_some_and(|it| it.adopt);
    // What was deployed after all got a drive.
    is_to_be && reported.config_drive_hash.is_none()
}

/// Whether nobody has looked at a set yet.
fn is_unheard(set: &BaremetalSet) -> bool {
    let observed = set.status.as_ref().and_then(|it| it.observed_generation);
    observed.is_none() && !is_terminating(set)
}

/// What keeps all machines of a set from coming, which nobody mends by himself.
fn trouble(set: &BaremetalSet, now: Timestamp) -> Option<ProvisioningFault> {
    if is_terminating(set) {
        let text = "is to be deleted, which nobody can take back. Its machines stay until every host \
                    that has one is done with it: delete these hosts too; those that come after get a \
                    new set.";
        return Some(ProvisioningFault { text: text.into(), is_final: true });
    }
    let made = set.metadata.creation_timestamp.as_ref().map(|it| it.0);
    if is_unheard(set) && made.is_some_and(|it| it + ATTENTION <= now) {
        let text = "was looked at by nobody since it was made: see in the log of dataplane-operator \
                    whether it looks after sets, and restart it if it does not.";
        return Some(ProvisioningFault { text: text.into(), is_final: false });
    }
    worst(set)
}

/// The worst condition by which a set says that no machine comes by itself. The one that sums up its
/// machines tells of others too: what concerns this one, its own words tell. So does the one on what
/// hosts are made from, as soon as the provisioner answers: before, nothing is said of any machine.
fn worst(set: &BaremetalSet) -> Option<ProvisioningFault> {
    let is_answered =
        find(conditions(set), SERVER).is_some_and(|it| it.status == ConditionStatus::True);
    let is_sum = |it: &Condition| {
        [READY, STALLED, RECONCILING, SUM].contains(&&*it.type_)
            || (is_answered && it.type_ == INPUT)
    };
    let is_bad = |it: &&Condition| {
        let is_serious = matches!(it.severity, Some(Severity::Error | Severity::Warning));
        it.status == ConditionStatus::False && is_serious && !is_sum(it)
    };
    let worst = conditions(set).iter().filter(is_bad).min_by_key(|it| it.severity)?;
    let text = format!("says: {}: {}", worst.type_, worst.message);
    Some(ProvisioningFault { text, is_final: worst.severity == Some(Severity::Error) })
}

fn conditions(set: &BaremetalSet) -> &[Condition] {
    set.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default()
}

/// Whether a set has a host, or has not given back its machine yet.
pub fn knows(set: &BaremetalSet, host: &str) -> bool {
    set.spec.baremetal_hosts.contains_key(host)
        || set.status.iter().any(|it| it.baremetal_hosts.contains_key(host))
}

/// Whether a host is in no way part of a set any more.
pub fn is_given_back(set: Option<&BaremetalSet>, host: &str) -> bool {
    set.is_none_or(|it| !knows(it, host) && is_observed(it))
}
