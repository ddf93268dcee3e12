//! The condition on a node set: how hosts count, and what stays until they were read; and when the
//! report for the readiness gate is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::{Condition, ConditionStatus};
use api::dataplane::{HostReadiness, NodeSet};
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::annotations::{AUDIT, AUDIT_REPAIR};
use operator_core::condition_catalog::undeclared;
use operator_core::plan::{Plan, Step, Write};
use operator_core::reasons::FORBIDDEN;
use operator_core::rejected_write::RejectedWrite;
use serde_json::{Value, json};
use testkit::golden::recorded;

mod claims;
mod drains;
mod mappings;
mod removals;
mod rollouts;

use super::observed::{CRD_POLL_INTERVAL, HostReading, Report};
use super::removal::observed::Removals;
use super::{Observed, decide};
use crate::computes_up::own_condition;
use crate::condition_catalog::KINDS;
use crate::drain::before::DrainBefore;
use crate::drain::order::OrderOfHost;
use crate::nova_health::{HostHealth, MappingHealth, ServiceHealth};

const UP: ServiceHealth = ServiceHealth::Up { disabled: None };
const DOWN: ServiceHealth = ServiceHealth::Down { since: None, is_forced: false };

fn seen(hosts: &[(&str, ServiceHealth)]) -> Observed {
    let mut set = NodeSet::default();
    set.metadata.name = Some("set".into());
    set.metadata.namespace = Some("ns".into());
    let reading = |(name, health): &(&str, ServiceHealth)| HostReading {
        name: (*name).into(),
        health: HostHealth {
            service: health.clone(),
            mapping: MappingHealth::Mapped,
            ..HostHealth::default()
        },
        discovered_by: None,
    };
    Observed {
        set: Arc::new(set),
        hosts: Some(hosts.iter().map(reading).collect()),
        drains: Ok(vec![]),
        removals: Removals::default(),
        drain_before: DrainBefore::No,
        disruptions: BTreeMap::new(),
        has_cells: true,
        has_gate: false,
        report: Report::Missing,
    }
}

fn planned(seen: &Observed) -> Plan<OrderOfHost> {
    recorded(decide(seen, None, Timestamp::UNIX_EPOCH))
}

