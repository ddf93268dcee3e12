//! The end of a deployment after failed attempts and lost runs.

use api::ansibleee::HostFailure;
use api::dataplane::RunState;
use operator_core::run_engine::host_owner::{CHECK, PLAYS_DIR, REFUSAL};

use super::*;

#[test]
fn a_host_that_fails_stops_for_itself_and_the_others_are_done() {
    let mut world = World::new();
    world.seen.deployment = {
        let mut deployment = (*world.seen.deployment).clone();
        deployment.spec.backoff_limit = 2;
        Arc::new(deployment)
    };
    let fails = |service: &str, host: &str| match (service, host) {
        ("first", "n1") => "Failed",
        _ => "Ok",
    };
    world.settle();
    world.finish_with(fails);
    world.settle();
    // The other host continues at once; this one is retried after a pause.
    assert_eq!(world.status().progress["compute"].hosts["n1"].state, RunState::Failed);
    assert_eq!(world.run("second").spec.hosts.len(), 1);
    assert_eq!(world.condition("Ready"), is("False", "TaskFailed"));
    assert!(
        world.message("Ready").contains("is retried automatically"),
        "{}",
        world.message("Ready")
    );
    let writes = world.run_out(fails);
    let retries = writes.iter().filter(|it| *it == "run first on n1").count();
    assert_eq!(retries, 2, "three attempts: {writes:?}");
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    assert_eq!(world.condition("Stalled"), is("True", "BackoffLimitExceeded"));
    let message = world.message("DeploymentReady");
    for words in ["1 of 2 hosts", "Host n1 failed", "last of 3 attempts", "create another"] {
        assert!(message.contains(words), "{message}");
    }
    let status = world.status();
    assert_eq!(status.deployed, None);
    assert!(status.node_set_hashes.is_empty());
    let kept = &status.progress["compute"].hosts;
    assert_eq!((kept["n0"].done, kept["n1"].done, kept["n1"].attempt), (2, 0, 3));
    assert_eq!(status.failures[0].reason, "TaskFailed");
    assert_eq!(
        world.set_condition("compute", "ServiceFirstDeploymentReady"),
        Some(is("False", "BackoffLimitExceeded"))
    );
    world.sleep(9999);
    assert_eq!(world.settle(), [""; 0]);
    once(&world);
}

#[test]
fn every_class_of_failure_is_tried_again() {
    for (result, reason) in [
        ("Failed", "TaskFailed"),
        ("Unreachable", "HostUnreachable"),
        ("NotReached", "NoHostMatched"),
    ] {
        let mut world = World::new();
        world.settle();
        world.finish_with(|_, _| result);
        world.settle();
        assert_eq!(world.condition("Ready"), is("False", reason));
        world.sleep(16);
        assert_eq!(world.settle(), ["status", "run first on n0,n1", "status"], "{result}");
        world.run_out(|_, _| "Ok");
        assert_eq!(world.condition("Ready"), is("True", "Ready"));
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
    let mut world = World::new();
    world.settle();
    refuse(&mut world, "InvalidSpec");
    assert_eq!(world.settle(), ["status", "release"]);
    let message = world.message("Ready");
    for words in ["refused as well", "create another OpenStackDataPlaneDeployment"] {
        assert!(message.contains(words), "{message}");
    }
    assert!(!message.contains("attempts"), "{message}");
    assert_eq!(world.condition("Stalled"), is("True", "BackoffLimitExceeded"));
    world.sleep(9999);
    assert_eq!(world.settle(), [""; 0]);
    assert_eq!(world.carried.len(), 2);
}

#[test]
fn attempts_that_end_without_a_time_are_not_made_one_after_the_other() {
    let mut world = World::new();
    world.settle();
    refuse(&mut world, "ImagePullFailed");
    assert_eq!(world.settle(), ["status"]);
    world.sleep(14);
    assert_eq!(world.settle(), [""; 0]);
    world.sleep(2);
    assert_eq!(world.settle(), ["status", "run first on n0,n1", "status"]);
}

#[test]
fn runs_of_services_that_are_done_may_go() {
    let mut world = World::new();
    world.settle();
    world.finish();
    world.settle();
    world.seen.runs.retain(|it| it.labels()["openstackdataplaneservice"] != "first");
    assert_eq!(world.settle(), [""; 0]);
    world.run_out(|_, _| "Ok");
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    once(&world);
}

#[test]
fn a_run_that_is_deleted_while_it_works_is_a_failed_attempt() {
    for service in ["first", "second"] {
        let mut world = World::new();
        world.settle();
        if service == "second" {
            world.finish();
            world.settle();
        }
        world.seen.runs.retain(|it| it.labels()["openstackdataplaneservice"] != service);
        assert_eq!(world.settle(), ["status"]);
        assert_eq!(world.condition("Ready"), is("False", "ResultUnknown"));
        assert!(world.message("Ready").contains("the run was deleted"));
        world.run_out(|_, _| "Ok");
        assert_eq!(world.condition("Ready"), is("True", "Ready"));
        assert!(once(&world).contains(&(service.into(), "n0".into(), 2)));
    }
}

#[test]
fn at_most_five_hosts_are_told_of_by_name() {
    let names: Vec<String> = (0..9).map(|it| format!("n{it}")).collect();
    let hosts: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world =
        World::with(vec![node_set("compute", &hosts, &["first"])], json!({ "backoffLimit": 0 }));
    world.run_out(|_, _| "Failed");
    assert_eq!(world.status().failures.len(), 5);
    let message = world.message("Ready");
    assert!(message.contains("9 of 9 hosts") && message.contains("And 4 more."), "{message}");
    assert!(!message.contains("n7"), "{message}");
}

#[test]
fn failed_and_unreachable_hosts_are_counted_and_named_for_each_run() {
    let hosts = ["n0", "n1", "n2", "n3"];
    let mut world = World::with(vec![node_set("compute", &hosts, &["first"])], json!({}));
    world.settle();
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
    let mut world = World::new();
    world.settle();
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
