//! Tests of the decision for one run: which writes follow, in order, from each observation.

use api::conditions::Reason;
use api::yaml;
use operator_core::condition_catalog::undeclared;
use operator_core::plan::Write;
use operator_core::reasons::FORBIDDEN;
use testkit::golden::recorded;

use super::*;
use crate::condition_catalog::KINDS;

const NOW: &str = "2026-01-01T00:10:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn settings() -> Settings {
    Settings::sample()
}

/// A run of the engine without a status.
fn new_run() -> AnsibleEe {
    yaml::from_str(
        "
metadata:
  {name: run, namespace: ns, uid: u1, generation: 1, resourceVersion: '7',
   creationTimestamp: '2026-01-01T00:00:00Z'}
spec: {playbook: osp.edpm.nova, inputHash: x, backoffLimit: 0, hosts: [{name: a, address: 'a:22'}]}
",
    )
    .unwrap()
}

/// The same run made by hand: without a digest of inputs.
fn by_hand() -> AnsibleEe {
    let mut run = new_run();
    run.spec.input_hash = None;
    run
}

fn let_in(mut run: AnsibleEe) -> AnsibleEe {
    run.status = Some(status::admitted(&run, "t/1", now()));
    run
}

/// A run that was admitted and whose Job was observed.
fn started(run: AnsibleEe) -> AnsibleEe {
    let seen = seen(let_in(run), vec![job_of("")], vec![]);
    after(&seen)
}

fn job_of(conditions: &str) -> Job {
    yaml::from_str(&format!(
        "
metadata:
  {{name: JOB, namespace: ns, uid: j1, ownerReferences: [{{controller: true, uid: u1,
   apiVersion: v, kind: k, name: run}}]}}
spec: {{template: {{spec: {{containers: [{{image: 'runner:1'}}]}}}}}}
status: {{startTime: '2026-01-01T00:01:00Z', conditions: [{conditions}]}}
"
    ))
    .unwrap()
}

const COMPLETE: &str =
    "{type: Complete, status: 'True', lastTransitionTime: '2026-01-01T00:09:00Z'}";
const FAILED: &str = "{type: Failed, status: 'True', lastTransitionTime: '2026-01-01T00:09:00Z'}";

fn pod(status: &str) -> Pod {
    let text = format!(
        "{{metadata: {{name: pod-1, namespace: ns, labels: {{batch.kubernetes.io/job-name: JOB}}}}, \
         spec: {{nodeName: w1}}, status: {status}}}"
    );
    yaml::from_str(&text).unwrap()
}

fn running() -> Pod {
    pod("{phase: Running, containerStatuses: [{name: openstackansibleee, state: {running: {}}}]}")
}

fn ended_well() -> Pod {
    pod("{phase: Succeeded, containerStatuses: [{name: openstackansibleee, state: {terminated: \
         {exitCode: 0, message: '{\"v\":1,\"hosts\":\"o\",\"changed\":[1],\"failures\":[]}'}}}]}")
}

fn waiting(reason: &str) -> Pod {
    pod(&format!(
        "{{phase: Pending, containerStatuses: [{{name: openstackansibleee, state: {{waiting: \
         {{reason: {reason}, message: no}}}}}}]}}"
    ))
}

fn seen(run: AnsibleEe, mut jobs: Vec<Job>, mut pods: Vec<Pod>) -> Observed {
    let name = current_job(&run).unwrap_or_default().to_owned();
    for job in jobs.iter_mut().filter(|it| it.name_any() == "JOB") {
        job.metadata.name = Some(name.clone());
    }
    for pod in &mut pods {
        let labels = pod.metadata.labels.get_or_insert_default();
        labels.insert(crate::objects::JOB_NAME.into(), name.clone());
    }
    Observed { run, jobs, pods, pods_are_certain: false, refusal: None, settings: settings() }
}

/// Returns the run with the plan's status written.
fn after(seen: &Observed) -> AnsibleEe {
    let mut run = seen.run.clone();
    for step in recorded(decide(seen, None, now())).steps {
        if let Write::Status { status, resource_version, .. } = step.write {
            assert_eq!(resource_version, run.metadata.resource_version);
            run.status = Some(serde_json::from_value(status).unwrap());
        }
    }
    run
}

