//! Deletions that go through nova's API: drained, stopped, and removed from nova, in that order.

use api::nova::cell::LEFTOVERS;
use nova_config::annotations::{DRAIN, SKIP_CLEANUP};
use openstack_client::{Error, Fault, Service};

use super::*;
use crate::compute::removal::host_order::host_order;
use crate::compute::removal::resolve::Resolved;
use crate::nova::drain::order::{Drain, DrainMode, HostOrder, OwnService, Remove, Stop};
use crate::nova::drain::progress::{
    AgentsRemoval, Occupied, PlacementRemoval, Removal, ServiceRemoval,
};

pub(super) fn world(found: HostProgress) -> World {
    let mut world = World::new();
    world.nova = Some(found);
    let status = world.compute.as_mut().unwrap().status.as_mut().unwrap();
    (status.service_id, status.compute_id) = (Some("a0".into()), Some(id()));
    world
}

/// The UUID that the compute of these tests has.
fn id() -> String {
    "c0".to_owned()
}

fn remove(service: OwnService, is_stopped: bool) -> HostOrder {
    let compute_id = Some(id());
    let (is_unmapped, awaits_agents) = (true, true);
    HostOrder::Remove(Remove { service, compute_id, is_stopped, is_unmapped, awaits_agents })
}

fn occupied() -> HostProgress {
    let servers = vec!["b0".to_owned()];
    HostProgress::Occupied(Occupied { servers: servers.into(), ..Occupied::default() })
}

impl World {
    /// Nova's API has removed what the host had there.
    pub(super) fn removing(&mut self) -> &mut Self {
        self.nova = Some(HostProgress::Removing(removed()));
        self
    }
}

pub(super) fn removed() -> Removal {
    Removal {
        service: ServiceRemoval::Done,
        placement: PlacementRemoval::Done,
        agents: Some(AgentsRemoval::Done { n_alive: 0 }),
    }
}

pub(super) fn order(world: &World) -> Option<HostOrder> {
    host_order(&Resolved::of(&world.ending()?))
}

pub(super) fn said(world: &World, type_: &str) -> (String, String) {
    let status = world.compute.as_ref().unwrap().status.as_ref().unwrap();
    let found = find(&status.conditions, type_);
    found.map(|it| (it.reason.clone(), it.message.clone())).unwrap_or_default()
}

/// The variables of the play that the first run sets.
fn variables(world: &World) -> Vec<&str> {
    let variables = world.runs[0].spec.extra_vars.keys().map(String::as_str);
    variables.filter(|it| it.starts_with("edpm_nova_")).collect()
}

const STEPS: [&str; 6] =
    ["Drained", "HostCleaned", "ServiceDeleted", "PlacementClean", "HostUnmapped", "AgentsDeleted"];

pub(super) fn reasons(world: &World) -> [String; 6] {
    STEPS.map(|it| said(world, it).0)
}

/// A host whose nova-compute was stopped, of which this was found afterwards.
pub(super) fn stopped(found: HostProgress) -> World {
    let mut world = world(HostProgress::Drained);
    world.delete_node(false).settle();
    world.end("Ok");
    world.nova = Some(found);
    world.settle();
    world
}

