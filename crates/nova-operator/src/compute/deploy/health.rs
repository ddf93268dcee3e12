//! The conditions of a compute that follow from nova's API: `ServiceUp` and `HostMapped`.

use api::conditions::{ConditionDraft, ConditionStatus, READY, find, one_line};
use api::dataplane::ServiceRun;
use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};
use nova_config::annotations::DRAIN_BEFORE;
use nova_config::conditions::{
    DRAINED, HOST_DISCOVERED, HOST_MAPPED, NOVA_API_READY, NOVA_MATCHES, SERVICE_UP,
};

use crate::compute::deploy::drain::HostDrain;
use crate::compute::deploy::host_facts::HostFacts;
use crate::compute::deploy::nova_matches;
use crate::compute_status::computes_up::is_not_up;
use crate::compute_status::registration::{
    has_registered_since, is_recorded, recorded_at, registered_host,
};
use crate::nova::drain::condition::Drained;
use crate::nova::drain::progress::HostProgress;
use crate::nova::drain::request::DrainRequest;
use crate::nova::health::{HostHealth, MappingHealth, ServiceHealth};
use crate::nova::identity::Identity;
use crate::reasons;
use crate::requested::host_discovery::{self, Discovery};

/// How long a new host may stay without a mapping before that is a fault, where nova-operator
/// discovers it.
const OWN_DISCOVERY: SignedDuration = SignedDuration::from_mins(2);
/// The same where others do: the scheduler of upstream's control plane discovers hosts every 15
/// minutes.
const OTHERS_DISCOVERY: SignedDuration = SignedDuration::from_mins(20);
/// Maximum length of an administrator's reason in a message, in bytes.
const REASON_LIMIT: usize = 200;

/// The conditions that follow from nova's API, and when they change although nothing else does.
#[derive(Debug, Default)]
pub struct Health {
    /// The conditions; none where nova's API is not read.
    pub conditions: Vec<ConditionDraft>,
    /// The condition of a drain; `None` where none is requested and none has to be undone.
    pub drained: Option<ConditionDraft>,
    /// When the message about a missing mapping changes.
    pub changes_at: Option<Timestamp>,
    /// Whether nova is still to be read since the compute has registered.
    pub is_unread: bool,
}

impl Health {
    /// Returns what nova's API says of the compute; `recorded` is the identity that is recorded now, and
    /// `services` are the records of the compute.
    pub fn of(
        facts: &HostFacts<'_>,
        drain: &HostDrain<'_>,
        (recorded, services): (&Identity, &[ServiceRun]),
        now: Timestamp,
    ) -> Self {
        let drained = drained(facts, drain);
        let Some(health) = facts.sources.health else { return Self { drained, ..Self::default() } };
        if let Some(other) = nova_matches::other_identity(facts.sources, recorded) {
            // What nova has under the name of the host says nothing of the host.
            let text = format!("See {NOVA_MATCHES}.");
            let service = reasons::compute::OTHER_IDENTITY_UNKNOWN.condition(SERVICE_UP, text);
            let conditions = vec![other, service, as_before(facts, HOST_MAPPED)];
            return Self { conditions, drained, ..Self::default() };
        }
        if !is_recorded(facts.compute, services) {
            let condition = |type_| {
                let text = "Nova is asked once the compute has registered.";
                reasons::compute::NOT_REGISTERED.condition(type_, text)
            };
            return Self {
                conditions: [SERVICE_UP, HOST_MAPPED].map(condition).into(),
                drained,
                ..Self::default()
            };
        }
        let at = registered_since(facts, services);
        let (mapping, changes_at) = mapping(facts, health, now);
        let is_unread = is_unread(health, at);
        let conditions = vec![service(facts, health, at), mapping];
        Self { conditions, drained, changes_at, is_unread }
    }

