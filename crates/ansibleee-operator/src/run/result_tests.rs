//! Tests of results: a table of Job ends, each with reason, hosts and message.

use api::conditions::merge_conditions;
use api::yaml;
use operator_core::condition_catalog::undeclared;

use super::*;
use crate::condition_catalog::KINDS;

const HOSTS: &str = "[{name: a, address: 'a:22'}, {name: b, address: 'b:22'}]";

fn ansible(hosts: &str, labels: &str) -> AnsibleEe {
    yaml::from_str(&format!(
        "
metadata: {{name: run, namespace: ns, uid: u, labels: {labels}}}
spec: {{playbook: p.yml, hosts: {hosts}}}
status: {{admission: {{term: t, time: '2026-01-01T00:00:00Z'}}, hash: {{input: i}}}}
"
    ))
    .unwrap()
}

fn job(end: &str) -> Job {
    yaml::from_str(&format!("{{metadata: {{name: run-1}}, status: {{conditions: [{end}]}}}}"))
        .unwrap()
}

const COMPLETE: &str =
    "{type: Complete, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z'}";
const FAILED: &str = "{type: Failed, status: 'True', reason: PodFailurePolicy, message: x, \
                      lastTransitionTime: '2026-01-01T00:00:00Z'}";

fn pod(phase: &str, ended: &str, more: &str) -> Pod {
    yaml::from_str(&format!(
        "
metadata: {{name: run-1-x, creationTimestamp: '2026-01-01T00:00:00Z'}}
status:
  phase: {phase}
  {more}
  containerStatuses: [{{name: openstackansibleee, state: {{terminated: {ended}}}}}]
"
    ))
    .unwrap()
}

fn said(code: i32, message: &str) -> String {
    serde_json::json!({ "exitCode": code, "message": message }).to_string()
}

/// Returns status, reason and one letter per host.
fn outcome(status: &AnsibleEeStatus) -> String {
    let letter = |it: &HostResult| match it.result {
        HostOutcome::Ok => 'o',
        HostOutcome::Failed => 'f',
        HostOutcome::Unreachable => 'u',
        HostOutcome::KeyRefused => 'k',
        HostOutcome::HostKeyMismatch => 'h',
        HostOutcome::NotReached => 'n',
        HostOutcome::Unknown => '?',
    };
    let hosts: String = status.hosts.iter().map(letter).collect();
    let reason = status.reason.clone().unwrap_or_default();
    format!("{:?} {reason} {hosts}", status.job_status.unwrap())
}

#[track_caller]
fn check(end: &str, pods: &[Pod], expected: &str, words: &str) {
    let (status, finding) = of_job(&ansible(HOSTS, "{}"), &job(end), pods);
    assert_eq!(outcome(&status), expected, "{}", finding.message);
    assert!(finding.message.contains(words), "{}", finding.message);
    assert_eq!(finding.holds(), expected.starts_with("Succeeded"));
    let conditions = merge_conditions(&[], vec![finding], None, jiff::Timestamp::UNIX_EPOCH);
    let status = serde_json::json!({ "conditions": conditions });
    assert_eq!(undeclared(KINDS, "OpenStackAnsibleEE", &status), [""; 0]);
}

