//! The end of a deployment after failed attempts and lost runs.

use api::ansibleee::HostFailure;
use operator_core::run_engine::host_owner::{CHECK, PLAYS_DIR, REFUSAL};

use super::*;

#[test]
fn a_host_that_fails_stops_for_itself_and_the_others_are_done() {
    let mut world = World::new();
    world.deployment().spec.backoff_limit = 2;
    let fails = |service: &str, host: &str| match (service, host) {
        ("first", "n1") => "Failed",
        _ => "Ok",
    };
    world.settle();
    world.finish_with(fails).settle();
    // The other host continues at once; this one is retried after a pause.
    let record = world.record("n1", "first").unwrap();
    assert_eq!((record.state, record.attempt), (RunState::Failed, 1));
    assert_eq!(world.host_state("n1"), HostState::Deploying, "it is tried again");
    assert_eq!(world.run("second").spec.hosts.len(), 1);
    assert_eq!(world.condition("Ready"), is("False", "TaskFailed"));
    world.says("Ready", &["is retried automatically"]);
    let writes = world.run_out(fails);
    let retries = writes.iter().filter(|it| *it == "run first on n1").count();
    assert_eq!(retries, 2, "three attempts: {writes:?}");
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    assert_eq!(world.condition("Stalled"), is("True", "BackoffLimitExceeded"));
    world.says(
        "DeploymentReady",
        &["1 of 2 hosts", "Host n1 failed", "last of 3 attempts", "create another"],
    );
    let status = world.status();
    assert_eq!(status.deployed, None);
    assert!(status.node_set_hashes.is_empty());
    assert_eq!(status.failures[0].reason, "TaskFailed");
    assert_eq!((world.done("n0"), world.host_state("n0")), (2, HostState::Deployed));
    assert_eq!((world.done("n1"), world.host_state("n1")), (0, HostState::Failed));
    let record = world.record("n1", "first").unwrap();
    assert_eq!((record.attempt, record.reason.as_deref()), (3, Some("TaskFailed")));
    assert_eq!(world.node("n1").deployment.as_ref().unwrap().attempt, 3);
    assert_eq!(
        world.of_set("compute", "ServiceFirstDeploymentReady"),
        "False BackoffLimitExceeded"
    );
    assert_eq!(world.sleep(9999).settle(), [""; 0]);
    once(&world);
}

#[test]
fn every_class_of_failure_is_tried_again() {
    for (result, reason) in [
        ("Failed", "TaskFailed"),
        ("Unreachable", "HostUnreachable"),
        ("NotReached", "NoHostMatched"),
    ] {
        let mut world = World::new().at_rest();
        world.finish_with(|_, _| result).settle();
        assert_eq!(world.condition("Ready"), is("False", reason));
        let writes = world.sleep(16).settle();
        assert_eq!(writes[0], "nodes n0,n1", "the attempt is recorded first: {writes:?}");
        assert_eq!(runs(&writes), ["run first on n0,n1"], "{result}");
        world.succeeds();
    }
}

/// Ends every open run as one that never became a Job.
fn refuse(world: &mut World, reason: &str) {
    for run in world.seen.runs.iter_mut().filter(|it| is_open(it)) {
        let hosts: Vec<Value> = run
            .spec
            .hosts
            .iter()
            .map(|it| json!({ "name": it.name, "result": "Unknown" }))
            .collect();
        let status = json!({ "JobStatus": "Failed", "reason": reason, "hosts": hosts });
        Arc::make_mut(run).status = Some(serde_json::from_value(status).unwrap());
    }
}

#[test]
fn a_run_that_is_refused_is_not_tried_again_by_itself() {
    let mut world = World::new().at_rest();
    refuse(&mut world, "InvalidSpec");
    assert_eq!(world.settle(), ["nodes n0,n1", "status", "release"]);
    let message = world.message("Ready");
    for words in ["refused as well", "create another OpenStackDataPlaneDeployment"] {
        assert!(message.contains(words), "{message}");
    }
    assert!(!message.contains("attempts"), "{message}");
    assert_eq!(world.condition("Stalled"), is("True", "BackoffLimitExceeded"));
    assert_eq!(world.sleep(9999).settle(), [""; 0]);
    assert_eq!(world.carried.len(), 2);
}

