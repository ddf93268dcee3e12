//! Hosts that leave a node set whose services in nova may be another's: what is done about them, and
//! which UUIDs are recorded.

use api::ansibleee::HostFailure;
use jiff::SignedDuration;
use kube::ResourceExt;
use operator_core::object_key::Key;

use super::removals::{START, end, finalizers, host, leaving, order, reconcile, said};
use super::*;
use crate::drain::order::{HostOrder, OwnService, Remove, Stop};
use crate::drain::progress::{HostProgress, Occupied, Removal, ServiceRemoval};
use crate::node_set_computes::claims::Claim;
use crate::node_set_computes::removal::condition::is_contested;
use crate::node_set_computes::removal::record::{HOSTS, HostRecord, records, text};

/// A host that leaves, and on which no deployment of nova has succeeded.
fn unproven(progress: HostProgress) -> Observed {
    let mut seen = leaving(progress);
    host(&mut seen).claim = Claim::Unproven;
    seen
}

#[test]
fn of_a_host_without_a_proof_nothing_is_changed_in_nova_and_servers_hold_it() {
    let occupied = Occupied { servers: vec!["server".to_owned()].into(), ..Occupied::default() };
    let mut seen = unproven(HostProgress::Occupied(occupied));
    assert_eq!(order(&seen), Some(HostOrder::InspectForRemoval(Stop::Due)));
    assert_eq!(reconcile(&mut seen, START), ["status"]);
    let (reason, message) = said(&seen).unwrap();
    assert!(reason == "ServersOnHost" && message.contains("has 1 server"), "{message}");
    assert!(!message.contains("schedules nothing"), "its service was not disabled: {message}");
    host(&mut seen).progress = HostProgress::Empty;
    assert_eq!(reconcile(&mut seen, START), ["run", "status"]);
    let variables = &host(&mut seen).runs[0].spec.extra_vars;
    assert!(!variables.contains_key("edpm_nova_host_leaves"), "agents may be another's");
    end(&mut seen, "Ok", START);
    // What was found before the stop does not count: another order has its own findings.
    assert_eq!(order(&seen), Some(HostOrder::InspectForRemoval(Stop::Done)));
    let occupied = Occupied { servers: vec!["server".to_owned()].into(), ..Occupied::default() };
    host(&mut seen).progress = HostProgress::Occupied(occupied);
    reconcile(&mut seen, START);
    let (_, message) = said(&seen).unwrap();
    assert!(message.contains("does not run there: evacuate or delete them;"), "{message}");
    let mut proven = seen.clone();
    host(&mut proven).claim = Claim::Own;
    let Some(HostOrder::Remove(order)) = order(&proven) else { panic!() };
    assert!(!order.awaits_agents, "its agents were not stopped");
    // After a restart of the operator.
    host(&mut seen).progress = HostProgress::Pending;
    assert_eq!(reconcile(&mut seen, START), [""; 0]);
    host(&mut seen).progress = HostProgress::Empty;
    let mut without = seen.clone();
    assert_eq!(reconcile(&mut seen, START), ["report", "status", "LeftInNova"]);
    assert_eq!(finalizers(&seen), ["b"]);
    host(&mut without).health.service = ServiceHealth::NotFound;
    assert_eq!(reconcile(&mut without, START), ["report", "status"], "nova has no service of it");
}