#[test]
fn a_host_is_drained_then_stopped_then_removed_from_nova_and_leaves_nothing() {
    let mut world = world(occupied());
    let writes = world.delete_node(false).settle();
    assert_eq!(n_cleanups(&writes), 0, "{writes:?}");
    let message = said(&world, "Drained").1;
    assert!(message.contains("lists them. To let the compute go"), "{message}");
    let waiting = ["ServersOnHost", "WaitingForDrain"].into_iter().chain(["Waiting"; 4]);
    assert!(reasons(&world).iter().eq(waiting), "{:?}", reasons(&world));
    let reason = "NovaExternalCompute ns/n0 is being deleted".to_owned();
    let drain = Drain { mode: DrainMode::Wait, reason };
    assert_eq!(order(&world), Some(HostOrder::DrainForRemoval(drain, Some(id()))));
    world.node_says("ServersOnHost", &["has 1 server", SKIP_CLEANUP]);

    world.nova = Some(HostProgress::Drained);
    assert_eq!(n_cleanups(&world.settle()), 1);
    assert_eq!(said(&world, "HostCleaned").0, "CleaningHost");
    assert_eq!(variables(&world), ["edpm_nova_host_leaves", "edpm_nova_remove_files"]);
    world.end("Ok").settle();
    assert_eq!(order(&world), Some(remove(OwnService::Is("a0".into()), true)));
    assert_eq!(reasons(&world), ["", "HostCleaned", "Waiting", "Waiting", "Waiting", "Waiting"]);

    world.removing().settle();
    assert!(world.node.is_none() && world.compute.is_none());
    assert!(world.leftovers().is_empty());
    assert!(!world.events.iter().any(|it| it.contains("LeftInNova")), "{:?}", world.events);
}

#[test]
fn a_node_is_held_while_agents_of_its_host_report() {
    let agents = Some(AgentsRemoval::Reporting(vec!["ovn-controller".to_owned()].into()));
    let mut world = stopped(HostProgress::Removing(Removal { agents, ..removed() }));
    assert!(world.node.is_some());
    world.says(
        "AgentsDeleted",
        "AgentsReport",
        &["still report to neutron: ovn-controller.", "systemctl disable", SKIP_CLEANUP],
    );
    world.removing().settle();
    assert!(world.node.is_none() && world.compute.is_none());
}

#[test]
fn a_host_whose_node_stays_keeps_its_agents() {
    let mut world = world(HostProgress::Drained);
    world.delete("compute", "n0");
    world.settle();
    assert_eq!(variables(&world), ["edpm_nova_remove_files"]);
    world.end("Ok").settle();
    let awaits_agents = |world: &World| {
        let Some(HostOrder::Remove(order)) = order(world) else { panic!("{:?}", order(world)) };
        order.awaits_agents
    };
    assert!(!awaits_agents(&world));
    // Its agents run on when the node goes later, too, as they do in a removal that another release
    // began.
    world.delete_node(false).settle();
    assert_eq!((world.runs.len(), awaits_agents(&world)), (1, false));
}

#[test]
fn servers_are_migrated_where_the_node_asks_for_it() {
    let mut world = world(occupied());
    world.node.as_mut().unwrap().annotations_mut().insert(DRAIN.to_owned(), "migrate".to_owned());
    world.delete_node(false).settle();
    let Some(HostOrder::DrainForRemoval(drain, _)) = order(&world) else {
        panic!("{:?}", order(&world))
    };
    assert!(matches!(drain.mode, DrainMode::Migrate(_)), "{drain:?}");
}

#[test]
fn what_nova_does_not_say_holds_the_compute_and_stops_nothing() {
    let denied = Fault::of(Service::Compute, Error::Forbidden("policy".to_owned()));
    for found in [
        HostProgress::Pending,
        HostProgress::CellNotAnswering,
        HostProgress::CellNotConfirmed,
        HostProgress::Unread { cell: "nova-cell1".to_owned() },
        HostProgress::Fails(denied),
    ] {
        let mut world = world(found);
        let writes = world.delete_node(false).settle();
        assert_eq!(n_cleanups(&writes), 0, "{writes:?}");
        assert!(world.node.is_some() && world.compute.is_some());
        world.skip().settle();
        assert!(world.node.is_none() && world.compute.is_none());
        assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), false)]);
    }
}