#[test]
fn attempts_that_end_without_a_time_are_not_made_one_after_the_other() {
    let mut world = World::new().at_rest();
    refuse(&mut world, "ImagePullFailed");
    assert_eq!(world.settle(), ["nodes n0,n1", "status"]);
    assert_eq!(world.sleep(14).settle(), [""; 0]);
    assert_eq!(runs(&world.sleep(2).settle()), ["run first on n0,n1"]);
}

#[test]
fn runs_of_services_that_are_done_may_go() {
    let mut world = World::new().at_rest();
    world.finish().settle();
    world.seen.runs.retain(|it| it.labels()["openstackdataplaneservice"] != "first");
    assert_eq!(world.settle(), [""; 0]);
    world.succeeds();
}

#[test]
fn a_run_that_is_deleted_while_it_works_is_made_again() {
    for service in ["first", "second"] {
        let mut world = World::new().at_rest();
        if service == "second" {
            world.finish().settle();
        }
        world.seen.runs.retain(|it| it.labels()["openstackdataplaneservice"] != service);
        assert_eq!(runs(&world.settle()), [format!("run {service} on n0,n1")]);
        assert_eq!(world.record("n0", service).unwrap().attempt, 1);
        world.run_out(|_, _| "Ok");
        assert_eq!(world.condition("Ready"), is("True", "Ready"));
    }
}

#[test]
fn at_most_five_hosts_are_told_of_by_name() {
    let set = node_set("compute", &strs(&names(9)), &["first"]);
    let mut world = World::with(vec![set], json!({ "backoffLimit": 0 }));
    world.run_out(|_, _| "Failed");
    assert_eq!(world.status().failures.len(), 5);
    let message = world.message("Ready");
    assert!(message.contains("9 of 9 hosts") && message.contains("And 4 more."), "{message}");
    assert!(!message.contains("n007"), "{message}");
}

#[test]
fn failed_and_unreachable_hosts_are_counted_and_named_for_each_run() {
    let hosts = ["n0", "n1", "n2", "n3"];
    let mut world = World::with(vec![node_set("compute", &hosts, &["first"])], json!({})).at_rest();
    world.finish_with(|_, host| match host {
        "n1" => "Failed",
        "n2" => "Unreachable",
        "n3" => "KeyRefused",
        _ => "Ok",
    });
    world.settle();
    let run = world.run("first").name_any();
    let summary = world.status().ansible_execution_summaries[&run].clone();
    assert_eq!((summary.total_hosts, summary.failed_hosts), (Some(4), Some(1)));
    assert_eq!((summary.unreachable_hosts, summary.failure_percent), (Some(2), Some(75)));
    assert_eq!(summary.failed_host_list, ["n1"]);
    assert_eq!(summary.unreachable_host_list, ["n2", "n3"]);
}

#[test]
fn the_command_that_takes_a_host_over_is_never_cut_off() {
    let mut world = World::new().at_rest();
    world.finish_with(|_, host| if host == "n1" { "Failed" } else { "Ok" });
    let owner = format!("ns/OpenStackDataPlaneNodeSet/{}", "x".repeat(200));
    let refusal = HostFailure {
        host: "n1".into(),
        path: format!("{PLAYS_DIR}/{CHECK}:70"),
        task: REFUSAL.into(),
        message: format!("n1 at this address belongs to {owner} (UID 0123-4567)"),
        ..HostFailure::default()
    };
    Arc::make_mut(&mut world.seen.runs[0]).status.as_mut().unwrap().failures = vec![refusal];
    world.settle();
    assert_eq!(world.condition("Ready"), is("False", "HostNotOwned"));
    let command = "openstackdataplanenode/n1 dataplane.openstack.org/take-over=0123-4567";
    for text in [world.status().failures[0].message.clone(), world.message("Ready")] {
        assert!(text.starts_with("Host n1 was not touched") && text.contains('…'), "{text}");
        assert!(text.ends_with(command), "{text}");
    }
}