/// One reconciliation: the status that is written.
fn pass(seen: &mut Observed) -> Option<Value> {
    let plan = planned(seen);
    assert!(plan.steps.len() < 2 && plan.independent.is_empty(), "{plan:?}");
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
fn the_cause_of_unknown_hosts_is_there_where_their_cell_does_not_report_it() {
    let mut seen = seen(&[("a", ServiceHealth::ApiFails)]);
    seen.hosts.as_mut().unwrap()[0].health.cause = Some("Secret bus does not exist.".into());
    assert!(pass(&mut seen).is_some());
    let text =
        "0 of 1 computes are up; 1 unknown. Nova's API cannot be read: Secret bus does not exist.";
    assert_eq!(found(&seen).message, text);
    assert_eq!(pass(&mut seen), None, "nothing has changed");
}

#[test]
fn an_annotation_that_requests_audits_is_answered_until_it_is_gone() {
    let mut seen = seen(&[]);
    for (annotation, value) in [(AUDIT, "6h"), (AUDIT_REPAIR, "true")] {
        Arc::make_mut(&mut seen.set).annotations_mut().insert(annotation.into(), value.into());
        let status = pass(&mut seen).unwrap();
        let said = &status["conditions"][0];
        assert_eq!(
            (&said["reason"], &said["status"]),
            (&json!("AuditsNotSupported"), &json!("Unknown"))
        );
        assert!(said["message"].as_str().unwrap().contains(annotation), "{said}");
        assert_eq!(pass(&mut seen), None, "nothing has changed");
        Arc::make_mut(&mut seen.set).annotations_mut().clear();
        assert_eq!(pass(&mut seen).unwrap()["conditions"], json!([]));
    }
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

/// A node set with a service that lists the gate, and hosts in these states.
fn gated(hosts: &[(&str, ServiceHealth)]) -> Observed {
    let mut seen = Observed { has_gate: true, ..seen(hosts) };
    Arc::make_mut(&mut seen.set).metadata.uid = Some("u".into());
    seen
}

/// One reconciliation: the step about the report, if there is one.
fn report_step(seen: &Observed) -> Option<Step> {
    let mut steps = planned(seen).independent;
    assert!(steps.len() < 2, "{steps:?}");
    steps.pop()
}

/// One reconciliation: the report that is written, which exists from then on.
fn reported(seen: &mut Observed) -> Option<Arc<HostReadiness>> {
    let Write::Apply { object, .. } = report_step(seen)?.write else { panic!("no apply") };
    let written: Arc<HostReadiness> = Arc::new(serde_json::from_value(object).unwrap());
    seen.report = Report::Found(Arc::clone(&written));
    Some(written)
}

fn entries(report: &HostReadiness) -> Vec<(&str, &str)> {
    report.spec.not_ready.iter().map(|(host, it)| (host.as_str(), it.reason.as_str())).collect()
}

#[test]
fn a_node_set_with_a_gate_has_one_report_which_is_written_only_when_it_changes() {
    let mut seen = gated(&[("a", UP), ("b", DOWN)]);
    assert_eq!(entries(&reported(&mut seen).unwrap()), [("b", "ServiceDown")]);
    assert_eq!(reported(&mut seen), None, "nothing has changed");
    seen.hosts = self::seen(&[("a", UP), ("b", UP)]).hosts;
    seen.hosts.as_mut().unwrap()[0].health.mapping = MappingHealth::NotMapped;
    assert_eq!(entries(&reported(&mut seen).unwrap()), [("a", "NotMapped")]);
    assert_eq!(reported(&mut seen), None);
}

#[test]
fn a_report_whose_gate_is_gone_is_deleted_and_another_operators_is_left() {
    for hosts in [None, seen(&[("a", UP)]).hosts] {
        let mut seen = gated(&[("a", DOWN)]);
        let report = reported(&mut seen).unwrap();
        (seen.has_gate, seen.hosts) = (false, hosts);
        let step = report_step(&seen).unwrap();
        assert_eq!((step.target.name.as_str(), step.target.uid), ("set-nova", None));
        assert!(matches!(step.write, Write::Delete { .. }));
        let with = |change: fn(&mut HostReadiness)| {
            let mut report = HostReadiness::clone(&report);
            change(&mut report);
            Observed { report: Report::Found(Arc::new(report)), ..seen.clone() }
        };
        let others = with(|it| it.spec.condition_type = "example.org/Other".into());
        assert_eq!(report_step(&others), None);
        let going = with(|it| {
            it.metadata.deletion_timestamp =
                serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
        });
        assert_eq!(report_step(&going), None, "it is being deleted already");
        seen.report = Report::Missing;
        assert_eq!(report_step(&seen), None);
    }
}

#[test]
fn without_the_kind_nothing_is_reported_until_the_cluster_serves_it() {
    let mut seen = gated(&[("a", DOWN)]);
    seen.report = Report::NotServed;
    assert_eq!(report_step(&seen), None);
    assert_eq!(planned(&seen).requeue_after, Some(CRD_POLL_INTERVAL));
    seen.has_gate = false;
    assert!(planned(&seen).requeue_after > Some(CRD_POLL_INTERVAL), "nothing is awaited");
}

#[test]
fn without_a_cell_no_host_is_ready_and_none_is_counted() {
    let mut seen = gated(&[("a", ServiceHealth::Pending)]);
    seen.has_cells = false;
    let report = reported(&mut seen).unwrap();
    assert_eq!(entries(&report), [("a", "NotRead")]);
    assert!(report.spec.not_ready["a"].message.contains("the namespace has no NovaCell"));
    assert_eq!(planned(&seen).steps, []);
}

#[test]
fn a_rejected_report_does_not_keep_the_condition_back_and_a_rejected_condition_is_not_repeated() {
    let seen = gated(&[("a", DOWN)]);
    let plan = planned(&seen);
    let after = |step: &Step| {
        let rejected = RejectedWrite::of(step, &FORBIDDEN, "no");
        decide(&seen, Some(&rejected), Timestamp::UNIX_EPOCH).only_statuses().steps
    };
    assert_eq!(after(&plan.independent[0]), plan.steps);
    assert_eq!((plan.steps.len(), after(&plan.steps[0])), (1, vec![]));
}

#[test]
fn nothing_is_written_about_a_node_set_that_is_being_deleted() {
    let mut seen = gated(&[("a", DOWN)]);
    Arc::make_mut(&mut seen.set).metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
    assert_eq!(planned(&seen).all().count(), 0);
}
