//! A cell that is being deleted is held while its hosts have servers, or while that is unknown.

use api::nova::Management;
use kube::ResourceExt;
use nova_config::annotations::SKIP_CLEANUP;
use openstack_client::{Error, Fault, Service};

use super::*;
use crate::cell::hosts::orders::with_progress;
use crate::cell::observed::hosts::HostsSeen;
use crate::nova::drain::findings::Findings;
use crate::nova::drain::progress::{HostProgress, Occupied};

/// A cell that is being deleted, without computes, of whose hosts this was found.
fn deleted(hosts: Option<Vec<(&str, HostProgress)>>) -> Observed {
    let named = |all: Vec<(&str, HostProgress)>| {
        all.into_iter().map(|(host, it)| (host.to_owned(), it)).collect()
    };
    let hosts = HostsSeen { hosts: hosts.map(named), ..HostsSeen::default() };
    let mut seen = Observed { hosts: Some(hosts), ..seen() };
    seen.computes.clear();
    let cell = Arc::make_mut(&mut seen.cell);
    cell.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    seen
}

fn occupied(servers: &[&str], migrations: usize) -> HostProgress {
    let servers = servers.iter().map(|it| (*it).to_owned()).collect();
    HostProgress::Occupied(Occupied { servers, migrations, ..Occupied::default() })
}

fn goes(seen: &Observed) -> bool {
    let plan = recorded(decide(seen, None, Timestamp::UNIX_EPOCH));
    plan.steps.iter().any(|it| matches!(it.write, Write::RemoveFinalizer { .. }))
}

#[track_caller]
fn check(seen: &Observed, reason: &str, part: &str) {
    assert!(!goes(seen));
    says(&status(seen), "Released", reason, &[part, SKIP_CLEANUP]);
}

#[test]
fn servers_and_open_migrations_hold_a_cell_and_are_named_by_host() {
    let hosts = vec![
        ("h0", HostProgress::Empty),
        ("h1", occupied(&["b0", "b1"], 0)),
        ("h2", occupied(&[], 1)),
        ("h3", HostProgress::Pending),
    ];
    let part = "any more: h1 (servers b0, b1, 0 open migrations), h2 (no servers, 1 open \
                migration). Migrate";
    check(&deleted(Some(hosts)), "ServersOnHosts", part);
    let unconfirmed = vec!["b8".to_owned()];
    let found = Occupied { migrations: 1, unconfirmed: unconfirmed.into(), ..Occupied::default() };
    let part = "h1 (no servers, 1 open migration, to be confirmed or reverted: b8). Migrate";
    let hosts = vec![("h1", HostProgress::Occupied(found))];
    check(&deleted(Some(hosts)), "ServersOnHosts", part);
}

#[test]
fn hosts_that_leave_node_sets_hold_a_cell_until_they_are_removed() {
    let mut seen = deleted(Some(vec![]));
    seen.computes = vec![compute("n0")];
    Arc::make_mut(&mut seen.computes[0]).spec.management = Management::Observed;
    assert!(!goes(&seen));
    says(&status(&seen), "Released", "CellInUse", &["1 do: n0. Take", "out of their node sets"]);
    seen.computes.clear();
    assert!(goes(&seen));
}

#[test]
fn what_cannot_be_asked_holds_a_cell_with_the_cause() {
    let busy = Fault::of(Service::Compute, Error::Busy("later".to_owned()));
    let unread = HostProgress::Unread { cell: "nova-cell1".to_owned() };
    for (hosts, part) in [
        (None, "see its condition NovaAPIReady"),
        (Some(vec![("h0", HostProgress::Pending)]), "host h0 has not been read yet"),
        (Some(vec![("h0", HostProgress::CellNotAnswering)]), "start that database"),
        (Some(vec![("h0", HostProgress::Fails(busy))]), "later"),
        (Some(vec![("h0", unread)]), "inputs of NovaCell nova-cell1"),
    ] {
        check(&deleted(hosts), "ServersUnknown", part);
    }
}

