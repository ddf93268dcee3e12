//! Tests of what consecutive readings mean.

use openstack_client::Service;
use openstack_client::compute::HypervisorService;
use operator_runtime::answer_memory::AnswerMemory;

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

fn services(states: &[(&str, ServiceState)]) -> Held<ComputeService> {
    let service = |(host, state): &(&str, ServiceState)| ComputeService {
        host: (*host).to_owned(),
        state: state.clone(),
    };
    states.iter().map(service).collect::<Vec<_>>().into()
}

fn hypervisors(hosts: &[&str]) -> Held<Hypervisor> {
    let hypervisor = |host: &&str| Hypervisor {
        id: "b0".into(),
        hypervisor_hostname: String::new(),
        service: HypervisorService { host: (*host).to_owned() },
    };
    hosts.iter().map(hypervisor).collect::<Vec<_>>().into()
}

fn unreachable() -> Fault {
    Fault::of(Service::Compute, Error::Unreachable("refused".into()))
}

fn take(
    readings: &mut Readings,
    services: Result<Held<ComputeService>, Fault>,
    hypervisors: Result<Held<Hypervisor>, Fault>,
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
    readings.take(Ok(services(&[("one", known(true))])), Ok(hypervisors(&[])), at(4), 0);
    assert_eq!(readings.of_host("one").missing_since, None);
}

#[test]
fn a_list_of_hypervisors_that_alone_fails_is_reported_and_takes_nothing_that_was_known() {
    let mut readings = Readings::default();
    let up = || Ok(services(&[("one", known(true))]));
    for n in 1..=3 {
        assert_eq!(readings.of_host("one").mapping, MappingHealth::Pending);
        take(&mut readings, up(), Err(unreachable()));
        assert_eq!(readings.failed(), ("Unreachable", n));
        let api = if n < 3 { ApiHealth::Answers } else { ApiHealth::NotListed(unreachable()) };
        assert_eq!(readings.api(), api);
    }
    let not_listed = MappingHealth::NotListed { reason: "Unreachable" };
    assert_eq!(readings.of_host("one").mapping, not_listed);
    assert_eq!(service(&readings), ServiceHealth::Up { disabled: None });
    assert_eq!(readings.of_host("two").mapping, MappingHealth::Pending, "nova does not have it");
    let moment = Fault::of(Service::Compute, Error::NoMemory);
    assert_eq!((is_lasting(&moment.error), moment.word()), (false, "AnswerTooLarge"));
    let lasting = Fault::of(Service::Compute, Error::TooLarge("50 pages".into()));
    take(&mut readings, up(), Ok(hypervisors(&["one"])));
    assert_eq!((readings.api(), readings.failed()), (ApiHealth::Answers, ("Ok", 0)));
    take(&mut readings, up(), Err(lasting.clone()));
    assert_eq!(readings.api(), ApiHealth::NotListed(lasting));
}

#[test]
fn missing_inputs_count_as_readings_that_fail_and_are_no_fault_of_the_api() {
    let mut readings = Readings::default();
    take(&mut readings, Ok(services(&[("one", known(true))])), Ok(hypervisors(&["one"])));
    for n in 1..=3 {
        readings.miss();
        assert_eq!(readings.failed(), ("InputMissing", n));
        let api = if n == 3 { ApiHealth::Unread } else { ApiHealth::Pending };
        assert_eq!((readings.has_failed(), readings.api()), (n == 3, api));
    }
    assert_eq!(service(&readings), ServiceHealth::ApiFails);
    assert!(readings.has_service("one"));
}

#[test]
fn readings_that_are_not_whole_are_counted_whatever_their_time_and_whatever_fails() {
    let mut readings = Readings::default();
    let up = || Ok(services(&[("one", known(true))]));
    let at = Timestamp::UNIX_EPOCH;
    readings.take(Err(unreachable()), Err(unreachable()), at, 5);
    assert_eq!((readings.failed().1, readings.is_judged(), readings.has_read()), (1, true, false));
    readings.take(up(), Err(unreachable()), at, 1);
    assert_eq!((readings.failed().1, readings.is_judged(), readings.has_read()), (2, true, true));
    readings.take(Err(unreachable()), Ok(hypervisors(&["one"])), at, 1);
    assert_eq!((readings.failed().1, readings.is_judged()), (3, false));
    readings.take(up(), Ok(hypervisors(&["one"])), at, 1);
    assert_eq!((readings.failed().1, readings.is_judged()), (0, true));
}

#[test]
fn readings_keep_their_memory_until_they_are_replaced_and_copies_keep_it_once() {
    let memory = Arc::new(AnswerMemory::default());
    let share = memory.share("ns");
    let half = 64 << 20;
    let read = |n_bytes| {
        let mut list = Held::of(&share);
        let found = services(&[("one", known(true))]).into_parts().0;
        list.add(found, n_bytes).map(|()| list)
    };
    let mut readings = Readings::default();
    take(&mut readings, Ok(read(half).unwrap()), Ok(hypervisors(&[])));
    let copy = readings.clone();
    take(&mut readings, Ok(read(0).unwrap()), Ok(hypervisors(&[])));
    assert!(read(1).is_err(), "the reading before is kept");
    take(&mut readings, Ok(read(0).unwrap()), Ok(hypervisors(&[])));
    assert!(read(1).is_err(), "the copy has it");
    drop(copy);
    assert!(read(half).is_ok());
}

#[test]
fn a_reading_is_news_of_a_service_that_has_reported_is_down_or_is_gone() {
    let of = |is_up: bool, liveness: Option<Liveness>, second: i8| {
        let ServiceState::Known(mut known) = known(is_up) else { unreachable!() };
        known.liveness = liveness.unwrap_or(known.liveness);
        known.updated_at = format!("2026-11-26T02:00:{second:02}").parse().ok();
        ServiceState::Known(known)
    };
    let (up, late) =
        (|second| of(true, None, second), |second| of(true, Some(Liveness::Late), second));
    for (earlier, now, expected) in [
        (Some(up(0)), Some(up(10)), true),
        (Some(up(0)), Some(up(0)), false),
        (None, Some(up(0)), true),
        (Some(up(0)), Some(late(10)), true),
        (Some(up(0)), Some(late(0)), false),
        (Some(up(0)), Some(of(false, None, 0)), true),
        (Some(up(0)), None, true),
        (Some(up(0)), Some(ServiceState::Unknown), false),
        (Some(ServiceState::Unknown), Some(up(0)), false),
    ] {
        let mut readings = Readings::default();
        let listed = |it: &Option<ServiceState>| -> Vec<(&'static str, ServiceState)> {
            it.iter().map(|it| ("one", it.clone())).collect()
        };
        take(&mut readings, Ok(services(&listed(&earlier))), Ok(hypervisors(&[])));
        assert!(!readings.has_news("one"), "one reading alone");
        take(&mut readings, Ok(services(&listed(&now))), Ok(hypervisors(&[])));
        assert_eq!(readings.has_news("one"), expected, "{earlier:?} {now:?}");
        take(&mut readings, Err(unreachable()), Ok(hypervisors(&[])));
        assert!(!readings.has_news("one"), "the last reading has failed");
    }
}
