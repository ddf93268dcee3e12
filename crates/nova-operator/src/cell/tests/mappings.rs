//! The readings of mappings for hosts that are removed: which hosts a Job is about, what its result
//! says of each, what is not read, and restarts at every point.

use api::nova::{DiscoveryState, MappingReading};
use jiff::SignedDuration;

use super::world::{IMAGE, World, run_script};
use super::*;
use crate::cell::discovery::decide::pause;
use crate::cell::mappings::build::SCRIPT;
use crate::cell::observed::mappings::{AwaitedHost, awaited, still_mapped};
use crate::compute::removal::known_mappings::{Mapping, mapping};

const SUCCEEDS: &str = "Complete";
const FAILS: &str = "Failed";
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

fn host(name: &str) -> String {
    format!("{name}.example.org")
}

impl World {
    /// The compute is being deleted, and waits for the mapping of its host.
    fn remove(&mut self, name: &str) -> &mut Self {
        let now = serde_json::from_value(json!(self.now.to_string())).unwrap();
        self.compute(name).metadata.deletion_timestamp = Some(now);
        self.report(name, reasons::removal::READING_MAPPINGS.condition("HostUnmapped", "x"))
    }
}

/// What its controller sees of the mapping.
fn seen_by(world: &mut World, name: &str) -> Mapping {
    let compute = world.compute(name).clone();
    let conditions = &compute.status.as_ref().unwrap().conditions;
    let since = find(conditions, "HostUnmapped").map(|it| it.last_transition_time.0);
    mapping(Some(&world.seen.cell), true, &host(name), since)
}

/// Its removal goes on, and it is gone.
fn go(world: &mut World, name: &str) {
    world.seen.computes.retain(|it| it.metadata.name.as_deref() != Some(name));
    world.settle();
}

/// It is there again, as at first.
fn come_back(world: &mut World, name: &str) {
    world.seen.computes.push(compute(name));
    world.seen.computes.sort_by_key(|it| it.metadata.name.clone());
    world.settle();
}

fn record(world: &World) -> Option<&MappingReading> {
    world.seen.cell.status.as_ref()?.mapping_reading.as_ref()
}

fn state(world: &World) -> (i64, DiscoveryState) {
    record(world).map(|it| (it.attempt, it.state)).unwrap()
}

/// The hosts that the running Job is about.
fn asked(world: &World) -> Vec<String> {
    let name = world.running().unwrap();
    let job = world.all_jobs().find(|it| it.metadata.name.as_ref() == Some(&name)).unwrap();
    let pod = job.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    let args = pod.containers[0].args.clone().unwrap();
    assert_eq!(args[..2], ["/etc/nova/nova.conf.d", "/dev/termination-log"]);
    args[2..].to_vec()
}

#[test]
fn a_host_whose_mapping_is_awaited_is_read_once_and_nothing_is_left() {
    let mut world = World::new();
    assert_eq!((record(&world), world.n_created), (None, 0));
    world.remove("n0").settle();
    assert_eq!((state(&world), asked(&world)), ((1, DiscoveryState::Running), vec![host("n0")]));
    assert_eq!(seen_by(&mut world, "n0"), Mapping::Unread);
    world.later(MINUTE);
    assert_eq!(world.n_created, 1, "it runs");
    world.end_reading(SUCCEEDS, Some("")).settle();
    assert_eq!((state(&world), world.jobs().len()), ((1, DiscoveryState::Succeeded), 0));
    assert_eq!(seen_by(&mut world, "n0"), Mapping::Absent);
    world.later(MINUTE * 60);
    assert_eq!(world.n_created, 1);
    world.report("n0", reasons::removal::HOST_UNMAPPED.condition("HostUnmapped", "x")).settle();
    assert_eq!((record(&world), world.n_created), (None, 1));
    go(&mut world, "n0");
    assert_eq!((record(&world), world.n_created), (None, 1));
}

#[test]
fn hosts_that_come_while_one_is_read_share_the_next_reading_and_no_answer_is_lost() {
    let mut world = World::new();
    world.remove("n0").settle();
    come_back(&mut world, "n2");
    for name in ["n1", "n2"] {
        world.remove(name).settle();
    }
    assert_eq!(asked(&world), [host("n0")]);
    world.end_reading(SUCCEEDS, Some("")).settle();
    assert_eq!((asked(&world), world.n_created), (vec![host("n1"), host("n2")], 2));
    // The controller of the first compute has not seen its result yet.
    assert_eq!(seen_by(&mut world, "n0"), Mapping::Absent);
    assert_eq!(seen_by(&mut world, "n1"), Mapping::Unread);
    world.end_reading(SUCCEEDS, Some(&format!("{}\n", host("n2")))).settle();
    let found = ["n0", "n1", "n2"].map(|it| seen_by(&mut world, it));
    assert_eq!(found, [Mapping::Absent, Mapping::Absent, Mapping::Present]);
}

