//! The discovery of a cell's hosts: attempts, backoff, results, and restarts at every point.

use api::nova::{DiscoveryState, Management};
use jiff::SignedDuration;

use super::world::{IMAGE, World, run_script};
use super::*;
use crate::cell::discovery::build::SCRIPT;
use crate::cell::discovery::decide::pause;
use crate::cell::discovery::failure::last_line;
use crate::requested::host_discovery::{Discovery, discovery};

fn good(reason: &str) -> (ConditionStatus, String) {
    (ConditionStatus::True, reason.to_owned())
}

fn bad(reason: &str) -> (ConditionStatus, String) {
    (ConditionStatus::False, reason.to_owned())
}

#[test]
fn without_unmapped_hosts_there_is_nothing_to_do() {
    let mut world = World::new();
    assert_eq!((world.said(), world.jobs().len()), (good("HostsMapped"), 0));
    world.map("n0", true).settle();
    assert_eq!((world.said(), world.jobs().len()), (good("HostsMapped"), 0));
}

#[test]
fn unmapped_hosts_share_one_job_and_only_novas_api_ends_the_wait() {
    let mut world = World::new();
    world.map("n0", false);
    world.map("n1", false).settle();
    let job = world.running().unwrap();
    assert!(job.starts_with("nova-cell1-host-discovery-") && job.len() <= 52, "{job}");
    assert_eq!(world.said(), bad("Discovering"));
    world.later(SignedDuration::from_hours(1));
    assert_eq!(world.jobs(), std::slice::from_ref(&job), "it runs");
    world.now -= SignedDuration::from_hours(1);
    world.end(None).settle();
    assert_eq!((world.said(), world.jobs().len()), (good("HostsDiscovered"), 0));
    // Computes are written one by one: the rest is no new set of hosts.
    world.map("n0", true);
    world.later(SignedDuration::from_secs(30));
    assert_eq!((world.said(), world.n_created), (good("HostsDiscovered"), 1));
    world.map("n1", true).settle();
    assert_eq!((world.said(), world.n_created), (good("HostsMapped"), 1));
}

#[test]
fn a_host_that_a_service_deploys_is_discovered_too_and_a_new_one_does_not_wait() {
    let mut world = World::new();
    world.compute("n0").spec.management = Management::Observed;
    world.map("n0", false).settle();
    assert_eq!((world.said(), world.n_created), (bad("Discovering"), 1));
    world.end(None).settle();
    assert_eq!((world.said(), world.n_created), (good("HostsDiscovered"), 1));
    world.later(SignedDuration::from_secs(60));
    world.end(None).settle();
    assert_eq!((world.said(), world.n_created), (bad("HostsStillUnmapped"), 2));
    assert!(world.condition().unwrap().message.contains("n0.example.org"));
    world.now += SignedDuration::from_secs(1);
    world.map("n1", false);
    world.later(SignedDuration::from_secs(1));
    assert_eq!((world.attempt(), world.n_created), ((1, DiscoveryState::Running), 3));
    world.end(None);
    world.map("n0", true);
    world.map("n1", true).settle();
    assert_eq!((world.said(), world.jobs().len()), (good("HostsMapped"), 0));
}

#[test]
fn the_pause_doubles_from_one_minute_to_thirty() {
    let minutes: Vec<i64> = (1..=8).map(|it| pause(it).as_mins()).collect();
    assert_eq!(minutes, [1, 2, 4, 8, 16, 30, 30, 30]);
    assert_eq!(pause(i64::MAX).as_mins(), 30);
}

#[test]
fn a_failed_job_is_kept_named_and_tried_again_with_a_growing_pause() {
    let mut world = World::new();
    world.map("n0", false).settle();
    let mut kept: Option<String> = None;
    for attempt in 1..=3 {
        assert_eq!(world.attempt(), (attempt, DiscoveryState::Running));
        if kept.is_some() {
            assert_eq!(world.said(), bad("DiscoveryFailed"), "the last failure stays known");
        }
        let failed = world.running().unwrap();
        world.end(Some("Traceback\n  File \"x\"\n    y()\nDBError: no database\n")).settle();
        assert_eq!(world.jobs(), [failed.as_str()], "only the last failed one is kept");
        let message = world.condition().unwrap().message;
        for words in ["DBError: no database", &format!("kubectl logs -n ns job/{failed}")] {
            assert!(message.contains(words), "{message}");
        }
        let plan = decide(&world.seen, None, world.now);
        let due = pause(attempt) + SignedDuration::from_secs(1);
        assert!(plan.requeue_after.unwrap() <= due.unsigned_abs());
        world.later(pause(attempt) - SignedDuration::from_secs(1));
        assert_eq!(world.running(), None);
        world.later(SignedDuration::from_secs(1));
        assert_ne!(world.running().as_ref(), Some(&failed));
        kept = Some(failed);
    }
    world.end(None);
    world.map("n0", true).settle();
    assert_eq!((world.said(), world.jobs().len()), (good("HostsMapped"), 0));
}

