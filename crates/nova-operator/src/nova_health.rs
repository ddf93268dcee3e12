//! What follows from consecutive readings of nova's services and hypervisors.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::DateTime;
use openstack_client::compute::{KnownService, Liveness};
use openstack_client::error::Fault;
use openstack_client::{ComputeService, Error, Hypervisor, ServiceState};

/// How many readings in a row fail before nothing is known any more.
pub const FAILED: u32 = 3;

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
    /// When the earlier of the last two readings began, of a host that is in neither: one that has
    /// registered since then is not missing.
    pub missing_since: Option<Timestamp>,
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
}

/// The last readings of one API.
#[derive(Debug, Default)]
pub struct Readings {
    /// The last reading of the services that succeeded, and the one before it.
    last: Option<Reading>,
    before: Option<Reading>,
    /// Why the readings since then failed, and how many did.
    failure: Option<(Fault, u32)>,
    /// Host of each hypervisor → its UUID, `None` unless the last reading succeeded.
    mapped: Option<BTreeMap<String, String>>,
    /// Each host that nova lists a service of and no hypervisor, since the reading that found it so
    /// first: `Timestamp::MIN` for the first reading of all, which does not know since when. `None`
    /// before that.
    unmapped: Option<BTreeMap<String, Timestamp>>,
}

impl Readings {
    /// Takes in what was read since `begun`. `n_intervals` is how many times the interval between
    /// readings fits into that time: a failure that lasted so long counts as so many, and at least
    /// as one.
    pub fn take(
        &mut self,
        services: Result<Vec<ComputeService>, Fault>,
        hypervisors: Result<Vec<Hypervisor>, Fault>,
        begun: Timestamp,
        n_intervals: u32,
    ) {
        let hosts =
            |all: Vec<Hypervisor>| all.into_iter().map(|it| (it.service.host, it.id)).collect();
        self.mapped = hypervisors.ok().map(hosts);
        match services {
            Ok(services) => {
                let states = services.into_iter().map(|it| (it.host, it.state)).collect();
                self.before = self.last.replace(Reading { begun, states });
                self.failure = None;
                self.take_unmapped(begun);
            }
            Err(fault) => {
                let n_failed = self.failure.as_ref().map_or(0, |it| it.1);
                self.failure = Some((fault, n_failed.saturating_add(n_intervals.max(1))));
            }
        }
    }

    fn take_unmapped(&mut self, begun: Timestamp) {
        let (Some(mapped), Some(last)) = (&self.mapped, &self.last) else { return };
        let earlier = self.unmapped.take();
        let since = |host: &String| match &earlier {
            Some(earlier) => earlier.get(host).copied().unwrap_or(begun),
            None => Timestamp::MIN,
        };
        let is_unmapped = |(host, state): &(&String, &ServiceState)| match state {
            ServiceState::Known(_) => !mapped.contains_key(*host),
            // Hypervisors of a cell that does not answer are not listed.
            ServiceState::Unknown => earlier.as_ref().is_some_and(|it| it.contains_key(*host)),
        };
        let unmapped = last.states.iter().filter(is_unmapped);
        self.unmapped = Some(unmapped.map(|(host, _)| (host.clone(), since(host))).collect());
    }

    /// Returns since when a host is not mapped to its cell, which is named as its service is
    /// registered: `Timestamp::MIN` where it was so in the first reading of all. `None` where it is
    /// mapped, or that is not known.
    pub fn unmapped_since(&self, host: &str) -> Option<Timestamp> {
        let since = self.unmapped.as_ref()?.get(host).copied()?;
        (self.mapping(host) == MappingHealth::NotMapped).then_some(since)
    }

    /// Returns what is known of the API.
    pub fn api(&self) -> ApiHealth {
        match &self.failure {
            Some((fault, n)) if *n >= FAILED || is_lasting(&fault.error) => {
                ApiHealth::Fails(fault.clone())
            }
            None if self.last.is_some() => ApiHealth::Answers,
            Some(_) | None => ApiHealth::Pending,
        }
    }

    /// Returns what is known of a host, which is named as its service is registered.
    pub fn of_host(&self, host: &str) -> HostHealth {
        let service = match (&self.failure, &self.last) {
            (Some((_, n)), _) if *n >= FAILED => ServiceHealth::ApiFails,
            (None, Some(last)) => self.service(host, &last.states),
            _ => ServiceHealth::Pending,
        };
        let compute_id = self.mapped.as_ref().and_then(|it| it.get(host).cloned());
        let api_fails = service == ServiceHealth::ApiFails;
        let mapping = if api_fails { MappingHealth::ApiFails } else { self.mapping(host) };
        let known = self.known(host);
        let service_id = known.map(|it| it.id.clone());
        let disabled = known.filter(|it| it.is_disabled);
        let disabled = disabled.map(|it| it.disabled_reason.clone().unwrap_or_default());
        let is_missing = service == ServiceHealth::NotFound;
        let missing_since = self.before.as_ref().filter(|_| is_missing).map(|it| it.begun);
        HostHealth { service, mapping, disabled, service_id, compute_id, missing_since }
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
        let Some(mapped) = &self.mapped else { return MappingHealth::Pending };
        let last = self.last.as_ref().filter(|_| self.failure.is_none());
        match last.and_then(|it| it.states.get(host)) {
            _ if mapped.contains_key(host) => MappingHealth::Mapped,
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
        | Error::Conflict(_)
        | Error::Busy(_)
        | Error::Refused(_)
        | Error::Failed(..)
        | Error::NotLeader => false,
    }
}

#[cfg(test)]
mod tests {
    use openstack_client::Service;
    use openstack_client::compute::HypervisorService;

