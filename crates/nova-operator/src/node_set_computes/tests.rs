//! The condition on a node set: how hosts count, and what stays until they were read.

use std::sync::Arc;

use api::conditions::{Condition, ConditionStatus};
use api::dataplane::NodeSet;
use jiff::Timestamp;
use operator_core::condition_catalog::undeclared;
use operator_core::plan::Write;
use serde_json::{Value, json};
use testkit::golden::recorded;

use super::observed::HostReading;
use super::{Observed, decide};
use crate::computes_up::own_condition;
use crate::condition_catalog::KINDS;
use crate::nova_health::ServiceHealth;

const UP: ServiceHealth = ServiceHealth::Up { disabled: None };
const DOWN: ServiceHealth = ServiceHealth::Down { since: None, is_forced: false };

fn seen(hosts: &[(&str, ServiceHealth)]) -> Observed {
    let mut set = NodeSet::default();
    set.metadata.name = Some("set".into());
    set.metadata.namespace = Some("ns".into());
    let reading = |(name, health): &(&str, ServiceHealth)| HostReading {
        name: (*name).into(),
        health: health.clone(),
    };
    Observed { set: Arc::new(set), hosts: Some(hosts.iter().map(reading).collect()) }
}

/// One reconciliation: the status that is written.
fn pass(seen: &mut Observed) -> Option<Value> {
    let plan = recorded(decide(seen, None, Timestamp::UNIX_EPOCH));
    assert!(plan.steps.len() < 2, "{plan:?}");
    let Write::Status { status, .. } = plan.steps.into_iter().next()?.write else {
        panic!("no status")
    };
    assert_eq!(undeclared(KINDS, "OpenStackDataPlaneNodeSet", &status), [""; 0]);
    Arc::make_mut(&mut seen.set).status = Some(serde_json::from_value(status.clone()).unwrap());
    Some(status)
}

fn found(seen: &Observed) -> &Condition {
    own_condition(seen.set.status.as_ref().map(|it| &it.conditions)).unwrap()
}

#[test]
fn hosts_are_up_down_not_registered_or_unknown() {
    let fails = ServiceHealth::ApiFails;
    let silent = ServiceHealth::CellNotAnswering;
    let missing = ServiceHealth::NotFound;
    let mut seen = seen(&[("a", UP), ("b", DOWN), ("c", fails), ("d", silent), ("e", missing)]);
    assert!(pass(&mut seen).is_some());
    let text = "1 of 5 computes are up; down: b; not registered: e; 2 unknown.";
    assert_eq!((found(&seen).status, &*found(&seen).message), (ConditionStatus::False, text));
    assert_eq!(pass(&mut seen), None, "nothing has changed");
}

#[test]
fn what_was_reported_stays_until_each_host_was_read() {
    let pending = || seen(&[("a", UP), ("b", ServiceHealth::Pending)]).hosts;
    let mut seen = Observed { hosts: pending(), ..seen(&[]) };
    assert_eq!(pass(&mut seen), None, "nothing is reported that was not read");
    seen.hosts = self::seen(&[("a", UP), ("b", UP)]).hosts;
    assert!(pass(&mut seen).is_some());
    seen.hosts = pending();
    assert_eq!(pass(&mut seen), None);
    assert_eq!(found(&seen).reason, "ComputesUp");
}

#[test]
fn a_node_set_that_has_nothing_of_nova_any_more_loses_the_condition() {
    for hosts in [None, Some(vec![])] {
        let mut seen = seen(&[("a", UP)]);
        assert!(pass(&mut seen).is_some());
        seen.hosts = hosts;
        assert_eq!(pass(&mut seen), Some(json!({"conditions": []})));
        assert_eq!(pass(&mut seen), None);
    }
}
