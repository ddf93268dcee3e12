//! What follows from consecutive readings of nova's services and hypervisors.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::nova::RegisteredNova;
use jiff::Timestamp;
use jiff::civil::DateTime;
use openstack_client::compute::{KnownService, Liveness};
use openstack_client::error::Fault;
use openstack_client::{ComputeService, Error, Hypervisor, ServiceState};
use operator_runtime::answer_memory::{Held, Kept};

/// How many readings in a row fail before nothing is known any more.
pub const FAILED: u32 = 3;

/// The error word of a reading without inputs.
const INPUT_MISSING: &str = "InputMissing";

/// What is known of the API.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ApiHealth {
    /// Not enough was read to say: what was reported before stays.
    #[default]
    Pending,
    /// It answers.
    Answers,
    /// It has not answered [`FAILED`] times in a row, or in a way that time alone does not change.
    Fails(Fault),
    /// It answers, except that its list of hypervisors has failed like that.
    NotListed(Fault),
    /// It was not requested for so long, because an input is missing or cannot be used.
    Unread,
}

/// What is known of the service of one host.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum ServiceHealth {
    /// Not enough was read to say: what was reported before stays.
    #[default]
    Pending,
    /// The API cannot be read, or has not answered [`FAILED`] times in a row.
    ApiFails,
    /// The database of the host's cell does not answer.
    CellNotAnswering,
    /// It is up.
    Up {
        /// Why an administrator has disabled it; empty without a reason, `None` when it is enabled.
        disabled: Option<String>,
    },
    /// It was down in both of the last two readings, or has not reported in between.
    Down {
        /// Its last report in UTC, as far as nova has it; `None` where it is forced down.
        since: Option<DateTime>,
        /// Whether an administrator has forced it down.
        is_forced: bool,
    },
    /// Nova had no service of that host in the last two readings, see
    /// [`HostHealth::missing_since`].
    NotFound,
}

/// What is known of the mapping of one host to its cell.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum MappingHealth {
    /// Not enough was read to say: what was reported before stays.
    #[default]
    Pending,
    /// The API cannot be read, or has not answered [`FAILED`] times in a row.
    ApiFails,
    /// The list of hypervisors alone cannot be read.
    NotListed {
        /// The word of the error.
        reason: &'static str,
    },
    /// Nova lists its hypervisor, so the host is mapped.
    Mapped,
    /// Nova has the service of the host and does not list its hypervisor.
    NotMapped,
}

/// What is known of one host.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostHealth {
    /// Its service.
    pub service: ServiceHealth,
    /// Its mapping.
    pub mapping: MappingHealth,
    /// The reason of its service if that is disabled, as last read.
    pub disabled: Option<String>,
    /// The UUID of its service as last read, or `None` where the last reading has none.
    pub service_id: Option<String>,
    /// The UUID of its compute node, or `None` unless its hypervisor was listed in the last reading.
    pub compute_id: Option<String>,
    /// The nova that was read; `None` where it is not known.
    pub nova: Option<RegisteredNova>,
    /// When the earlier of the last two readings began, of a host that is in neither: one that has
    /// registered since then is not missing.
    pub missing_since: Option<Timestamp>,
    /// When the last reading began; `None` unless it has succeeded.
    pub read_at: Option<Timestamp>,
    /// Why its API is not read, and what to do about it, where the cell does not report that.
    pub cause: Option<String>,
}

impl ServiceHealth {
    /// Whether the last reading has the service of the host, from a cell that answers.
    pub const fn is_known(&self) -> bool {
        match self {
            Self::Up { .. } | Self::Down { .. } => true,
            Self::Pending | Self::ApiFails | Self::CellNotAnswering | Self::NotFound => false,
        }
    }
}

impl HostHealth {
    /// Returns what is known of a host whose API cannot be read.
    pub fn unread() -> Self {
        let (service, mapping) = (ServiceHealth::ApiFails, MappingHealth::ApiFails);
        Self { service, mapping, ..Self::default() }
    }

    /// Whether there is a cause for what is not known.
    pub const fn has_cause(&self) -> bool {
        matches!(self.service, ServiceHealth::ApiFails)
            || matches!(self.mapping, MappingHealth::NotListed { .. })
    }