#[test]
fn jobs_that_succeed_while_the_host_stays_unmapped_are_reported() {
    let mut world = World::new();
    world.map("n1", false).settle();
    world.end(None).settle();
    assert_eq!(world.said(), good("HostsDiscovered"));
    world.later(SignedDuration::from_secs(59));
    assert_eq!(world.n_created, 1);
    world.later(SignedDuration::from_secs(1));
    world.end(None).settle();
    assert_eq!((world.said(), world.attempt().0), (bad("HostsStillUnmapped"), 2));
    assert!(world.condition().unwrap().message.contains("n1.example.org"));
    world.later(SignedDuration::from_secs(119));
    assert_eq!(world.n_created, 2);
    world.later(SignedDuration::from_secs(1));
    assert_eq!(world.n_created, 3, "the second pause counts from the second attempt");
}

#[test]
fn a_new_host_and_a_corrected_input_end_the_pause() {
    let mut world = World::new();
    world.map("n0", false).settle();
    world.end(Some("")).settle();
    assert!(world.condition().unwrap().message.contains("Job has reached the backoff limit"));
    world.now += SignedDuration::from_secs(2);
    world.map("n1", false).settle();
    assert_eq!((world.attempt(), world.n_created), ((1, DiscoveryState::Running), 2));
    world.end(Some("x"));
    world.later(SignedDuration::from_secs(2));
    assert_eq!(world.n_created, 2);
    world.found().secret_version = Some("2".into());
    world.settle();
    assert_eq!((world.attempt(), world.n_created), ((1, DiscoveryState::Running), 3));
}

#[test]
fn missing_and_invalid_inputs_are_named_and_nothing_begins() {
    for (name, value, words) in [
        ("host-discovery", Some("Operator"), "external, which is the default, or operator"),
        ("host-discovery", Some(""), "external, which is the default, or operator"),
        ("host-discovery-secret", None, "the name of a Secret in the namespace"),
        ("host-discovery-secret", Some("A b"), "the name of a Secret in the namespace"),
        ("host-discovery-image", None, "an image with nova-manage"),
        ("host-discovery-image", Some("a b"), "an image with nova-manage"),
    ] {
        let mut world = World::new();
        world.annotate(name, value);
        world.map("n0", false).settle();
        let found = world.condition().unwrap();
        let said = (found.status, found.reason.as_str());
        assert_eq!(said, (ConditionStatus::Unknown, "InputMissing"), "{name}");
        assert!(found.message.contains(words) && found.message.contains(name), "{found:?}");
        let record = world.seen.cell.status.as_ref().unwrap().discovery.as_ref();
        assert_eq!((world.n_created, record), (0, None));
    }
    let mut world = World::new();
    world.found().secret_version = None;
    world.map("n0", false).settle();
    let message = world.condition().unwrap().message;
    assert!(message.contains("create secret generic -n ns nova-manage"), "{message}");
    assert_eq!(world.n_created, 0);
    world.found().secret_version = Some("1".into());
    world.settle();
    assert_eq!(world.n_created, 1);
}

#[test]
fn two_cells_have_jobs_of_their_own() {
    let names = ["u1", "u2"].map(|uid| {
        let mut world = World::of_cell(uid);
        world.map("n0", false).settle();
        world.running().unwrap()
    });
    assert_ne!(names[0], names[1]);
}

#[test]
fn back_to_external_a_running_job_ends_and_nothing_is_left() {
    let mut world = World::new();
    world.map("n0", false).settle();
    world.annotate("host-discovery", Some("external"));
    world.settle();
    assert_eq!((world.condition(), world.jobs().len()), (None, 1));
    world.end(None).settle();
    assert_eq!(world.jobs().len(), 0);
    assert_eq!(world.seen.cell.status.as_ref().unwrap().discovery, None);
}

#[test]
fn where_novas_api_is_not_read_nothing_is_discovered() {
    let mut world = World::new();
    world.map("n0", false);
    world.seen.discovery = None;
    world.settle();
    assert_eq!((world.condition(), world.n_created), (None, 0));
}

#[test]
fn computes_and_cells_that_go_start_nothing() {
    let gone = || Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    let mut world = World::new();
    world.map("n0", false);
    Arc::make_mut(&mut world.seen.computes[0]).metadata.deletion_timestamp = gone();
    world.settle();
    assert_eq!(world.n_created, 0);
    world.map("n1", false);
    Arc::make_mut(&mut world.seen.cell).metadata.deletion_timestamp = gone();
    world.settle();
    assert_eq!(world.n_created, 0);
}

/// The story of two attempts, in which the operator dies after so many steps of each pass and then
/// goes on.
#[test]
fn an_operator_that_dies_between_any_two_writes_comes_to_the_same_end() {
    for dies_after in 0..5 {
        let mut world = World::new();
        let go_on = |world: &mut World| {
            world.pass(dies_after);
            world.settle();
        };
        world.map("n0", false);
        go_on(&mut world);
        assert_eq!(world.n_created, 1, "{dies_after}");
        world.end(Some("x"));
        go_on(&mut world);
        assert_eq!((world.said(), world.jobs().len()), (bad("DiscoveryFailed"), 1));
        world.now += pause(1);
        go_on(&mut world);
        assert_eq!((world.n_created, world.attempt().0), (2, 2), "{dies_after}");
        world.end(None);
        go_on(&mut world);
        assert_eq!(world.jobs().len(), 0, "{dies_after}");
        world.map("n0", true);
        go_on(&mut world);
        assert_eq!((world.said(), world.n_created), (good("HostsMapped"), 2));
    }
}

