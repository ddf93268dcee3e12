//! The conditions of a cell, case by case.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::{Condition, ConditionStatus, find};
use api::nova::{Cell, CellStatus, Credential, CredentialKind, ExternalCompute};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use nova_config::rendered_secret::CONFIG_HASH;
use operator_core::condition_catalog::undeclared;
use operator_core::keyed::{Inputs, Keys, texts};
use operator_core::plan::{Plan, Write};
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::managed_fields::ManagedFields;
use operator_runtime::source_cache::Content;
use operator_runtime::source_cache::Values;
use serde_json::{Value, json};
use testkit::conditions;
use testkit::golden::recorded;
use testkit::objects::named;

use super::observed::{Answers, Rendered};
use super::{Observed, decide};
use crate::cell::probe::{HostOutcome, KeystoneFault, Login};
use crate::cell_inputs::{CREDENTIALS, of_cell};
use crate::condition_catalog::KINDS;
use crate::finalizers;
use crate::nova::drain::order::OrderOfHost;
use crate::reasons;

const PASSWORD: &str = "bus-password";

pub(super) fn secret(entries: &[(&str, &str)]) -> Content {
    let entry = |(key, value): &(&str, &str)| ((*key).to_owned(), value.as_bytes().to_vec());
    let values: BTreeMap<_, _> = entries.iter().map(entry).collect();
    Content::from(Values::new("1", values))
}

/// A deployed compute of the cell, without recorded inputs.
pub(super) fn compute(name: &str) -> Arc<ExternalCompute> {
    let compute = json!({
        "metadata": { "uid": format!("uid-{name}") },
        "spec": { "dataplaneNodeName": name, "cellName": "nova-cell1" },
        "status": {
            "hostName": format!("{name}.example.org"),
            "services": [{ "name": "nova", "state": "Succeeded", "hash": "h", "attempt": 1,
                "since": "2026-01-01T00:00:00Z" }],
        },
    });
    Arc::new(named("ns", name, compute))
}

/// A compute that was last deployed with these inputs.
pub(super) fn deployed(name: &str, inputs: &Inputs) -> Arc<ExternalCompute> {
    let mut compute = compute(name);
    Arc::make_mut(&mut compute).status.as_mut().unwrap().deployed_inputs = texts(inputs);
    compute
}

/// The current inputs that the cell gives to its computes.
pub(super) fn present(seen: &Observed) -> Inputs {
    of_cell(&seen.cell, seen.secret.as_ref(), seen.message_bus.as_ref())
}

fn answer(address: &str, login: Login) -> HostOutcome {
    HostOutcome { address: address.into(), login }
}

/// A cell whose services answer.
pub(super) fn seen() -> Observed {
    let cell = json!({
        "metadata": { "uid": "u", "generation": 1, "finalizers": [finalizers::CELL] },
        "spec": {
            "cellName": "cell1", "secret": "nova-cell1", "cellMessageBusSecretName": "bus",
            "keystoneAuthURL": "http://192.0.2.1:5000", "cellDatabaseHostname": "db",
            "conductorServiceTemplate": {}, "noVNCProxyServiceTemplate": {}, "serviceAccount": "nova",
        },
    });
    let cell: Cell = named("ns", "nova-cell1", cell);
    let url = format!("rabbit://nova:{PASSWORD}@192.0.2.2:5672,nova:{PASSWORD}@192.0.2.3:5672/v");
    Observed {
        cell: Arc::new(cell),
        secret: Some(secret(&[("ServicePassword", "keystone-password")])),
        message_bus: Some(secret(&[("transport_url", &url)])),
        on_same_bus: Vec::new(),
        is_probed: true,
        answers: Some(Answers {
            message_bus: vec![
                answer("192.0.2.2:5672", Login::Ok),
                answer("192.0.2.3:5672", Login::Ok),
            ],
            keystone: Ok(()),
        }),
        nova_api: None,
        discovery: None,
        hosts: None,
        rendered: None,
        computes: vec![compute("n0"), compute("n1")],
        namespace_goes: false,
        keys: Keys::default(),
        credentials: Vec::new(),
    }
}