    /// Returns which of several cells counts for a host, the smallest first: one that has its
    /// service, else one that may have it.
    pub fn rank(&self) -> u8 {
        match self.service {
            ServiceHealth::Up { .. }
            | ServiceHealth::Down { .. }
            | ServiceHealth::CellNotAnswering => 0,
            ServiceHealth::Pending => 1,
            ServiceHealth::ApiFails => 2,
            ServiceHealth::NotFound => 3,
        }
    }
}

/// Host → what nova says of its service.
type States = BTreeMap<String, ServiceState>;

/// The services as they were read at one time.
#[derive(Debug)]
struct Reading {
    begun: Timestamp,
    states: States,
    _kept: Kept,
}

/// Host of each hypervisor → its UUID.
#[derive(Debug)]
struct Mapped {
    hosts: BTreeMap<String, String>,
    _kept: Kept,
}

/// Readings in a row that failed.
#[derive(Clone, Debug)]
struct Failure {
    /// The fault of the last one; `None` where inputs are missing.
    fault: Option<Fault>,
    /// How many they are.
    n: u32,
}

impl Failure {
    /// Returns a failure that adds so many to those before it.
    fn after(before: Option<&Self>, fault: Option<Fault>, n: u32) -> Self {
        Self { fault, n: before.map_or(0, |it| it.n).saturating_add(n) }
    }

    /// Returns the fault where it is to be reported.
    fn reported(&self) -> Option<&Fault> {
        self.fault.as_ref().filter(|it| self.n >= FAILED || is_lasting(&it.error))
    }

    fn word(&self) -> &'static str {
        self.fault.as_ref().map_or(INPUT_MISSING, Fault::word)
    }
}

/// The last readings of one API; copies share them.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// The last reading of the services that succeeded, and the one before it.
    last: Option<Arc<Reading>>,
    before: Option<Arc<Reading>>,
    /// Why the readings since then failed, and how many did.
    failure: Option<Failure>,
    /// The hypervisors, `None` unless the last reading succeeded.
    mapped: Option<Arc<Mapped>>,
    /// Why the last readings of hypervisors alone failed, and how many did.
    unlisted: Option<Failure>,
    /// How many readings in a row were not whole, whatever time they took.
    n_not_whole: u32,
}

impl Readings {
    /// Takes in what was read since `begun`. `n_intervals` is how many times the interval between
    /// readings fits into that time: a failure that lasted so long counts as so many, and at least
    /// as one.
    pub fn take(
        &mut self,
        services: Result<Held<ComputeService>, Fault>,
        hypervisors: Result<Held<Hypervisor>, Fault>,
        begun: Timestamp,
        n_intervals: u32,
    ) {
        let mapped = |all: Held<Hypervisor>| {
            let (all, kept) = all.into_parts();
            let hosts = all.into_iter().map(|it| (it.service.host, it.id)).collect();
            Arc::new(Mapped { hosts, _kept: kept })
        };
        let unlisted = hypervisors.as_ref().err().filter(|_| services.is_ok());
        let unlisted =
            unlisted.map(|it| Failure::after(self.unlisted.as_ref(), Some(it.clone()), 1));
        self.unlisted = unlisted;
        let is_whole = services.is_ok() && hypervisors.is_ok();
        self.n_not_whole = if is_whole { 0 } else { self.n_not_whole.saturating_add(1) };
        self.mapped = hypervisors.ok().map(mapped);
        match services {
            Ok(services) => {
                let (services, kept) = services.into_parts();
                let states = services.into_iter().map(|it| (it.host, it.state)).collect();
                self.before = self.last.replace(Arc::new(Reading { begun, states, _kept: kept }));
                self.failure = None;
            }
            Err(fault) => self.fail(Some(fault), n_intervals.max(1)),
        }
    }

    /// Takes in that nothing could be read for an interval, because inputs are missing.
    pub fn miss(&mut self) {
        self.mapped = None;
        self.n_not_whole = self.n_not_whole.saturating_add(1);
        self.fail(None, 1);
    }

