//! Tests of evaluating the service sequence of one host.

use api::ansibleee::AnsibleEe;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::keyed::{Digest, Keys};
use crate::run_engine::host_key::HostKeyTrust;
use crate::run_engine::retry::Retries;
use crate::run_engine::run::SERVICE_LABEL;
use crate::run_engine::test_runs::{attempt as tried, ended, record, run};

const RUNNING: &str = r#"{ "JobStatus": "Running" }"#;

fn now() -> Timestamp {
    "1970-01-01T01:00:00Z".parse().unwrap()
}

fn wanted(hash: &str) -> Vec<DesiredService> {
    let hash = Digest::from(hash);
    vec![DesiredService { service: "a".into(), run_hash: hash.clone(), hash, group: "g".into() }]
}

fn judged(
    hash: &str,
    recorded: &[ServiceRun],
    objects: &[AnsibleEe],
    may_run: bool,
) -> ServiceSequence {
    judged_chain(&wanted(hash), recorded, objects, may_run)
}

fn trust() -> HostKeyTrust {
    HostKeyTrust { is_learned: true, key: None, accepted: Some("word".into()) }
}

fn judged_chain(
    wanted: &[DesiredService],
    recorded: &[ServiceRun],
    objects: &[AnsibleEe],
    may_run: bool,
) -> ServiceSequence {
    let runs: Vec<Run<'_>> = objects.iter().filter_map(Run::of).collect();
    let host = Host {
        name: "n0",
        desired: wanted,
        recorded,
        ssh_key: ("key", "1"),
        trust: &trust(),
        namespace: None,
        has_moved: false,
        records_begin: true,
        retries: Retries::Healing("kubectl annotate"),
    };
    let sequence = evaluate(&host, &runs, now());
    if may_run { sequence } else { sequence.held() }
}

fn running(hash: &str, attempt: i64) -> AnsibleEe {
    run("r", &[("n0", tried(hash, attempt))], &serde_json::from_str(RUNNING).unwrap())
}

fn done(hash: &str, attempt: i64, result: &str) -> AnsibleEe {
    let job_status = if result == "Ok" { "Succeeded" } else { "Failed" };
    run("r", &[("n0", tried(hash, attempt))], &ended(job_status, "n0", result, 1))
}

/// Returns (state, hash, attempt) of the only service.
fn service(chain: &ServiceSequence) -> (RunState, &str, i64) {
    let service = &chain.services[0];
    (service.state, &service.hash, service.attempt)
}

#[test]
fn a_host_without_a_record_gets_its_first_attempt() {
    let chain = judged("A", &[], &[], true);
    assert_eq!(service(&chain), (RunState::Pending, "A", 1));
    assert!(matches!(chain.state, SequenceState::NeedsRun(ref it) if it.attempt == tried("A", 1)));
    assert_eq!(judged("A", &[], &[], false).state, SequenceState::OutOfDate);
}

#[test]
fn a_recorded_attempt_without_a_run_gets_the_same_run_again() {
    let recorded = [record(RunState::Pending, "A", 4)];
    let chain = judged("A", &recorded, &[], true);
    assert!(matches!(chain.state, SequenceState::NeedsRun(ref it) if it.attempt == tried("A", 4)));
    assert_eq!(chain.services, recorded);
}

#[test]
fn a_run_that_somebody_deleted_is_not_made_again_by_itself() {
    let mut running = record(RunState::Running, "A", 1);
    running.run = Some("r".into());
    let chain = judged("A", &[running], &[], true);
    assert_eq!(service(&chain), (RunState::Failed, "A", 1));
    let SequenceState::Failed { reason, message, retry_at } = &chain.state else {
        panic!("{chain:?}")
    };
    assert_eq!((*reason, *retry_at), (FailureReason::ResultUnknown, None));
    assert!(message.contains("AnsibleEE r") && message.contains("kubectl annotate"), "{message}");
    // The failure stays reported, and another input is another attempt.
    assert_eq!(judged("A", &chain.services, &[], true).state, chain.state);
    assert_eq!(judged("B", &chain.services, &[], true).state, needs("B", 2));
}