    use super::*;

    fn known(is_up: bool) -> ServiceState {
        ServiceState::Known(KnownService {
            id: "a0".into(),
            liveness: if is_up { Liveness::Up } else { Liveness::Down },
            is_forced_down: false,
            is_disabled: false,
            disabled_reason: None,
            updated_at: "2026-11-26T02:00:00".parse().ok(),
        })
    }

    fn services(states: &[(&str, ServiceState)]) -> Vec<ComputeService> {
        let service = |(host, state): &(&str, ServiceState)| ComputeService {
            host: (*host).to_owned(),
            state: state.clone(),
        };
        states.iter().map(service).collect()
    }

    fn hypervisors(hosts: &[&str]) -> Vec<Hypervisor> {
        let hypervisor = |host: &&str| Hypervisor {
            id: "b0".into(),
            service: HypervisorService { host: (*host).to_owned() },
        };
        hosts.iter().map(hypervisor).collect()
    }

    fn unreachable() -> Fault {
        Fault::of(Service::Compute, Error::Unreachable("refused".into()))
    }

    fn take(
        readings: &mut Readings,
        services: Result<Vec<ComputeService>, Fault>,
        hypervisors: Result<Vec<Hypervisor>, Fault>,
    ) {
        readings.take(services, hypervisors, Timestamp::UNIX_EPOCH, 0);
    }

    fn service(readings: &Readings) -> ServiceHealth {
        readings.of_host("one").service
    }

    #[test]
    fn a_service_is_down_after_two_readings_and_up_after_one() {
        let mut readings = Readings::default();
        assert_eq!(service(&readings), ServiceHealth::Pending);
        take(&mut readings, Ok(services(&[("one", known(false))])), Ok(hypervisors(&["one"])));
        assert_eq!(service(&readings), ServiceHealth::Pending);
        take(&mut readings, Ok(services(&[("one", known(false))])), Ok(hypervisors(&["one"])));
        let since = "2026-11-26T02:00:00".parse().ok();
        assert_eq!(service(&readings), ServiceHealth::Down { since, is_forced: false });
        take(&mut readings, Ok(services(&[("one", known(true))])), Ok(hypervisors(&["one"])));
        assert_eq!(service(&readings), ServiceHealth::Up { disabled: None });
        take(&mut readings, Ok(services(&[("one", known(false))])), Ok(hypervisors(&["one"])));
        assert_eq!(service(&readings), ServiceHealth::Pending);
    }

    /// Returns a service that nova has as down after it has waited for a cell; it reported in that
    /// second of the reading's minute.
    fn late(second: i8) -> KnownService {
        KnownService {
            id: "a0".into(),
            liveness: Liveness::Late,
            is_forced_down: false,
            is_disabled: false,
            disabled_reason: None,
            updated_at: Some(jiff::civil::date(2026, 11, 26).at(2, 0, second, 0)),
        }
    }

    #[test]
    fn behind_a_cell_that_hangs_a_service_is_up_if_it_has_reported_since_the_last_reading() {
        let up = || ServiceHealth::Up { disabled: None };
        let of_record = |reason: &str| KnownService {
            is_disabled: true,
            disabled_reason: Some(reason.into()),
            ..late(9)
        };
        let forced = || KnownService { liveness: Liveness::Down, is_forced_down: true, ..late(8) };
        let other = || KnownService { id: "a1".into(), ..late(8) };
        let down = || ServiceHealth::Down { since: late(8).updated_at, is_forced: false };
        for (earlier, seconds, now, expected) in [
            (late(8), 60, late(9), up()),
            (late(8), 5, late(9), up()),
            (late(8), 60, late(8), down()),
            (late(8), 40, late(8), down()),
            (late(8), 39, late(8), ServiceHealth::Pending),
            (forced(), 60, late(9), ServiceHealth::Pending),
            (other(), 60, late(9), ServiceHealth::Pending),
            (late(8), 60, of_record("why"), ServiceHealth::Pending),
            (of_record("why"), 60, of_record("another"), ServiceHealth::Pending),
        ] {
            let mut readings = Readings::default();
            for (known, second) in [(earlier, 0), (now, seconds)] {
                let found = services(&[("one", ServiceState::Known(known))]);
                let at = Timestamp::from_second(second).unwrap();
                readings.take(Ok(found), Ok(hypervisors(&["one"])), at, 1);
            }
            assert_eq!(service(&readings), expected, "{seconds} s");
        }
        let mut first = Readings::default();
        let found = services(&[("one", ServiceState::Known(late(8)))]);
        take(&mut first, Ok(found), Ok(hypervisors(&["one"])));
        assert_eq!(service(&first), ServiceHealth::Pending);
    }

