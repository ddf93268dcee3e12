//! Which cell keeps a message bus that two of them name.

use api::conditions::{ConditionStatus, find};
use jiff::Timestamp;
use serde_json::json;
use testkit::objects::named;

use super::*;
use crate::cell::decide;
use crate::cell::tests::{deployed, present, secret, seen, written};

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
fn a_bus_is_a_virtual_host_of_a_broker_whoever_logs_in() {
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
fn cell0_a_second_object_of_the_same_cell_and_one_that_goes_share_a_bus() {
    let (one, two, zero) =
        (cell("nova-cell1", TIME), cell("nova-cell2", TIME), cell("nova-cell0", TIME));
    assert!(may_not_share(&one, &two));
    assert!(!may_not_share(&one, &zero));
    let mut same = two.clone();
    Arc::make_mut(&mut same).spec.cell_name = "cell1".into();
    assert!(!may_not_share(&one, &same));
    let mut goes = two;
    Arc::make_mut(&mut goes).metadata.deletion_timestamp =
        Some(serde_json::from_value(json!(TIME)).unwrap());
    assert!(!may_not_share(&one, &goes));
}

#[test]
fn a_bus_is_the_cells_whose_computes_use_it_else_the_older_cells() {
    let (older, younger) = (TIME, "2026-01-02T00:00:00Z");
    let cases = [
        ((older, false), (younger, false), None),
        ((older, false), (younger, true), Some("nova-cell1")),
        ((older, true), (younger, true), None),
        ((younger, false), (older, false), Some("nova-cell1")),
        ((younger, true), (older, false), None),
    ];
    for ((created, has), (other, other_has), expected) in cases {
        let others = [on_bus("nova-cell1", other, other_has)];
        let text = fault(&on_bus("nova-cell2", created, has), &others);
        assert_eq!(text.is_some(), expected.is_some(), "{created} {has} {other} {other_has}");
        for part in expected.into_iter().chain(text.as_ref().map(|_| "nova-cell2-bus")) {
            assert!(text.as_ref().unwrap().contains(part), "{text:?}");
        }
    }
    assert_eq!(fault(&on_bus("nova-cell2", younger, false), &[]), None);
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

    // The bus with which its own computes were deployed is its own, however old the other cell is.
    seen.computes = vec![deployed("n0", &present(&seen))];
    seen.on_same_bus = vec![on_bus("nova-cell2", TIME, false)];
    let plan = decide(&seen, None, Timestamp::UNIX_EPOCH);
    let (status, _) = written(&plan);
    assert_eq!(find(&status.conditions, "InputReady").unwrap().status, ConditionStatus::True);
}