fn message(hosts: &str, failures: &str) -> String {
    format!(r#"{{"v":1,"hosts":"{hosts}","changed":[1,2],"failures":[{failures}]}}"#)
}

const ON_B: &str = r#"{"host":"b","play":"P","task":"T","path":"/p.yml:7","message":"no\nmore"}"#;
const ON_A: &str = r#"{"host":"a","play":"P","task":"T","path":"","message":"no"}"#;
const LOCAL: &str = r#"{"host":"localhost","play":"P","task":"T","path":"","message":"no"}"#;

#[test]
fn counts_that_nobody_can_count_to_are_told_and_end_nothing() {
    let changes = format!(r#"{{"v":1,"hosts":"oo","changed":[{},1],"failures":[]}}"#, i64::MAX);
    let pods = [pod("Succeeded", &said(0, &changes), "")];
    check(
        COMPLETE,
        &pods,
        "Succeeded Succeeded oo",
        "2 of 2 hosts done, 9223372036854775807 changes",
    );
    let more = format!(
        r#"{{"v":1,"hosts":"ff","changed":[],"failures":[{ON_A},{ON_B}],"more":{}}}"#,
        usize::MAX
    );
    let pods = [pod("Failed", &said(2, &more), "")];
    check(FAILED, &pods, "Failed TaskFailed ff", "(and 18446744073709551615 more)");
}

#[test]
fn host_keys_are_told_whatever_became_of_the_run() {
    let hosts = "[{name: a, address: 'a:22', scanHostKey: {}}]";
    let told = r#"{"v":1,"keys":["IWOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8+"]}"#;
    let first = format!(
        "initContainerStatuses: [{{name: edpm-host-keys, state: {{terminated: {}}}}}]",
        said(0, told)
    );
    let one =
        |letter: &str| format!(r#"{{"v":1,"hosts":"{letter}","changed":[0],"failures":[{ON_A}]}}"#);
    for (end, phase, ended, expected) in [
        (COMPLETE, "Succeeded", said(0, r#"{"v":1,"hosts":"o","changed":[0],"failures":[]}"#), "o"),
        (FAILED, "Failed", said(4, &one("u")), "u"),
        (FAILED, "Failed", said(137, ""), "?"),
    ] {
        let pods = [pod(phase, &ended, &first)];
        let (status, _) = of_job(&ansible(hosts, "{}"), &job(end), &pods);
        assert!(outcome(&status).ends_with(expected), "{}", outcome(&status));
        assert_eq!(status.host_keys.len(), 1);
        assert!(status.host_keys[0].key.as_ref().unwrap().starts_with("ssh-ed25519 AAAA"));
    }
}

#[test]
fn an_image_that_cannot_learn_host_keys_is_told_with_the_way_out() {
    let first = format!(
        "initContainerStatuses: [{{name: edpm-host-keys, state: {{terminated: {}}}}}]",
        said(128, "")
    );
    let pod = pod("Failed", "null", &first);
    check(FAILED, &[pod], "Failed ResultUnknown ??", "into known_hosts of the ssh Secret");
}

#[test]
fn all_hosts_done_is_a_success() {
    let pod = pod("Succeeded", &said(0, &message("oo", "")), "");
    check(
        COMPLETE,
        &[pod],
        "Succeeded Succeeded oo",
        "Job completed: 2 of 2 hosts done, 3 changes",
    );
}

#[test]
fn a_failed_task_is_named_with_host_file_and_line_and_the_others_keep_their_result() {
    let pod = pod("Failed", &said(2, &message("of", ON_B)), "");
    check(
        FAILED,
        &[pod],
        "Failed TaskFailed of",
        "1 of 2 hosts failed: b, task 'T' (/p.yml:7): no: more. Log: kubectl logs -n ns run-1-x",
    );
}

#[test]
fn hosts_that_were_not_reached_under_a_limit_are_no_failure() {
    let pod = pod("Succeeded", &said(0, &message("on", "")), "");
    check(COMPLETE, &[pod], "Succeeded Succeeded on", "1 of 2 hosts done");
}

/// A run of the engine that a user has narrowed.
fn narrowed() -> AnsibleEe {
    let labels = "{edpm.openstack.org/service: s, edpm.openstack.org/partial: 'true'}";
    let mut run = ansible(HOSTS, labels);
    let attempts = ("edpm.openstack.org/attempts".to_owned(), "{}".to_owned());
    run.metadata.annotations = Some([attempts].into());
    run
}

#[test]
fn no_host_reached_at_all_is_a_failure_unless_the_run_was_narrowed() {
    let pod = pod("Succeeded", &said(0, &message("nn", "")), "");
    check(COMPLETE, std::slice::from_ref(&pod), "Failed NoHostMatched nn", "No play reached any");
    let run = narrowed();
    let (status, _) = of_job(&run, &job(COMPLETE), &[pod]);
    assert_eq!(outcome(&status), "Succeeded Succeeded nn");
}

#[test]
fn a_limit_that_leaves_nobody_is_a_failure_unless_the_human_narrowed_the_run() {
    let text = r#"{"v":1,"hosts":"nn","changed":[],"failures":[],"unmatched":true}"#;
    let nobody = pod("Failed", &said(1, text), "");
    let words = "--limit in spec.cmdLine matches no host";
    check(FAILED, std::slice::from_ref(&nobody), "Failed NoHostMatched nn", words);
    let run = narrowed();
    let (status, finding) = of_job(&run, &job(FAILED), &[nobody]);
    assert_eq!(outcome(&status), "Succeeded Succeeded nn");
    assert!(finding.holds(), "{}", finding.message);
    // A hand-made run that names no hosts gets a report all the same.
    let nobody = pod("Failed", &said(1, &text.replace("nn", "")), "");
    let (status, finding) = of_job(&ansible("[]", "{}"), &job(FAILED), &[nobody]);
    assert_eq!(outcome(&status), "Failed NoHostMatched ");
    assert!(finding.message.contains(words), "{}", finding.message);
}

#[test]
fn hosts_that_fail_for_one_reason_give_it_to_the_run() {
    for (letters, expected) in [
        ("uu", "HostUnreachable"),
        ("uo", "HostUnreachable"),
        ("nu", "HostUnreachable"),
        ("kk", "KeyRefused"),
        ("ho", "HostKeyMismatch"),
        ("ff", "TaskFailed"),
        ("uf", "HostsFailed"),
        ("hk", "HostsFailed"),
        ("u?", "HostsFailed"),
        ("??", "HostsFailed"),
    ] {
        let pod = pod("Failed", &said(4, &message(letters, ON_B)), "");
        check(FAILED, &[pod], &format!("Failed {expected} {letters}"), "b, task 'T'");
    }
}

#[test]
fn a_failure_outside_of_the_runs_hosts_makes_their_success_doubtful() {
    let other = pod("Failed", &said(2, &message("oo", LOCAL)), "");
    check(FAILED, &[other], "Failed TaskFailed ??", "localhost, task 'T': no");
    let both = pod("Failed", &said(2, &message("of", &format!("{ON_B},{LOCAL}"))), "");
    check(FAILED, &[both], "Failed HostsFailed ?f", "(and 1 more)");
}

#[test]
fn a_failure_of_localhost_that_counts_for_all_hosts_is_one_of_a_task() {
    for letters in ["ff", "fu"] {
        let pod = pod("Failed", &said(2, &message(letters, LOCAL)), "");
        let reason = if letters == "ff" { "TaskFailed" } else { "HostsFailed" };
        let words = "2 of 2 hosts failed: localhost, task 'T': no";
        check(FAILED, &[pod], &format!("Failed {reason} {letters}"), words);
    }
}

#[test]
fn a_success_without_a_message_is_not_believed() {
    let pod = pod("Succeeded", &said(0, ""), "");
    check(COMPLETE, &[pod], "Failed ResultUnknown ??", "did not load the callback");
}

#[test]
fn a_message_that_is_not_exactly_the_callbacks_is_none() {
    for text in [
        "ok",
        "{}",
        r#"{"v":2,"hosts":"oo","changed":[0,0],"failures":[]}"#,
        r#"{"v":1,"hosts":"o","changed":[0],"failures":[]}"#,
        r#"{"v":1,"hosts":"ooo","changed":[0,0,0],"failures":[]}"#,
        r#"{"v":1,"hosts":"ox","changed":[0,0],"failures":[]}"#,
        r#"{"v":1,"hosts":"oo","changed":[0],"failures":[]}"#,
        r#"{"v":1,"hosts":"oo","changed":[0,0]}"#,
        r#"{"v":1,"hosts":"oo","changed":[0,0],"failures":[],"unmatched":1}"#,
        r#"{"v":1,"hosts":"oo","changed":[0,0],"failures":[]} tail"#,
        r#"{"v":1,"hosts":"","changed":[],"failures":[],"more":9}"#,
        r#"{"v":1,"hosts":"oo","changed":[0,0],"failu"#,
    ] {
        let pod = pod("Succeeded", &said(0, text), "");
        check(COMPLETE, &[pod], "Failed ResultUnknown ??", "reported no result");
    }
}

#[test]
fn what_a_later_release_adds_to_a_message_is_passed_over() {
    let text = r#"{"v":1,"hosts":"oo","changed":[0,0],"failures":[],"unchecked":{"hosts":["a"],"by":[],"x":1},"x":1}"#;
    check(
        COMPLETE,
        &[pod("Succeeded", &said(0, text), "")],
        "Succeeded Succeeded oo",
        "Job completed",
    );
}

#[test]
fn counts_may_be_left_out_where_they_did_not_fit() {
    let text = r#"{"v":1,"hosts":"oo","changed":[],"failures":[],"more":1}"#;
    let pod = pod("Succeeded", &said(0, text), "");
    check(COMPLETE, &[pod], "Succeeded Succeeded oo", "Job completed");
}

#[test]
fn exit_codes_tell_the_class_where_ansible_told_nothing() {
    for (code, class, words) in [
        (1, "InvalidPlaybook", "exit code 1"),
        (4, "InvalidPlaybook", "cannot read the playbook (spec.playbook p.yml)"),
        (250, "InvalidPlaybook", "exit code 250"),
        (254, "DeadlineExceeded", "RUNNER_JOB_TIMEOUT"),
        (137, "PodEvicted", "its process was killed"),
        (143, "PodEvicted", "exit code 143"),
        (2, "ResultUnknown", "spec.cmdLine has an unknown option"),
        (99, "ResultUnknown", "exit code 99"),
    ] {
        let pod = pod("Failed", &said(code, ""), "");
        check(FAILED, &[pod], &format!("Failed {class} ??"), words);
    }
}

#[test]
fn a_container_without_memory_is_not_tried_again_by_itself() {
    let pod = pod("Failed", "{exitCode: 137, reason: OOMKilled}", "");
    check(FAILED, &[pod], "Failed ResultUnknown ??", "raise spec.resources");
}

#[test]
fn an_evicted_pod_is_known_by_its_condition_its_reason_or_the_jobs_words() {
    let disrupted = "conditions: [{type: DisruptionTarget, status: 'True', reason: \
                     EvictionByEvictionAPI, message: Eviction API}]";
    let by_condition = pod("Failed", &said(137, ""), disrupted);
    check(FAILED, &[by_condition], "Failed PodEvicted ??", "EvictionByEvictionAPI: Eviction API");
    let by_reason = pod("Failed", &said(1, ""), "reason: Evicted\n  message: disk pressure");
    check(FAILED, &[by_reason], "Failed PodEvicted ??", "Evicted: disk pressure");
    let end = FAILED.replace("message: x", "message: 'has condition DisruptionTarget matching'");
    check(&end, &[], "Failed PodEvicted ??", "DisruptionTarget");
}

#[test]
fn a_run_over_its_deadline_is_told_from_one_whose_pod_was_killed() {
    let end = FAILED.replace("PodFailurePolicy", "DeadlineExceeded");
    check(&end, &[], "Failed DeadlineExceeded ??", "raise spec.activeDeadlineSeconds");
    let killed = pod("Failed", &said(137, ""), "");
    check(&end, &[killed], "Failed DeadlineExceeded ??", "deadline");
}

#[test]
fn a_result_that_was_told_counts_even_if_the_pod_was_killed_afterwards() {
    let pod = pod("Failed", &said(137, &message("of", ON_B)), "");
    check(FAILED, &[pod], "Failed TaskFailed of", "b, task 'T'");
}

/// The callback's report when the run was interrupted.
fn unfinished(hosts: &str, failures: &str) -> String {
    let rest = format!(r#""changed":[],"failures":[{failures}],"unfinished":true"#);
    format!(r#"{{"v":1,"hosts":"{hosts}",{rest}}}"#)
}

#[test]
fn a_run_that_is_cut_tells_each_hosts_own_result_and_why_the_others_have_none() {
    for (code, hosts, expected, words) in [
        (254, "?f", "Failed DeadlineExceeded ?f", "RUNNER_JOB_TIMEOUT"),
        (254, "u?", "Failed DeadlineExceeded u?", "Before that, 1 of 2 hosts failed: b, task 'T'"),
        (137, "?h", "Failed PodEvicted ?h", "its process was killed"),
        (250, "?f", "Failed ResultUnknown ?f", "aborted midway (exit code 250)"),
        // How these would have ended is unknown.
        (254, "on", "Failed DeadlineExceeded ??", "RUNNER_JOB_TIMEOUT"),
        (0, "oo", "Failed ResultUnknown ??", "reported no result"),
    ] {
        let pod = pod("Failed", &said(code, &unfinished(hosts, ON_B)), "");
        check(FAILED, &[pod], expected, words);
    }
    let good = pod("Succeeded", &said(0, &unfinished("oo", "")), "");
    check(COMPLETE, &[good], "Failed ResultUnknown ??", "reported no result");
}

#[test]
fn a_message_that_was_torn_while_it_was_written_is_none() {
    let whole = unfinished("?f", ON_B);
    for end in 0..whole.len() {
        let pod = pod("Failed", &said(254, &whole[..end]), "");
        check(FAILED, &[pod], "Failed DeadlineExceeded ??", "RUNNER_JOB_TIMEOUT");
    }
    // Blanks cover the rest of a longer message until the file is truncated.
    let pod = pod("Failed", &said(254, &format!("{whole}      ")), "");
    check(FAILED, &[pod], "Failed DeadlineExceeded ?f", "RUNNER_JOB_TIMEOUT");
}

#[test]
fn nothing_that_a_terminal_obeys_reaches_a_status() {
    let text = r#"{"v":1,"hosts":"of","changed":[1,2],"report":"\u001b[1m{}","failures":[{"host":"b\u0007",
        "play":"\u001b[2JP","task":"T\u009b","path":"\u0000/p","message":"n\u001b]0;x\u0007o\r\u202e\u061c\nmore\u007f"}]}"#;
    let pod = pod("Failed", &said(2, text), "");
    let (status, finding) = of_job(&ansible(HOSTS, "{}"), &job(FAILED), &[pod]);
    let told = &status.failures[0];
    assert_eq!((told.host.as_str(), told.task.as_str()), ("b", "T"));
    assert_eq!((told.message.as_str(), told.path.as_str()), ("n]0;xo\nmore", "/p"));
    assert_eq!(status.report.as_deref(), Some("[1m{}"));
    assert!(!finding.message.contains(char::is_control), "{:?}", finding.message);
}

#[test]
fn a_run_that_ended_badly_after_good_results_is_not_believed() {
    let pod = pod("Failed", &said(137, &message("oo", "")), "");
    check(FAILED, &[pod], "Failed PodEvicted ??", "killed");
}

#[test]
fn a_job_without_pods_has_no_result() {
    check(FAILED, &[], "Failed ResultUnknown ??", "pods were gone");
}

#[test]
fn a_pod_that_was_deleted_while_it_ran_is_known_by_the_jobs_words() {
    let of = |code: u8| {
        let words = format!("'Container c for pod ns/p failed with exit code {code} matching x'");
        FAILED.replace("message: x", &format!("message: {words}"))
    };
    check(&of(254), &[], "Failed PodEvicted ??", "deleted while it ran");
    let mut leaving = pod("Failed", &said(254, ""), "");
    leaving.metadata.deletion_timestamp = Some(yaml::from_str("'2026-01-01T00:00:00Z'").unwrap());
    check(&of(254), &[leaving], "Failed PodEvicted ??", "it was deleted (exit code 254)");
    check(&of(2), &[], "Failed ResultUnknown ??", "failed with exit code 2");
    let mut run = ansible(HOSTS, "{}");
    let end = job(&FAILED.replace("PodFailurePolicy", "BackoffLimitExceeded"));
    assert_eq!(outcome(&of_job(&run, &end, &[]).0), "Failed ResultUnknown ??");
    run.spec.input_hash = Some("x".into());
    assert_eq!(outcome(&of_job(&run, &end, &[]).0), "Failed PodEvicted ??");
}

#[test]
fn a_hand_made_run_without_hosts_succeeds_with_its_job() {
    let run = ansible("[]", "{}");
    let (status, finding) = of_job(&run, &job(COMPLETE), &[pod("Succeeded", &said(0, ""), "")]);
    assert_eq!(outcome(&status), "Succeeded Succeeded ");
    assert_eq!((finding.reason.as_str(), finding.message.as_str()), ("Ready", "Job completed"));
    assert_eq!(status.hash.get(HASH_DONE), Some(&"i".to_owned()));
    let text = format!(r#"{{"v":1,"hosts":"","changed":[],"failures":[{ON_B}]}}"#);
    let (status, finding) = of_job(&run, &job(FAILED), &[pod("Failed", &said(2, &text), "")]);
    assert_eq!(outcome(&status), "Failed HostsFailed ");
    assert!(finding.message.starts_with("b, task 'T' (/p.yml:7): no"), "{}", finding.message);
    assert_eq!(status.hash.get(HASH_DONE), None);
}

#[test]
fn of_several_attempts_the_successful_one_speaks_else_the_newest() {
    let named = |mut pod: Pod, name: &str, time: &str| {
        pod.metadata.name = Some(name.into());
        pod.metadata.creation_timestamp = Some(yaml::from_str(time).unwrap());
        pod
    };
    let good = pod("Succeeded", &said(0, &message("oo", "")), "");
    let bad = pod("Failed", &said(2, &message("of", ON_B)), "");
    let (early, late) = ("'2026-01-01T00:00:00Z'", "'2026-01-01T00:01:00Z'");
    let pods = [named(good, "x", early), named(bad.clone(), "y", late)];
    check(COMPLETE, &pods, "Succeeded Succeeded oo", "");
    let silent = pod("Failed", &said(1, ""), "");
    let pods = [named(silent, "y", late), named(bad, "x", early)];
    check(FAILED, &pods, "Failed InvalidPlaybook ??", "logs -n ns y");
}

#[test]
fn whose_keys_were_not_checked_is_told_however_a_run_ended_and_decides_nothing() {
    let unchecked = r#","unchecked":{"hosts":["a","b\u001b[2J"],"more":3,"by":["ssh_config"]}"#;
    let run = ansible(HOSTS, "{}");
    for (end, phase, code, whole) in [
        (COMPLETE, "Succeeded", 0, message("oo", "")),
        (FAILED, "Failed", 4, message("ou", ON_B)),
        (FAILED, "Failed", 254, unfinished("?f", ON_B)),
    ] {
        let with = |field: &str| {
            let text = format!("{}{field}}}", whole.strip_suffix('}').unwrap());
            [pod(phase, &said(code, &text), "")]
        };
        assert_eq!(of_job(&run, &job(end), &with(unchecked)), of_job(&run, &job(end), &with("")));
        let told = super::unchecked(&run, &job(end), &with(unchecked)).unwrap();
        assert_eq!((told.hosts, told.more), (vec!["a".to_owned(), "b[2J".into()], 3));
        assert_eq!(told.by, ["ssh_config"]);
        assert_eq!(super::unchecked(&run, &job(end), &with("")), None);
        // Anything else is not a valid message.
        for odd in [r#","unchecked":{}"#, r#","unchecked":{"hosts":[],"by":1}"#] {
            let (status, _) = of_job(&run, &job(end), &with(odd));
            assert!(outcome(&status).ends_with("??"), "{}", outcome(&status));
            assert_eq!(super::unchecked(&run, &job(end), &with(odd)), None);
        }
    }
    assert_eq!(super::unchecked(&run, &job(FAILED), &[]), None);
}

#[test]
fn what_the_playbook_says_is_recorded_and_decides_nothing() {
    let of = |letters: &str, report: &str| {
        let more = format!(r#"{{"v":1,"hosts":"{letters}","changed":[],"failures":[]{report}}}"#);
        let run = ansible(HOSTS, "{}");
        of_job(&run, &job(COMPLETE), &[pod("Succeeded", &said(0, &more), "")]).0
    };
    let told = of("oo", r#","report":"{\"files\":{}}""#);
    assert_eq!(outcome(&told), outcome(&of("oo", "")));
    assert_eq!(told.report.as_deref(), Some(r#"{"files":{}}"#));
    assert_eq!(of("oo", "").report, None);
    assert_eq!(outcome(&of("oo", r#","report":{"files":{}}"#)), "Failed ResultUnknown ??");
}