    fn fail(&mut self, fault: Option<Fault>, n: u32) {
        self.failure = Some(Failure::after(self.failure.as_ref(), fault, n));
    }

    /// Whether so many readings in a row have failed that nothing is known any more.
    pub fn has_failed(&self) -> bool {
        self.failure.as_ref().is_some_and(|it| it.n >= FAILED)
    }

    /// Returns how many readings in a row have failed, and the word of the last error; a list of
    /// hypervisors that alone fails counts too.
    pub fn failed(&self) -> (&'static str, u32) {
        let failure = self.failure.as_ref().or(self.unlisted.as_ref());
        (failure.map_or("Ok", Failure::word), self.n_not_whole)
    }

    /// Whether a reading of services has ever succeeded.
    pub const fn has_read(&self) -> bool {
        self.last.is_some()
    }

    /// Whether services are judged by the last reading, or unknown for good: else what was known
    /// before stays.
    pub fn is_judged(&self) -> bool {
        self.failure.is_none() || self.has_failed()
    }

    /// Returns what is known of the API.
    pub fn api(&self) -> ApiHealth {
        match &self.failure {
            Some(failure) if failure.fault.is_none() && self.has_failed() => ApiHealth::Unread,
            Some(failure) => {
                failure.reported().cloned().map_or(ApiHealth::Pending, ApiHealth::Fails)
            }
            None if self.last.is_none() => ApiHealth::Pending,
            None => self.not_listed().cloned().map_or(ApiHealth::Answers, ApiHealth::NotListed),
        }
    }

    /// Returns why the list of hypervisors cannot be read, where that is to be reported.
    fn not_listed(&self) -> Option<&Fault> {
        self.unlisted.as_ref()?.reported()
    }

    /// Returns what is known of a host, which is named as its service is registered.
    pub fn of_host(&self, host: &str) -> HostHealth {
        let service = match (&self.failure, &self.last) {
            (Some(_), _) if self.has_failed() => ServiceHealth::ApiFails,
            (None, Some(last)) => self.service(host, &last.states),
            _ => ServiceHealth::Pending,
        };
        let compute_id = self.mapped.as_ref().and_then(|it| it.hosts.get(host).cloned());
        let api_fails = service == ServiceHealth::ApiFails;
        let mapping = if api_fails { MappingHealth::ApiFails } else { self.mapping(host) };
        let known = self.known(host);
        let service_id = known.map(|it| it.id.clone());
        let disabled = known.filter(|it| it.is_disabled);
        let disabled = disabled.map(|it| it.disabled_reason.clone().unwrap_or_default());
        let is_missing = service == ServiceHealth::NotFound;
        let missing_since = self.before.as_ref().filter(|_| is_missing).map(|it| it.begun);
        let read_at = self.last.as_ref().filter(|_| self.failure.is_none()).map(|it| it.begun);
        HostHealth {
            service,
            mapping,
            disabled,
            service_id,
            compute_id,
            nova: None,
            missing_since,
            read_at,
            cause: None,
        }
    }

    /// Returns whether the last reading says something of a host that the one before does not say
    /// already: that it has no service, that its service is down, or that it has reported in between.
    pub fn has_news(&self, host: &str) -> bool {
        let (Some(last), Some(before), None) = (&self.last, &self.before, &self.failure) else {
            return false;
        };
        let apart = last.begun.duration_since(before.begun).unsigned_abs();
        match (last.states.get(host), before.states.get(host)) {
            (None, _) | (Some(ServiceState::Known(_)), None) => true,
            (Some(ServiceState::Known(known)), Some(ServiceState::Known(earlier))) => {
                let by_reports = known.by_reports(earlier, apart);
                match known.liveness {
                    Liveness::Up => by_reports == Liveness::Up,
                    Liveness::Late => by_reports != Liveness::Late,
                    Liveness::Down => true,
                }
            }
            (Some(_), Some(ServiceState::Unknown)) | (Some(ServiceState::Unknown), _) => false,
        }
    }

    /// Returns whether nova had a service of a host in the last reading that succeeded.
    pub fn has_service(&self, host: &str) -> bool {
        self.last.as_ref().is_some_and(|it| it.states.contains_key(host))
    }