/// Returns the plan in short: one word per write.
fn plan_of(seen: &Observed) -> String {
    let plan = recorded(decide(seen, None, now()));
    let words = plan.steps.iter().map(|it| match &it.write {
        Write::Create { .. } => format!("create {}", it.target.kind.kind),
        Write::Delete { .. } => {
            assert!(it.target.uid.is_some(), "a deletion without the object's identity");
            format!("delete {}", it.target.kind.kind)
        }
        Write::Status { status, .. } => {
            assert_eq!(undeclared(KINDS, "OpenStackAnsibleEE", status), [""; 0]);
            let ready = &status["conditions"][0];
            let word = |it: &serde_json::Value| it.as_str().unwrap_or_default().to_owned();
            format!("{} {}", word(&status["JobStatus"]), word(&ready["reason"]))
        }
        Write::Apply { .. } => "apply".into(),
        Write::AddFinalizer { .. } | Write::RemoveFinalizer { .. } => {
            panic!("a run is held by nobody")
        }
    });
    let mut words: Vec<String> = words.collect();
    words.extend(plan.requeue_after.map(|it| format!("in {} s", it.as_secs())));
    words.join(", ")
}

#[track_caller]
fn check(seen: &Observed, expected: &str) {
    assert_eq!(plan_of(seen), expected);
    let settled = Observed { run: after(seen), ..seen.clone() };
    let again = recorded(decide(&settled, None, now()));
    let is_status = |it: &Step| matches!(it.write, Write::Status { .. });
    assert!(!again.steps.iter().any(is_status), "a second look writes the status again");
}

#[test]
fn a_run_that_was_not_let_in_is_left_to_the_scheduler() {
    check(&seen(new_run(), vec![], vec![]), "");
}

#[test]
fn what_cannot_be_run_is_told_and_told_off_once_it_can() {
    let mut run = by_hand();
    run.spec.playbook = Some("../x".into());
    let refused = seen(run, vec![], vec![]);
    check(&refused, " InvalidSpec");
    let mut mended = after(&refused);
    mended.spec.playbook = Some("x".into());
    check(&seen(mended, vec![], vec![]), " Init");
}

#[test]
fn a_run_of_the_engine_that_cannot_be_run_has_failed_so_that_its_parent_goes_on() {
    let mut run = new_run();
    run.spec.playbook = Some("../x".into());
    let refused = seen(run, vec![], vec![]);
    check(&refused, "Failed InvalidSpec");
    let status = after(&refused).status.unwrap();
    assert_eq!((status.reason.as_deref(), status.hosts.len()), (Some("InvalidSpec"), 1));
    assert_eq!(status.completion_time.unwrap().0, now());
    // Another release may accept what is in it; its parent has gone on with other inputs.
    let mut accepted = after(&refused);
    accepted.spec.playbook = Some("x".into());
    assert_eq!(stage(&accepted, false), Stage::Finished);
    check(&seen(accepted, vec![], vec![]), "");
}

#[test]
fn a_run_without_an_image_is_refused_where_there_is_no_default() {
    let mut seen = seen(by_hand(), vec![], vec![]);
    seen.settings.image = String::new();
    check(&seen, " InvalidSpec");
}

#[test]
fn a_run_that_was_let_in_becomes_one_job() {
    check(&seen(let_in(new_run()), vec![], vec![]), "create Job");
}

#[test]
fn a_run_that_is_being_deleted_gets_no_job() {
    let mut run = let_in(new_run());
    run.metadata.deletion_timestamp = Some(yaml::from_str(NOW).unwrap());
    check(&seen(run, vec![], vec![]), "");
}

#[test]
fn the_job_is_recorded_once_it_has_started() {
    let mut fresh = job_of("");
    fresh.status.start_time = None;
    check(&seen(let_in(new_run()), vec![fresh], vec![]), "");
    let no_pod = seen(let_in(new_run()), vec![job_of("")], vec![]);
    check(&no_pod, "Running Requested, in 30 s");
    let run = started(new_run());
    assert_eq!(recorded_uid(&run), Some("j1"));
    check(&seen(run, vec![job_of("")], vec![running()]), "");
}

#[test]
fn only_the_jobs_end_ends_a_run_and_only_once_its_pods_rest() {
    let run = started(new_run());
    check(&seen(run.clone(), vec![job_of("")], vec![ended_well()]), "");
    check(&seen(run.clone(), vec![job_of(COMPLETE)], vec![running()]), "");
    check(&seen(run, vec![job_of(COMPLETE)], vec![ended_well()]), "Succeeded Ready");
}

#[test]
fn a_run_whose_start_was_never_recorded_ends_all_the_same() {
    let run = let_in(new_run());
    check(&seen(run, vec![job_of(COMPLETE)], vec![ended_well()]), "Succeeded Ready");
}

