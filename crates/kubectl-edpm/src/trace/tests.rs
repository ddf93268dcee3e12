//! Tests of `trace`, with each step in turn as the one that is missing.

use api::ansibleee::JobStatus;
use api::dataplane::RunState;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use nova_config::conf::{DEFAULT_FILE, OVERRIDE_FILE};
use nova_config::oslo::Release;

use super::answer::Answer;
use super::*;
use crate::cluster::Read;
use crate::config_files::{File, files};
use crate::option_sources::{DefaultConfig, Options};
use crate::snapshot::Snapshot;
use crate::testdata;

mod by_node_set;
mod by_service;

/// Inputs of a trace besides the objects.
struct Around {
    rendered: Read<k8s_openapi::api::core::v1::Secret>,
    default: Read<(String, String)>,
    file: Option<String>,
    snippet: Option<Snippet>,
    job: Read<Job>,
    pod: Read<Pod>,
    answer: Option<Result<Answer, String>>,
}

fn custom(snapshot: &Snapshot) -> String {
    snapshot.computes[0].spec.custom_service_config.clone().unwrap_or_default()
}

fn snippet(text: &str) -> Snippet {
    Snippet { path: "my.conf".into(), text: text.into() }
}

fn deployed() -> (Snapshot, Around) {
    let mut snapshot = testdata::snapshot();
    testdata::deployed_with_present_inputs(&mut snapshot);
    let rendered = testdata::rendered(&custom(&snapshot));
    testdata::set_report(&mut snapshot.runs[0], &files(&rendered));
    let mut pod = Pod::default();
    pod.metadata.name = Some("nova-pod".into());
    let around = Around {
        rendered: Read::Found(rendered),
        default: Read::Found((DEFAULT_FILE.into(), testdata::DEFAULTS.into())),
        file: None,
        snippet: None,
        job: Read::Found(testdata::job(&snapshot.runs[0])),
        pod: Read::Found(pod),
        answer: None,
    };
    (snapshot, around)
}

/// The same, with an answer of the host.
fn asked() -> (Snapshot, Around) {
    let (snapshot, mut around) = deployed();
    let files = files(around.rendered.found().unwrap());
    around.answer = Some(Ok(testdata::answer(&files, OVERRIDE_FILE, "Nehalem")));
    around.snippet = Some(snippet("[libvirt]\ncpu_models = Nehalem\n"));
    (snapshot, around)
}

fn answer(around: &mut Around) -> &mut Answer {
    around.answer.as_mut().unwrap().as_mut().unwrap()
}

fn with<T>(snapshot: &Snapshot, around: &Around, make: impl Fn(&TraceInputs<'_>) -> T) -> T {
    let host = snapshot.host("openstack", "edpm-compute-0").unwrap();
    let options = Options {
        compute: &snapshot.computes[0],
        default_config: Some(DefaultConfig {
            name: "compute-defaults".into(),
            text: around.default.clone(),
        }),
        secret: around.rendered.clone(),
    };
    make(&TraceInputs {
        host: &host,
        stage: &host.stages[1],
        road: ConfigPath::Compute(&options),
        file: around.file.clone(),
        snippet: around.snippet.clone(),
        generated: None,
        job: Some(around.job.clone()),
        pod: Some(around.pod.clone()),
        answer: around.answer.clone(),
    })
}

fn traced(snapshot: &Snapshot, around: &Around, section: &str, key: &str) -> String {
    let named = OptionNames::new(section, key, Release::newest());
    with(snapshot, around, |seen| render(seen, (section, key), &named, Paint::default()).text)
}

/// The marks of the steps, by name.
fn marks(seen: &TraceInputs<'_>) -> Vec<(&'static str, Mark)> {
    let named = OptionNames::new("libvirt", "cpu_models", Release::newest());
    let file_steps = seen.file_steps(&named);
    let steps = steps(seen, &effective(seen, &file_steps, &named), &named);
    steps.into_iter().map(|it| (it.name, it.mark)).collect()
}

/// The step at which the option of the first compute steps.
fn stopped(snapshot: &Snapshot, around: &Around) -> Option<&'static str> {
    with(snapshot, around, |seen| open(&marks(seen)).map(|it| it.0))
}