/// The status that a plan writes, and the object that it applies before, if it applies one.
pub(super) fn written(plan: &Plan<OrderOfHost>) -> (CellStatus, Option<&Value>) {
    let (mut told, mut applied) = (None, None);
    for step in &plan.steps {
        match &step.write {
            Write::Status { status, .. } => {
                assert_eq!(undeclared(KINDS, "NovaCell", status), [""; 0]);
                told = Some(serde_json::from_value(status.clone()).unwrap());
            }
            Write::Apply { object, .. } => {
                assert!(told.is_none(), "the status tells what is written already");
                applied = Some(object);
            }
            // The finalizer of a cell has tests of its own.
            Write::AddFinalizer { .. } | Write::RemoveFinalizer { .. } => {}
            Write::Create { .. } | Write::Delete { .. } => panic!("{step:?}"),
        }
    }
    (told.unwrap(), applied)
}

fn status(seen: &Observed) -> CellStatus {
    written(&recorded(decide(seen, None, Timestamp::UNIX_EPOCH))).0
}

/// Executes the plan; returns whether anything was written.
fn pass(seen: &mut Observed) -> bool {
    let plan = recorded(decide(seen, None, Timestamp::UNIX_EPOCH));
    if plan.steps.is_empty() {
        return false;
    }
    for step in &plan.steps {
        match &step.write {
            Write::Status { status, .. } => {
                let status = serde_json::from_value(status.clone()).unwrap();
                Arc::make_mut(&mut seen.cell).status = Some(status);
            }
            Write::Apply { object, .. } => seen.rendered = Some(rendered(object)),
            Write::Create { .. }
            | Write::Delete { .. }
            | Write::AddFinalizer { .. }
            | Write::RemoveFinalizer { .. } => panic!("{step:?}"),
        }
    }
    true
}

/// The Secret as it is seen after it was applied.
fn rendered(object: &Value) -> Rendered {
    let meta = &object["metadata"];
    Rendered {
        hash: meta["annotations"][CONFIG_HASH].as_str().unwrap().to_owned(),
        controller: meta["ownerReferences"][0]["uid"].as_str().map(str::to_owned),
        managed_fields: ManagedFields::applied(object),
    }
}

/// Asserts reason and words of a condition, whose status follows from its reason.
#[track_caller]
fn says(found: &CellStatus, type_: &str, reason: &str, words: &[&str]) {
    assert_eq!(conditions::condition(&found.conditions, type_).1, reason);
    conditions::says(&found.conditions, type_, words);
}

fn condition(seen: &Observed, type_: &str) -> Condition {
    find(&status(seen).conditions, type_).cloned().unwrap()
}

#[test]
fn a_cell_is_ready_when_every_broker_and_keystone_answer() {
    let found = status(&seen());
    assert_eq!(found.computes, Some(2));
    for type_ in ["Ready", "InputReady", "MessageBusReady", "KeystoneReady"] {
        assert_eq!(
            find(&found.conditions, type_).unwrap().status,
            ConditionStatus::True,
            "{type_}"
        );
    }
}

#[test]
fn nothing_is_written_while_nothing_changes() {
    let mut seen = seen();
    assert!(pass(&mut seen));
    assert!(!pass(&mut seen));
}

#[test]
fn a_cell_waits_for_its_first_answers_and_keeps_the_last_ones_while_its_spec_is_the_same() {
    let mut seen = seen();
    let answers = seen.answers.take();
    let is_ready = |seen: &Observed| condition(seen, "Ready").status;
    assert_eq!(is_ready(&seen), ConditionStatus::Unknown);
    assert_eq!(condition(&seen, "KeystoneReady").reason, "AnswerPending");
    assert!(pass(&mut seen));
    assert!(!pass(&mut seen), "it waits");
    seen.answers = answers;
    assert!(pass(&mut seen));
    // The operator was restarted.
    seen.answers = None;
    assert!(!pass(&mut seen), "what was found stays");
    Arc::make_mut(&mut seen.cell).metadata.generation = Some(2);
    assert_eq!(is_ready(&seen), ConditionStatus::Unknown, "nobody was asked for this spec");
}

#[test]
fn one_broker_that_refuses_is_named_with_its_cause_and_without_a_password() {
    let mut seen = seen();
    seen.answers.as_mut().unwrap().message_bus[1].login = Login::AccessRefused;
    says(
        &status(&seen),
        "Ready",
        "AccessRefused",
        &["192.0.2.3:5672", "Correct transport_url in Secret bus"],
    );
    let all = serde_json::to_string(&status(&seen)).unwrap();
    assert!(!all.contains(PASSWORD) && !all.contains("keystone-password"));
}