#[test]
fn each_step_after_the_stop_says_what_it_waits_for() {
    let kept = ServiceRemoval::Kept {
        servers: vec!["b0".to_owned()].into(),
        message: "it hosts instances.".to_owned(),
    };
    let provider =
        PlacementRemoval::Kept { provider: "c0".to_owned(), message: "in use".to_owned() };
    let aggregates = PlacementRemoval::InAggregates(vec!["rack7".to_owned()].into());
    let of_placement = |placement| Removal { placement, agents: None, ..removed() };
    for (removal, type_, reason, part) in [
        (
            Removal::of_service(ServiceRemoval::StillUp),
            "ServiceDeleted",
            "StillUp",
            "systemctl disable",
        ),
        (
            Removal::of_service(kept),
            "ServiceDeleted",
            "ServiceKept",
            "it hosts instances. Servers on it: b0. nova-compute does not run",
        ),
        (of_placement(provider), "PlacementClean", "ProviderKept", "provider c0"),
        (of_placement(aggregates), "PlacementClean", "InAggregates", "rack7"),
    ] {
        let mut world = stopped(HostProgress::Removing(removal));
        let (found, message) = said(&world, type_);
        assert!(found == reason && message.contains(part), "{found}: {message}");
        assert_eq!((said(&world, "Ready").0, world.told_by_node().0), (found.clone(), found));
        world.removing().settle();
        assert!(world.compute.is_none() && world.node.is_none());
    }
}

#[test]
fn a_fault_is_reported_on_the_step_that_it_holds() {
    let busy = || HostProgress::Fails(Fault::of(Service::Placement, Error::Busy("later".into())));
    let mut world = stopped(busy());
    assert_eq!(reasons(&world)[1..3], ["HostCleaned", "NovaNotAnswering"]);
    let partly = Removal { placement: PlacementRemoval::Pending, agents: None, ..removed() };
    world.nova = Some(HostProgress::Removing(partly));
    world.settle();
    world.nova = Some(busy());
    world.settle();
    let expected = ["ServiceDeleted", "NovaNotAnswering", "Waiting", "Waiting"];
    assert_eq!(reasons(&world)[2..], expected);
    let message = said(&world, "PlacementClean").1;
    assert!(message.contains("later") && message.contains(SKIP_CLEANUP), "{message}");
}

#[test]
fn a_removal_that_is_skipped_after_the_stop_records_what_is_left() {
    let mut world = stopped(HostProgress::CellNotAnswering);
    assert!(world.compute.is_some() && world.leftovers().is_empty());
    world.skip().settle();
    assert!(world.compute.is_none());
    assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), true)]);
}

#[test]
fn a_deletion_that_began_without_nova_s_api_ends_without_it() {
    let mut world = world(occupied());
    world.nova = None;
    world.delete_node(false).settle();
    world.nova = Some(occupied());
    assert_eq!(order(&world), None);
    world.end("Ok").settle();
    assert!(world.compute.is_none());
    assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), true)]);
}

#[test]
fn a_compute_that_never_ran_and_a_namespace_that_goes_ask_nova_for_nothing() {
    let mut fresh = world(occupied());
    fresh.compute.as_mut().unwrap().status = None;
    fresh.delete_node(false);
    assert_eq!(order(&fresh), None);
    fresh.settle();
    assert!(fresh.compute.is_none());
    let mut gone = world(occupied());
    gone.namespace_goes = true;
    gone.delete_node(false);
    assert_eq!(order(&gone), None);
    gone.settle();
    assert!(gone.compute.is_none());
}

#[test]
fn a_host_that_cannot_be_reached_is_removed_once_nova_says_that_it_is_down() {
    let mut world = world(HostProgress::Drained);
    world.delete_node(false);
    for _ in 0..3 {
        world.settle();
        world.end("Unreachable").settle();
        world.wait(1);
    }
    world.settle();
    assert_eq!(order(&world), Some(remove(OwnService::Is("a0".into()), false)));
    assert_eq!(said(&world, "HostCleaned").0, "HostNotCleaned");
    world.removing().settle();
    assert!(world.compute.is_none() && world.node.is_none());
}