#[test]
fn pods_that_the_cache_lacks_are_waited_for_and_then_asked_for() {
    let mut it = seen(started(new_run()), vec![job_of(FAILED)], vec![]);
    check(&it, "in 10 s");
    it.pods_are_certain = true;
    check(&it, "Failed ResultUnknown");
}

#[test]
fn a_deleted_job_is_not_run_again() {
    let gone = seen(started(new_run()), vec![], vec![running()]);
    check(&gone, "");
    let gone = seen(started(new_run()), vec![], vec![]);
    check(&gone, "Failed ResultUnknown");
    let after = after(&gone);
    assert_eq!(after.status.as_ref().unwrap().hosts[0].name, "a");
    check(&seen(after, vec![], vec![]), "");
    let gone = seen(started(by_hand()), vec![], vec![]);
    let run = super::tests::after(&gone);
    assert!(
        status::message(run.status.as_ref().unwrap()).contains("kubectl delete osaee -n ns run")
    );
}

#[test]
fn a_job_that_cannot_start_is_withdrawn_and_the_run_ends_when_its_pods_are_gone() {
    for (word, reason) in [
        ("ErrImagePull", "ImagePullFailed"),
        ("InvalidImageName", "ImagePullFailed"),
        ("CreateContainerConfigError", "InputMissing"),
    ] {
        let stuck = seen(started(new_run()), vec![job_of("")], vec![waiting(word)]);
        assert_eq!(plan_of(&stuck), format!("Running {reason}, delete Job"));
        let run = after(&stuck);
        check(&seen(run.clone(), vec![], vec![waiting(word)]), "");
        let gone = seen(run, vec![], vec![]);
        check(&gone, &format!("Failed {reason}"));
        let told = after(&gone).status.unwrap().conditions[0].message.clone();
        assert!(told.contains(&format!("{word}: no")), "{told}");
    }
}

#[test]
fn a_runner_that_cannot_start_is_told_also_after_the_hosts_were_asked_for_their_keys() {
    let pod = |first: &str| {
        pod(&format!(
            "{{phase: Pending, initContainerStatuses: [{{name: {first}, state: {{terminated: \
             {{exitCode: 0, startedAt: '2026-01-01T00:00:01Z'}}}}}}], containerStatuses: [{{name: \
             openstackansibleee, state: {{waiting: {{reason: CreateContainerConfigError, message: \
             no}}}}}}]}}"
        ))
    };
    let stuck = seen(started(new_run()), vec![job_of("")], vec![pod("edpm-host-keys")]);
    assert_eq!(plan_of(&stuck), "Running InputMissing, delete Job");
    // What a user's own init container has done is unknown.
    check(&seen(started(new_run()), vec![job_of("")], vec![pod("mine")]), "");
}

#[test]
fn a_job_that_started_while_it_was_withdrawn_counts_as_stopped() {
    let stuck = seen(started(new_run()), vec![job_of("")], vec![waiting("ErrImagePull")]);
    let run = after(&stuck);
    let started = seen(run, vec![], vec![running()]);
    assert_eq!(plan_of(&started), "Running PodEvicted");
    let run = after(&started);
    check(&seen(run, vec![], vec![]), "Failed PodEvicted");
}

#[test]
fn a_job_that_starts_after_all_is_not_withdrawn() {
    let stuck = seen(started(new_run()), vec![job_of("")], vec![waiting("ErrImagePull")]);
    check(&seen(after(&stuck), vec![job_of("")], vec![running()]), "Running Requested");
}

#[test]
fn a_hand_made_run_is_left_to_kubelet_until_it_names_another_image() {
    let stuck = seen(started(by_hand()), vec![job_of("")], vec![waiting("ErrImagePull")]);
    check(&stuck, "Running ImagePullFailed");
    let mut run = after(&stuck);
    let told = status::message(run.status.as_ref().unwrap());
    assert!(
        told.ends_with(
            "ErrImagePull: no. Correct spec.image, or its registry; kubelet keeps retrying."
        ),
        "{told}"
    );
    check(&seen(run.clone(), vec![job_of("")], vec![waiting("ImagePullBackOff")]), "");
    run.spec.image = Some("runner:2".into());
    run.metadata.generation = Some(2);
    let other = seen(run, vec![job_of("")], vec![waiting("ErrImagePull")]);
    assert_eq!(plan_of(&other), "Running ImagePullFailed, delete Job");
    let run = after(&other);
    let gone = seen(run, vec![], vec![]);
    assert_eq!(plan_of(&gone), "Pending Requested");
    check(&seen(after(&gone), vec![], vec![]), "create Job");
}

