//! The condition on the hosts of a node set that are drained: how they count, which are named, and
//! what stays until they were read.

use api::conditions::find;
use nova_config::conditions::{HOSTS_COMPUTES_UP, NODE_DRAINED};
use openstack_client::error::Fault;
use openstack_client::{Error, Service};
use operator_core::object_key::Key;

use super::*;
use crate::drain::order::{Drain, DrainMode, HostOrder, MARKER};
use crate::drain::progress::{HostProgress, Occupied};
use crate::drain::request::DrainRequest;
use crate::node_set_computes::observed::{HostAccess, HostDrain};
use crate::nova_identity::Identity;

fn marked() -> HostHealth {
    let disabled = Some(MARKER.to_owned());
    let service = ServiceHealth::Up { disabled: disabled.clone() };
    HostHealth { service, disabled, ..HostHealth::default() }
}

/// A host in the cell that is to be drained, or else enabled.
fn host(name: &str, is_drained: bool, progress: HostProgress) -> HostDrain {
    let drain = Drain { mode: DrainMode::Wait, reason: String::new() };
    HostDrain {
        name: name.into(),
        host: format!("{name}.example.org"),
        is_named: is_drained,
        is_awaited: false,
        enabling: (!is_drained).then_some(HostOrder::Enable),
        request: if is_drained { DrainRequest::Drain(drain) } else { DrainRequest::Absent },
        health: marked(),
        access: HostAccess::Cell("nova-cell1".into()),
        cell: Some(Key::new("ns", "nova-cell1")),
        recorded: Identity::default(),
        progress,
    }
}

fn occupied() -> HostProgress {
    HostProgress::Occupied(Occupied {
        servers: vec!["s0".to_owned()].into(),
        ..Occupied::default()
    })
}

fn with(drains: Vec<HostDrain>) -> Observed {
    Observed { hosts: None, drains: Ok(drains), ..seen(&[]) }
}

/// One reconciliation: what the condition says then, or `None` without it.
fn said(seen: &mut Observed) -> Option<(ConditionStatus, String, String)> {
    pass(seen);
    let conditions = &seen.set.status.as_ref()?.conditions;
    let found = find(conditions, NODE_DRAINED)?;
    Some((found.status, found.reason.clone(), found.message.clone()))
}

#[test]
fn the_condition_holds_only_when_every_named_host_is_drained() {
    let drained = |name| host(name, true, HostProgress::Drained);
    let mut seen = with(vec![drained("c0"), host("c1", true, occupied())]);
    let (status, reason, message) = said(&mut seen).unwrap();
    assert_eq!((status, &*reason), (ConditionStatus::False, "ServersOnHost"));
    let begin = "1 of 2 hosts are drained; c1: Host c1.example.org has 1 server and 0 open";
    assert!(message.starts_with(begin), "{message}");
    assert_eq!(pass(&mut seen), None, "nothing has changed");
    seen.drains = Ok(vec![drained("c0"), drained("c1")]);
    let text = "2 of 2 hosts are drained: c0, c1.".to_owned();
    assert_eq!(said(&mut seen), Some((ConditionStatus::True, "Drained".into(), text)));
    seen.drains = Ok(vec![drained("c0"), host("c1", true, HostProgress::CellNotAnswering)]);
    let (status, reason, _) = said(&mut seen).unwrap();
    assert_eq!((status, &*reason), (ConditionStatus::Unknown, "CellNotAnswering"));
}

#[test]
fn the_worst_host_gives_the_reason_and_three_are_explained() {
    let refused = Fault::of(Service::Compute, Error::Forbidden("no".into()));
    let fails = host("c0", true, HostProgress::Fails(refused));
    let others = ["c1", "c2", "c3", "c4"].map(|name| host(name, true, occupied()));
    let all = [fails].into_iter().chain(others).collect();
    let (status, reason, message) = said(&mut with(all)).unwrap();
    assert_eq!((status, &*reason), (ConditionStatus::False, "ServersOnHost"));
    for words in ["0 of 5 hosts", "c0: It is unknown", "role admin", "c1: ", "c2: "] {
        assert!(message.contains(words), "{message}");
    }
    assert!(message.ends_with(" 2 more are not drained.") && !message.contains("c3"), "{message}");
}

#[test]
fn hosts_that_are_enabled_count_only_where_none_is_to_be_drained() {
    let enabled = || host("c1", false, HostProgress::Pending);
    let mut seen = with(vec![host("c0", true, HostProgress::Drained), enabled()]);
    assert_eq!(said(&mut seen).unwrap().2, "1 of 1 hosts are drained: c0.");
    seen.drains = Ok(vec![enabled()]);
    let (status, reason, message) = said(&mut seen).unwrap();
    assert_eq!((status, &*reason), (ConditionStatus::False, "EnablingService"));
    assert!(message.contains("c1: No drain is requested"), "{message}");
    seen.drains = Ok(vec![]);
    assert_eq!(said(&mut seen), None, "the condition is gone");
}