#[test]
fn only_the_success_of_the_newest_attempt_counts() {
    for (recorded_attempt, expected) in [(1, SequenceState::Done), (2, needs("A", 2))] {
        let recorded = [record(RunState::Running, "A", recorded_attempt)];
        let chain = judged("A", &recorded, &[done("A", 1, "Ok")], true);
        assert_eq!(chain.state, expected, "attempt {recorded_attempt}");
    }
}

#[test]
fn a_success_stands_in_the_record_alone_and_counts_for_its_own_inputs() {
    // No run is left that could report it.
    let recorded = [record(RunState::Succeeded, "A", 1)];
    let chain = judged("A", &recorded, &[], true);
    assert_eq!((chain.state, chain.services.as_slice()), (SequenceState::Done, &recorded[..]));
    assert_eq!(judged("B", &recorded, &[], true).state, needs("B", 2));
}

#[test]
fn the_pause_after_a_run_without_an_end_begins_when_its_failure_is_told_or_seen() {
    let failed = |conditions: Value| {
        let status = json!({
            "JobStatus": "Failed",
            "reason": "ImagePullFailed",
            "conditions": conditions,
            "hosts": [{ "name": "n0", "result": "Unknown" }],
        });
        let runs = [run("r", &[("n0", tried("A", 1))], &status)];
        judged("A", &[record(RunState::Running, "A", 1)], &runs, true)
    };
    let told = "1970-01-01T00:59:59Z";
    let ready = json!({
        "type": "Ready", "status": "False", "reason": "ImagePullFailed", "message": "",
        "lastTransitionTime": told,
    });
    for (conditions, since) in [(json!([ready]), told.parse().unwrap()), (json!([]), now())] {
        let chain = failed(conditions);
        assert_eq!(chain.services[0].since.0, since);
        let pause = jiff::SignedDuration::from_secs(15);
        assert!(
            matches!(chain.state, SequenceState::Failed { retry_at: Some(at), .. } if at == since + pause),
            "{chain:?}"
        );
    }
}

#[test]
fn a_failure_on_the_host_is_no_success_and_leaves_what_was_deployed() {
    let mut recorded = record(RunState::Running, "B", 2);
    recorded.deployed_hash = Some("A".into());
    let chain = judged("B", &[recorded], &[done("B", 2, "Failed")], true);
    assert_eq!(service(&chain), (RunState::Failed, "B", 2));
    assert_eq!(chain.services[0].deployed_hash.as_deref(), Some("A"));
    assert!(
        matches!(chain.state, SequenceState::Failed { reason: FailureReason::TaskFailed, .. }),
        "{chain:?}"
    );
}

#[test]
fn a_partial_run_after_a_failure_does_not_make_the_host_what_it_was() {
    let deployed = |state: RunState, hash: &str| {
        let mut it = record(state, hash, 2);
        it.deployed_hash = Some("A".into());
        it
    };
    let kept = |recorded: ServiceRun, objects: &[AnsibleEe]| {
        let chain = judged("A-tags", &[recorded], objects, true);
        assert_eq!(service(&chain), (RunState::Pending, "A-tags", 3));
        chain.services[0].deployed_hash.clone()
    };
    assert_eq!(kept(deployed(RunState::Failed, "B"), &[]), None);
    // The next attempt is recorded while the run of B is active, and B's result does not matter.
    assert_eq!(kept(deployed(RunState::Running, "B"), &[running("B", 2)]), None);
    assert_eq!(kept(deployed(RunState::Pending, "B"), &[running("B", 2)]), None);
    // Nothing has happened since.
    assert_eq!(kept(deployed(RunState::Succeeded, "A"), &[]).as_deref(), Some("A"));
    assert_eq!(kept(deployed(RunState::Pending, "B"), &[]).as_deref(), Some("A"));
}

