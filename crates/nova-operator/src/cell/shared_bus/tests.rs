//! Which cell keeps a message bus that two of them name.

use api::conditions::{ConditionStatus, find};
use api::nova::{ExternalCompute, Management};
use jiff::Timestamp;
use serde_json::json;
use testkit::objects::named;

use super::*;
use crate::cell::decide;
use crate::cell::tests::{compute, deployed, present, secret, seen, written};

const TIME: &str = "2026-01-01T00:00:00Z";

fn cell(name: &str, created: &str) -> Arc<Cell> {
    let cell = json!({
        "metadata": { "uid": name, "creationTimestamp": created },
        "spec": {
            "cellName": name.trim_start_matches("nova-"), "secret": name,
            "cellMessageBusSecretName": format!("{name}-bus"),
            "keystoneAuthURL": "http://192.0.2.1:5000", "cellDatabaseHostname": "db",
            "conductorServiceTemplate": {}, "noVNCProxyServiceTemplate": {}, "serviceAccount": "nova",
        },
    });
    Arc::new(named("ns", name, cell))
}

fn on_bus(name: &str, created: &str, has_computes: bool) -> CellOnBus {
    CellOnBus { cell: cell(name, created), has_computes }
}

fn bus(url: &str) -> Content {
    secret(&[("transport_url", url)])
}

#[test]
fn a_bus_is_a_virtual_host_of_a_broker_with_whatever_login() {
    let own = bus("rabbit://a:p@192.0.2.2:5672,a:p@RABBIT:5672/v");
    for (url, expected) in [
        ("rabbit://b:q@192.0.2.2/v\n", true),
        ("rabbit://b:q@rabbit:5672/v?ssl=1", true),
        ("rabbit://a:p@192.0.2.2:5672/other", false),
        ("rabbit://a:p@192.0.2.2:5673/v", false),
        ("rabbit://a:p@192.0.2.9:5672/v", false),
        ("nothing", false),
    ] {
        assert_eq!(is_same(&own, &bus(url)), expected, "{url}");
    }
    assert!(!is_same(&own, &secret(&[])));
}

#[test]
fn cell0_a_second_object_of_the_same_cell_and_one_that_goes_are_not_judged() {
    let (one, two, zero) =
        (cell("nova-cell1", TIME), cell("nova-cell2", TIME), cell("nova-cell0", TIME));
    assert!(may_not_share(&one, &two));
    assert!(!may_not_share(&one, &zero));
    assert!(!may_not_share(&zero, &one));
    let mut same = two.clone();
    Arc::make_mut(&mut same).spec.cell_name = "cell1".into();
    assert!(!may_not_share(&one, &same));
    let mut goes = two;
    Arc::make_mut(&mut goes).metadata.deletion_timestamp =
        Some(serde_json::from_value(json!(TIME)).unwrap());
    assert!(!may_not_share(&goes, &one));
    // Its computes are there until it is gone.
    assert!(may_not_share(&one, &goes));
}

#[test]
fn a_bus_is_the_cells_that_alone_has_computes_else_the_older_cells() {
    let (older, younger) = (TIME, "2026-01-02T00:00:00Z");
    let cases = [
        ((older, false), (younger, false), false),
        ((older, false), (younger, true), true),
        ((older, true), (younger, false), false),
        // Each may have got the Secret of the other, in a rotation too.
        ((older, true), (younger, true), true),
        ((younger, true), (older, true), true),
        ((younger, false), (older, false), true),
        ((younger, true), (older, false), false),
    ];
    for ((created, has), (other, other_has), expected) in cases {
        let others = [on_bus("nova-cell1", other, other_has)];
        let text = fault(&on_bus("nova-cell2", created, has), &others);
        assert_eq!(text.is_some(), expected, "{created} {has} {other} {other_has}");
        for part in ["nova-cell1-bus", "nova-cell2-bus", "those of nova-cell2"] {
            assert!(text.as_ref().is_none_or(|it| it.contains(part)), "{text:?}");
        }
    }
    assert_eq!(fault(&on_bus("nova-cell2", younger, false), &[]), None);
}

#[test]
fn computes_that_a_service_deploys_are_in_service_and_those_that_wait_are_not() {
    let own = cell("nova-cell1", TIME);
    let has = |it: Arc<ExternalCompute>| CellOnBus::of(Arc::clone(&own), &[it]).has_computes;
    assert!(!has(compute("n0")));
    assert!(has(deployed("n0", &present(&seen()))));
    let mut observed = compute("n0");
    Arc::make_mut(&mut observed).spec.management = Management::Observed;
    assert!(has(observed));
}

#[test]
fn a_cell_with_the_bus_of_another_one_renders_nothing_and_is_not_ready() {
    let mut seen = seen();
    seen.on_same_bus = vec![on_bus("nova-cell2", TIME, true)];
    let plan = decide(&seen, None, Timestamp::UNIX_EPOCH);
    let (status, applied) = written(&plan);
    assert_eq!(applied, None);
    for type_ in ["InputReady", "Ready"] {
        let found = find(&status.conditions, type_).unwrap();
        assert_eq!(
            (found.status, found.reason.as_str()),
            (ConditionStatus::False, "MessageBusShared")
        );
    }

    // The other cell has no computes.
    seen.computes = vec![deployed("n0", &present(&seen))];
    seen.on_same_bus = vec![on_bus("nova-cell2", TIME, false)];
    let plan = decide(&seen, None, Timestamp::UNIX_EPOCH);
    let (status, _) = written(&plan);
    assert_eq!(find(&status.conditions, "InputReady").unwrap().status, ConditionStatus::True);
}
