//! Leftovers with UUIDs: how they are recorded, shown and worked off.

use api::conditions::Severity;
use api::nova::Leftover;
use api::nova::cell::LEFTOVERS;
use openstack_client::{Error, Fault, Service};

use super::*;
use crate::cell::hosts::orders::with_progress;
use crate::cell::observed::hosts::{HostsSeen, LeftoverSeen, user};
use crate::compute::removal::leftover_places::is_full;
use crate::nova::drain::findings::Findings;
use crate::nova::drain::order::LeftBehind;
use crate::nova::drain::progress::{
    HostProgress, IdentityUse, PlacementRemoval, Removal, ServiceRemoval,
};

const HOST: &str = "n0.example.org";

fn entry(service_id: Option<&str>, compute_id: Option<&str>) -> Leftover {
    serde_json::from_value(json!({
        "hostName": HOST, "compute": "n0", "uid": "u0", "stopped": true,
        "since": "2026-01-01T00:00:00Z", "serviceID": service_id, "computeID": compute_id,
    }))
    .unwrap()
}

/// A cell with that leftover and without computes, of which this was found.
fn cell_with(entry: Leftover, found: Option<LeftoverSeen>) -> Observed {
    let leftovers = found.map(|it| (entry.uid.clone(), it)).into_iter().collect();
    let hosts = Some(HostsSeen { leftovers, ..HostsSeen::default() });
    let mut seen = Observed { hosts, ..seen() };
    seen.computes.clear();
    let status = CellStatus { leftovers: vec![entry], ..CellStatus::default() };
    Arc::make_mut(&mut seen.cell).status = Some(status);
    seen
}

fn found(progress: HostProgress) -> Observed {
    cell_with(entry(Some("a0"), Some("c0")), Some(LeftoverSeen::Progress(progress)))
}

fn removing(service: ServiceRemoval, placement: PlacementRemoval) -> HostProgress {
    HostProgress::Removing(Removal { service, placement, agents: None })
}

/// A compute that is registered under the host name, with these UUIDs.
fn registered(service_id: &str, compute_id: &str) -> Arc<ExternalCompute> {
    let mut compute = compute("n0");
    let status = Arc::make_mut(&mut compute).status.as_mut().unwrap();
    status.service_id = Some(service_id.to_owned());
    status.compute_id = Some(compute_id.to_owned());
    compute
}

/// A compute that is let go without a removal from nova, with the UUID of its service.
fn let_go(uid: &str, service_id: &str) -> Arc<ExternalCompute> {
    let mut compute = registered(service_id, "c0");
    let it = Arc::make_mut(&mut compute);
    it.metadata.uid = Some(uid.to_owned());
    it.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    let skipped = conditions::fault("HostCleaned", Severity::Error, "CleanupSkipped", "x");
    it.status.as_mut().unwrap().conditions = vec![skipped];
    compute
}

fn message(seen: &Observed) -> String {
    let leftovers = status(seen).leftovers;
    assert_eq!(leftovers.len(), 1, "{leftovers:?}");
    leftovers[0].message.clone()
}

/// The Events of the plan about leftovers, by reason.
fn events(seen: &Observed) -> Vec<(String, String)> {
    let plan = recorded(decide(seen, None, Timestamp::UNIX_EPOCH));
    let notices = plan.steps.into_iter().filter_map(|it| {
        let Write::Status { notices, .. } = it.write else { return None };
        Some(notices)
    });
    let of_leftovers = notices.flatten().filter(|it| it.reason.starts_with("Left"));
    of_leftovers.map(|it| (it.reason, it.note)).collect()
}

#[test]
fn a_compute_that_is_let_go_leaves_the_uuids_that_were_read() {
    let mut seen = Observed { hosts: Some(HostsSeen::default()), ..seen() };
    seen.computes = vec![let_go("n0", "a0")];
    let left = status(&seen).leftovers;
    let ids = (left[0].service_id.as_deref(), left[0].compute_id.as_deref());
    assert_eq!((ids, left[0].message.as_str()), ((Some("a0"), Some("c0")), ""));
    let [(reason, note)] = &events(&seen)[..] else { panic!("{:?}", events(&seen)) };
    assert_eq!(reason, "LeftInNova");
    assert!(note.contains("They are deleted once nova's API shows"), "{note}");
    seen.hosts = None;
    assert!(events(&seen)[0].1.contains("openstack compute service delete"), "nobody deletes them");
}