#[test]
fn the_pod_is_restricted_and_mounts_the_secret_for_nova_alone() {
    let mut world = World::new();
    world.map("n0", false).settle();
    let job = serde_json::to_value(&*world.seen.discovery.as_ref().unwrap().jobs[0]).unwrap();
    let at = |path: &str| job.pointer(path).cloned().unwrap_or_default();
    let pod = "/spec/template/spec";
    for (path, expected) in [
        ("/spec/backoffLimit", json!(0)),
        ("/spec/activeDeadlineSeconds", json!(600)),
        ("/spec/ttlSecondsAfterFinished", Value::Null),
        ("/metadata/ownerReferences/0/uid", json!("u")),
        ("/metadata/ownerReferences/0/controller", json!(true)),
        (&format!("{pod}/restartPolicy"), json!("Never")),
        (&format!("{pod}/automountServiceAccountToken"), json!(false)),
        (&format!("{pod}/securityContext/runAsNonRoot"), json!(true)),
        (&format!("{pod}/containers/0/image"), json!(IMAGE)),
        (&format!("{pod}/containers/0/args"), json!(["/etc/nova/nova.conf.d", "cell1"])),
        (&format!("{pod}/containers/0/securityContext/readOnlyRootFilesystem"), json!(true)),
        (&format!("{pod}/volumes/0/secret/secretName"), json!("nova-manage")),
        (&format!("{pod}/volumes/0/secret/defaultMode"), json!(288)),
    ] {
        assert_eq!(at(path), expected, "{path}");
    }
}

#[test]
fn the_line_of_a_failure_names_the_exception_and_no_secret() {
    for (message, line) in [
        ("a\nb\n\n", Some("b")),
        (" \n", None),
        (
            "Traceback\n  File \"a\"\n    f()\nDBError: (1045, \"Access denied\")\n[SQL: SELECT 1]\n\
             (Background on this error at: https://sqlalche.me/e/20/e3q8)\n",
            Some("DBError: (1045, \"Access denied\")"),
        ),
        (
            "ArgumentError: Could not parse URL from 'mysql://nova:pass'w@rd@db/nova' now",
            Some("ArgumentError: Could not parse URL from ***@db/nova' now"),
        ),
        (
            "ConfigFileParseError: Failed to parse /x.conf: at /x.conf:2, No ':' or '=' found in \
             assignment: 'password hunter2'",
            Some(
                "ConfigFileParseError: Failed to parse /x.conf: at /x.conf:2, No ':' or '=' found \
                 in assignment",
            ),
        ),
        ("\u{1b}[31mred\u{1b}[0m", Some("[31mred[0m")),
    ] {
        assert_eq!(last_line(message).as_deref(), line, "{message}");
    }
    assert!(last_line(&"x".repeat(5000)).unwrap().len() <= 305);
}

#[test]
fn external_is_the_default() {
    let mut world = World::new();
    world.annotate("host-discovery", None);
    assert_eq!(discovery(&world.seen.cell), Discovery::External);
}

/// Runs the program of the container with a stand-in for nova-manage that prints its arguments.
fn discovered(cells: &str, name: &str) -> (bool, String) {
    let nova_manage = format!(
        "if [ \"$4\" = list_cells ]; then\ncat <<'END'\n{cells}\nEND\n[ \"$2\" = good ]\nelse\n\
         echo \"$*\"\nfi\n"
    );
    let config = if cells.contains("error") { "bad" } else { "good" };
    run_script(SCRIPT, &nova_manage, &[config, name])
}

#[test]
fn the_cell_is_found_by_its_name_in_nova_and_else_all_are_discovered() {
    let cells = "+-------+------+------+-----+----------+\n\
                 |  Name | UUID | Url  | Db  | Disabled |\n\
                 +-------+------+------+-----+----------+\n\
                 | cell0 | 0000 | none | x@y |  False   |\n\
                 | cell1 | 1111 | none | x@y |  False   |\n\
                 |  two  | 2222 | none | x@y |  False   |\n\
                 |  two  | 3333 | none | x@y |  False   |\n\
                 +-------+------+------+-----+----------+";
    let all = "--config-dir good cell_v2 discover_hosts --by-service".to_owned();
    assert_eq!(discovered(cells, "cell1"), (true, format!("{all} --cell_uuid 1111")));
    assert_eq!(discovered(cells, "cell9"), (true, all.clone()));
    assert_eq!(discovered(cells, "two"), (true, all));
    let failed = (false, "An error has occurred:".to_owned());
    assert_eq!(discovered("An error has occurred:", "cell1"), failed);
}