#[test]
fn a_keystone_that_does_not_answer_is_named_with_its_address() {
    let mut seen = seen();
    let fault = KeystoneFault::Unreachable("Connection refused".into());
    seen.answers.as_mut().unwrap().keystone = Err(fault);
    says(
        &status(&seen),
        "Ready",
        "Unreachable",
        &["http://192.0.2.1:5000", "Start Keystone, or correct the URL"],
    );
}

#[test]
fn a_missing_secret_and_a_missing_key_are_named_with_the_next_step() {
    let mut missing = seen();
    missing.secret = None;
    (missing.is_probed, missing.answers) = (false, None);
    let input = condition(&missing, "InputReady");
    assert_eq!(input.reason, "SecretNotFound");
    assert!(input.message.contains("create secret generic -n ns nova-cell1"), "{}", input.message);
    assert_eq!(condition(&missing, "MessageBusReady").status, ConditionStatus::Unknown);

    let mut lacking = seen();
    lacking.message_bus = Some(secret(&[("other", "x")]));
    (lacking.is_probed, lacking.answers) = (false, None);
    says(&status(&lacking), "Ready", "SecretIncomplete", &["transport_url"]);
}

#[test]
fn the_files_that_computes_share_are_in_a_secret_of_the_cell_without_a_host() {
    let seen = seen();
    let plan = recorded(decide(&seen, None, Timestamp::UNIX_EPOCH));
    let (status, object) = written(&plan);
    let object = object.unwrap();
    assert_eq!(object["metadata"]["name"], "nova-cell1-compute-config");
    assert_eq!(object["metadata"]["ownerReferences"][0]["kind"], "NovaCell");
    let data: BTreeMap<String, ByteString> =
        serde_json::from_value(object["data"].clone()).unwrap();
    assert_eq!(data.keys().collect::<Vec<_>>(), ["01-nova.conf", "nova-blank.conf"]);
    let text = String::from_utf8(data["01-nova.conf"].0.clone()).unwrap();
    assert!(text.contains(&format!("transport_url = rabbit://nova:{PASSWORD}@")));
    let options = |key: &str| text.lines().any(|it| it.starts_with(&format!("{key} = ")));
    assert!(!options("host") && !options("my_ip"), "the play of each host adds them");
    let hash = operator_core::upstream_hash::of_secret(&data, "Opaque");
    assert_eq!(status.hash.get("nova-cell1-compute-config"), Some(&hash));
    assert_eq!(object["metadata"]["annotations"][CONFIG_HASH], hash);
    assert_eq!(condition(&seen, "ServiceConfigReady").reason, "Rendered");
}

#[test]
fn the_secret_is_written_again_when_it_is_changed_by_hand_or_its_inputs_change_and_else_never() {
    let mut seen = seen();
    assert!(pass(&mut seen));
    assert!(!pass(&mut seen));
    let whole = seen.rendered.clone().unwrap();
    let edits: [fn(&mut Observed); 4] = [
        |it| it.rendered = None,
        |it| {
            let left = json!({ "metadata": { "annotations": { CONFIG_HASH: "" } } });
            it.rendered.as_mut().unwrap().managed_fields = ManagedFields::applied(&left);
        },
        |it| it.rendered.as_mut().unwrap().managed_fields = ManagedFields::default(),
        |it| it.rendered.as_mut().unwrap().hash = "another".into(),
    ];
    for edit in edits {
        edit(&mut seen);
        let plan = recorded(decide(&seen, None, Timestamp::UNIX_EPOCH));
        assert!(matches!(plan.steps[..], [ref it] if matches!(it.write, Write::Apply { .. })));
        pass(&mut seen);
        assert_eq!(seen.rendered, Some(whole.clone()));
    }
    seen.message_bus = Some(secret(&[("transport_url", "rabbit://nova:new@192.0.2.2/v")]));
    assert!(pass(&mut seen));
    assert_ne!(seen.rendered, Some(whole));
    assert!(!pass(&mut seen));
}

