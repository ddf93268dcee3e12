//! Tests of the twelve steps for a host of a node set, with each in turn as the one that is
//! missing.

use api::dataplane::{Deployment, NodeStatus, RunState, Service};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_core::data_sources::sources_of;

use super::*;
use crate::config_files::Content;
use crate::deployments::stage_with;
use crate::option_sources::ServiceSources;
use crate::trace::inputs::Generated;

const HOST: &str = "edpm-compute-5";
const SERVICE: &str = "nova-custom";
const FILE: &str = "25-nova-extra.conf";
const SNIPPET: &str = "[libvirt]\ncpu_models = Nehalem\n";

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

/// Inputs of a trace besides the objects.
struct Beside {
    given: ServiceSources,
    job: Job,
    snippet: Option<Snippet>,
    generated: Option<Generated>,
    answer: Option<Answer>,
    file: Option<String>,
}

fn config_map(text: &str) -> Content {
    let mut config_map: ConfigMap = testdata::only("ConfigMap");
    config_map.data = Some([(FILE.to_owned(), text.to_owned())].into());
    Content::of_config_map(&config_map, "openstack")
}

/// Replaces the content of the ConfigMap.
fn give(beside: &mut Beside, content: Read<Content>) {
    beside.given.sources[1].1 = content;
}

fn give_text(beside: &mut Beside, text: &str) {
    give(beside, Read::Found(config_map(text)));
}

/// The option is in force in the process, and every step is known.
fn arrived() -> (Snapshot, Beside) {
    let snapshot = testdata::node_set();
    let service: Service = testdata::only("OpenStackDataPlaneService");
    let secret = Content::of_secret(&testdata::only("Secret"), "openstack");
    let contents = [secret, config_map(SNIPPET)];
    let files: Vec<File> = contents.iter().flat_map(|it| it.files.clone()).collect();
    let sources = sources_of(&service.spec).into_iter().zip(contents.map(Read::Found)).collect();
    let given = ServiceSources {
        service,
        sources,
        beside: vec![],
        is_listed: true,
        conflicting_service: None,
        absent: vec![],
    };
    let beside = Beside {
        given,
        job: testdata::job(&snapshot.runs[1]),
        snippet: Some(snippet(SNIPPET)),
        generated: None,
        answer: Some(testdata::answer(&files, FILE, "Nehalem")),
        file: Some(FILE.to_owned()),
    };
    (snapshot, beside)
}