#[test]
fn volumes_that_do_not_come_are_waited_for_a_while() {
    let unready = |since: &str| {
        pod(&format!(
            "{{phase: Pending, conditions: [{{type: PodReadyToStartContainers, status: 'False', \
             lastTransitionTime: '{since}'}}]}}"
        ))
    };
    let run = started(new_run());
    let soon = seen(run.clone(), vec![job_of("")], vec![unready("2026-01-01T00:09:00Z")]);
    check(&soon, "in 120 s");
    let late = seen(run, vec![job_of("")], vec![unready("2026-01-01T00:06:59Z")]);
    assert_eq!(plan_of(&late), "Running InputMissing, delete Job");
}

#[test]
fn a_pod_without_a_worker_is_told_after_a_while_and_not_withdrawn() {
    let unplaced = |since: &str| {
        pod(&format!(
            "{{phase: Pending, conditions: [{{type: PodScheduled, status: 'False', reason: \
             Unschedulable, message: full, lastTransitionTime: '{since}'}}]}}"
        ))
    };
    let run = started(new_run());
    let soon = seen(run.clone(), vec![job_of("")], vec![unplaced("2026-01-01T00:09:50Z")]);
    check(&soon, "in 20 s");
    let late = seen(run, vec![job_of("")], vec![unplaced("2026-01-01T00:09:00Z")]);
    check(&late, "Running Unschedulable");
}

#[test]
fn a_job_whose_pod_is_refused_says_why_and_goes_on_once_there_is_one() {
    let words = "forbidden: failed quota: shares: must specify requests.cpu";
    for (run, resources) in [(new_run(), "runner.resources"), (by_hand(), "set spec.resources")] {
        let mut it = seen(started(run), vec![job_of("")], vec![]);
        it.refusal = Some(words.into());
        check(&it, "Running PodRefused, in 30 s");
        let status = after(&it).status.unwrap();
        let message = &status.conditions[0].message;
        assert!(message.contains(words) && message.contains(resources), "{message}");
        let made = seen(after(&it), vec![job_of("")], vec![running()]);
        check(&made, "Running Requested");
    }
    // A Job that has just begun has no pod yet.
    let mut young = job_of("");
    young.status.start_time = Some(yaml::from_str("'2026-01-01T00:09:56Z'").unwrap());
    check(&seen(let_in(new_run()), vec![young], vec![]), "Running Requested, in 6 s");
}

/// A pod in which a proxy goes on since the runner has ended.
fn outlived(since: &str, code: i32) -> Pod {
    let letter = if code == 0 { 'o' } else { 'f' };
    pod(&format!(
        "{{phase: Running, containerStatuses: [{{name: mesh-proxy, state: {{running: {{}}}}}}, \
         {{name: openstackansibleee, state: {{terminated: {{exitCode: {code}, finishedAt: \
         '{since}', message: '{{\"v\":1,\"hosts\":\"{letter}\",\"changed\":[1],\
         \"failures\":[]}}'}}}}}}]}}"
    ))
}

#[test]
fn a_run_ends_with_its_own_container_and_takes_the_pod_along() {
    let run = started(new_run());
    let soon = outlived("2026-01-01T00:09:50Z", 0);
    check(&seen(run.clone(), vec![job_of("")], vec![soon]), "in 20 s");
    for (code, expected) in [(0, "Succeeded Ready"), (2, "Failed TaskFailed")] {
        let ended = outlived("2026-01-01T00:09:00Z", code);
        let late = seen(run.clone(), vec![job_of("")], vec![ended.clone()]);
        assert_eq!(plan_of(&late), expected);
        let status = after(&late).status.unwrap();
        assert!(status.conditions[0].message.contains("container mesh-proxy"), "{status:?}");
        assert!(status.completion_time.is_some());
        let over = seen(after(&late), vec![job_of("")], vec![ended]);
        assert_eq!(plan_of(&over), "delete Job");
    }
    // The deadline has ended the Job, and its pod is about to go.
    let stopped = outlived("2026-01-01T00:09:00Z", 0);
    assert_eq!(plan_of(&seen(run.clone(), vec![job_of(FAILED)], vec![stopped])), "");
    // A Job that has no such pod is left alone.
    let done = after(&seen(run, vec![job_of("")], vec![outlived("2026-01-01T00:09:00Z", 0)]));
    assert_eq!(plan_of(&seen(done, vec![job_of("")], vec![running()])), "");
}