#[test]
fn a_secret_of_the_name_that_is_somebody_elses_is_left_alone_and_told() {
    for controller in [None, Some("another".to_owned())] {
        let mut seen = seen();
        seen.rendered = Some(Rendered { controller, ..Rendered::default() });
        let plan = recorded(decide(&seen, None, Timestamp::UNIX_EPOCH));
        let (status, applied) = written(&plan);
        assert_eq!(applied, None);
        let told = find(&status.conditions, "ServiceConfigReady").unwrap();
        assert_eq!((told.status, told.reason.as_str()), (ConditionStatus::False, "SecretNotOurs"));
        let words = "kubectl delete -n ns secret nova-cell1-compute-config";
        assert!(told.message.contains(words), "{}", told.message);
        assert_eq!(find(&status.conditions, "Ready").unwrap().status, ConditionStatus::True);
    }
}

#[test]
fn nothing_is_rendered_for_a_cell0_nor_from_incomplete_inputs_nor_for_a_cell_that_goes() {
    type Change = fn(&mut Observed);
    let cases: [(Change, &str); 3] = [
        (|it| Arc::make_mut(&mut it.cell).spec.cell_name = "cell0".into(), "NotNeeded"),
        (|it| it.message_bus = Some(secret(&[])), "InputMissing"),
        (
            |it| {
                let now = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
                Arc::make_mut(&mut it.cell).metadata.deletion_timestamp = Some(now);
            },
            "Rendered",
        ),
    ];
    for (change, reason) in cases {
        let mut seen = seen();
        change(&mut seen);
        assert_eq!(
            written(&recorded(decide(&seen, None, Timestamp::UNIX_EPOCH))).1,
            None,
            "{reason}"
        );
        assert_eq!(condition(&seen, "ServiceConfigReady").reason, reason);
    }
}

#[test]
fn a_secret_that_is_refused_is_told_and_takes_nothing_from_the_cell() {
    let mut seen = seen();
    let plan = recorded(decide(&seen, None, Timestamp::UNIX_EPOCH));
    let words = "secrets is forbidden: exceeded quota: q";
    let refusal = RejectedWrite::of(&plan.steps[0], &reasons::FORBIDDEN, words);
    let telling = recorded(decide(&seen, Some(&refusal), Timestamp::UNIX_EPOCH).only_statuses());
    let (status, applied) = written(&telling);
    assert_eq!(applied, None);
    let told = find(&status.conditions, "WritesAccepted").unwrap();
    assert_eq!((told.status, told.reason.as_str()), (ConditionStatus::False, "Forbidden"));
    assert!(told.message.contains("Secret nova-cell1-compute-config"), "{}", told.message);
    assert!(!told.message.contains(PASSWORD));
    assert_eq!(find(&status.conditions, "Ready").unwrap().status, ConditionStatus::True);
    Arc::make_mut(&mut seen.cell).status = Some(status);
    assert_eq!(
        recorded(decide(&seen, Some(&refusal), Timestamp::UNIX_EPOCH).only_statuses()).steps,
        [],
        "told once"
    );
    assert!(pass(&mut seen));
    let status = seen.cell.status.as_ref().unwrap();
    assert_eq!(find(&status.conditions, "WritesAccepted"), None);
}

type Computes = Vec<Arc<ExternalCompute>>;

#[test]
fn computes_are_counted_by_the_credentials_that_they_were_last_deployed_with() {
    let mut seen = seen();
    let current = present(&seen);
    let mut own = current.clone();
    own.insert("customServiceConfig".into(), "theirs".into());
    own.insert("ConfigMap defaults".into(), "the role's".into());
    let mut older = current.clone();
    older.insert("Secret bus transport_url".into(), "older".into());
    let mut fewer = current.clone();
    fewer.remove("NovaCell nova-cell1 serviceUser");
    let cases: [(Computes, i64, &str, &str); 5] = [
        (vec![], 0, "NoComputes", "No compute names this cell."),
        (vec![compute("a")], 0, "ComputesBehind", "0/1 computes use the current"),
        (
            vec![deployed("a", &current), deployed("b", &own)],
            2,
            "UpToDate",
            "2/2 computes use the current credentials.",
        ),
        (
            vec![deployed("a", &older), deployed("b", &current), deployed("c", &fewer)],
            1,
            "ComputesBehind",
            "1/3 computes use the current credentials. Not yet: a, c.",
        ),
        (
            (0..8).map(|it| deployed(&format!("n{it}"), &older)).collect(),
            0,
            "ComputesBehind",
            "Not yet: n0, n1, n2, n3, n4 and 3 more.",
        ),
    ];
    for (computes, up_to_date, reason, words) in cases {
        seen.computes = computes;
        let found = status(&seen);
        assert_eq!(found.up_to_date_computes, Some(up_to_date), "{words}");
        says(&found, "ComputesUpToDate", reason, &[words]);
        assert_eq!(find(&found.conditions, "Ready").unwrap().status, ConditionStatus::True);
    }
}