fn with<T>(snapshot: &Snapshot, beside: &Beside, make: impl Fn(&TraceInputs<'_>) -> T) -> T {
    let host = snapshot.host("openstack", HOST).unwrap();
    let stage = stage_with(&host, SERVICE);
    make(&TraceInputs {
        host: &host,
        stage: &stage,
        road: ConfigPath::Service(&beside.given),
        file: beside.file.clone(),
        snippet: beside.snippet.clone(),
        generated: beside.generated.clone(),
        job: Some(Read::Found(beside.job.clone())),
        pod: None,
        answer: beside.answer.clone().map(Ok),
    })
}

fn traced(snapshot: &Snapshot, beside: &Beside) -> String {
    let named = OptionNames::new("libvirt", "cpu_models", Release::newest());
    with(snapshot, beside, |it| {
        render(it, ("libvirt", "cpu_models"), &named, Paint::default()).text
    })
}

fn status_of(snapshot: &mut Snapshot) -> &mut NodeStatus {
    let node = snapshot.nodes.iter_mut().find(|it| it.metadata.name.as_deref() == Some(HOST));
    node.unwrap().status.as_mut().unwrap()
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
    let (snapshot, beside) = arrived();
    let all = with(&snapshot, &beside, marks);
    assert_eq!(all, STEPS.map(|it| (it, Mark::Ok)));
    assert_eq!(traced(&snapshot, &beside), include_str!("../../../testdata/trace-node-set.txt"));
}

#[test]
fn without_a_snippet_and_a_question_two_ends_are_said_to_be_unknown() {
    let (snapshot, mut beside) = arrived();
    (beside.snippet, beside.answer) = (None, None);
    let all = with(&snapshot, &beside, marks);
    let unknown: Vec<&str> = all.iter().filter(|it| it.1 == Mark::Unknown).map(|it| it.0).collect();
    assert_eq!(unknown, ["snippet", "process"]);
    assert_eq!(all.len(), 12);
    let text = traced(&snapshot, &beside);
    let words = "As far as the cluster shows, in force: cpu_models = Nehalem, from \
                 25-nova-extra.conf of ConfigMap openstack/nova-extra-config.\n";
    assert!(text.ends_with(words), "{text}");
}

#[test]
fn each_of_the_twelve_steps_can_be_the_one_that_is_missing() {
    type Break = fn(&mut Snapshot, &mut Beside);
    let cases: [Break; 12] = [
        |_, it| it.snippet = Some(snippet("[DEFAULT]\ndebug = true\n")),
        |_, it| it.generated = Some(Generated { path: "all.yaml".into(), files: vec![] }),
        |_, it| give(it, Read::Missing),
        |_, it| {
            it.given.beside = config_map(SNIPPET).files;
            it.given.sources.pop();
        },
        |_, it| it.given.is_listed = false,
        |it, _| it.deployments.clear(),
        |it, _| it.runs[1].spec.extra_mounts.clear(),
        |_, it| it.job = Job::default(),
        |it, _| testdata::set_report(&mut it.runs[1], &[]),
        |_, it| it.answer.as_mut().unwrap().host.retain(|it| !it.ends_with(FILE)),
        |_, it| it.answer.as_mut().unwrap().asked.files.retain(|it| !it.ends_with(FILE)),
        |_, it| it.answer.as_mut().unwrap().said.value = Some("Westmere".into()),
    ];
    for (idx, make) in cases.into_iter().enumerate() {
        let (mut snapshot, mut beside) = arrived();
        make(&mut snapshot, &mut beside);
        let found = with(&snapshot, &beside, |it| open(&marks(it))).map(|it| it.0);
        assert_eq!(found, Some(STEPS[idx]), "step {}", idx + 1);
        let text = traced(&snapshot, &beside);
        let steps = format!("It stops at step {}, {}: ", idx + 1, STEPS[idx]);
        assert!(text.contains(&steps) && text.contains("\nNext: "), "{text}");
    }
}

#[test]
fn what_was_changed_at_one_place_alone_stops_there() {
    type Break = fn(&mut Snapshot, &mut Beside);
    const OTHER: &str = "[libvirt]\ncpu_models = Haswell\n";
    let cases: [(&str, Break, &str); 9] = [
        ("generated", |_, it| it.snippet = Some(snippet(OTHER)), "nothing there has what my.conf"),
        ("written", |_, it| give_text(it, OTHER), "nothing there has what my.conf says"),
        (
            "deployment",
            |_, it| {
                (it.snippet, it.file) = (None, None);
                give_text(it, OTHER);
            },
            "changed since it used it: ConfigMap nova-extra-config",
        ),
        (
            "service",
            |_, it| {
                (it.given.is_listed, it.given.absent) = (false, vec!["nova-own".into()]);
            },
            "OpenStackDataPlaneService openstack/nova-own, which is listed, does not exist",
        ),
        (
            "listed",
            |_, it| it.given.conflicting_service = Some("nova".into()),
            "it lists nova before it, and of two services of one type the first one alone runs",
        ),
        (
            "deployment",
            |it, _| it.deployments = vec![again(it, "later")],
            "OpenStackDataPlaneDeployment later has not begun on edpm-compute-5",
        ),
        (
            "deployment",
            |it, _| {
                it.runs.clear();
                let brought = &mut status_of(it).services[1];
                (brought.state, brought.deployed_hash) = (RunState::Pending, None);
            },
            "OpenStackDataPlaneDeployment openstack-edpm-x7abc did not come to service nova-custom",
        ),
        (
            "pod",
            |it, _| {
                let files = config_map(OTHER).files;
                testdata::set_report(&mut it.runs[1], &files);
            },
            "says the play; now it is ",
        ),
        (
            "process",
            |_, it| {
                let asked = &mut it.answer.as_mut().unwrap().asked;
                asked.origin.as_mut().unwrap().detail = "/etc/nova/nova.conf.d/99-nova.conf".into();
            },
            "that is not 25-nova-extra.conf",
        ),
    ];
    for (idx, (step, make, words)) in cases.into_iter().enumerate() {
        let (mut snapshot, mut beside) = arrived();
        make(&mut snapshot, &mut beside);
        let text = traced(&snapshot, &beside);
        assert!(text.contains(words), "{idx}: {words} is not in: {text}");
        let found = with(&snapshot, &beside, |it| open(&marks(it))).map(|it| it.0);
        assert_eq!(found, Some(step), "{idx}: {text}");
    }
}

#[test]
fn a_deployment_of_other_services_takes_nothing_from_what_an_earlier_one_brought() {
    let (mut snapshot, beside) = arrived();
    let mut later = again(&snapshot, "later");
    later.metadata.uid = Some("d1".to_owned());
    later.status = snapshot.deployments[0].status.clone();
    later.spec.services_override = vec!["install-os".into()];
    snapshot.deployments.push(later);
    status_of(&mut snapshot).deployment.as_mut().unwrap().uid = "d1".to_owned();
    assert_eq!(with(&snapshot, &beside, |it| open(&marks(it))), None);
}

/// Only the operator has the key of the digest that a release before recorded.
#[test]
fn of_a_secret_the_node_tells_whether_it_has_changed_since_a_deployment_used_it() {
    let (mut snapshot, beside) = arrived();
    let status = snapshot.deployments[0].status.as_mut().unwrap();
    let text = status.secret_hashes.get_mut("nova-cell1-compute-config").unwrap();
    *text = "k123456:0123456789abcdef".to_owned();
    // Otherwise the play's report counts.
    snapshot.runs[1].status.as_mut().unwrap().report = None;
    let text = traced(&snapshot, &beside);
    assert!(!text.contains("changed since it used it"), "{text}");
    let service = beside.given.service.metadata.name.clone().unwrap();
    let conditions = &mut status_of(&mut snapshot).conditions;
    let told = conditions.iter_mut().find(|it| it.type_ == "UpToDate").unwrap();
    told.message = format!(
        "Changed since the last deployment: Secret nova-cell1-compute-config of service {service}."
    );
    let text = traced(&snapshot, &beside);
    assert!(text.contains("changed since it used it: Secret nova-cell1-compute-config"), "{text}");
}

#[test]
fn an_option_that_was_taken_away_is_no_more() {
    let (mut snapshot, mut beside) = arrived();
    give(&mut beside, Read::Missing);
    (beside.snippet, beside.file, beside.answer) = (None, None, None);
    let text = traced(&snapshot, &beside);
    assert!(text.contains("changed since it used it: ConfigMap nova-extra-config"), "{text}");
    let status = snapshot.deployments[0].status.as_mut().unwrap();
    status.config_map_hashes.clear();
    let secret = beside.given.sources[0].1.found().unwrap().files.clone();
    testdata::set_report(&mut snapshot.runs[1], &secret);
    let text = traced(&snapshot, &beside);
    assert!(text.ends_with("cpu_models = Westmere, from 01-nova.conf of Secret openstack/nova-cell1-compute-config.\n"), "{text}");
    beside.file = Some(FILE.to_owned());
    let text = traced(&snapshot, &beside);
    assert!(text.contains("It stops at step 3, written"), "{text}");
    let words = "ConfigMap openstack/nova-extra-config, which service nova-custom may do without, \
                 does not exist";
    assert!(text.contains(words), "{text}");
}