#[test]
fn a_cell_goes_when_its_hosts_are_empty_or_it_has_none() {
    let empty = vec![("h0", HostProgress::Empty), ("h1", HostProgress::NotFound)];
    assert!(goes(&deleted(Some(empty))));
    assert!(goes(&deleted(Some(vec![]))));
    let without_api = Observed { hosts: None, ..deleted(None) };
    assert!(goes(&without_api), "nova's API is not used");
}

#[test]
fn a_namespace_that_goes_and_the_annotation_let_a_cell_go_with_servers() {
    let held = deleted(Some(vec![("h0", occupied(&["b0"], 0))]));
    assert!(!goes(&held));
    assert!(goes(&Observed { namespace_goes: true, ..held.clone() }));
    let mut skipped = held.clone();
    let cell = Arc::make_mut(&mut skipped.cell);
    cell.annotations_mut().insert(SKIP_CLEANUP.to_owned(), "true".to_owned());
    assert!(goes(&skipped));
    skipped.computes = vec![compute("n0")];
    assert!(!goes(&skipped), "its computes hold it all the same");
}

#[test]
fn a_cell_gets_its_finalizer_before_it_has_computes_where_nova_is_asked() {
    let mut seen = deleted(None);
    let cell = Arc::make_mut(&mut seen.cell);
    (cell.metadata.deletion_timestamp, cell.metadata.finalizers) = (None, None);
    let adds = |seen: &Observed| {
        let plan = recorded(decide(seen, None, Timestamp::UNIX_EPOCH));
        plan.steps.iter().any(|it| matches!(it.write, Write::AddFinalizer { .. }))
    };
    assert!(adds(&seen));
    seen.hosts = None;
    assert!(!adds(&seen));
}

#[test]
fn uuids_that_are_still_to_be_deleted_hold_a_cell_unless_its_user_lets_it_go() {
    let mut seen = deleted(Some(vec![("h0", HostProgress::NotFound)]));
    assert!(goes(&seen));
    let left = |service_id: Option<&str>| {
        let left = json!([{
            "hostName": "h0", "compute": "n0", "uid": "u0", "stopped": true,
            "since": "2026-01-01T00:00:00Z", "serviceID": service_id,
        }]);
        serde_json::from_value(left).unwrap()
    };
    let cell = Arc::make_mut(&mut seen.cell);
    cell.status.get_or_insert_default().leftovers = left(Some("a0"));
    check(&seen, "LeftoversInNova", "in nova and placement is deleted: h0");
    let mut shown = seen.clone();
    Arc::make_mut(&mut shown.cell).status.as_mut().unwrap().leftovers = left(None);
    assert!(goes(&shown), "an entry without UUIDs is only shown");
    let cell = Arc::make_mut(&mut seen.cell);
    cell.annotations_mut().insert(SKIP_CLEANUP.to_owned(), "true".to_owned());
    assert!(goes(&seen));
}

#[test]
fn hosts_of_a_cell_are_read_eight_at_a_time_beside_those_that_are_empty() {
    let names: Vec<String> = (10..30).map(|idx| format!("h{idx}")).collect();
    let pending = |it: &String| (it.clone(), HostProgress::Pending);
    let mut seen = deleted(None);
    seen.hosts.as_mut().unwrap().hosts = Some(names.iter().map(pending).collect());
    let mut found = Findings::default();
    // The orders of two plans follow from what is found with those of the one before.
    for n_read in [8, 12] {
        seen = with_progress(&seen, &found);
        let orders = decide(&seen, None, Timestamp::UNIX_EPOCH).orders;
        let hosts: Vec<&str> = orders.iter().map(|it| it.what.host.as_str()).collect();
        assert_eq!(hosts, names[..n_read]);
        let orders = orders.into_iter().map(|it| it.what);
        let empty = ["h10", "h12", "h14", "h16"];
        let progress = |it: &OrderOfHost| {
            let is_empty = empty.contains(&it.host.as_str());
            if is_empty { HostProgress::Empty } else { HostProgress::CellNotAnswering }
        };
        found = orders.map(|it| (it.clone(), progress(&it))).collect();
    }
    let known = with_progress(&seen, &found).hosts.unwrap().hosts.unwrap();
    let n_pending = known.iter().filter(|it| it.1 == HostProgress::Pending).count();
    assert_eq!(n_pending, names.len() - 12);
}