#[test]
fn no_further_attempt_stops_a_host_that_has_servers_again() {
    let mut world = world(HostProgress::Drained);
    world.delete_node(false).settle();
    world.end("Unreachable");
    world.nova = Some(occupied());
    world.settle();
    assert_eq!(n_cleanups(&world.wait(5).settle()), 0);
    assert_eq!(reasons(&world)[..2], ["ServersOnHost", "WaitingForDrain"]);
    world.nova = Some(HostProgress::Drained);
    assert_eq!(n_cleanups(&world.settle()), 1);
}

#[test]
fn a_stop_that_has_not_begun_is_withdrawn_when_the_host_has_servers_again() {
    let unread = HostProgress::Unread { cell: "cell1".to_owned() };
    for found in [occupied(), HostProgress::CellNotAnswering, unread] {
        let mut world = world(HostProgress::Drained);
        assert_eq!(n_cleanups(&world.delete_node(false).settle()), 1);
        world.nova = Some(HostProgress::Pending);
        world.settle();
        assert_eq!(world.runs.len(), 1, "the operator was restarted");
        world.nova = Some(found);
        world.settle();
        assert_eq!(world.runs.len(), 0);
        assert_eq!(said(&world, "HostCleaned").0, "WaitingForDrain");
        world.nova = Some(HostProgress::Drained);
        assert_eq!(n_cleanups(&world.settle()), 1);
        world.end("Ok").settle();
        assert_eq!(said(&world, "HostCleaned").0, "HostCleaned");
    }
}

#[test]
fn a_cell_that_does_not_answer_after_the_stop_is_named_on_the_step_that_it_holds() {
    let world = stopped(HostProgress::CellNotAnswering);
    world.says("ServiceDeleted", "CellNotAnswering", &["start that database", SKIP_CLEANUP]);
}

#[test]
fn a_compute_that_is_not_known_to_have_registered_is_stopped_once_nova_shows_that_it_is_empty() {
    for found in [HostProgress::Empty, HostProgress::NotFound] {
        let mut world = World::new();
        world.nova = Some(occupied());
        assert_eq!(n_cleanups(&world.delete_node(false).settle()), 0);
        let inspect = Some(HostOrder::InspectForRemoval(Stop::Due));
        assert_eq!(order(&world), inspect, "nothing is changed in nova");
        let drained = said(&world, "Drained");
        assert_eq!(
            (&*drained.0, &*said(&world, "HostCleaned").0),
            ("ServersOnHost", "WaitingForDrain")
        );
        let parts =
            ["nova has 1 server and 0 open migrations on host n0.example.org.", SKIP_CLEANUP];
        assert!(parts.iter().all(|it| drained.1.contains(it)), "{}", drained.1);
        assert_eq!(world.told_by_node(), drained);
        world.nova = Some(HostProgress::Pending);
        assert_eq!(world.settle(), [""; 0], "the operator was restarted");
        world.nova = Some(found.clone());
        assert_eq!(n_cleanups(&world.settle()), 1);
        assert_eq!(reasons(&world)[..2], ["", "CleaningHost"]);
        world.end("Ok");
        // It was not disabled, so a server may have come before it was stopped: what was found
        // before that does not count.
        world.pass();
        let inspect = Some(HostOrder::InspectForRemoval(Stop::Done));
        assert_eq!((order(&world), world.compute.is_some()), (inspect, true));
        world.nova = Some(occupied());
        world.settle();
        assert_eq!(reasons(&world)[..2], ["ServersOnHost", "HostCleaned"]);
        world.mentions("Drained", &["nova-compute is stopped there: delete or"]);
        assert_eq!(world.told_by_node().0, "ServersOnHost");
        assert!(world.compute.is_some());
        world.nova = Some(found);
        world.settle();
        assert!(world.compute.is_none() && world.node.is_none());
        assert_eq!(world.leftovers(), [("n0.example.org".to_owned(), true)]);
    }
}