#[test]
fn a_host_that_is_still_mapped_is_read_again_after_a_growing_pause() {
    let mut world = World::new();
    world.remove("n0").settle();
    for attempt in 1..=4 {
        assert_eq!(state(&world), (attempt, DiscoveryState::Running));
        world.end_reading(SUCCEEDS, Some(&host("n0"))).settle();
        assert_eq!(seen_by(&mut world, "n0"), Mapping::Present);
        world.report("n0", reasons::removal::STILL_MAPPED.condition("HostUnmapped", "x")).settle();
        let plan = recorded(decide(&world.seen, None, world.now));
        let due = pause(attempt) + SignedDuration::from_millis(100);
        assert_eq!(plan.requeue_after, Some(due.unsigned_abs()));
        world.later(pause(attempt) - SignedDuration::from_secs(1));
        assert_eq!(world.running(), None);
        world.later(SignedDuration::from_secs(1));
        assert!(world.running().is_some());
        assert_eq!(seen_by(&mut world, "n0"), Mapping::Present, "the last result stays known");
    }
    world.end_reading(SUCCEEDS, Some("")).settle();
    assert_eq!(seen_by(&mut world, "n0"), Mapping::Absent);
}

#[test]
fn a_job_that_fails_leaves_nova_s_word_and_its_log_until_the_next_one() {
    let mut world = World::new();
    world.remove("n0").settle();
    let traceback = "Traceback\n  File \"x\"\n    y()\nDBError: no database at n:p@db\n";
    let failed = world.running().unwrap();
    world.end_reading(FAILS, Some(traceback)).settle();
    assert_eq!((state(&world), world.jobs()), ((1, DiscoveryState::Failed), vec![failed.clone()]));
    let Mapping::NotRead(cause) = seen_by(&mut world, "n0") else { panic!() };
    assert!(cause.contains("DBError: no database at ***@db") && cause.contains(&failed), "{cause}");
    goes_on(&mut world, "n0");
    world.later(MINUTE * 60);
    assert_eq!(world.n_created, 1, "nothing waits for it");
    go(&mut world, "n0");
    assert_eq!((world.jobs().len(), state(&world).1), (1, DiscoveryState::Failed));
    world.remove("n1").settle();
    assert_eq!(world.jobs(), [world.running().unwrap()]);
    assert_eq!(asked(&world), [host("n1")]);
}

/// The removal of a host goes on, because its mapping could not be read.
fn goes_on(world: &mut World, name: &str) {
    world.report(name, reasons::removal::NOT_VERIFIED.condition("HostUnmapped", "x")).settle();
}

#[test]
fn a_failure_is_known_to_its_hosts_before_others_are_read() {
    let mut world = World::new();
    world.remove("n0").settle();
    world.remove("n1").settle();
    let failed = world.running().unwrap();
    world.end_reading(FAILS, None).settle();
    assert_eq!((world.running(), world.jobs()), (None, vec![failed]));
    assert!(matches!(seen_by(&mut world, "n0"), Mapping::NotRead(_)));
    goes_on(&mut world, "n0");
    assert_eq!(asked(&world), [host("n1")]);
    world.end_reading(FAILS, None).settle();
    assert!(matches!(seen_by(&mut world, "n1"), Mapping::NotRead(_)));
    goes_on(&mut world, "n1");
    world.later(MINUTE * 60);
    assert_eq!(world.n_created, 2);
}

#[test]
fn a_host_that_does_not_go_on_holds_the_others_for_a_minute_alone() {
    let mut world = World::new();
    for name in ["n0", "n1"] {
        world.remove(name).settle();
    }
    world.end_reading(FAILS, None).settle();
    world.later(MINUTE - SignedDuration::from_secs(1));
    assert_eq!(world.running(), None);
    world.later(SignedDuration::from_secs(1));
    assert_eq!((asked(&world), state(&world).0), (vec![host("n1"), host("n0")], 2));
}