    /// Returns the first condition that is False, which makes a deployed compute not ready; where nova
    /// or the cell does not answer, what `Ready` said of it before: that nothing is known makes nothing
    /// ready. A compute that was not ready waits until nova was read since it has registered.
    pub fn problem(&self, facts: &HostFacts<'_>) -> Option<ConditionDraft> {
        let of = |status| self.conditions.iter().filter(move |it| it.status == status);
        if let Some(found) = of(ConditionStatus::False).next() {
            return Some(found.clone().with_type(READY));
        }
        let silent = [&reasons::compute::NOVA_NOT_ANSWERING, &reasons::compute::CELL_NOT_ANSWERING];
        let is_silent = |it: &ConditionDraft| silent.iter().any(|of| of.word == it.reason);
        if !self.is_unread && !of(ConditionStatus::Unknown).any(is_silent) {
            return None;
        }
        let is_kept = |it: &ConditionDraft| {
            let unmapped =
                [&reasons::compute::NOT_MAPPED, &reasons::compute::WAITING_FOR_DISCOVERY];
            unmapped.iter().any(|of| of.word == it.reason) || is_not_up(&it.reason)
        };
        let before = previous(facts, READY);
        let was_ready = before.as_ref().is_some_and(|it| it.status == ConditionStatus::True);
        let waits = self.is_unread && !was_ready;
        before.filter(is_kept).or_else(|| waits.then(|| unread(facts)))
    }
}

/// Returns since when the compute is registered: after each reading, as long as those do not count that
/// began before a deployment by others had ended.
fn registered_since(facts: &HostFacts<'_>, services: &[ServiceRun]) -> Option<Timestamp> {
    let is_awaited = facts.sources.read_since_deployment == Some(false);
    recorded_at(facts.compute, services).or_else(|| is_awaited.then_some(Timestamp::MAX))
}

/// Whether nova is still to be read since a compute has registered at this time: what does not answer
/// is not waited for.
fn is_unread(health: &HostHealth, at: Option<Timestamp>) -> bool {
    let is_judged = match &health.service {
        ServiceHealth::ApiFails | ServiceHealth::CellNotAnswering => return false,
        ServiceHealth::Pending => false,
        ServiceHealth::NotFound => !has_registered_since(at, health.missing_since),
        ServiceHealth::Up { .. } | ServiceHealth::Down { .. } => true,
    };
    let is_older = has_registered_since(at, health.read_at);
    !is_judged || health.mapping == MappingHealth::Pending || is_older
}

fn unread(facts: &HostFacts<'_>) -> ConditionDraft {
    let text = format!("{}; nova's API has not been read since.", facts.in_service);
    reasons::compute::WAITING_FOR_NOVA.condition(READY, text)
}

fn drained(facts: &HostFacts<'_>, drain: &HostDrain<'_>) -> Option<ConditionDraft> {
    let request = drain.request.as_ref()?;
    if let Some(waits) =
        not_drained(facts, drain).filter(|_| matches!(request, DrainRequest::Drain(_)))
    {
        return Some(waits);
    }
    let drained = Drained {
        request,
        progress: drain.progress,
        is_marked: drain.may_be_disabled,
        host: registered_host(facts.compute),
        secret: facts.sources.cell.map(|it| it.spec.secret.as_str()).unwrap_or_default(),
        previous: facts.compute.conditions(),
    };
    drained.condition()
}

/// Returns that a host which is to be empty before a change is not known to be; `None` where a drain can
/// show it.
fn not_drained(facts: &HostFacts<'_>, drain: &HostDrain<'_>) -> Option<ConditionDraft> {
    let node = &facts.compute.spec.dataplane_node_name;
    let without = format!(
        "To deploy it without a drain, set annotation {DRAIN_BEFORE} of OpenStackDataPlaneNode {node} to \
         false."
    );
    if facts.disruption_target().is_some() && !facts.is_registered {
        let text = format!(
            "No deployment of a service of type nova is known to have succeeded on host {}, so what nova \
             has under that name may be another's, and it is not drained. {without}",
            host(facts)
        );
        return Some(reasons::drain::NOT_DEPLOYED.condition(DRAINED, text));
    }
    let is_absent = drain.progress == Some(&HostProgress::NotFound) && drain.belongs_to_rollout;
    is_absent.then(|| {
        let text = format!(
            "Nova does not list host {}, so it is not known to be empty, and the change waits: \
             `openstack compute service list --service nova-compute` shows under which names hosts are \
             listed. {without}",
            host(facts)
        );
        reasons::drain::SERVICE_NOT_FOUND.condition(DRAINED, text)
    })
}

