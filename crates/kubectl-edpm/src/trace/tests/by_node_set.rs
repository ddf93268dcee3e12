//! Tests of the twelve steps for a host of a node set, with each in turn as the one that is
//! missing.

use api::dataplane::{Deployment, NodeStatus};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::config_files::Content;

const HOST: &str = "edpm-compute-5";
const FILE: &str = "25-nova-extra.conf";

/// The steps, in the order of their numbers.
const STEPS: [&str; 12] = [
    "snippet",
    "generated",
    "written",
    "service",
    "listed",
    "deployment",
    "run",
    "job",
    "pod",
    "host",
    "container",
    "process",
];

fn config_map(text: &str) -> Content {
    let mut config_map: ConfigMap = testdata::only("ConfigMap");
    config_map.data = Some([(FILE.to_owned(), text.to_owned())].into());
    Content::of_config_map(&config_map, "openstack")
}

/// Replaces the content of the ConfigMap.
fn give(scene: &mut Scene, content: Read<Content>) {
    scene.given().sources[1].1 = content;
}

/// The option is in force in the process, and every step is known.
fn arrived() -> Scene {
    let secret = Content::of_secret(&testdata::only("Secret"), "openstack");
    let contents = [secret, config_map(SNIPPET)];
    let files: Vec<File> = contents.iter().flat_map(|it| it.files.clone()).collect();
    let service = testdata::only("OpenStackDataPlaneService");
    let given = testdata::given(service, contents.map(Read::Found));
    let mut scene = Scene::of(testdata::node_set(), HOST, Some(given));
    scene.answer = Some(Ok(testdata::answer(&files, FILE, "Nehalem")));
    scene.file = Some(FILE.to_owned());
    scene
}

fn status(scene: &mut Scene) -> &mut NodeStatus {
    scene.snapshot.nodes[0].status.as_mut().unwrap()
}

fn again(snapshot: &Snapshot, name: &str) -> Deployment {
    let mut deployment = Deployment::new(name, snapshot.deployments[0].spec.clone());
    deployment.metadata.namespace = Some("openstack".to_owned());
    let later = "2026-11-21T11:30:00Z".parse().unwrap();
    deployment.metadata.creation_timestamp = Some(Time(later));
    deployment
}

#[test]
fn all_twelve_steps_are_shown_of_an_option_that_has_arrived() {
    let text = arrived().traced().text;
    assert_eq!(text, include_str!("../../../testdata/trace-node-set.txt"));
}

#[test]
fn without_a_snippet_and_a_question_two_ends_are_said_to_be_unknown() {
    let mut scene = arrived();
    (scene.snippet, scene.answer) = (None, None);
    let all = scene.marks();
    let unknown: Vec<&str> = all.iter().filter(|it| it.1 == Mark::Unknown).map(|it| it.0).collect();
    assert_eq!((unknown, all.len()), (vec!["snippet", "process"], 12));
    let text = scene.traced().text;
    let words = "As far as the cluster shows, in force: cpu_models = Nehalem, from \
                 25-nova-extra.conf of ConfigMap openstack/nova-extra-config.\n";
    assert!(text.ends_with(words), "{text}");
}

#[test]
fn each_of_the_twelve_steps_can_be_the_one_that_is_missing() {
    let cases: [(Mark, Break); 12] = [
        (Mark::NotYet, |it| it.snippet = Some(snippet("[DEFAULT]\ndebug = true\n"))),
        (Mark::NotYet, |it| {
            it.generated = Some(Generated { path: "all.yaml".into(), files: vec![] });
        }),
        // The Secret still sets it.
        (Mark::Stale, |it| give(it, Read::Missing)),
        (Mark::NotYet, |it| {
            it.given().beside = config_map(SNIPPET).files;
            it.given().sources.pop();
        }),
        (Mark::NotYet, |it| it.given().is_listed = false),
        (Mark::NotYet, |it| it.snapshot.deployments.clear()),
        (Mark::NotYet, |it| it.snapshot.runs[1].spec.extra_mounts.clear()),
        (Mark::NotYet, |it| it.job = Read::Found(Job::default())),
        (Mark::NotYet, |it| testdata::set_report(&mut it.snapshot.runs[1], &[])),
        (Mark::NotYet, |it| it.answer().host.retain(|it| !it.ends_with(FILE))),
        (Mark::NotYet, |it| it.answer().asked.files.retain(|it| !it.ends_with(FILE))),
        (Mark::Stale, |it| it.answer().said.value = Some("Westmere".into())),
    ];
    let cases: Vec<_> = STEPS.iter().zip(cases).map(|(name, it)| (*name, it.0, it.1)).collect();
    check(arrived, &STEPS, &cases);
}

