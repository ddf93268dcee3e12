//! What a cell's conditions say, case by case.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::api::nova::{Cell, CellStatus};
use common::conditions::declared::undeclared;
use common::conditions::{Condition, Truth, find};
use common::plan::Write;
use jiff::Timestamp;
use serde_json::json;
use shell::sources::Values;
use shell::vault::Content;

use super::observe::{Answers, NamedSecret};
use super::{Observed, decide};
use crate::probe::{HostOutcome, KeystoneFault, Login};
use crate::reasons::KINDS;

const PASSWORD: &str = "bus-password";

fn secret(name: &str, entries: &[(&str, &str)]) -> NamedSecret {
    let entry = |(key, value): &(&str, &str)| ((*key).to_owned(), value.as_bytes().to_vec());
    let values: BTreeMap<_, _> = entries.iter().map(entry).collect();
    NamedSecret { name: name.into(), content: Some(Content::from(Values::new("1", values))) }
}

fn answer(address: &str, login: Login) -> HostOutcome {
    HostOutcome { address: address.into(), login }
}

/// A cell whose services answer.
fn seen() -> Observed {
    let cell: Cell = serde_json::from_value(json!({
        "apiVersion": "nova.openstack.org/v1beta1",
        "kind": "NovaCell",
        "metadata": { "name": "nova-cell1", "namespace": "ns", "uid": "u", "generation": 1 },
        "spec": {
            "cellName": "cell1",
            "secret": "nova-cell1",
            "cellMessageBusSecretName": "bus",
            "keystoneAuthURL": "http://192.0.2.1:5000",
            "cellDatabaseHostname": "db",
            "conductorServiceTemplate": {},
            "noVNCProxyServiceTemplate": {},
            "serviceAccount": "nova",
        },
    }))
    .unwrap();
    let url = format!("rabbit://nova:{PASSWORD}@192.0.2.2:5672,nova:{PASSWORD}@192.0.2.3:5672/v");
    Observed {
        cell: Arc::new(cell),
        secret: secret("nova-cell1", &[("ServicePassword", "keystone-password")]),
        message_bus: secret("bus", &[("transport_url", &url)]),
        answers: Some(Answers {
            message_bus: vec![
                answer("192.0.2.2:5672", Login::Ok),
                answer("192.0.2.3:5672", Login::Ok),
            ],
            keystone: Ok(()),
        }),
        ask_in: Some(Duration::from_secs(30)),
        n_computes: 2,
    }
}

fn status(seen: &Observed) -> CellStatus {
    let plan = decide(seen, Timestamp::UNIX_EPOCH);
    let Write::Status { status, .. } = &plan.steps[0].write else { panic!("{plan:?}") };
    assert_eq!(undeclared(KINDS, "NovaCell", status), [""; 0]);
    serde_json::from_value(status.clone()).unwrap()
}

fn condition(seen: &Observed, type_: &str) -> Condition {
    find(&status(seen).conditions, type_).cloned().unwrap()
}

#[test]
fn a_cell_is_ready_when_every_broker_and_keystone_answer() {
    let found = status(&seen());
    assert_eq!(found.computes, Some(2));
    for type_ in ["Ready", "InputReady", "MessageBusReady", "KeystoneReady"] {
        assert_eq!(find(&found.conditions, type_).unwrap().status, Truth::True, "{type_}");
    }
}

#[test]
fn nothing_is_written_while_nothing_changes_and_it_is_asked_again_at_its_pace() {
    let mut seen = seen();
    let first = status(&seen);
    Arc::make_mut(&mut seen.cell).status = Some(first);
    let plan = decide(&seen, Timestamp::UNIX_EPOCH);
    assert_eq!(plan.steps, []);
    assert_eq!(plan.look_again, Some(Duration::from_secs(30)));
}

#[test]
fn one_broker_that_refuses_is_named_with_its_cause_and_without_a_password() {
    let mut seen = seen();
    seen.answers.as_mut().unwrap().message_bus[1].login = Login::AccessRefused;
    let ready = condition(&seen, "Ready");
    assert_eq!((ready.status, ready.reason.as_str()), (Truth::False, "AccessRefused"));
    assert!(ready.message.contains("192.0.2.3:5672"), "{}", ready.message);
    let all = serde_json::to_string(&status(&seen)).unwrap();
    assert!(!all.contains(PASSWORD) && !all.contains("keystone-password"));
}

#[test]
fn a_keystone_that_does_not_answer_is_named_with_its_address() {
    let mut seen = seen();
    let fault = KeystoneFault::Unreachable("Connection refused".into());
    seen.answers.as_mut().unwrap().keystone = Err(fault);
    let ready = condition(&seen, "Ready");
    assert_eq!(ready.reason, "Unreachable");
    assert!(ready.message.contains("http://192.0.2.1:5000"), "{}", ready.message);
}

#[test]
fn a_missing_secret_and_a_missing_key_are_named_with_the_next_step() {
    let mut missing = seen();
    missing.secret.content = None;
    missing.answers = None;
    let input = condition(&missing, "InputReady");
    assert_eq!(input.reason, "SecretNotFound");
    assert!(input.message.contains("create secret generic -n ns nova-cell1"), "{}", input.message);
    assert_eq!(condition(&missing, "MessageBusReady").status, Truth::Unknown);

    let mut lacking = seen();
    lacking.message_bus = secret("bus", &[("other", "x")]);
    lacking.answers = None;
    let input = condition(&lacking, "Ready");
    assert_eq!(input.reason, "SecretIncomplete");
    assert!(input.message.contains("transport_url"), "{}", input.message);
}