/// Returns what was reported before, or that nothing was read yet.
fn as_before(facts: &HostFacts<'_>, type_: &str) -> ConditionDraft {
    let before =
        previous(facts, type_).filter(|it| it.reason != reasons::compute::NOT_REGISTERED.word);
    before.unwrap_or_else(|| {
        reasons::compute::NOT_READ
            .condition(type_, "Nova's API has not been read often enough to say.")
    })
}

fn previous(facts: &HostFacts<'_>, type_: &str) -> Option<ConditionDraft> {
    find(facts.compute.conditions(), type_).map(ConditionDraft::repeated)
}

fn host<'a>(facts: &HostFacts<'a>) -> &'a str {
    facts.compute.host_name().unwrap_or_default()
}

/// Returns that something is unknown because nova's API is not read, and the cause or where it is.
fn not_answering(facts: &HostFacts<'_>, health: &HostHealth, what: &str) -> String {
    match &health.cause {
        Some(cause) => {
            format!("Nova's API cannot be read, so it is unknown whether {what}: {cause}")
        }
        None => format!(
            "Nova's API does not answer, so it is unknown whether {what}; the cause is in condition \
             {NOVA_API_READY} of {}.",
            cell(facts)
        ),
    }
}

/// Returns the cell of the compute, or where it is looked for.
fn cell(facts: &HostFacts<'_>) -> String {
    match facts.compute.spec.cell_name.as_str() {
        "" => "each NovaCell of the namespace".to_owned(),
        cell => format!("NovaCell {cell}"),
    }
}

fn service(facts: &HostFacts<'_>, health: &HostHealth, at: Option<Timestamp>) -> ConditionDraft {
    let host = host(facts);
    match &health.service {
        ServiceHealth::Pending => as_before(facts, SERVICE_UP),
        ServiceHealth::NotFound if has_registered_since(at, health.missing_since) => {
            as_before(facts, SERVICE_UP)
        }
        ServiceHealth::ApiFails => {
            let what = format!("nova-compute on host {host} is up");
            let text = not_answering(facts, health, &what);
            reasons::compute::NOVA_NOT_ANSWERING.condition(SERVICE_UP, text)
        }
        ServiceHealth::CellNotAnswering => {
            let text = format!(
                "The database of {} does not answer nova's API, so it is unknown whether nova-compute on \
                 host {host} is up: start that database.",
                cell(facts)
            );
            reasons::compute::CELL_NOT_ANSWERING.condition(SERVICE_UP, text)
        }
        ServiceHealth::Up { disabled: None } => reasons::compute::SERVICE_UP
            .condition(SERVICE_UP, format!("nova-compute on host {host} is up.")),
        ServiceHealth::Up { disabled: Some(reason) } => {
            let text = format!("nova-compute on host {host} is up, and {}", disabled(reason));
            reasons::compute::SERVICE_DISABLED.condition(SERVICE_UP, text)
        }
        ServiceHealth::Down { is_forced: true, .. } => {
            let text = format!(
                "An administrator has forced down the service of host {host}{}. When the host is \
                 well: openstack --os-compute-api-version 2.11 compute service set --up {host} \
                 nova-compute",
                and_disabled(health)
            );
            reasons::compute::FORCED_DOWN.condition(SERVICE_UP, text)
        }
        ServiceHealth::Down { since, is_forced: false } => {
            let text = format!(
                "nova-compute on host {host} has not reported to nova{}{}. Look on the host: \
                 systemctl status edpm_nova_compute; podman logs nova_compute",
                since_when(since.as_ref()),
                and_disabled(health)
            );
            reasons::compute::SERVICE_DOWN.condition(SERVICE_UP, text)
        }
        ServiceHealth::NotFound => {
            let text = format!(
                "Nova has no compute service of host {host}: it was deleted. To register it again: \
                 {}",
                facts.way_to_deploy
            );
            reasons::compute::SERVICE_NOT_FOUND.condition(SERVICE_UP, text)
        }
    }
}

/// Returns the addition to what is said of a service that is down that it is disabled too, if it is.
fn and_disabled(health: &HostHealth) -> String {
    health.disabled.as_ref().map(|it| format!(", and {}", disabled(it))).unwrap_or_default()
}