#[test]
fn the_same_attempt_once_more_starts_from_where_the_first_one_did() {
    let mut recorded = record(RunState::Failed, "A-tags", 2);
    recorded.deployed_hash = Some("A".into());
    recorded.reason = Some(FailureReason::HostUnreachable.as_str().into());
    let chain = judged("A-tags", &[recorded], &[], true);
    assert_eq!(service(&chain), (RunState::Pending, "A-tags", 3));
    assert_eq!(chain.services[0].deployed_hash.as_deref(), Some("A"));
}

/// The two services a and b, with the same inputs.
fn two() -> Vec<DesiredService> {
    let of = |name: &str| DesiredService { service: name.into(), ..wanted("A").remove(0) };
    ["a", "b"].map(of).into()
}

/// A run of service b on its first attempt.
fn run_of_b(name: &str, status: &Value) -> AnsibleEe {
    let mut object = run(name, &[("n0", tried("A", 1))], status);
    object.metadata.labels.get_or_insert_default().insert(SERVICE_LABEL.into(), "b".into());
    object
}

/// What is recorded of service a after failures for one reason.
fn failed(reason: FailureReason, failures: i64, since: Timestamp) -> ServiceRun {
    let reason = Some(reason.as_str().into());
    ServiceRun { reason, failures, since: Time(since), ..record(RunState::Failed, "A", 1) }
}

/// Two services: the first one's run is gone, the second one's is as given.
fn after_the_first_run_went(second: RunState, run_of_second: &Value) -> ServiceSequence {
    let first = ServiceRun { run: Some("gone".into()), ..record(RunState::Running, "A", 1) };
    let recorded = [first, ServiceRun { name: "b".into(), ..record(second, "A", 1) }];
    judged_chain(&two(), &recorded, &[run_of_b("r", run_of_second)], true)
}

#[test]
fn a_service_whose_successor_ran_is_not_run_again_when_its_own_run_was_cleared_away() {
    let chain = after_the_first_run_went(RunState::Pending, &ended("Succeeded", "n0", "Ok", 1));
    assert_eq!(chain.state, SequenceState::Done);
    for service in &chain.services {
        let said = (service.state, service.deployed_hash.as_deref());
        assert_eq!(said, (RunState::Succeeded, Some("A")), "{}", service.name);
    }
    // While the second one runs, nothing begins.
    let chain = after_the_first_run_went(RunState::Pending, &json!({ "JobStatus": "Running" }));
    assert!(matches!(chain.state, SequenceState::InRun { .. }), "{chain:?}");
}

#[test]
fn a_cause_does_not_outlive_the_success_of_its_service_and_the_chain_stays_begun() {
    let second = ServiceRun { name: "b".into(), ..record(RunState::Pending, "A", 1) };
    let mut first = record(RunState::Running, "A", 2);
    first.reason = Some(FailureReason::PodEvicted.as_str().into());
    first.message = Some("it is retried automatically.".into());
    let at = |recorded: &[ServiceRun; 2], status: Value| {
        judged_chain(&two(), recorded, &[done("A", 2, "Ok"), run_of_b("s", &status)], true).services
    };
    let recorded = [first.clone(), second.clone()];
    let told = at(&recorded, json!({ "JobStatus": "Running" }));
    assert_eq!(
        (told[0].state, &told[0].reason, &told[0].message),
        (RunState::Succeeded, &None, &None)
    );
    assert_eq!((told[1].state, told[1].run.as_deref()), (RunState::Running, Some("s")));
    // What only waits may be withdrawn, and then it was not reported.
    assert_eq!(at(&recorded, json!({})), recorded);
    // Without a cause nothing is written between two services.
    first.reason = None;
    let recorded = [first, second];
    assert_eq!(at(&recorded, json!({ "JobStatus": "Running" })), recorded);
}

#[test]
fn a_successor_that_was_done_before_says_nothing_about_a_run_that_is_gone() {
    let chain = after_the_first_run_went(RunState::Succeeded, &ended("Succeeded", "n0", "Ok", 1));
    assert!(matches!(
        chain.state,
        SequenceState::Failed { reason: FailureReason::ResultUnknown, .. }
    ));
}