#[test]
fn a_result_that_is_not_a_list_of_these_hosts_is_none() {
    for message in [None, Some("\n"), Some("n1.example.org"), Some("n0.example.org x")] {
        let mut world = World::new();
        world.remove("n0").settle();
        world.end_reading(SUCCEEDS, message).settle();
        let Mapping::NotRead(cause) = seen_by(&mut world, "n0") else { panic!("{message:?}") };
        assert!(cause.contains("has left no list of these hosts"), "{cause}");
    }
    let hosts = ["a", "b", "c"].map(str::to_owned);
    assert_eq!(still_mapped("", &hosts), Some(vec![]));
    assert_eq!(still_mapped("c\na\n", &hosts), Some(vec!["c".to_owned(), "a".to_owned()]));
    assert_eq!(still_mapped("a\n\nb\n", &hosts), None);
    assert_eq!(still_mapped(" a\n", &hosts), None);
}

#[test]
fn a_failure_takes_nothing_from_what_an_earlier_reading_has_found() {
    let mut world = World::new();
    world.remove("n0").settle();
    world.end_reading(SUCCEEDS, Some(&host("n0"))).settle();
    world.remove("n1").settle();
    assert_eq!(asked(&world), [host("n1"), host("n0")], "it is read again with the new one");
    world.end_reading(FAILS, None).settle();
    let Mapping::PresentThenFailed(cause) = seen_by(&mut world, "n0") else { panic!() };
    assert!(cause.contains("has failed"), "{cause}");
    assert!(matches!(seen_by(&mut world, "n1"), Mapping::NotRead(_)));
    goes_on(&mut world, "n1");
    world.later(MINUTE);
    assert_eq!((asked(&world), state(&world).0), (vec![host("n0")], 2));
}

#[test]
fn a_job_that_is_rejected_counts_as_failed() {
    let mut world = World::new();
    world.remove("n0");
    world.reject("jobs.batch is forbidden: exceeded quota: q");
    assert_eq!((state(&world).1, world.n_created), (DiscoveryState::Failed, 0));
    let Mapping::NotRead(cause) = seen_by(&mut world, "n0") else { panic!() };
    assert!(cause.contains("cannot be created") && cause.contains("exceeded quota"), "{cause}");
    world.settle();
    assert_eq!(world.n_created, 0, "it is not tried again for this host");
    assert!(matches!(seen_by(&mut world, "n0"), Mapping::NotRead(_)));
}

#[test]
fn a_host_that_comes_back_and_is_removed_again_is_read_again() {
    let mut world = World::new();
    world.remove("n0").settle();
    world.end_reading(FAILS, Some("x")).settle();
    go(&mut world, "n0");
    world.now += MINUTE;
    come_back(&mut world, "n0");
    assert!(record(&world).is_some(), "the failure is known still");
    world.remove("n0");
    assert_eq!(seen_by(&mut world, "n0"), Mapping::Unread);
    world.settle();
    assert_eq!((asked(&world), world.n_created), (vec![host("n0")], 2));
}

#[test]
fn without_the_operator_s_discovery_nova_s_word_counts_and_no_job_is_made() {
    type Change = fn(&mut World);
    let gone = || Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    let cases: [(Change, &str); 4] = [
        (|it| it.annotate("host-discovery", None), "leaves the discovery of hosts to others"),
        (|it| it.annotate("host-discovery-image", None), "an image with nova-manage"),
        (|it| it.found().secret_version = None, "create secret generic -n ns nova-manage"),
        (|_| {}, "is being deleted"),
    ];
    for (change, words) in cases {
        let mut world = World::new();
        change(&mut world);
        if words == "is being deleted" {
            Arc::make_mut(&mut world.seen.cell).metadata.deletion_timestamp = gone();
        }
        world.remove("n0").settle();
        assert_eq!((world.n_created, record(&world)), (0, None), "{words}");
        let Mapping::NotRead(cause) = seen_by(&mut world, "n0") else { panic!("{words}") };
        assert!(cause.contains(words) && cause.ends_with('.'), "{cause}");
    }
    let cell = World::new().seen.cell;
    for (cell, are_ours, name) in
        [(None, true, "n0"), (Some(&*cell), false, "n0"), (Some(&*cell), true, "$(HOME)")]
    {
        assert!(matches!(mapping(cell, are_ours, name, None), Mapping::NotRead(_)), "{name}");
    }
    assert_eq!(mapping(Some(&cell), true, "n0", None), Mapping::Unread);
}

#[test]
fn where_novas_api_is_not_read_no_mapping_is() {
    let mut world = World::new();
    world.remove("n0");
    world.seen.discovery = None;
    world.settle();
    assert_eq!((record(&world), world.n_created), (None, 0));
}