#[test]
fn a_lost_worker_keeps_the_run_active_and_the_way_out_is_told() {
    let leaving = |since: &str| {
        let mut pod = running();
        pod.metadata.deletion_timestamp = Some(yaml::from_str(since).unwrap());
        pod
    };
    let run = started(new_run());
    let soon = seen(run.clone(), vec![job_of("")], vec![leaving("2026-01-01T00:09:30Z")]);
    check(&soon, "in 30 s");
    let late = seen(run, vec![job_of("")], vec![leaving("2026-01-01T00:08:00Z")]);
    check(&late, "Running RunnerLost");
    let run = after(&late);
    assert!(status::message(run.status.as_ref().unwrap()).contains("kubectl taint node w1"));
}

#[test]
fn a_changed_hand_made_run_waits_for_its_job_and_is_let_in_again_after_it() {
    let mut run = started(by_hand());
    run.spec.playbook = Some("other.yml".into());
    run.metadata.generation = Some(2);
    assert_eq!(stage(&run, true), Stage::Admitted);
    check(&seen(run.clone(), vec![job_of("")], vec![running()]), "");
    let ended = seen(run, vec![job_of(COMPLETE)], vec![ended_well()]);
    check(&ended, "Succeeded Ready");
    let run = after(&ended);
    assert_eq!(run.status.as_ref().unwrap().observed_generation, Some(1));
    assert_eq!(stage(&run, true), Stage::Queued);
    // Admitted again: the old Job is deleted, the new one created.
    let mut old = job_of(COMPLETE);
    old.metadata.name = current_job(&run).map(Into::into);
    let run = let_in(run);
    assert_eq!(plan_of(&seen(run.clone(), vec![old.clone()], vec![])), "delete Job, create Job");
    old.status.conditions.clear();
    assert_eq!(plan_of(&seen(run, vec![old], vec![])), "");
}

#[test]
fn another_image_does_not_run_a_finished_run_again() {
    let ended = seen(started(by_hand()), vec![job_of(COMPLETE)], vec![ended_well()]);
    let mut run = after(&ended);
    run.spec.image = Some("runner:2".into());
    run.metadata.generation = Some(2);
    assert_eq!(stage(&run, true), Stage::Finished);
    let changed = seen(run, vec![job_of(COMPLETE)], vec![ended_well()]);
    check(&changed, "Succeeded Ready");
    assert_eq!(after(&changed).status.unwrap().observed_generation, Some(2));
}

#[test]
fn a_run_that_changes_before_it_has_a_job_is_judged_anew() {
    let mut run = let_in(by_hand());
    run.spec.playbook = Some("other.yml".into());
    run.metadata.generation = Some(2);
    assert_eq!(stage(&run, false), Stage::Queued);
    run.spec.playbook = Some("../other.yml".into());
    let refused = seen(run, vec![], vec![]);
    check(&refused, " InvalidSpec");
    assert_eq!(admitted_identity(&after(&refused)), None);
}

#[test]
fn a_job_that_nobody_keeps_goes_ten_minutes_after_its_end_and_not_before_its_result() {
    let mut run = started(by_hand());
    run.spec.preserve_jobs = false;
    let ended = seen(run, vec![job_of(COMPLETE)], vec![ended_well()]);
    check(&ended, "Succeeded Ready");
    let run = after(&ended);
    check(&seen(run.clone(), vec![job_of(COMPLETE)], vec![]), "in 540 s");
    let old = COMPLETE.replace("00:09", "00:00");
    assert_eq!(plan_of(&seen(run, vec![job_of(&old)], vec![])), "delete Job");
}

/// The API server's rejection of the run's Job.
fn refusal(seen: &Observed, reason: &'static Reason, words: &str) -> RejectedWrite {
    let plan = recorded(decide(seen, None, now()));
    let is_job = |it: &&Step| it.target.kind.kind == "Job";
    RejectedWrite::of(plan.steps.iter().find(is_job).unwrap(), reason, words)
}