#[test]
fn an_entry_goes_with_an_event_once_everything_of_it_is_deleted() {
    let seen = found(removing(ServiceRemoval::Done, PlacementRemoval::Done));
    assert_eq!(status(&seen).leftovers, []);
    let [(reason, note)] = &events(&seen)[..] else { panic!("{:?}", events(&seen)) };
    assert!(reason == "LeftoverDeleted" && note.contains(HOST), "{reason}: {note}");
    let seen = found(removing(ServiceRemoval::Done, PlacementRemoval::Pending));
    assert_eq!((status(&seen).leftovers.len(), events(&seen).len()), (1, 0));
}

#[test]
fn what_holds_an_entry_is_in_its_message() {
    let kept = ServiceRemoval::Kept {
        servers: vec!["b0".to_owned()].into(),
        message: "it hosts instances".to_owned(),
    };
    let provider = PlacementRemoval::Kept { provider: "c0".into(), message: "in use".into() };
    let aggregates = PlacementRemoval::InAggregates(vec!["rack7".to_owned()].into());
    let denied = Fault::of(Service::Compute, Error::Forbidden("policy".to_owned()));
    for (progress, part) in [
        (removing(ServiceRemoval::StillUp, PlacementRemoval::Pending), "systemctl disable --now"),
        (removing(kept, PlacementRemoval::Pending), "it hosts instances. Servers on it: b0"),
        (removing(ServiceRemoval::Done, provider), "resource provider c0"),
        (removing(ServiceRemoval::Done, aggregates), "rack7"),
        (
            HostProgress::Identity(IdentityUse::OtherHost {
                compute_id: "c0".to_owned(),
                host: "n9.example.org".to_owned(),
            }),
            "Nova has compute node c0 on host n9.example.org now",
        ),
        (
            HostProgress::OtherService { id: "a9".to_owned() },
            "service a9 of the host, which is not",
        ),
        (HostProgress::Fails(denied), "the role admin"),
        (HostProgress::Unread { cell: "nova-cell1".to_owned() }, "inputs of NovaCell nova-cell1"),
        (HostProgress::CellNotAnswering, "start that database"),
        (HostProgress::CellNotConfirmed, "no other host shows"),
    ] {
        let found = message(&found(progress));
        assert!(found.contains(part), "{found}");
    }
}

#[test]
fn a_pass_that_has_not_ended_leaves_the_message_and_writes_nothing() {
    let mut seen = found(HostProgress::CellNotAnswering);
    while pass(&mut seen) {}
    let before = message_of(&seen);
    let pending = LeftoverSeen::Progress(HostProgress::Pending);
    seen.hosts.as_mut().unwrap().leftovers.insert("u0".to_owned(), pending);
    assert!(!pass(&mut seen), "nothing is written");
    assert_eq!(message_of(&seen), before);
}

fn message_of(seen: &Observed) -> String {
    seen.cell.status.as_ref().unwrap().leftovers[0].message.clone()
}

#[test]
fn an_entry_whose_host_is_in_use_again_is_shown_until_the_uuids_are_those_in_use() {
    let in_use = LeftoverSeen::InUse("NovaExternalCompute n0".to_owned());
    let mut seen = cell_with(entry(Some("a0"), Some("c0")), Some(in_use));
    seen.computes = vec![registered("a0", "c9")];
    let found = message(&seen);
    assert!(found.contains("belongs to NovaExternalCompute n0 again"), "{found}");
    seen.computes = vec![registered("a0", "c0")];
    assert_eq!(status(&seen).leftovers, []);
    let other = Some(LeftoverSeen::OtherNode("c9".to_owned()));
    let found = message(&cell_with(entry(Some("a0"), Some("c0")), other));
    assert!(found.contains("compute node c9"), "{found}");
}

#[test]
fn an_entry_without_uuids_or_without_novas_api_is_as_before() {
    let mut seen = cell_with(entry(None, None), None);
    assert_eq!(message(&seen), "");
    seen.computes = vec![registered("a0", "c0")];
    assert_eq!(status(&seen).leftovers, []);
    let mut seen = cell_with(entry(Some("a0"), Some("c0")), None);
    seen.hosts = None;
    assert_eq!(message(&seen), "");
    seen.computes = vec![registered("a0", "c9")];
    assert_eq!(status(&seen).leftovers, []);
}