fn needs(hash: &str, number: i64) -> SequenceState {
    let attempt = tried(hash, number);
    SequenceState::NeedsRun(NeededRun { service: "a".into(), group: "g".into(), attempt })
}

#[test]
fn inputs_that_change_during_a_run_are_another_attempt_at_once() {
    let objects = [running("A", 1)];
    let chain = judged("B", &[record(RunState::Running, "A", 1)], &objects, true);
    assert_eq!(service(&chain), (RunState::Pending, "B", 2));
    assert!(matches!(chain.state, SequenceState::InRun { .. }));
    // It is written once, and not taken for the run's own.
    let again = judged("B", &chain.services, &objects, true);
    // The attempt that is recorded now has not begun.
    assert_eq!(again, ServiceSequence { has_begun: false, ..chain });
}

#[test]
fn inputs_that_go_back_during_a_run_do_not_make_its_success_theirs() {
    let objects = [running("A", 1)];
    let at_b = judged("B", &[record(RunState::Running, "A", 1)], &objects, true);
    let at_a = judged("A", &at_b.services, &objects, true);
    let recorded = at_a.services.clone();
    let after = judged("A", &recorded, &[done("A", 1, "Ok")], true);
    assert!(
        matches!(after.state, SequenceState::NeedsRun(ref it) if it.attempt.attempt > 1),
        "{after:?}"
    );
    assert_eq!(after.services[0].deployed_hash, None);
}

#[test]
fn they_do_not_either_while_nothing_may_run() {
    let objects = [running("A", 1)];
    let at_b = judged("B", &[record(RunState::Running, "A", 1)], &objects, false);
    let at_a = judged("A", &at_b.services, &objects, false);
    let after = judged("A", &at_a.services, &[done("A", 1, "Ok")], false);
    assert_eq!(after.state, SequenceState::OutOfDate);
}

#[test]
fn a_held_host_keeps_its_record_and_no_attempt_of_it_is_due() {
    let unreachable = |since| failed(FailureReason::HostUnreachable, 1, since);
    let mut lost = record(RunState::Running, "A", 1);
    lost.run = Some("gone".into());
    let untried = SequenceState::Failed {
        reason: FailureReason::HostUnreachable,
        message: String::new(),
        retry_at: None,
    };
    let cases = [
        ("retried now", unreachable(Timestamp::UNIX_EPOCH), untried.clone()),
        ("retried later", unreachable(now()), untried),
        ("its run is gone", lost, SequenceState::OutOfDate),
        ("another input", record(RunState::Succeeded, "B", 1), SequenceState::OutOfDate),
    ];
    for (case, recorded, expected) in cases {
        let recorded = [recorded];
        let free = judged("A", &recorded, &[], true);
        assert_ne!(free.state, expected, "{case}");
        let held = free.held();
        assert_eq!((&held.state, held.services.as_slice()), (&expected, &recorded[..]), "{case}");
        assert_eq!(held.clone().held(), held, "{case}");
    }
}

#[test]
fn a_held_host_goes_as_far_as_its_runs_have_come() {
    let recorded = ["a", "b"]
        .map(|service| ServiceRun { name: service.into(), ..record(RunState::Pending, "A", 1) });
    let held = judged_chain(&two(), &recorded, &[done("A", 1, "Ok")], false);
    assert_eq!(held.state, SequenceState::OutOfDate);
    assert_eq!(service(&held).0, RunState::Succeeded);
    assert_eq!(held.services[1], recorded[1]);
    let running = judged_chain(&two(), &recorded, &[running("A", 1)], true);
    assert_eq!(running.clone().held(), running);
}

#[test]
fn a_run_of_an_older_attempt_does_not_mark_the_newer_one_as_running() {
    let recorded = [record(RunState::Pending, "A", 2)];
    let chain = judged("A", &recorded, &[running("A", 1)], true);
    assert_eq!(chain.services, recorded);
    assert!(matches!(chain.state, SequenceState::InRun { .. }));
}