    /// Returns the hosts of all services; `None` unless the last reading succeeded.
    pub fn hosts(&self) -> Option<BTreeSet<String>> {
        let last = self.last.as_ref().filter(|_| self.failure.is_none())?;
        Some(last.states.keys().cloned().collect())
    }

    fn known(&self, host: &str) -> Option<&KnownService> {
        match self.last.as_ref()?.states.get(host)? {
            ServiceState::Known(known) => Some(known),
            ServiceState::Unknown => None,
        }
    }

    fn service(&self, host: &str, last: &States) -> ServiceHealth {
        let was = |is: fn(Option<&ServiceState>) -> bool| {
            self.before.as_ref().is_some_and(|it| is(it.states.get(host)))
        };
        match last.get(host) {
            None if was(|it| it.is_none()) => ServiceHealth::NotFound,
            Some(ServiceState::Unknown) => ServiceHealth::CellNotAnswering,
            Some(ServiceState::Known(known)) => match known.liveness {
                Liveness::Up => up(known),
                Liveness::Down if was(is_not_up) => down(known),
                Liveness::Late => self.late(host, known),
                Liveness::Down => ServiceHealth::Pending,
            },
            None => ServiceHealth::Pending,
        }
    }

    /// Judges a service by its reports, because nova has waited too long to do so.
    fn late(&self, host: &str, known: &KnownService) -> ServiceHealth {
        let earlier = self.before.as_ref().and_then(|it| Some((it.begun, it.states.get(host)?)));
        let (Some(last), Some((begun, ServiceState::Known(earlier)))) = (&self.last, earlier)
        else {
            return ServiceHealth::Pending;
        };
        match known.by_reports(earlier, last.begun.duration_since(begun).unsigned_abs()) {
            Liveness::Up => up(known),
            Liveness::Down => down(known),
            Liveness::Late => ServiceHealth::Pending,
        }
    }

    fn mapping(&self, host: &str) -> MappingHealth {
        let last = self.last.as_ref().filter(|_| self.failure.is_none());
        let state = last.and_then(|it| it.states.get(host));
        let Some(mapped) = &self.mapped else {
            let is_known = matches!(state, Some(ServiceState::Known(_)));
            let not_listed = self.not_listed().filter(|_| is_known);
            return not_listed.map_or(MappingHealth::Pending, |it| MappingHealth::NotListed {
                reason: it.word(),
            });
        };
        match state {
            _ if mapped.hosts.contains_key(host) => MappingHealth::Mapped,
            Some(ServiceState::Known(_)) => MappingHealth::NotMapped,
            // Hypervisors of a cell that does not answer are not listed.
            Some(ServiceState::Unknown) | None => MappingHealth::Pending,
        }
    }
}

fn up(known: &KnownService) -> ServiceHealth {
    let reason = || known.disabled_reason.clone().unwrap_or_default();
    ServiceHealth::Up { disabled: known.is_disabled.then(reason) }
}

fn down(known: &KnownService) -> ServiceHealth {
    let is_forced = known.is_forced_down;
    // One that is forced down may report all the same, so its record is written every few seconds.
    ServiceHealth::Down { since: known.updated_at.filter(|_| !is_forced), is_forced }
}

fn is_not_up(state: Option<&ServiceState>) -> bool {
    matches!(state, Some(ServiceState::Known(known)) if known.liveness != Liveness::Up)
}

/// Whether time alone does not end the failure: it is reported at once.
pub const fn is_lasting(error: &Error) -> bool {
    match error {
        Error::NotUrl
        | Error::Untrusted(_)
        | Error::NotTheService
        | Error::TooLarge(_)
        | Error::NoEndpoint { .. }
        | Error::Version { .. }
        | Error::Unauthorized
        | Error::Forbidden(_)
        | Error::NotFound => true,
        Error::Unreachable(_)
        | Error::NoMemory
        | Error::Conflict(_)
        | Error::Busy(_)
        | Error::Refused(_)
        | Error::Failed(..)
        | Error::NotLeader => false,
    }
}

#[cfg(test)]
mod tests;