#[test]
fn back_to_external_a_reading_ends_and_nothing_is_left() {
    let mut world = World::new();
    world.remove("n0").settle();
    world.annotate("host-discovery", Some("external"));
    world.settle();
    assert!(matches!(seen_by(&mut world, "n0"), Mapping::NotRead(_)), "nothing waits for it");
    assert_eq!(world.jobs().len(), 1);
    world.end_reading(SUCCEEDS, Some("")).settle();
    assert_eq!((world.jobs().len(), record(&world)), (0, None));
}

#[test]
fn a_cell_has_one_job_at_a_time_and_a_removal_comes_first() {
    let mut world = World::new();
    world.map("n1", false);
    world.remove("n0").settle();
    let reading = world.running().unwrap();
    assert!(reading.starts_with("nova-cell1-host-mappings-") && reading.len() <= 52, "{reading}");
    assert_eq!(world.said(), (ConditionStatus::False, "Discovering".to_owned()));
    world.end_reading(SUCCEEDS, Some("")).settle();
    let discovery = world.running().unwrap();
    assert!(discovery.contains("host-discovery"), "{discovery}");
    come_back(&mut world, "n2");
    world.remove("n2").settle();
    assert_eq!(world.running(), Some(discovery));
    world.end(None).settle();
    assert_eq!(asked(&world), [host("n2")]);
    assert_eq!(world.n_created, 3);
}

/// The story of a host that is still mapped at first, in which the operator dies after so many steps
/// of each pass and then goes on.
#[test]
fn an_operator_that_dies_between_any_two_writes_reads_nothing_twice() {
    for dies_after in 0..5 {
        let mut world = World::new();
        let go_on = |world: &mut World| {
            world.pass(dies_after);
            world.settle();
        };
        world.remove("n0");
        go_on(&mut world);
        assert_eq!(world.n_created, 1, "{dies_after}");
        world.end_reading(SUCCEEDS, Some(&host("n0")));
        go_on(&mut world);
        assert_eq!((world.n_created, world.jobs().len()), (1, 0), "{dies_after}");
        world.now += pause(1);
        go_on(&mut world);
        assert_eq!((world.n_created, state(&world).0), (2, 2), "{dies_after}");
        world.end_reading(SUCCEEDS, Some(""));
        go_on(&mut world);
        assert_eq!(seen_by(&mut world, "n0"), Mapping::Absent);
        go(&mut world, "n0");
        assert_eq!((world.n_created, record(&world), world.jobs().len()), (2, None, 0));
    }
}

/// A cell with computes of these hosts, whose mappings are awaited.
fn with_hosts(hosts: impl Iterator<Item = String>) -> World {
    let mut world = World::new();
    world.seen.computes.clear();
    for host in hosts {
        world.seen.computes.push(compute(&host));
        world.compute(&host).status.as_mut().unwrap().host_name = Some(host.clone());
        world.remove(&host);
    }
    world.settle();
    world
}

#[test]
fn a_reading_is_about_as_many_hosts_as_its_message_can_name_and_each_has_its_turn() {
    let mut world = with_hosts((0..40).map(|it| format!("h{it:02}")));
    let mut turns = Vec::new();
    for _ in 0..4 {
        turns.push(asked(&world));
        let message = asked(&world).join("\n");
        assert!(message.len() <= 4096);
        world.end_reading(SUCCEEDS, Some(&message));
        world.later(MINUTE * 30);
    }
    let ends: Vec<(usize, &str)> =
        turns.iter().map(|it| (it.len(), it.last().unwrap().as_str())).collect();
    assert_eq!(ends, [(32, "h31"), (32, "h23"), (32, "h15"), (32, "h07")]);

    let long = with_hosts((0..40).map(|it| format!("{it:0>255}")));
    let message = asked(&long).join("\n");
    assert!(message.len() <= 4096 && message.len() > 3800, "{}", message.len());
}

#[test]
fn only_computes_that_wait_are_read() {
    let mut world = World::new();
    let reason = reasons::removal::READING_MAPPINGS;
    world.report("n0", reason.condition("HostUnmapped", "x"));
    assert_eq!(awaited(world.compute("n0")), None, "it is not being deleted");
    world.remove("n0");
    let expected = AwaitedHost { host: host("n0"), since: world.now };
    assert_eq!(awaited(world.compute("n0")), Some(expected));
    for reason in [reasons::removal::WAITING, reasons::removal::NOT_VERIFIED] {
        world.report("n0", reason.condition("HostUnmapped", "x"));
        assert_eq!(awaited(world.compute("n0")), None, "{}", reason.word);
    }
}