#[test]
fn a_host_name_belongs_to_a_compute_that_has_it_or_has_no_host_name_yet() {
    let left = entry(Some("a0"), None);
    assert_eq!(user(&left, &[compute("n1")]), None);
    let expected = Some("NovaExternalCompute n0".to_owned());
    assert_eq!(user(&left, &[compute("n1"), compute("n0")]), expected);
    let mut new = compute("n0");
    Arc::make_mut(&mut new).status = None;
    assert_eq!(user(&left, &[new]), expected, "it has no host name yet");
}

/// So many entries with UUIDs, the earliest first.
fn entries(n: usize) -> Vec<Leftover> {
    let numbered = |idx: usize| {
        let (host_name, uid) = (format!("h{idx:02}.example.org"), format!("h{idx:02}"));
        Leftover { host_name, uid, ..entry(Some("a0"), Some("c0")) }
    };
    (0..n).map(numbered).collect()
}

#[test]
fn no_entry_with_uuids_is_dropped_and_what_finds_no_place_waits_for_one() {
    let mut seen = cell_with(entry(None, None), None);
    let uids = |seen: &Observed| -> Vec<String> {
        status(seen).leftovers.into_iter().map(|it| it.uid).collect()
    };
    let list = |seen: &mut Observed, all: Vec<Leftover>| {
        Arc::make_mut(&mut seen.cell).status.as_mut().unwrap().leftovers = all;
    };
    list(&mut seen, entries(LEFTOVERS));
    assert!(is_full(&seen.cell));
    seen.computes = vec![let_go("new", "a9")];
    let before: Vec<String> = entries(LEFTOVERS).into_iter().map(|it| it.uid).collect();
    assert_eq!(uids(&seen), before);
    // One entry is worked off.
    let done = removing(ServiceRemoval::Done, PlacementRemoval::Done);
    let worked_off = [("h07".to_owned(), LeftoverSeen::Progress(done))].into();
    seen.hosts = Some(HostsSeen { leftovers: worked_off, ..HostsSeen::default() });
    let after = uids(&seen);
    assert!(after.len() == LEFTOVERS && after.contains(&"new".to_owned()), "{after:?}");
    // One without UUIDs gives way, and what was recorded stays.
    let mut all = entries(LEFTOVERS - 1);
    all.push(Leftover { uid: "shown".into(), ..entry(None, None) });
    list(&mut seen, all.clone());
    assert!(!is_full(&seen.cell));
    seen.hosts = Some(HostsSeen::default());
    assert!(!uids(&seen).contains(&"shown".to_owned()));
    all.pop();
    all.push(Leftover { uid: "new".into(), ..entry(Some("a9"), None) });
    list(&mut seen, all);
    seen.computes.push(let_go("a", "a8"));
    let after = uids(&seen);
    assert!(after.contains(&"new".to_owned()) && !after.contains(&"a".to_owned()), "{after:?}");
}

#[test]
fn a_leftover_is_deleted_by_an_order_with_its_uuids_and_what_was_found_counts_for_them_alone() {
    let seen = found(HostProgress::Pending);
    let orders = recorded(decide(&seen, None, Timestamp::UNIX_EPOCH)).orders;
    assert_eq!(orders.len(), 1, "{orders:?}");
    let order = orders[0].what.clone();
    let left = LeftBehind { service_id: Some("a0".into()), compute_id: Some("c0".into()) };
    assert_eq!((order.host.as_str(), order.leftover()), (HOST, Some(&left)));
    let findings: Findings = [(order, HostProgress::CellNotAnswering)].into_iter().collect();
    let progress = |seen: &Observed| {
        with_progress(seen, &findings).hosts.unwrap().leftovers.remove("u0").unwrap()
    };
    assert_eq!(progress(&seen), LeftoverSeen::Progress(HostProgress::CellNotAnswering));
    let pending = || LeftoverSeen::Progress(HostProgress::Pending);
    let other = cell_with(entry(Some("a1"), Some("c0")), Some(pending()));
    assert_eq!(progress(&other), pending());
    let used = cell_with(entry(Some("a0"), Some("c0")), Some(LeftoverSeen::InUse("x".into())));
    assert_eq!(decide(&used, None, Timestamp::UNIX_EPOCH).orders, []);
}