#[test]
fn a_compute_that_is_not_known_to_have_registered_and_was_not_stopped_is_held_until_it_is_down() {
    let mut world = World::new();
    world.nova = Some(HostProgress::Empty);
    world.delete_node(false);
    let inspect = Some(HostOrder::InspectForRemoval(Stop::Due));
    world.end_unreached(|it| assert_eq!(order(it), inspect));
    world.nova = Some(HostProgress::Removing(Removal::of_service(ServiceRemoval::StillUp)));
    world.settle();
    assert_eq!(order(&world), Some(HostOrder::InspectForRemoval(Stop::Failed)));
    assert_eq!(reasons(&world)[..2], ["StillUp", "HostNotCleaned"]);
    world.mentions("Drained", &["still reports under that name"]);
    world.nova = Some(HostProgress::Empty);
    world.settle();
    assert!(world.compute.is_none());
}

#[test]
fn what_nova_does_not_say_of_an_unregistered_host_holds_the_compute() {
    let denied = Fault::of(Service::Compute, Error::Forbidden("policy".to_owned()));
    let cases = [
        (HostProgress::Pending, "NotRead", "have not been read yet"),
        (HostProgress::CellNotAnswering, "CellNotAnswering", "start that database"),
        (HostProgress::Fails(denied), "NovaNotAnswering", "policy"),
    ];
    for (found, reason, words) in cases {
        let mut world = World::new();
        world.nova = Some(found);
        assert_eq!(n_cleanups(&world.delete_node(false).settle()), 0);
        let told = world.told_by_node();
        assert_eq!(told.0, reason);
        assert!(told.1.contains(words) && told.1.contains(SKIP_CLEANUP), "{}", told.1);
        world.cell = None;
        world.settle();
        let without_cell = said(&world, "Drained").1;
        assert!(without_cell.contains("NovaCell nova-cell1 does not exist."), "{without_cell}");
        let annotations = world.compute.as_mut().unwrap().annotations_mut();
        annotations.insert(SKIP_CLEANUP.to_owned(), "true".to_owned());
        world.settle();
        assert!(world.compute.is_none());
    }
}

#[test]
fn of_a_host_without_a_service_the_drain_is_unknown_and_what_holds_its_stop_is_shown() {
    let mut world = world(HostProgress::NotFound);
    assert_eq!(n_cleanups(&world.delete_node(false).settle()), 1);
    assert_eq!(reasons(&world)[..2], ["ServiceNotFound", "CleaningHost"]);
    assert_eq!(
        (said(&world, "Ready").0, world.told_by_node().0),
        ("CleaningHost".into(), "CleaningHost".into())
    );
}

#[test]
fn a_host_that_nova_has_never_listed_may_have_another_name_there_and_is_not_stopped() {
    let mut world = world(HostProgress::NotFound);
    let status = world.compute.as_mut().unwrap().status.as_mut().unwrap();
    (status.service_id, status.compute_id) = (None, None);
    status.deployed_inputs.insert("bus".into(), "d".into());
    assert_eq!(n_cleanups(&world.delete_node(false).settle()), 0);
    assert_eq!(reasons(&world)[..2], ["ServiceNeverListed", "WaitingForDrain"]);
    world.node_says(
        "ServiceNeverListed",
        &["option host of [DEFAULT]", "compute service list", SKIP_CLEANUP],
    );
    world.nova = Some(HostProgress::OtherHost { compute_id: "c0".into(), host: "n9".into() });
    assert_eq!(n_cleanups(&world.settle()), 0);
    let (reason, message) = said(&world, "Drained");
    let part = "compute node c0 of this host on host n9";
    assert!(reason == "OtherHostName" && message.contains(part), "{message}");
    world.nova = Some(HostProgress::Drained);
    assert_eq!(n_cleanups(&world.settle()), 1, "nova lists it by now");
}