    #[test]
    fn a_host_is_unmapped_since_the_reading_that_found_it_so_first() {
        let mut readings = Readings::default();
        let mut read = |hosts: &[(&str, ServiceState)], mapped: &[&str], second| {
            let at = Timestamp::from_second(second).unwrap();
            readings.take(Ok(services(hosts)), Ok(hypervisors(mapped)), at, 1);
            ["one", "two"].map(|it| readings.unmapped_since(it).map(Timestamp::as_second))
        };
        let before = Some(Timestamp::MIN.as_second());
        let (one, two) = (("one", known(true)), ("two", known(true)));
        assert_eq!(read(std::slice::from_ref(&one), &[], 10), [before, None]);
        let both = [one.clone(), two];
        assert_eq!(read(&both, &[], 20), [before, Some(20)]);
        let silent = [one, ("two", ServiceState::Unknown)];
        assert_eq!(read(&silent, &["one"], 30), [None, None]);
        assert_eq!(read(&both, &[], 40), [Some(40), Some(20)]);
        assert_eq!(read(&both, &["one", "two"], 50), [None, None]);
    }

    #[test]
    fn a_service_that_is_missing_twice_is_not_found() {
        let mut readings = Readings::default();
        take(&mut readings, Ok(services(&[("one", known(true))])), Ok(hypervisors(&["one"])));
        take(&mut readings, Ok(services(&[])), Ok(hypervisors(&[])));
        assert_eq!(service(&readings), ServiceHealth::Pending);
        take(&mut readings, Ok(services(&[])), Ok(hypervisors(&[])));
        assert_eq!(service(&readings), ServiceHealth::NotFound);
    }

    #[test]
    fn a_cell_that_does_not_answer_concerns_its_hosts_alone() {
        let mut readings = Readings::default();
        let states = [("one", ServiceState::Unknown), ("two", known(true))];
        take(&mut readings, Ok(services(&states)), Ok(hypervisors(&["two"])));
        assert_eq!(service(&readings), ServiceHealth::CellNotAnswering);
        assert_eq!(readings.of_host("one").mapping, MappingHealth::Pending);
        assert_eq!(readings.of_host("two").service, ServiceHealth::Up { disabled: None });
        assert_eq!(readings.of_host("two").mapping, MappingHealth::Mapped);
    }

    #[test]
    fn an_api_that_does_not_answer_leaves_what_was_known_for_three_readings() {
        let mut readings = Readings::default();
        take(&mut readings, Ok(services(&[("one", known(true))])), Ok(hypervisors(&[])));
        assert_eq!(readings.of_host("one").mapping, MappingHealth::NotMapped);
        for _ in 0..2 {
            take(&mut readings, Err(unreachable()), Err(unreachable()));
            assert_eq!((service(&readings), readings.api()), <_>::default());
            assert_eq!(readings.of_host("one").mapping, MappingHealth::Pending);
        }
        take(&mut readings, Err(unreachable()), Err(unreachable()));
        let (health, unread) = (readings.of_host("one"), HostHealth::unread());
        assert_eq!((health.service, health.mapping), (unread.service, unread.mapping));
        assert!(readings.has_service("one") && !readings.has_service("two"));
        assert_eq!(service(&readings), ServiceHealth::ApiFails);
        assert_eq!(readings.api(), ApiHealth::Fails(unreachable()));
        take(&mut readings, Ok(services(&[("one", known(true))])), Err(unreachable()));
        assert_eq!(service(&readings), ServiceHealth::Up { disabled: None });
        assert_eq!(readings.api(), ApiHealth::Answers);
        assert_eq!(readings.of_host("one").mapping, MappingHealth::Pending);
    }

    #[test]
    fn a_refusal_that_lasts_is_reported_at_once() {
        let mut readings = Readings::default();
        let refused = Fault::of(Service::Compute, Error::Forbidden("no".into()));
        take(&mut readings, Err(refused.clone()), Err(refused.clone()));
        assert_eq!(readings.api(), ApiHealth::Fails(refused));
        assert_eq!(service(&readings), ServiceHealth::Pending);
    }

    #[test]
    fn a_failure_that_lasts_several_intervals_counts_as_so_many() {
        let mut readings = Readings::default();
        take(&mut readings, Ok(services(&[("one", known(true))])), Ok(hypervisors(&["one"])));
        readings.take(Err(unreachable()), Err(unreachable()), Timestamp::UNIX_EPOCH, 3);
        assert_eq!(service(&readings), ServiceHealth::ApiFails);
    }

    #[test]
    fn a_missing_host_has_the_time_of_the_earlier_reading() {
        let mut readings = Readings::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        for second in 1..=3 {
            readings.take(Ok(services(&[])), Ok(hypervisors(&[])), at(second), 0);
            let since = (second > 1).then(|| at(second - 1));
            assert_eq!(readings.of_host("one").missing_since, since);
        }
        readings.take(Ok(services(&[("one", known(true))])), Ok(vec![]), at(4), 0);
        assert_eq!(readings.of_host("one").missing_since, None);
    }
}