fn open(marks: &[(&'static str, Mark)]) -> Option<(&'static str, Mark)> {
    marks.iter().find(|it| it.1.is_open()).copied()
}

#[test]
fn the_humans_option_is_followed_to_the_host_and_the_process_is_said_to_be_unknown() {
    let (snapshot, around) = deployed();
    let text = traced(&snapshot, &around, "libvirt", "cpu_models");
    assert_eq!(text, include_str!("../../testdata/trace.txt"));
}

#[test]
fn a_host_that_was_asked_tells_the_value_in_force_and_its_file() {
    let (snapshot, mut around) = asked();
    around.snippet = None;
    let text = traced(&snapshot, &around, "libvirt", "cpu_models");
    assert_eq!(text, include_str!("../../testdata/trace-asked.txt"));
}

fn is_in_force(snapshot: &Snapshot, around: &Around) -> bool {
    let named = OptionNames::new("libvirt", "cpu_models", Release::newest());
    let asked = ("libvirt", "cpu_models");
    with(snapshot, around, |seen| render(seen, asked, &named, Paint::default()).is_in_force)
}

type Break = fn(&mut Snapshot, &mut Around);

/// Changes that make each step in turn the one at which the option stops.
fn breaks() -> [(&'static str, Mark, Break); 11] {
    [
        ("snippet", Mark::NotYet, |_, it| it.snippet = Some(snippet("[DEFAULT]\ndebug = true\n"))),
        ("written", Mark::Stale, |_, it| {
            it.snippet = Some(snippet("[libvirt]\ncpu_models = Haswell\n"));
        }),
        ("rendered", Mark::NotYet, |_, it| it.rendered = Read::Missing),
        ("run", Mark::NotYet, |it, _| it.runs[0].spec.extra_mounts.clear()),
        ("job", Mark::NotYet, |_, it| it.job = Read::Found(Job::default())),
        ("pod", Mark::NotYet, |it, _| testdata::set_report(&mut it.runs[0], &[])),
        ("pod", Mark::Stale, |it, _| {
            let other = testdata::rendered("[libvirt]\ncpu_models = Haswell\n");
            testdata::set_report(&mut it.runs[0], &files(&other));
        }),
        ("host", Mark::NotYet, |_, it| answer(it).host.clear()),
        ("container", Mark::NotYet, |_, it| {
            answer(it).asked.files.retain(|it| !it.ends_with(OVERRIDE_FILE));
        }),
        ("process", Mark::Stale, |_, it| answer(it).said.value = Some("Westmere".into())),
        ("process", Mark::Stale, |_, it| {
            answer(it).asked.origin.as_mut().unwrap().detail =
                "/etc/nova/nova.conf.d/99-nova.conf".into();
        }),
    ]
}

#[test]
fn each_step_can_be_the_one_that_is_missing() {
    let (snapshot, around) = asked();
    let all = with(&snapshot, &around, marks);
    assert!(all.iter().all(|it| it.1 == Mark::Ok) && all.len() == 9, "{all:?}");
    for (idx, (name, mark, make)) in breaks().into_iter().enumerate() {
        let (mut snapshot, mut around) = asked();
        make(&mut snapshot, &mut around);
        assert_eq!(with(&snapshot, &around, |it| open(&marks(it))), Some((name, mark)), "{idx}");
    }
}

#[test]
fn a_file_that_was_named_is_the_one_that_is_to_decide() {
    let (snapshot, mut around) = asked();
    around.file = Some(OVERRIDE_FILE.into());
    assert_eq!(stopped(&snapshot, &around), None);
    around.file = Some(DEFAULT_FILE.into());
    let text = traced(&snapshot, &around, "libvirt", "cpu_models");
    assert!(text.starts_with("02-nova-default.conf [libvirt] cpu_models on "), "{text}");
    let outdone = "02-nova-override.conf is read after 02-nova-default.conf and sets it again";
    assert!(text.contains(outdone), "{text}");
    assert_eq!(stopped(&snapshot, &around), Some("rendered"));
    around.file = Some("25-nova-extra.conf".into());
    let text = traced(&snapshot, &around, "libvirt", "cpu_models");
    assert!(text.contains("no key 25-nova-extra.conf sets it"), "{text}");
}

#[test]
fn what_was_written_after_the_process_began_is_not_what_it_runs_with() {
    let (snapshot, mut around) = asked();
    answer(&mut around).asked.newer = vec![format!("/etc/nova/nova.conf.d/{OVERRIDE_FILE}")];
    assert_eq!(stopped(&snapshot, &around), Some("container"));
    answer(&mut around).asked.newer = vec!["/etc/nova/nova.conf.d".into()];
    assert_eq!(stopped(&snapshot, &around), Some("process"));
    let text = traced(&snapshot, &around, "libvirt", "cpu_models");
    assert!(text.ends_with("In force: Nehalem.\n"), "{text}");
}

#[test]
fn a_host_that_does_not_answer_leaves_unknown_what_it_alone_knows() {
    let (snapshot, mut around) = asked();
    let problem = "Error: no container with name or ID \"nova_compute\" found";
    around.answer = Some(Ok(Answer { problem: Some(problem.into()), ..Answer::default() }));
    let text = traced(&snapshot, &around, "libvirt", "cpu_models");
    assert!(text.contains(problem), "{text}");
    assert_eq!(stopped(&snapshot, &around), None);
    around.answer = Some(Err("nova-compute could not be asked: HostUnreachable".into()));
    let text = traced(&snapshot, &around, "libvirt", "cpu_models");
    assert!(text.contains("could not be asked: HostUnreachable"), "{text}");
    let unknown = "nova-compute was asked and did not answer, so what is in force is \
                   unknown.\nNext: correct what step 9, process, names, then ask again.\n";
    assert!(text.contains(unknown), "{text}");
    assert!(!is_in_force(&snapshot, &around));
    assert!(text.contains("As far as the cluster shows, in force: cpu_models = Nehalem"), "{text}");
}

#[test]
fn a_nova_compute_that_does_not_run_is_told_with_the_next_step_and_nothing_is_in_force() {
    let cases = [
        ("exited", "the container does not run (exited)"),
        ("", "there is no such container on the host"),
        ("\u{1b}[2J", "the container does not run\n"),
    ];
    for (state, words) in cases {
        let (snapshot, mut around) = asked();
        assert!(is_in_force(&snapshot, &around));
        let problem = "Error: can only create exec sessions on running containers";
        let before = answer(&mut around).clone();
        around.answer = Some(Ok(Answer {
            problem: Some(problem.into()),
            state: Some(state.into()),
            folder: before.folder,
            host: before.host,
            ..Answer::default()
        }));
        let text = traced(&snapshot, &around, "libvirt", "cpu_models");
        for words in
            [words, "It stops at step 8, container: ", "\nNext: on edpm-compute-0, podman "]
        {
            assert!(text.contains(words), "{words} is not in: {text}");
        }
        assert!(!text.contains("n force") && !text.contains("Error") && !text.contains('\u{1b}'));
        assert!(!is_in_force(&snapshot, &around));
    }
}

#[test]
fn wherever_an_option_stops_the_next_step_is_told() {
    for (idx, (name, mark, make)) in breaks().into_iter().enumerate() {
        let (mut snapshot, mut around) = asked();
        make(&mut snapshot, &mut around);
        let text = traced(&snapshot, &around, "libvirt", "cpu_models");
        assert!(text.contains("\nNext: "), "{idx}, {name} {mark:?}: {text}");
        assert!(!is_in_force(&snapshot, &around), "{text}");
    }
}

#[test]
fn a_secret_value_is_compared_by_its_digest_and_never_shown() {
    let (snapshot, mut around) = asked();
    let hidden = |digest: Option<&str>| answer::LiveAnswer {
        value: None,
        hidden: true,
        digest: digest.map(str::to_owned),
    };
    answer(&mut around).said = hidden(None);
    answer(&mut around).asked.by_files = Some(hidden(Some("12345678")));
    assert_eq!(stopped(&snapshot, &around), None);
    let text = traced(&snapshot, &around, "libvirt", "cpu_models");
    assert!(text.contains("cpu_models = ********, says nova-compute"), "{text}");
    answer(&mut around).said = hidden(Some("87654321"));
    assert_eq!(stopped(&snapshot, &around), Some("process"));
}

#[test]
fn an_option_that_was_not_rendered_stops_at_the_secret() {
    let (mut snapshot, around) = deployed();
    snapshot.computes[0].spec.custom_service_config =
        Some("[libvirt]\ncpu_models = Haswell\n".into());
    assert_eq!(stopped(&snapshot, &around), Some("rendered"));
}

#[test]
fn an_option_that_was_not_deployed_stops_at_the_run() {
    let (mut snapshot, mut around) = deployed();
    snapshot.computes[0].spec.custom_service_config =
        Some("[libvirt]\ncpu_models = Haswell\n".into());
    around.rendered = Read::Found(testdata::rendered(&custom(&snapshot)));
    assert_eq!(stopped(&snapshot, &around), Some("run"));
    let text = traced(&snapshot, &around, "libvirt", "cpu_models");
    assert!(text.contains("an earlier text may have had the option already"), "{text}");
    let step = "It stops at step 3, run: what follows does not have it yet.\nNext: ";
    assert!(text.contains(step), "{text}");
}

#[test]
fn a_run_that_goes_on_or_has_failed_is_where_it_stops() {
    let (mut snapshot, around) = deployed();
    snapshot.runs[0].status.as_mut().unwrap().job_status = Some(JobStatus::Running);
    assert_eq!(stopped(&snapshot, &around), Some("run"));
    let (mut snapshot, around) = deployed();
    snapshot.computes[0].status.as_mut().unwrap().services[1].state = RunState::Failed;
    assert_eq!(stopped(&snapshot, &around), Some("run"));
}

#[test]
fn files_are_on_the_host_while_the_cell_is_still_asked() {
    let (mut snapshot, around) = deployed();
    let status = snapshot.computes[0].status.as_mut().unwrap();
    status.services[2].state = RunState::Failed;
    status.deployed_inputs.clear();
    assert_eq!(stopped(&snapshot, &around), None);
}

#[test]
fn a_run_and_a_job_that_are_cleared_away_take_nothing_from_the_host() {
    let (mut snapshot, mut around) = deployed();
    (around.job, around.pod) = (Read::Missing, Read::Missing);
    assert_eq!(stopped(&snapshot, &around), None);
    snapshot.runs.clear();
    let text = traced(&snapshot, &around, "libvirt", "cpu_models");
    assert!(text.contains("not kept any more"), "{text}");
    assert!(text.contains("in force: cpu_models = Nehalem"), "{text}");
}

#[test]
fn an_option_that_nobody_wrote_is_the_cells_or_novas_own() {
    let (snapshot, around) = deployed();
    let text = traced(&snapshot, &around, "DEFAULT", "transport_url");
    assert!(text.contains("it is written nowhere"), "{text}");
    assert!(text.contains("transport_url = ********, from 01-nova.conf of NovaCell"), "{text}");
    assert!(!text.contains("bus-pw"), "{text}");
    let text = traced(&snapshot, &around, "libvirt", "virt_type");
    assert!(text.contains("No file sets it"), "{text}");
    let text = traced(&snapshot, &around, "libvirt", "cpu_modls");
    assert!(text.contains("note: nova 34.0.0 has no option [libvirt] cpu_modls"), "{text}");
}

#[test]
fn what_a_human_may_not_read_is_unknown_and_not_missing() {
    let (snapshot, mut around) = deployed();
    around.rendered = Read::Refused("secrets is forbidden".into());
    let text = traced(&snapshot, &around, "libvirt", "cpu_models");
    assert!(text.contains("cannot be read: secrets is forbidden"), "{text}");
    assert!(text.ends_with("Without the object it is unknown which file sets it.\n"), "{text}");
}