#[test]
fn a_run_marks_its_own_attempt_as_running_once() {
    let chain = judged("A", &[record(RunState::Pending, "A", 1)], &[running("A", 1)], true);
    assert_eq!(service(&chain), (RunState::Running, "A", 1));
    let later = judged("A", &chain.services, &[running("A", 1)], true);
    assert_eq!((later.state, later.services), (chain.state, chain.services));
}

#[test]
fn a_failure_is_tried_again_as_its_class_says() {
    let cases = [
        ("Unreachable", FailureReason::HostUnreachable, true),
        ("KeyRefused", FailureReason::KeyRefused, true),
        ("Failed", FailureReason::TaskFailed, false),
        ("NotReached", FailureReason::NoHostMatched, false),
        ("Unknown", FailureReason::ResultUnknown, false),
    ];
    for (result, expected, heals) in cases {
        let recorded = [record(RunState::Running, "A", 1)];
        let object = done("A", 1, result);
        let chain = judged("A", &recorded, std::slice::from_ref(&object), true);
        // It ended long ago: what heals by itself is due.
        match chain.state {
            SequenceState::NeedsRun(need) => {
                assert!(heals, "{result}");
                assert_eq!(need.attempt, tried("A", 2));
                assert_eq!(chain.services[0].reason.as_deref(), Some(expected.as_str()));
                assert_eq!(chain.services[0].failures, 1);
            }
            SequenceState::Failed { reason, retry_at, .. } => {
                assert!(!heals, "{result}");
                assert_eq!((reason, retry_at), (expected, None));
            }
            SequenceState::Done | SequenceState::OutOfDate | SequenceState::InRun { .. } => {
                panic!("{result}: not judged")
            }
        }
    }
}

#[test]
fn a_host_that_a_failed_partial_run_did_not_reach_has_not_succeeded() {
    let label = super::super::run::PARTIAL_LABEL.to_owned();
    for (job_status, expected) in
        [("Succeeded", None), ("Failed", Some(FailureReason::NoHostMatched))]
    {
        let status = ended(job_status, "n0", "NotReached", 1);
        let mut object = run("r", &[("n0", tried("A", 1))], &status);
        object.metadata.labels.as_mut().unwrap().insert(label.clone(), "true".into());
        let chain = judged("A", &[record(RunState::Running, "A", 1)], &[object], true);
        let reason = expected.map(|it| it.as_str().to_owned());
        assert_eq!(chain.services[0].reason, reason, "{job_status}");
        assert_eq!(chain.state == SequenceState::Done, expected.is_none(), "{job_status}");
    }
}

#[test]
fn of_a_shared_run_only_the_unreachable_host_is_tried_again() {
    let shared = |n0: &str, n1: &str| {
        let mut status = ended("Failed", "n0", n0, 1);
        status["hosts"].as_array_mut().unwrap().push(json!({ "name": "n1", "result": n1 }));
        run("r", &[("n0", tried("A", 1)), ("n1", tried("A", 1))], &status)
    };
    let recorded = [record(RunState::Running, "A", 1)];
    let state = |object: AnsibleEe| judged("A", &recorded, &[object], true).state;
    assert_eq!(state(shared("Ok", "Unreachable")), SequenceState::Done);
    assert_eq!(state(shared("Unreachable", "Ok")), needs("A", 2));
}

#[test]
fn each_class_of_failure_has_its_own_count_and_so_its_own_pauses() {
    let mut recorded = record(RunState::Running, "A", 21);
    recorded.reason = Some(FailureReason::HostUnreachable.as_str().into());
    recorded.failures = 20;
    let failures = |result: &str| {
        let mut object = done("A", 21, result);
        // Just now, so that the backoff has only begun.
        object.status.as_mut().unwrap().completion_time = Some(Time(now()));
        let chain = judged("A", std::slice::from_ref(&recorded), &[object], true);
        let SequenceState::Failed { retry_at, .. } = chain.state else {
            panic!("{:?}", chain.state)
        };
        let pause = retry_at.map(|it| it.duration_since(now()).as_secs());
        (chain.services[0].failures, pause)
    };
    assert_eq!(failures("Unreachable"), (21, Some(600)));
    assert_eq!(failures("KeyRefused"), (1, Some(15)));
    assert_eq!(failures("Failed"), (1, None));
}