#[test]
fn the_job_has_the_hosts_as_arguments_and_is_like_that_of_a_discovery() {
    let mut world = World::new();
    world.remove("n0").settle();
    let job = serde_json::to_value(&**world.all_jobs().next().unwrap()).unwrap();
    let at = |path: &str| job.pointer(path).cloned().unwrap_or_default();
    let pod = "/spec/template/spec";
    for (path, expected) in [
        ("/metadata/labels/nova.openstack.org~1host-discovery", json!("true")),
        ("/metadata/labels/nova.openstack.org~1host-mappings", json!("true")),
        ("/metadata/ownerReferences/0/uid", json!("u")),
        ("/spec/backoffLimit", json!(0)),
        ("/spec/activeDeadlineSeconds", json!(300)),
        (&format!("{pod}/restartPolicy"), json!("Never")),
        (&format!("{pod}/automountServiceAccountToken"), json!(false)),
        (&format!("{pod}/containers/0/image"), json!(IMAGE)),
        (&format!("{pod}/containers/0/command"), json!(["sh", "-ec", SCRIPT, "list-hosts"])),
        (&format!("{pod}/containers/0/securityContext/readOnlyRootFilesystem"), json!(true)),
        (&format!("{pod}/volumes/0/secret/secretName"), json!("nova-manage")),
    ] {
        assert_eq!(at(path), expected, "{path}");
    }
}

/// Runs the program of the container with a stand-in for nova-manage that prints the text; returns
/// whether it succeeded, what it printed, and the termination message.
fn listed(table: &str, hosts: &[&str]) -> (bool, String, String) {
    let name = format!("list-hosts-{}-{}", std::process::id(), hosts.join("-"));
    let result = std::env::temp_dir().join(name);
    let path = result.display().to_string();
    let nova_manage = format!(
        "[ \"$3 $4 $#\" = 'cell_v2 list_hosts 4' ] || exit 9\ncat <<'END'\n{table}\nEND\n\
         [ \"$2\" = good ]\n"
    );
    let config = if table.contains("error") { "bad" } else { "good" };
    let mut args = vec![config, path.as_str()];
    args.extend(hosts);
    let (is_good, printed) = run_script(SCRIPT, &nova_manage, &args);
    let message = std::fs::read_to_string(&result).unwrap_or_default();
    // Nothing is there where the program has failed.
    let _ = std::fs::remove_file(&result);
    (is_good, printed, message)
}

#[test]
fn the_program_names_those_of_the_given_hosts_that_nova_maps() {
    let table = "+-----------+--------------------------------------+-----------------+\n\
                 | Cell Name |              Cell UUID               |     Hostname    |\n\
                 +-----------+--------------------------------------+-----------------+\n\
                 |   cell1   | 1dab2d1c-0f2b-4f0c-8c5e-5a5b8a0d7f10 |  a.example.org  |\n\
                 | my | cell | 1dab2d1c-0f2b-4f0c-8c5e-5a5b8a0d7f10 |        b        |\n\
                 |    None   | 1dab2d1c-0f2b-4f0c-8c5e-5a5b8a0d7f10 | c.d.example.org |\n\
                 +-----------+--------------------------------------+-----------------+";
    let found = |hosts: &[&str]| {
        let (is_good, printed, message) = listed(table, hosts);
        assert!(is_good && printed.is_empty(), "{printed}");
        message
    };
    assert_eq!(
        found(&["c.d.example.org", "x", "a.example.org"]),
        "a.example.org\nc.d.example.org\n"
    );
    assert_eq!(found(&["b"]), "b\n");
    for other in ["a", "example.org", "Hostname", "cell1", "None", "-n", "*"] {
        assert_eq!(found(&[other]), "", "{other}");
    }
}

#[test]
fn what_is_no_table_is_a_failure_and_leaves_no_message() {
    let rule = "+-----------+-----------+----------+";
    let empty = format!("{rule}\n| Cell Name | Cell UUID | Hostname |\n{rule}\n{rule}");
    assert_eq!(listed(&empty, &["a"]), (true, String::new(), String::new()));
    for text in ["", "Usage: nova-manage", "| a | b | c |", "An error has occurred:"] {
        let (is_good, printed, message) = listed(text, &["a"]);
        assert!(!is_good && printed.contains(text) && message.is_empty(), "{text}: {printed}");
    }
}