#[test]
fn a_restart_changes_nothing_and_a_new_host_is_never_drained_before_it_was_read() {
    let unread = |name| HostDrain {
        health: HostHealth::default(),
        access: HostAccess::NoCell,
        ..host(name, true, HostProgress::Pending)
    };
    let mut seen = with(vec![unread("c0")]);
    assert_eq!(said(&mut seen).unwrap().1, "NotRead");
    seen.drains = Ok(vec![host("c0", true, HostProgress::Drained)]);
    let drained = said(&mut seen);
    for after_restart in [unread("c0"), host("c0", true, HostProgress::Pending)] {
        seen.drains = Ok(vec![after_restart]);
        assert_eq!((pass(&mut seen), said(&mut seen)), (None, drained.clone()));
    }
    let mut added = host("c1", true, HostProgress::Pending);
    added.health.disabled = None;
    seen.drains = Ok(vec![host("c0", true, HostProgress::Drained), added]);
    let (status, reason, _) = said(&mut seen).unwrap();
    assert_eq!((status, &*reason), (ConditionStatus::Unknown, "NotRead"));
}

#[test]
fn an_entry_without_effect_says_why() {
    let mut missing = host("c0", true, HostProgress::Pending);
    (missing.access, missing.health) = (HostAccess::NoCell, HostHealth::default());
    missing.health.service = ServiceHealth::NotFound;
    let (status, reason, _) = said(&mut with(vec![missing.clone()])).unwrap();
    assert_eq!((status, &*reason), (ConditionStatus::Unknown, "ServiceNotFound"));
    missing.access = HostAccess::Other("NovaExternalCompute ns/n0".into());
    let (_, reason, message) = said(&mut with(vec![missing])).unwrap();
    assert!(reason == "DrainInvalid" && message.contains("deployed by NovaExternalCompute ns/n0"));
    let mut invalid = Observed { drains: Err("wrong".into()), ..with(vec![]) };
    let expected = (ConditionStatus::False, "DrainInvalid".to_owned(), "wrong".to_owned());
    assert_eq!(said(&mut invalid), Some(expected));
}

#[test]
fn a_service_that_may_be_anothers_is_left_and_the_condition_says_so() {
    let with_access = |access, is_drained| {
        let mut of = host("c0", is_drained, HostProgress::Pending);
        of.access = access;
        with(vec![of])
    };
    let (status, reason, message) = said(&mut with_access(HostAccess::Unproven, true)).unwrap();
    assert_eq!((status, &*reason), (ConditionStatus::False, "NovaNotDeployed"));
    assert!(message.contains("deploy nova on the host"), "{message}");
    let mut marked_by_another = with_access(HostAccess::Unproven, false);
    assert_eq!(said(&mut marked_by_another), None);
    for is_drained in [true, false] {
        let access = HostAccess::Contested("OpenStackDataPlaneNodeSet other/edpm".into());
        let mut contested = with_access(access, is_drained);
        let (status, reason, message) = said(&mut contested).unwrap();
        assert_eq!((status, &*reason), (ConditionStatus::False, "HostContested"));
        assert!(message.contains("OpenStackDataPlaneNodeSet other/edpm has"), "{message}");
        assert_eq!(pass(&mut contested), None, "nothing has changed");
    }
}

#[test]
fn a_host_that_another_object_drains_is_not_counted_where_the_annotation_does_not_name_it() {
    let mut others = host("c0", false, HostProgress::Pending);
    others.access = HostAccess::Other("NovaExternalCompute ns/n0".into());
    assert_eq!(said(&mut with(vec![others])), None);
}

#[test]
fn both_conditions_stand_beside_each_other() {
    let drains = Ok(vec![host("c0", true, HostProgress::Drained)]);
    let mut seen = Observed { drains, ..seen(&[("c0", UP)]) };
    let status = pass(&mut seen).unwrap();
    let types: Vec<&str> = status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, [HOSTS_COMPUTES_UP, NODE_DRAINED]);
    assert_eq!(pass(&mut seen), None, "nothing has changed");
}

#[test]
fn a_host_that_a_deployment_waits_for_is_always_read_anew() {
    let mut of = host("c0", true, HostProgress::Drained);
    assert!(matches!(of.order(), Some(HostOrder::Drain(_))));
    of.is_awaited = true;
    assert!(matches!(of.order(), Some(HostOrder::DrainForChange(_))));
}