/// Returns that a service is disabled and why, in a clause.
fn disabled(reason: &str) -> String {
    let reason = match one_line(reason, REASON_LIMIT) {
        reason if reason.is_empty() => "without a reason".to_owned(),
        reason => format!("with the reason: {reason}"),
    };
    format!("its service is disabled {reason}")
}

/// Returns since when a service has not reported, which stays the same while it does not.
fn since_when(since: Option<&DateTime>) -> String {
    since.map(|it| format!(" since {} UTC", it.strftime("%Y-%m-%d %H:%M:%S"))).unwrap_or_default()
}

/// Returns the condition of the mapping, and when its message changes.
fn mapping(
    facts: &HostFacts<'_>,
    health: &HostHealth,
    now: Timestamp,
) -> (ConditionDraft, Option<Timestamp>) {
    let host = host(facts);
    match &health.mapping {
        MappingHealth::Pending => (as_before(facts, HOST_MAPPED), None),
        MappingHealth::ApiFails => {
            let what = format!("host {host} is mapped to its cell");
            let text = not_answering(facts, health, &what);
            (reasons::compute::NOVA_NOT_ANSWERING.condition(HOST_MAPPED, text), None)
        }
        MappingHealth::NotListed { reason } => (not_listed(facts, health, reason), None),
        MappingHealth::Mapped => {
            let is_used = matches!(health.service, ServiceHealth::Up { disabled: None });
            let so = if is_used { ", so nova schedules to it" } else { "" };
            let text = format!("Host {host} is mapped to its cell{so}.");
            (reasons::compute::MAPPED.condition(HOST_MAPPED, text), None)
        }
        MappingHealth::NotMapped => {
            let (who, within, next_step) = discovery(facts);
            let escalates_at = unmapped_since(facts).unwrap_or(now) + within;
            if now < escalates_at {
                let text = format!(
                    "Host {host} is not mapped to its cell yet, so nova does not schedule to it: \
                     {who}."
                );
                (
                    reasons::compute::WAITING_FOR_DISCOVERY.condition(HOST_MAPPED, text),
                    Some(escalates_at),
                )
            } else {
                let text = format!(
                    "Host {host} is not mapped to its cell, so nova does not schedule to it. \
                     {next_step}"
                );
                (reasons::compute::NOT_MAPPED.condition(HOST_MAPPED, text), None)
            }
        }
    }
}

/// Returns what was last known of the mapping; else that the list of hypervisors cannot be read.
fn not_listed(facts: &HostFacts<'_>, health: &HostHealth, reason: &str) -> ConditionDraft {
    let before = previous(facts, HOST_MAPPED).filter(|it| it.status != ConditionStatus::Unknown);
    before.unwrap_or_else(|| {
        let what = format!("whether host {} is mapped to its cell", host(facts));
        let text = match &health.cause {
            Some(cause) => format!(
                "Nova's list of hypervisors cannot be read, so it is unknown {what}: {cause}"
            ),
            None => format!(
                "Nova's list of hypervisors cannot be read ({reason}), so it is unknown {what}; the \
                 cause is in condition {NOVA_API_READY} of {}.",
                cell(facts)
            ),
        };
        reasons::compute::NOT_READ.condition(HOST_MAPPED, text)
    })
}

/// Returns who discovers hosts and within which time, and what to do about one that is not
/// discovered by then.
fn discovery(facts: &HostFacts<'_>) -> (&'static str, SignedDuration, String) {
    if facts.own_cell.map(host_discovery::discovery).is_none_or(|it| it == Discovery::External) {
        let command = "Run where nova-manage reaches nova's API database: nova-manage cell_v2 \
                       discover_hosts";
        let who = "nova's scheduler discovers hosts every discover_hosts_in_cells_interval (15 \
                   minutes in upstream's control plane), or nova's administrator does";
        return (who, OTHERS_DISCOVERY, command.to_owned());
    }
    let look = format!(
        "nova-operator discovers hosts; how far it is, and what it misses, is in condition \
         {HOST_DISCOVERED} of {}.",
        self::cell(facts)
    );
    ("nova-operator discovers it", OWN_DISCOVERY, look)
}

fn unmapped_since(facts: &HostFacts<'_>) -> Option<Timestamp> {
    let found = find(facts.compute.conditions(), HOST_MAPPED)?;
    (found.status == ConditionStatus::False).then_some(found.last_transition_time.0)
}