#[test]
fn what_was_changed_at_one_place_alone_stops_there() {
    let cases: [(&str, Mark, Break, &str); 9] = [
        (
            "generated",
            Mark::Stale,
            |it| it.snippet = Some(snippet(OTHER)),
            "nothing there has what my.conf",
        ),
        (
            "written",
            Mark::Stale,
            |it| give(it, Read::Found(config_map(OTHER))),
            "nothing there has what my.conf says",
        ),
        (
            "deployment",
            Mark::NotYet,
            |it| {
                (it.snippet, it.file) = (None, None);
                give(it, Read::Found(config_map(OTHER)));
            },
            "changed since it used it: ConfigMap nova-extra-config",
        ),
        (
            "service",
            Mark::NotYet,
            |it| (it.given().is_listed, it.given().absent) = (false, vec!["nova-own".into()]),
            "OpenStackDataPlaneService openstack/nova-own, which is listed, does not exist",
        ),
        (
            "listed",
            Mark::NotYet,
            |it| it.given().conflicting_service = Some("nova".into()),
            "it lists nova before it, and of two services of one type the first one alone runs",
        ),
        (
            "deployment",
            Mark::NotYet,
            |it| it.snapshot.deployments = vec![again(&it.snapshot, "later")],
            "OpenStackDataPlaneDeployment later has not begun on edpm-compute-5",
        ),
        (
            "deployment",
            Mark::NotYet,
            |it| {
                it.snapshot.runs.clear();
                let brought = &mut status(it).services[1];
                (brought.state, brought.deployed_hash) = (RunState::Pending, None);
            },
            "OpenStackDataPlaneDeployment openstack-edpm-x7abc did not come to service nova-custom",
        ),
        (
            "pod",
            Mark::Stale,
            |it| testdata::set_report(&mut it.snapshot.runs[1], &config_map(OTHER).files),
            "says the play; now it is ",
        ),
        (
            "process",
            Mark::Stale,
            |it| {
                let origin = it.answer().asked.origin.as_mut().unwrap();
                origin.detail = "/etc/nova/nova.conf.d/99-nova.conf".into();
            },
            "that is not 25-nova-extra.conf",
        ),
    ];
    for (step, mark, make, words) in cases {
        let mut scene = arrived();
        make(&mut scene);
        scene.says(words);
        let open = scene.marks().into_iter().find(|it| it.1.is_open());
        assert_eq!(open, Some((step, mark)), "{words}");
    }
}

#[test]
fn a_deployment_of_other_services_takes_nothing_from_what_an_earlier_one_brought() {
    let mut scene = arrived();
    let mut later = again(&scene.snapshot, "later");
    later.metadata.uid = Some("d1".to_owned());
    later.status = scene.snapshot.deployments[0].status.clone();
    later.spec.services_override = vec!["install-os".into()];
    scene.snapshot.deployments.push(later);
    status(&mut scene).deployment.as_mut().unwrap().uid = "d1".to_owned();
    assert_eq!(scene.stopped(), None);
}

/// Only the operator has the key of the digest that a release before recorded.
#[test]
fn of_a_secret_the_node_tells_whether_it_has_changed_since_a_deployment_used_it() {
    let mut scene = arrived();
    let used = scene.snapshot.deployments[0].status.as_mut().unwrap();
    let text = used.secret_hashes.get_mut("nova-cell1-compute-config").unwrap();
    *text = "k123456:0123456789abcdef".to_owned();
    // Otherwise the play's report counts.
    scene.snapshot.runs[1].status.as_mut().unwrap().report = None;
    let text = scene.traced().text;
    assert!(!text.contains("changed since it used it"), "{text}");
    let conditions = &mut status(&mut scene).conditions;
    let told = conditions.iter_mut().find(|it| it.type_ == "UpToDate").unwrap();
    told.message = format!(
        "Changed since the last deployment: Secret nova-cell1-compute-config of service {SERVICE}."
    );
    scene.says("changed since it used it: Secret nova-cell1-compute-config");
}

#[test]
fn an_option_that_was_taken_away_is_no_more() {
    let mut scene = arrived();
    give(&mut scene, Read::Missing);
    (scene.snippet, scene.file, scene.answer) = (None, None, None);
    scene.says("changed since it used it: ConfigMap nova-extra-config");
    let used = scene.snapshot.deployments[0].status.as_mut().unwrap();
    used.config_map_hashes.clear();
    let secret = scene.given().sources[0].1.found().unwrap().files.clone();
    testdata::set_report(&mut scene.snapshot.runs[1], &secret);
    let text = scene.traced().text;
    let words = "cpu_models = Westmere, from 01-nova.conf of Secret \
                 openstack/nova-cell1-compute-config.\n";
    assert!(text.ends_with(words), "{text}");
    scene.file = Some(FILE.to_owned());
    scene.says("It stops at step 3, written");
    scene.says(
        "ConfigMap openstack/nova-extra-config, which service nova-custom may do without, does not \
         exist",
    );
}