#[test]
fn a_refused_key_is_tried_at_once_with_another_secret() {
    let mut failed = failed(FailureReason::KeyRefused, 1, now());
    failed.run = Some("r".into());
    let object = done("A", 1, "KeyRefused");
    let waits = judged("A", &[failed.clone()], std::slice::from_ref(&object), true);
    assert!(matches!(waits.state, SequenceState::Failed { retry_at: Some(_), .. }));
    let mut other = object;
    let keys = json!({ "key": "0" }).to_string();
    other.metadata.annotations.as_mut().unwrap().insert(super::super::run::SSH_KEYS.into(), keys);
    let now_due = judged("A", &[failed.clone()], std::slice::from_ref(&other), true);
    assert_eq!(now_due.state, needs("A", 2), "another version of the Secret");
    let keys = json!({ "another": "1" }).to_string();
    other.metadata.annotations.as_mut().unwrap().insert(super::super::run::SSH_KEYS.into(), keys);
    assert_eq!(judged("A", &[failed], &[other], true).state, needs("A", 2), "another Secret");
}

#[test]
fn a_refused_host_key_is_tried_at_once_when_another_one_is_trusted() {
    let mut failed = failed(FailureReason::HostKeyMismatch, 1, now());
    failed.run = Some("r".into());
    let token = trust().token();
    let cases = [
        // reason, what the failed run trusted, whether it is retried at once
        ("HostKeyMismatch", Some(json!({ "n0": token }).to_string()), false),
        ("HostKeyMismatch", Some(json!({ "n0": "other" }).to_string()), true),
        ("HostKeyMismatch", Some(json!({ "n1": token }).to_string()), true),
        ("HostKeyMismatch", Some("no JSON".into()), true),
        ("HostKeyMismatch", None, true),
        ("KeyRefused", None, false),
        ("HostUnreachable", None, false),
    ];
    for (reason, trusted, expected) in cases {
        failed.reason = Some(reason.into());
        let mut object = done("A", 1, "HostKeyMismatch");
        if let Some(words) = trusted.clone() {
            let annotations = object.metadata.annotations.as_mut().unwrap();
            annotations.insert(super::super::run::HOST_KEYS.into(), words);
        }
        let chain = judged("A", std::slice::from_ref(&failed), &[object], true);
        let state = &chain.state;
        assert_eq!(*state == needs("A", 2), expected, "{reason} {trusted:?}: {state:?}");
        assert_eq!(chain.was_key_refused(), expected);
    }
}

#[test]
fn going_back_to_inputs_whose_success_was_overtaken_runs_them_again() {
    let mut failed = record(RunState::Failed, "B", 2);
    failed.deployed_hash = Some("A".into());
    failed.reason = Some(FailureReason::TaskFailed.as_str().into());
    assert_eq!(judged("A", &[failed], &[], true).state, needs("A", 3));
}

#[test]
fn the_number_of_an_attempt_is_above_all_that_were_ever_made() {
    let status: Value = serde_json::from_str(RUNNING).unwrap();
    let mut old = run("r", &[("n0", tried("Z", 7))], &status);
    old.status = done("Z", 7, "Ok").status;
    let chain = judged("A", &[record(RunState::Succeeded, "B", 2)], &[old], true);
    assert_eq!(chain.state, needs("A", 8));
}