#[test]
fn a_service_that_appears_under_the_name_later_holds_the_compute_and_stays() {
    let mut world = stopped(HostProgress::OtherService { id: "a9".into() });
    world.says(
        "ServiceDeleted",
        "OtherService",
        &["service a9 of host", "compute service delete a9", SKIP_CLEANUP],
    );
    assert!(world.compute.is_some() && world.settle().is_empty(), "nothing has changed");
    let status = world.compute.as_mut().unwrap().status.as_mut().unwrap();
    status.service_id = None;
    assert_eq!(order(&world), Some(remove(OwnService::Unread, true)), "of a release before");
}

#[test]
fn a_host_that_records_another_owner_holds_the_compute_and_keeps_its_service() {
    let mut world = world(HostProgress::Drained);
    world.delete_node(false);
    for attempt in 1..6 {
        world.settle();
        world.fail_as_not_owned("It is ns/Node/n9's.");
        world.settle();
        assert!(matches!(order(&world), Some(HostOrder::DrainForRemoval(..))), "{attempt}");
        world.says(
            "HostCleaned",
            "HostNotOwned",
            &["its service stays in nova", "ns/Node/n9", SKIP_CLEANUP],
        );
        assert!(!said(&world, "HostCleaned").1.contains("3 times"));
        world.wait(11);
    }
    for _ in 0..2 {
        world.settle();
        world.end("Unreachable").settle();
        assert!(matches!(order(&world), Some(HostOrder::DrainForRemoval(..))), "not reached");
        assert_eq!(said(&world, "HostCleaned").0, "HostNotOwned");
        world.wait(11);
    }
    world.settle();
    world.end("Ok").settle();
    assert_eq!(order(&world), Some(remove(OwnService::Is("a0".into()), true)), "it is its again");
}

/// Ends the running attempt with guests on the host.
fn end_with_guests(world: &mut World, path: &str) {
    world.fail(
        path,
        "The host must have no guests",
        "2 guests are on this host, so nova-compute is not stopped: g1 (0f-1), g2 (0f-2).",
    );
}

/// Ends the running attempt with a failure of this task of its playbook.
fn end_at_task(world: &mut World, task: &str) {
    world.fail(PLAY, task, "boom");
}

/// Ends the running attempt for that reason, without a result of the host.
fn end_without_result(world: &mut World, reason: &str) {
    world.end("Failed");
    let status = world.runs.last_mut().unwrap().status.as_mut().unwrap();
    status.hosts.clear();
    status.failures.clear();
    status.reason = Some(reason.to_owned());
}

pub(super) const PLAY: &str = "/runner/project/playbook.yaml:20";

#[test]
fn guests_on_the_host_hold_the_compute_whatever_nova_says_and_are_looked_for_again_and_again() {
    let mut world = world(HostProgress::Drained);
    world.delete_node(false);
    let mut pauses = Vec::new();
    for attempt in 1..7 {
        assert_eq!(n_cleanups(&world.settle()), 1, "{attempt}");
        end_with_guests(&mut world, PLAY);
        assert_eq!(n_cleanups(&world.settle()), 0, "{attempt}");
        assert!(matches!(order(&world), Some(HostOrder::DrainForRemoval(..))), "stays disabled");
        for (reason, message) in
            [said(&world, "HostCleaned"), said(&world, "Ready"), world.told_by_node()]
        {
            assert_eq!(reason, "GuestsOnHost", "{attempt}");
            for part in
                ["host n0.example.org", "2 guests", "g1 (0f-1)", "migrate or delete", SKIP_CLEANUP]
            {
                assert!(message.contains(part), "{message}");
            }
        }
        let failed = world.now;
        while n_cleanups(&world.settle()) == 0 {
            world.now += SignedDuration::from_secs(15);
        }
        pauses.push(world.now.duration_since(failed));
        // The attempt that has begun is the next one.
        end_with_guests(&mut world, PLAY);
        world.settle();
        world.wait(11);
    }
    assert!(pauses.is_sorted() && pauses.last() > pauses.first(), "{pauses:?}");
    for _ in 0..4 {
        world.settle();
        world.end("Unreachable").settle();
        assert_eq!(said(&world, "HostCleaned").0, "GuestsOnHost", "not reached: they may be there");
        world.mentions("HostCleaned", &["g1 (0f-1)"]);
        world.wait(11);
    }
    world.settle();
    world.end("Ok").settle();
    assert_eq!(order(&world), Some(remove(OwnService::Is("a0".into()), true)), "they are gone");
}

