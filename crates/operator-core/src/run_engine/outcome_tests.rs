//! What the result of a run means for one host.

use serde_json::{Value, json};

use super::*;
use crate::run_engine::test_runs::{attempt, run};

#[test]
fn every_reason_is_known_by_its_word() {
    for reason in FailureReason::ALL {
        assert_eq!(FailureReason::parse(reason.as_str()), reason);
    }
    assert_eq!(FailureReason::parse("Succeeded"), FailureReason::ResultUnknown);
}

/// Returns why a run with this status has failed on its host.
fn failed(status: &Value, namespace: Option<&str>, is_learned: bool) -> (FailureReason, String) {
    let object = run("r", &[("n0", attempt("A", 1))], status);
    let remediation = Remediation { retries: Retries::Healing("redeploy"), namespace, is_learned };
    match host_outcome(&Run::of(&object).unwrap(), "n0", remediation) {
        Outcome::Failed { reason, message } => (reason, message),
        Outcome::Succeeded | Outcome::LeftOut => panic!("not failed"),
    }
}

/// Returns the message for a host whose key was refused.
fn rejected(key: &str, said: &str, is_learned: bool) -> String {
    let status = json!({
        "JobStatus": "Failed",
        "hosts": [{ "name": "n0", "result": "HostKeyMismatch" }],
        "hostKeys": [serde_json::from_str::<Value>(key).unwrap()],
        "failures": [{ "host": "n0", "message": said }],
    });
    let (reason, message) = failed(&status, Some("ns"), is_learned);
    assert_eq!(reason, FailureReason::HostKeyMismatch);
    message
}

#[test]
fn a_user_whom_sudo_asks_for_a_password_is_told_with_the_rule_that_is_missing() {
    for (said, is_named) in [("Missing sudo password", true), ("no sudo here", false)] {
        let status = json!({
            "JobStatus": "Failed",
            "hosts": [{ "name": "n0", "result": "Failed" }],
            "failures": [{ "host": "n0", "task": "t", "path": "p:1", "message": said }],
        });
        let (_, message) = failed(&status, None, false);
        assert_eq!(message.contains("NOPASSWD: ALL`. It runs again"), is_named, "{message}");
        assert!(message.ends_with("or with: redeploy"), "{message}");
    }
}

const CHANGED: &str = "Failed to connect to the host via ssh: @@@@@@@@@@@@@@\n\
    @    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n\
    IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\n\
    The fingerprint for the ED25519 key sent by the remote host is\n\
    SHA256:qfjns8u+mffg5thVDh//jqSmjYPM9ckImYjORFeaUdc.\nPlease contact";

#[test]
fn a_refused_host_key_is_told_with_the_command_that_accepts_it() {
    const OFFERED: &str = r#"{"name": "n0", "key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIWOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8+"}"#;
    let problem = |it: &str| format!(r#"{{"name": "n0", "problem": "{it}"}}"#);
    let other = r#"{"name": "n1"}"#;
    let accept = |it: &str| format!("{}SHA256:{it}", accept_command("ns", "n0"));
    let offered = accept("we3NhHv6qoWDZyJEgGkUdR8Wt3uFq2IQZFuEdYnEPQg");
    let said = accept("qfjns8u+mffg5thVDh//jqSmjYPM9ckImYjORFeaUdc");
    let unknown = accept("…");
    let cases = [
        (OFFERED, "x", true, &*offered),
        (OFFERED, CHANGED, true, &offered),
        (other, CHANGED, true, &said),
        (other, &CHANGED[..CHANGED.len() - 25], true, &unknown),
        (other, "Host key verification failed.", true, &unknown),
        (other, "The SHA256:a; rm -rf /", true, &unknown),
        (&problem("NoAnswer"), CHANGED, true, &said),
        (&problem("NoEd25519Key"), "x", true, "no key of type ed25519"),
        (&problem("NoEd25519Key"), "x", true, "into known_hosts of the ssh Secret"),
        (&problem("NoScanner"), "x", true, "no ssh-keyscan"),
        (OFFERED, CHANGED, false, "correct known_hosts of the ssh Secret"),
    ];
    for (key, text, is_learned, expected) in cases {
        let message = rejected(key, text, is_learned);
        assert!(message.contains(expected), "{message}\nlacks {expected}");
    }
    assert!(!rejected(OFFERED, CHANGED, false).contains("kubectl"));
    assert!(!rejected(&problem("NoEd25519Key"), CHANGED, true).contains("kubectl"));
}

#[test]
fn what_does_not_heal_by_itself_prints_the_command_that_does() {
    for reason in FailureReason::ALL {
        let step = reason.next_step(Retries::Healing("kubectl annotate x"), 1);
        assert_eq!(step.contains("kubectl annotate x"), !reason.heals_by_itself(), "{reason:?}");
    }
}

#[test]
fn where_attempts_are_counted_everything_is_tried_again_until_the_last_one() {
    let retries = Retries::Limited { attempts: 3, way_on: "do that" };
    for reason in FailureReason::ALL.into_iter().filter(|it| !it.is_final()) {
        let step = |attempt| reason.next_step(retries, attempt);
        assert!(step(2).to_lowercase().ends_with("it is retried automatically."), "{reason:?}");
        assert!(step(3).ends_with("hat was the last of 3 attempts, so then do that."));
    }
    let step = FailureReason::PodEvicted.next_step(retries, 1);
    assert_eq!(step, "It is retried automatically.");
    let step = FailureReason::InvalidSpec.next_step(retries, 1);
    assert_eq!(step, "Another attempt would be refused as well, so do that.");
}