/// A service with a Secret among its inputs, with the current key, and its texts written without a
/// key, with an older key and with a lost key.
fn keyed(password: &str) -> (Vec<DesiredService>, [String; 3]) {
    let made = |keys: &Keys| {
        let secret = keys.of_bytes(password.as_bytes());
        Digest::combined([&secret], |view| crate::hash::digest(&("v1", view.of(&secret))))
    };
    let hash = made(&Keys::new(b"new", [&b"old"[..]]));
    let texts = [Keys::default(), Keys::new(b"old", []), Keys::new(b"lost", [])];
    let wanted =
        DesiredService { service: "a".into(), run_hash: hash.clone(), hash, group: "g".into() };
    (vec![wanted], texts.map(|it| made(&it).text()))
}

#[test]
fn a_success_that_was_recorded_by_an_older_key_a_lost_one_or_none_counts() {
    let (wanted, texts) = keyed("a");
    for text in &texts {
        let recorded = [record(RunState::Succeeded, text, 3)];
        let chain = judged_chain(&wanted, &recorded, &[], true);
        assert_eq!(
            (chain.state, chain.services.as_slice()),
            (SequenceState::Done, &recorded[..]),
            "{text}"
        );
    }
    // Other content is another attempt, except with the lost key, which cannot be compared.
    let (other, _) = keyed("b");
    for text in &texts[..2] {
        let chain = judged_chain(&other, &[record(RunState::Succeeded, text, 3)], &[], true);
        assert_eq!(chain.state, needs(&other[0].hash.text(), 4));
    }
}

#[test]
fn an_attempt_that_was_recorded_by_an_older_key_or_none_keeps_its_run() {
    let (wanted, texts) = keyed("a");
    for text in &texts {
        // Recorded, and its run was not created yet.
        let pending = [record(RunState::Pending, text, 4)];
        let chain = judged_chain(&wanted, &pending, &[], true);
        assert_eq!((chain.state, chain.services.as_slice()), (needs(text, 4), &pending[..]));
        // Running, and succeeded.
        let recorded = [record(RunState::Running, text, 4)];
        let chain = judged_chain(&wanted, &recorded, &[running(text, 4)], true);
        assert!(matches!(chain.state, SequenceState::InRun { .. }), "{chain:?}");
        assert_eq!(chain.services, recorded);
        let chain = judged_chain(&wanted, &recorded, &[done(text, 4, "Ok")], true);
        assert_eq!(service(&chain).0, RunState::Succeeded);
        assert_eq!(chain.state, SequenceState::Done);
        // What failed is retried as the same attempt.
        let done = [done(text, 4, "Unreachable")];
        let again = judged_chain(&wanted, &recorded, &done, true);
        assert_eq!(service(&again), (RunState::Pending, wanted[0].hash.text().as_str(), 5));
        assert_eq!(again.services[0].failures, 1);
    }
}

#[test]
fn inputs_that_go_back_before_anything_began_are_what_was_deployed_by_whichever_key() {
    let (wanted, texts) = keyed("a");
    for text in &texts {
        let mut recorded = record(RunState::Pending, "B", 5);
        recorded.deployed_hash = Some(text.clone());
        let chain = judged_chain(&wanted, &[recorded], &[], true);
        assert_eq!(service(&chain), (RunState::Succeeded, text.as_str(), 5));
        assert_eq!(chain.state, SequenceState::Done);
    }
}

#[test]
fn only_what_succeeded_is_renewed_so_that_runs_are_known_by_their_hashes() {
    let (wanted, texts) = keyed("a");
    for (state, is_renewed) in [
        (RunState::Pending, false),
        (RunState::Running, false),
        (RunState::Failed, false),
        (RunState::Succeeded, true),
    ] {
        let mut service = record(state, &texts[0], 1);
        service.deployed_hash = Some(texts[0].clone());
        let mut services = [service.clone()];
        renew(&mut services, &wanted, &mut Renewal::default());
        let present = wanted[0].hash.text();
        service.deployed_hash = Some(present.clone());
        service.hash = if is_renewed { present } else { service.hash };
        assert_eq!(services, [service]);
    }
    let mut other = [record(RunState::Succeeded, "B", 1)];
    renew(&mut other, &wanted, &mut Renewal::default());
    assert_eq!(other[0].hash, "B");
}