#[test]
fn a_former_credential_that_is_held_is_named_also_where_every_compute_is_up_to_date() {
    let mut seen = seen();
    let mut compute = deployed("a", &present(&seen));
    let user = Credential { kind: CredentialKind::RabbitMqUser, name: "old".into() };
    Arc::make_mut(&mut compute).status.as_mut().unwrap().credentials = vec![user];
    seen.computes = vec![compute];
    let found = condition(&seen, "ComputesUpToDate");
    assert_eq!(found.reason, "UpToDate");
    let words = "Held until each is deployed: RabbitMQUser old (a).";
    assert!(found.message.contains(words), "{}", found.message);
}

#[test]
fn a_conductor_that_did_not_answer_a_compute_is_told_by_the_cell() {
    let mut seen = seen();
    assert_eq!(find(&status(&seen).conditions, "ConductorAnswers"), None);
    let silent = "Host a failed (service nova-registered): The cell's nova-conductor does not \
                  answer over the message bus: is it running?";
    let mut record = |state: &str| {
        let mut compute = compute("a");
        let recorded = Arc::make_mut(&mut compute).status.as_mut().unwrap();
        let record = json!({
            "name": "nova-registered", "state": state, "hash": "h", "attempt": 1,
            "since": "2026-01-01T00:00:00Z", "message": silent,
        });
        recorded.services.push(serde_json::from_value(record).unwrap());
        seen.computes = vec![compute];
        status(&seen)
    };
    let found = record("Failed");
    says(
        &found,
        "ConductorAnswers",
        "ConductorSilent",
        &["of NovaCell nova-cell1 answered", "asked last: a. Start it"],
    );
    assert_eq!(find(&found.conditions, "Ready").unwrap().status, ConditionStatus::True);
    assert_eq!(find(&record("Running").conditions, "ConductorAnswers"), None);
}

#[test]
fn without_complete_inputs_nobody_counts() {
    let mut seen = seen();
    seen.secret = None;
    (seen.is_probed, seen.answers) = (false, None);
    let found = status(&seen);
    assert_eq!((found.computes, found.up_to_date_computes), (Some(2), None));
    assert_eq!(
        find(&found.conditions, "ComputesUpToDate").unwrap().status,
        ConditionStatus::Unknown
    );
}

#[test]
fn a_rotation_is_told_in_one_write_for_each_change_of_the_count() {
    let mut seen = seen();
    let older = present(&seen);
    let names = ["n0", "n1", "n2"];
    seen.computes = names.map(|it| deployed(it, &older)).to_vec();
    assert!(pass(&mut seen));
    let tried = |seen: &Observed| seen.cell.status.as_ref().unwrap().hash[CREDENTIALS].clone();
    let before = tried(&seen);
    seen.message_bus = Some(secret(&[("transport_url", "rabbit://nova:new@192.0.2.2/v")]));
    // Results with the old Secrets do not count for these.
    let answers = seen.answers.take();
    assert!(pass(&mut seen));
    assert_eq!(tried(&seen), before, "nobody has logged in with these yet");
    seen.answers = answers;
    for expected in 0..=3 {
        let n_writes = (0..5).filter(|_| pass(&mut seen)).count();
        assert!(n_writes <= 1, "{n_writes} writes for {expected}");
        assert_ne!(tried(&seen), before);
        let status = seen.cell.status.as_ref().unwrap();
        assert_eq!(status.up_to_date_computes, Some(expected));
        if let Some(name) = names.get(usize::try_from(expected).unwrap()) {
            let place =
                seen.computes.iter().position(|it| it.metadata.name.as_deref() == Some(name));
            seen.computes[place.unwrap()] = deployed(name, &present(&seen));
        }
    }
}

mod digests;
mod discovery;
mod held;
mod leftovers;
mod mappings;
mod nova_api;
mod release;
mod world;