#[test]
fn a_job_that_can_never_be_created_ends_a_run_of_the_engine_so_that_its_parent_goes_on() {
    let words =
        "Job.batch \"x\" is invalid: spec.template.spec.volumes[0].configMap.name: Required";
    let it = seen(let_in(new_run()), vec![], vec![]);
    let plan = recorded(decide(&it, Some(&refusal(&it, &INVALID, words)), now()).only_statuses());
    let Write::Status { status, .. } = &plan.steps[0].write else { panic!("no status") };
    assert_eq!(
        (&status["JobStatus"], &status["reason"]),
        (&"Failed".into(), &"InvalidSpec".into())
    );
    assert_eq!(status["hosts"][0]["result"], "Unknown");
    assert!(status["conditions"][0]["message"].as_str().unwrap().contains("configMap.name"));
    let run = AnsibleEe { status: serde_json::from_value(status.clone()).unwrap(), ..it.run };
    assert_eq!(stage(&run, false), Stage::Finished);
    check(&seen(run, vec![], vec![]), "");
    // A policy may change, and a run by hand may be corrected.
    let by_policy = "jobs \"x\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no";
    for (run, words) in [(new_run(), by_policy), (by_hand(), words)] {
        let it = seen(let_in(run), vec![], vec![]);
        let plan =
            recorded(decide(&it, Some(&refusal(&it, &INVALID, words)), now()).only_statuses());
        let Write::Status { status, .. } = &plan.steps[0].write else { panic!("no status") };
        assert_eq!(status["conditions"][0]["reason"], "JobRefused");
    }
}

#[test]
fn a_job_that_the_api_server_refuses_is_told_once() {
    let it = seen(let_in(new_run()), vec![], vec![]);
    let quota = refusal(&it, &FORBIDDEN, "exceeded quota");
    let plan = recorded(decide(&it, Some(&quota), now()).only_statuses());
    let Write::Status { status, .. } = &plan.steps[0].write else { panic!("no status") };
    assert_eq!(status["conditions"][0]["reason"], "JobRefused");
    let told = status["conditions"][0]["message"].as_str().unwrap();
    for words in ["Job run-", "cannot be created: exceeded quota. Raise the quota"] {
        assert!(told.contains(words), "{told}");
    }
    let run = AnsibleEe { status: serde_json::from_value(status.clone()).unwrap(), ..it.run };
    let again = seen(run, vec![], vec![]);
    assert_eq!(recorded(decide(&again, Some(&quota), now()).only_statuses()), Plan::default());
    check(&again, "create Job");
}

#[test]
fn a_run_whose_variables_turn_the_check_of_host_keys_off_says_so() {
    let mut run = new_run();
    run.spec.extra_vars.insert("ansible_host_key_checking".into(), serde_json::json!("no"));
    for (run, expected) in [(run, 1), (new_run(), 0)] {
        let run = started(run);
        let conditions = run.status.unwrap().conditions;
        let is_told = |it: &&api::conditions::Condition| {
            (it.type_.as_str(), it.reason.as_str()) == ("HostKeysChecked", "HostKeyCheckingOff")
        };
        assert_eq!(conditions.iter().filter(is_told).count(), expected);
    }
}

#[test]
fn a_run_that_told_whose_keys_it_did_not_check_says_so_for_good_and_until_it_runs_anew() {
    for (end, code, letter) in [(COMPLETE, 0, "o"), (FAILED, 4, "u")] {
        let told = serde_json::json!({
            "v": 1, "hosts": letter, "changed": [0], "failures": [],
            "unchecked": { "hosts": ["a"], "by": ["--ssh-common-args"] },
        });
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let ended = serde_json::json!({ "exitCode": code, "message": told.to_string() });
        let pod = pod(&format!(
            "{{phase: {phase}, containerStatuses: [{{name: openstackansibleee, state: {{terminated: \
             {ended}}}}}]}}"
        ));
        let run = after(&seen(started(by_hand()), vec![job_of(end)], vec![pod.clone()]));
        let message = |run: &AnsibleEe| {
            let conditions = &run.status.as_ref().unwrap().conditions;
            conditions::find(conditions, "HostKeysChecked").map(|it| it.message.clone())
        };
        let expected = "in tasks of a, because of option --ssh-common-args in cmdLine: ";
        assert!(message(&run).unwrap().contains(expected), "{:?}", message(&run));
        let status = run.status.as_ref().unwrap();
        assert_eq!(undeclared(KINDS, "OpenStackAnsibleEE", &serde_json::json!(status)), [""; 0]);
        assert_eq!(
            recorded(decide(&seen(run.clone(), vec![job_of(end)], vec![pod]), None, now())).steps,
            []
        );
        assert_eq!(message(&let_in(run)), None);
    }
}