#[test]
fn a_host_without_a_proof_that_could_not_be_stopped_is_held_until_it_is_down() {
    let mut seen = unproven(HostProgress::Empty);
    let mut now = START;
    for _ in 0..3 {
        assert_eq!(order(&seen), Some(HostOrder::InspectForRemoval(Stop::Due)));
        assert!(reconcile(&mut seen, now).contains(&"run".to_owned()));
        end(&mut seen, "Unreachable", now);
        now += SignedDuration::from_mins(11);
    }
    assert_eq!(order(&seen), Some(HostOrder::InspectForRemoval(Stop::Failed)));
    let still_up = Removal::of_service(ServiceRemoval::StillUp);
    host(&mut seen).progress = HostProgress::Removing(still_up);
    reconcile(&mut seen, now);
    let (reason, message) = said(&seen).unwrap();
    assert_eq!(reason, "StillUp");
    for part in ["was not stopped on host a.example.org", "still reports", "skip-cleanup"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(finalizers(&seen), ["a", "b"]);
    host(&mut seen).progress = HostProgress::Empty;
    reconcile(&mut seen, now);
    assert_eq!(finalizers(&seen), ["b"]);
}

#[test]
fn a_name_under_which_another_object_has_deployed_nova_too_is_held_and_not_touched() {
    let mut seen = leaving(HostProgress::Pending);
    host(&mut seen).claim = Claim::Contested("OpenStackDataPlaneNodeSet other/edpm".into());
    assert_eq!(order(&seen), None);
    assert_eq!(reconcile(&mut seen, START), ["status"]);
    let (reason, message) = said(&seen).unwrap();
    assert_eq!(reason, "HostContested");
    assert!(is_contested(&seen.set), "it is enqueued by computes of all namespaces");
    for part in ["OpenStackDataPlaneNodeSet other/edpm has deployed", "skip-cleanup"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(reconcile(&mut seen, START), [""; 0], "nothing has changed");
    seen.removals.is_skipped = true;
    host(&mut seen).is_on_record = true;
    assert_eq!(reconcile(&mut seen, START), ["report", "status"]);
    assert_eq!(finalizers(&seen), ["b"]);
}

/// The report has these UUIDs of the host that leaves from now on, and nova's service has another.
fn recorded(seen: &mut Observed, service_id: Option<&str>) {
    let report = seen.report.found().unwrap();
    let record = HostRecord { service_id: service_id.map(str::to_owned), ..<_>::default() };
    let mut all = records(report);
    all.insert("a".into(), record.clone());
    let mut report = HostReadiness::clone(report);
    report.annotations_mut().insert(HOSTS.into(), text(&all));
    seen.report = Report::Found(Arc::new(report));
    host(seen).record = record;
    host(seen).health.service_id = Some("t".into());
}

#[test]
fn a_deployment_that_succeeds_while_its_host_leaves_is_recorded() {
    let mut seen = leaving(HostProgress::Pending);
    recorded(&mut seen, Some("s"));
    host(&mut seen).claim = Claim::Unproven;
    let is_unproven = |seen: &Observed| records(seen.report.found().unwrap())["a"].is_unproven;
    for before in [true, false] {
        host(&mut seen).record.is_unproven = before;
        reconcile(&mut seen, START);
        assert_eq!(is_unproven(&seen), before);
    }
}

fn service_id(seen: &Observed) -> Option<String> {
    records(seen.report.found()?)["a"].service_id.clone()
}

#[test]
fn the_service_is_recorded_when_the_removal_begins_and_no_later_one_is_taken_for_it() {
    let mut seen = leaving(HostProgress::Pending);
    recorded(&mut seen, None);
    assert!(reconcile(&mut seen, START).contains(&"report".to_owned()));
    assert_eq!(service_id(&seen).as_deref(), Some("t"));
    let mut seen = leaving(HostProgress::Pending);
    recorded(&mut seen, Some("s"));
    reconcile(&mut seen, START);
    assert_eq!(service_id(&seen).as_deref(), Some("s"), "that of the deployed host stays");
    for claim in [Claim::Unproven, Claim::Contested("other".into())] {
        let mut seen = leaving(HostProgress::Pending);
        recorded(&mut seen, None);
        host(&mut seen).claim = claim;
        reconcile(&mut seen, START);
        assert_eq!(service_id(&seen), None);
    }
    let mut seen = leaving(HostProgress::NotFound);
    recorded(&mut seen, None);
    host(&mut seen).health.service_id = None;
    reconcile(&mut seen, START);
    end(&mut seen, "Ok", START);
    host(&mut seen).health.service_id = Some("t".into());
    host(&mut seen).progress = HostProgress::OtherService { id: "t".into() };
    reconcile(&mut seen, START);
    let (reason, message) = said(&seen).unwrap();
    assert!(reason == "OtherService" && message.contains("service t"), "{message}");
    assert_eq!(service_id(&seen), None, "it appeared after nova-compute was stopped");
    let Some(HostOrder::Remove(Remove { service, .. })) = order(&seen) else { panic!("{seen:?}") };
    assert_eq!(service, OwnService::None);
}

#[test]
fn a_host_is_held_until_nova_has_answered_whether_it_has_a_service_of_it() {
    let mut seen = leaving(HostProgress::Pending);
    let of = host(&mut seen);
    (of.cell, of.record) = (None, HostRecord::default());
    for unread in [ServiceHealth::Pending, ServiceHealth::ApiFails, ServiceHealth::CellNotAnswering]
    {
        host(&mut seen).health.service = unread;
        reconcile(&mut seen, START);
        let (reason, message) = said(&seen).unwrap();
        assert!(reason == "NovaNotAnswering" && message.contains("skip-cleanup"), "{message}");
        assert_eq!(finalizers(&seen), ["a", "b"]);
    }
    host(&mut seen).health.service = ServiceHealth::NotFound;
    host(&mut seen).health.missing_since = Some(START);
    reconcile(&mut seen, START);
    let (reason, message) = said(&seen).unwrap();
    assert_eq!((reason.as_str(), finalizers(&seen).len()), ("ServiceNeverListed", 2));
    for part in ["canonical_hostname", "compute service list", "skip-cleanup"] {
        assert!(message.contains(part), "nova was deployed there under some name: {message}");
    }
    host(&mut seen).claim = Claim::Unproven;
    reconcile(&mut seen, START);
    assert_eq!(finalizers(&seen), ["b"]);
}

#[test]
fn a_host_that_nova_has_not_shown_is_held_during_a_deployment_and_until_nova_was_read_after_it() {
    let mut seen = leaving(HostProgress::Pending);
    let of = host(&mut seen);
    (of.cell, of.record, of.is_reported) = (None, HostRecord::default(), false);
    (of.health.service, of.health.missing_since) = (ServiceHealth::NotFound, Some(START));
    reconcile(&mut seen, START);
    assert_eq!(said(&seen).unwrap().0, "WaitingForDeployment");
    host(&mut seen).is_reported = true;
    let later = START + SignedDuration::from_secs(60);
    for deployed_at in [Timestamp::MAX, later] {
        host(&mut seen).deployed_at = Some(deployed_at);
        reconcile(&mut seen, START);
        let (reason, message) = said(&seen).unwrap();
        assert!(reason == "NotRead" && message.contains("skip-cleanup"), "{message}");
        assert_eq!(finalizers(&seen), ["a", "b"]);
    }
    let pause = decide(&seen, None, later).requeue_after;
    assert!(pause.is_some_and(|it| it.as_secs() <= 16), "readings enqueue nothing");
    host(&mut seen).health.missing_since = Some(later + SignedDuration::from_secs(1));
    host(&mut seen).claim = Claim::Unproven;
    reconcile(&mut seen, START);
    assert_eq!(finalizers(&seen), ["b"]);
}

#[test]
fn a_host_whose_cell_is_gone_is_held_by_its_record_and_is_removed_in_one_that_shares_its_nova() {
    let mut seen = leaving(HostProgress::Pending);
    (host(&mut seen).cell, host(&mut seen).health.service) = (None, ServiceHealth::NotFound);
    assert_eq!(reconcile(&mut seen, START), ["status"]);
    let (reason, message) = said(&seen).unwrap();
    assert_eq!(reason, "NovaNotAnswering");
    for part in ["NovaCell nova-cell1, which is gone", "same Keystone and region", "skip-cleanup"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(finalizers(&seen), ["a", "b"]);
    host(&mut seen).cell = Some((Key::new("ns", "nova-cell2"), "secret".into()));
    reconcile(&mut seen, START);
    assert!(matches!(order(&seen), Some(HostOrder::DrainForRemoval(..))));
    assert_eq!(records(seen.report.found().unwrap())["a"].cell, "nova-cell2");
    host(&mut seen).cell = None;
    (seen.removals.is_skipped, host(&mut seen).is_on_record) = (true, true);
    reconcile(&mut seen, START);
    assert_eq!(finalizers(&seen), ["b"]);
}

/// What a run reports of host `a` that records another owner.
fn not_owned() -> Vec<HostFailure> {
    let failures = json!([{
        "host": "a", "path": "/opt/edpm/plays/owner-check.yaml:80",
        "task": "The host must be the owner's", "message": "It is ns/Node/n9's.",
    }]);
    serde_json::from_value(failures).unwrap()
}

#[test]
fn a_host_that_records_another_owner_is_held_and_keeps_its_service() {
    let mut seen = leaving(HostProgress::Drained);
    let mut now = START;
    for attempt in 1..6 {
        assert!(reconcile(&mut seen, now).contains(&"run".to_owned()), "{attempt}");
        end(&mut seen, "Failed", now);
        let run = Arc::make_mut(host(&mut seen).runs.last_mut().unwrap());
        run.status.as_mut().unwrap().failures = not_owned();
        reconcile(&mut seen, now);
        assert!(matches!(order(&seen), Some(HostOrder::DrainForRemoval(..))), "{attempt}");
        let (reason, message) = said(&seen).unwrap();
        assert!(reason == "HostNotOwned" && message.contains("stays in nova"), "{message}");
        now += SignedDuration::from_mins(11);
    }
    host(&mut seen).claim = Claim::Unproven;
    host(&mut seen).progress = HostProgress::Empty;
    let inspect = HostOrder::InspectForRemoval(Stop::Done);
    assert_eq!(order(&seen), Some(inspect), "the other owner's nova-compute may run");
    reconcile(&mut seen, now);
    assert_eq!(finalizers(&seen), ["b"], "nothing of it would be deleted in nova");
}

#[test]
fn a_host_that_records_another_owner_is_held_when_it_is_not_reached_later_and_when_the_runs_go() {
    let mut seen = leaving(HostProgress::Drained);
    let mut now = START;
    for result in ["Failed", "Unreachable", "Unreachable", "Unreachable"] {
        assert!(reconcile(&mut seen, now).contains(&"run".to_owned()), "{result}");
        end(&mut seen, result, now);
        if result == "Failed" {
            let run = Arc::make_mut(host(&mut seen).runs.last_mut().unwrap());
            run.status.as_mut().unwrap().failures = not_owned();
        }
        reconcile(&mut seen, now);
        let record = records(seen.report.found().unwrap()).remove("a").unwrap();
        host(&mut seen).record = record;
        assert!(matches!(order(&seen), Some(HostOrder::DrainForRemoval(..))), "{result}");
        let (reason, message) = said(&seen).unwrap();
        assert_eq!(reason, "HostNotOwned", "{result}");
        assert!(message.contains("It is ns/Node/n9's"), "{message}");
        now += SignedDuration::from_mins(11);
    }
    host(&mut seen).runs.remove(0);
    assert!(matches!(order(&seen), Some(HostOrder::DrainForRemoval(..))), "its run is gone");
    reconcile(&mut seen, now);
    end(&mut seen, "Ok", now);
    assert!(matches!(order(&seen), Some(HostOrder::Remove(_))));
    reconcile(&mut seen, now);
    assert!(!records(seen.report.found().unwrap())["a"].is_another_s);
}

#[test]
fn guests_on_a_host_that_leaves_hold_it_also_when_it_is_not_reached_later() {
    let guests = json!([{
        "host": "a", "path": "/runner/project/playbook.yaml:20",
        "task": "The host must have no guests", "message": "1 guest is on this host: g1.",
    }]);
    let mut seen = leaving(HostProgress::Drained);
    let mut now = START;
    for result in ["Failed", "Failed", "Failed", "Failed", "Unreachable", "Unreachable"] {
        assert!(reconcile(&mut seen, now).contains(&"run".to_owned()), "{result}");
        end(&mut seen, result, now);
        if result == "Failed" {
            let run = Arc::make_mut(host(&mut seen).runs.last_mut().unwrap());
            let failures = serde_json::from_value(guests.clone()).unwrap();
            run.status.as_mut().unwrap().failures = failures;
        }
        reconcile(&mut seen, now);
        assert!(matches!(order(&seen), Some(HostOrder::DrainForRemoval(..))), "{result}");
        let (reason, message) = said(&seen).unwrap();
        assert_eq!(reason, "GuestsOnHost", "{result}");
        assert!(message.contains("1 guest is on this host: g1"), "{message}");
        now += SignedDuration::from_mins(11);
    }
    reconcile(&mut seen, now);
    end(&mut seen, "Ok", now);
    assert!(matches!(order(&seen), Some(HostOrder::Remove(_))));
}

#[test]
fn a_host_that_is_let_go_waits_for_a_place_in_the_list_of_its_cell() {
    let mut seen = leaving(HostProgress::Pending);
    (seen.removals.is_skipped, host(&mut seen).is_list_full) = (true, true);
    reconcile(&mut seen, START);
    let (reason, message) = said(&seen).unwrap();
    assert_eq!((reason.as_str(), finalizers(&seen).len()), ("LeftoversFull", 2));
    assert!(
        message.contains("status.leftovers of NovaCell nova-cell1 has 50 entries"),
        "{message}"
    );
    (host(&mut seen).is_list_full, host(&mut seen).is_on_record) = (false, true);
    reconcile(&mut seen, START);
    assert_eq!(finalizers(&seen), ["b"]);
}