#[test]
fn guests_on_the_host_of_a_compute_without_nova_s_api_hold_it_until_the_user_lets_it_go() {
    let mut world = World::new();
    world.delete_node(false);
    for _ in 0..5 {
        world.settle();
        end_with_guests(&mut world, PLAY);
        world.settle();
        assert_eq!(world.told_by_node().0, "GuestsOnHost");
        world.wait(11);
    }
    world.skip().settle();
    assert!(world.node.is_none() && world.compute.is_none());
}

#[test]
fn a_task_that_fails_after_the_guests_are_gone_ends_the_attempts_as_ever() {
    let mut world = world(HostProgress::Drained);
    world.delete_node(false).settle();
    end_with_guests(&mut world, PLAY);
    world.settle();
    world.wait(11).settle();
    end_at_task(&mut world, "Remove nova's files");
    world.settle();
    assert_eq!(said(&world, "HostCleaned").0, "HostNotCleaned");
    assert_eq!(order(&world), Some(remove(OwnService::Is("a0".into()), false)));
}

#[test]
fn guests_that_were_found_count_until_an_attempt_is_known_to_have_come_past_the_look() {
    let mut world = world(HostProgress::Drained);
    world.delete_node(false).settle();
    end_with_guests(&mut world, PLAY);
    // The look itself fails, another file has failed, no result was reported, the spec is refused.
    let ends: [fn(&mut World); 4] = [
        |it| end_at_task(it, "Look for guests"),
        |it| _ = it.end("Failed"),
        |it| end_without_result(it, "DeadlineExceeded"),
        |it| end_without_result(it, "InvalidSpec"),
    ];
    for (attempt, end) in ends.into_iter().cycle().take(8).enumerate() {
        world.settle();
        assert_eq!(n_cleanups(&world.wait(11).settle()), 1, "{attempt}");
        end(&mut world);
        world.settle();
        assert_eq!(said(&world, "HostCleaned").0, "GuestsOnHost", "{attempt}");
        assert!(said(&world, "HostCleaned").1.contains("g1 (0f-1)"), "{attempt}");
        assert!(matches!(order(&world), Some(HostOrder::DrainForRemoval(..))), "{attempt}");
    }
}

#[test]
fn a_compute_that_is_let_go_waits_for_a_place_in_the_list_of_its_cell() {
    let left = |idx: usize| {
        json!({
            "hostName": format!("h{idx:02}"), "compute": "gone", "uid": format!("h{idx:02}"),
            "stopped": true, "since": "2026-01-01T00:00:00Z", "serviceID": "a1",
        })
    };
    let all: Vec<_> = (0..LEFTOVERS).map(left).collect();
    let mut world = world(HostProgress::Drained);
    let status = world.cell.as_mut().unwrap().status.get_or_insert_default();
    status.leftovers = serde_json::from_value(json!(all)).unwrap();
    world.skip().delete_node(false).settle();
    world.says("LeftoverRecorded", "LeftoversFull", &["has 50 entries"]);
    assert_eq!(world.told_by_node(), said(&world, "LeftoverRecorded"));
    assert!(world.settle().is_empty() && world.compute.is_some(), "nothing has changed");
    world.cell.as_mut().unwrap().status.as_mut().unwrap().leftovers.pop();
    world.settle();
    assert!(world.compute.is_none());
    assert!(world.leftovers().contains(&("n0.example.org".to_owned(), false)));
}
