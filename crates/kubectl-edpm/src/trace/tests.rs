//! Tests of `trace`, with each step in turn as the one that is missing.

use api::ansibleee::JobStatus;
use api::dataplane::RunState;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use nova_config::conf::{DEFAULT_FILE, OVERRIDE_FILE};
use nova_config::oslo::Release;

use super::answer::Answer;
use super::inputs::Generated;
use super::*;
use crate::cluster::Read;
use crate::config_files::{File, files};
use crate::deployments::stage_with;
use crate::option_sources::{DefaultConfig, Options, ServiceSources};
use crate::snapshot::Snapshot;
use crate::testdata;

mod by_node_set;
mod by_service;

const SERVICE: &str = "nova-custom";
const SNIPPET: &str = "[libvirt]\ncpu_models = Nehalem\n";
const OTHER: &str = "[libvirt]\ncpu_models = Haswell\n";

/// What a trace is made from.
struct Scene {
    snapshot: Snapshot,
    host: &'static str,
    /// The service that brings the files; without one, the compute does.
    given: Option<ServiceSources>,
    rendered: Read<Secret>,
    file: Option<String>,
    snippet: Option<Snippet>,
    generated: Option<Generated>,
    job: Read<Job>,
    pod: Read<Pod>,
    answer: Option<Result<Answer, String>>,
}

/// A change that makes a step the one at which the option stops.
type Break = fn(&mut Scene);

impl Scene {
    /// A host whose option has arrived, and what else is known of the run that brought it.
    fn of(snapshot: Snapshot, host: &'static str, given: Option<ServiceSources>) -> Self {
        let run = snapshot.runs.iter().find(|it| it.spec.hosts[0].name == host).unwrap();
        Self {
            job: Read::Found(testdata::job(run)),
            snapshot,
            host,
            given,
            rendered: Read::Missing,
            file: None,
            snippet: Some(snippet(SNIPPET)),
            generated: None,
            pod: Read::Missing,
            answer: None,
        }
    }

    fn with<T>(&self, make: impl Fn(&TraceInputs<'_>) -> T) -> T {
        let host = self.snapshot.host("openstack", self.host).unwrap();
        let (road, stage) = match &self.given {
            Some(given) => {
                let is_of_set = host.node.node_set().is_some();
                let first = host.stages[0].clone();
                let stage = if is_of_set { stage_with(&host, SERVICE) } else { first };
                (ConfigPath::Service(Box::new(given.clone())), stage)
            }
            None => (ConfigPath::Compute(Box::new(self.options())), host.stages[1].clone()),
        };
        make(&TraceInputs {
            host: &host,
            stage: &stage,
            road,
            file: self.file.clone(),
            snippet: self.snippet.clone(),
            generated: self.generated.clone(),
            job: self.job.clone(),
            pod: self.pod.clone(),
            answer: self.answer.clone(),
        })
    }

    fn options(&self) -> Options<'_> {
        let text = Read::Found((DEFAULT_FILE.into(), testdata::DEFAULTS.into()));
        Options {
            compute: &self.snapshot.computes[0],
            default_config: Some(DefaultConfig { name: "compute-defaults".into(), text }),
            secret: self.rendered.clone(),
        }
    }

    fn traced_of(&self, section: &str, key: &str) -> TraceText {
        let named = OptionNames::new(section, key, Release::newest());
        self.with(|seen| render(seen, (section, key), &named, Paint::default()))
    }

    fn traced(&self) -> TraceText {
        self.traced_of("libvirt", "cpu_models")
    }

    #[track_caller]
    fn says(&self, words: &str) {
        let text = self.traced().text;
        assert!(text.contains(words), "{words} is not in: {text}");
    }

    /// The marks of the steps, by name.
    fn marks(&self) -> Vec<(&'static str, Mark)> {
        let named = OptionNames::new("libvirt", "cpu_models", Release::newest());
        self.with(|seen| {
            let file_steps = seen.file_steps(&named);
            let steps = steps(seen, &effective(seen, &file_steps, &named), &named);
            steps.into_iter().map(|it| (it.name, it.mark)).collect()
        })
    }

    /// The step at which the option stops.
    fn stopped(&self) -> Option<&'static str> {
        self.marks().iter().find(|it| it.1.is_open()).map(|it| it.0)
    }

    fn answer(&mut self) -> &mut Answer {
        self.answer.as_mut().unwrap().as_mut().unwrap()
    }

    fn given(&mut self) -> &mut ServiceSources {
        self.given.as_mut().unwrap()
    }

    fn custom(&mut self) -> &mut String {
        self.snapshot.computes[0].spec.custom_service_config.as_mut().unwrap()
    }
}

/// Checks that an option has arrived, and that with each change it stops where it is said to, with
/// the next step.
#[track_caller]
fn check(arrived: fn() -> Scene, steps: &[&str], cases: &[(&'static str, Mark, Break)]) {
    let all = arrived().marks();
    assert_eq!(all, steps.iter().map(|it| (*it, Mark::Ok)).collect::<Vec<_>>());
    assert!(arrived().traced().is_in_force);
    for (idx, (name, mark, make)) in cases.iter().enumerate() {
        let mut scene = arrived();
        make(&mut scene);
        let is_it = |it: &Mark| if mark.is_open() { it.is_open() } else { *it != Mark::Ok };
        let first = scene.marks().into_iter().find(|it| is_it(&it.1));
        assert_eq!(first, Some((*name, *mark)), "{idx}");
        let TraceText { text, is_in_force } = scene.traced();
        let at = steps.iter().position(|it| it == name).unwrap() + 1;
        let stop = format!("It stops at step {at}, {name}: ");
        if mark.is_open() {
            assert!(text.contains(&stop) && text.contains("\nNext: "), "{idx}: {text}");
        }
        assert!(!is_in_force || !mark.is_open(), "{idx}: {text}");
    }
}

fn snippet(text: &str) -> Snippet {
    Snippet { path: "my.conf".into(), text: text.into() }
}

/// The first compute, whose option was deployed.
fn deployed() -> Scene {
    let mut snapshot = testdata::snapshot();
    testdata::deployed_with_present_inputs(&mut snapshot);
    let custom = snapshot.computes[0].spec.custom_service_config.clone().unwrap_or_default();
    let rendered = testdata::rendered(&custom);
    testdata::set_report(&mut snapshot.runs[0], &files(&rendered));
    let mut scene = Scene::of(snapshot, "edpm-compute-0", None);
    (scene.rendered, scene.snippet) = (Read::Found(rendered), None);
    scene
}

/// The same, with an answer of the host.
fn asked() -> Scene {
    let mut scene = deployed();
    let files = files(scene.rendered.found().unwrap());
    scene.answer = Some(Ok(testdata::answer(&files, OVERRIDE_FILE, "Nehalem")));
    scene.snippet = Some(snippet(SNIPPET));
    scene
}

#[test]
fn each_step_can_be_the_one_that_is_missing() {
    let steps =
        ["snippet", "written", "rendered", "run", "job", "pod", "host", "container", "process"];
    let cases: [(&str, Mark, Break); 11] = [
        ("snippet", Mark::NotYet, |it| it.snippet = Some(snippet("[DEFAULT]\ndebug = true\n"))),
        ("written", Mark::Stale, |it| it.snippet = Some(snippet(OTHER))),
        ("rendered", Mark::NotYet, |it| it.rendered = Read::Missing),
        ("run", Mark::NotYet, |it| it.snapshot.runs[0].spec.extra_mounts.clear()),
        ("job", Mark::NotYet, |it| it.job = Read::Found(Job::default())),
        ("pod", Mark::NotYet, |it| testdata::set_report(&mut it.snapshot.runs[0], &[])),
        ("pod", Mark::Stale, |it| {
            let other = testdata::rendered(OTHER);
            testdata::set_report(&mut it.snapshot.runs[0], &files(&other));
        }),
        ("host", Mark::NotYet, |it| it.answer().host.clear()),
        ("container", Mark::NotYet, |it| {
            it.answer().asked.files.retain(|it| !it.ends_with(OVERRIDE_FILE));
        }),
        ("process", Mark::Stale, |it| it.answer().said.value = Some("Westmere".into())),
        ("process", Mark::Stale, |it| {
            let origin = it.answer().asked.origin.as_mut().unwrap();
            origin.detail = "/etc/nova/nova.conf.d/99-nova.conf".into();
        }),
    ];
    check(asked, &steps, &cases);
}

#[test]
fn a_file_that_was_named_is_the_one_that_is_to_decide() {
    let mut scene = asked();
    scene.file = Some(OVERRIDE_FILE.into());
    assert_eq!(scene.stopped(), None);
    scene.file = Some(DEFAULT_FILE.into());
    let text = scene.traced().text;
    assert!(text.starts_with("02-nova-default.conf [libvirt] cpu_models on "), "{text}");
    scene.says("02-nova-override.conf is read after 02-nova-default.conf and sets it again");
    assert_eq!(scene.stopped(), Some("rendered"));
    scene.file = Some("25-nova-extra.conf".into());
    scene.says("no key 25-nova-extra.conf sets it");
}

#[test]
fn what_was_written_after_the_process_began_is_not_what_it_runs_with() {
    let mut scene = asked();
    scene.answer().asked.newer = vec![format!("/etc/nova/nova.conf.d/{OVERRIDE_FILE}")];
    assert_eq!(scene.stopped(), Some("container"));
    scene.answer().asked.newer = vec!["/etc/nova/nova.conf.d".into()];
    assert_eq!(scene.stopped(), Some("process"));
    let text = scene.traced().text;
    assert!(text.ends_with("In force: Nehalem.\n"), "{text}");
}

#[test]
fn a_host_that_does_not_answer_leaves_unknown_what_it_alone_knows() {
    let mut scene = asked();
    let problem = "Error: no container with name or ID \"nova_compute\" found";
    scene.answer = Some(Ok(Answer { problem: Some(problem.into()), ..Answer::default() }));
    scene.says(problem);
    assert_eq!(scene.stopped(), None);
    scene.answer = Some(Err("nova-compute could not be asked: HostUnreachable".into()));
    for words in [
        "could not be asked: HostUnreachable",
        "nova-compute was asked and did not answer, so what is in force is unknown.\nNext: correct \
         what step 9, process, names, then ask again.\n",
        "As far as the cluster shows, in force: cpu_models = Nehalem",
    ] {
        scene.says(words);
    }
    assert!(!scene.traced().is_in_force);
}

#[test]
fn a_nova_compute_that_does_not_run_is_told_with_the_next_step_and_nothing_is_in_force() {
    let cases = [
        ("exited", "the container does not run (exited)"),
        ("", "there is no such container on the host"),
        ("\u{1b}[2J", "the container does not run\n"),
    ];
    for (state, words) in cases {
        let mut scene = asked();
        let problem = "Error: can only create exec sessions on running containers";
        let before = scene.answer().clone();
        scene.answer = Some(Ok(Answer {
            problem: Some(problem.into()),
            state: Some(state.into()),
            folder: before.folder,
            host: before.host,
            ..Answer::default()
        }));
        for words in
            [words, "It stops at step 8, container: ", "\nNext: on edpm-compute-0, podman "]
        {
            scene.says(words);
        }
        let TraceText { text, is_in_force } = scene.traced();
        assert!(!text.contains("n force") && !text.contains("Error") && !text.contains('\u{1b}'));
        assert!(!is_in_force);
    }
}

#[test]
fn a_secret_value_is_compared_by_its_digest_and_never_shown() {
    let mut scene = asked();
    let hidden = |digest: Option<&str>| answer::LiveAnswer {
        value: None,
        hidden: true,
        digest: digest.map(str::to_owned),
    };
    scene.answer().said = hidden(None);
    scene.answer().asked.by_files = Some(hidden(Some("12345678")));
    assert_eq!(scene.stopped(), None);
    scene.says("cpu_models = ********, says nova-compute");
    scene.answer().said = hidden(Some("87654321"));
    assert_eq!(scene.stopped(), Some("process"));
}

#[test]
fn an_option_that_was_not_rendered_stops_at_the_secret_and_one_not_deployed_at_the_run() {
    let mut scene = deployed();
    *scene.custom() = OTHER.into();
    assert_eq!(scene.stopped(), Some("rendered"));
    scene.rendered = Read::Found(testdata::rendered(OTHER));
    assert_eq!(scene.stopped(), Some("run"));
    scene.says("an earlier text may have had the option already");
    scene.says("It stops at step 3, run: what follows does not have it yet.\nNext: ");
}

#[test]
fn a_run_that_goes_on_or_has_failed_is_where_it_stops() {
    let mut scene = deployed();
    scene.snapshot.runs[0].status.as_mut().unwrap().job_status = Some(JobStatus::Running);
    assert_eq!(scene.stopped(), Some("run"));
    let mut scene = deployed();
    scene.snapshot.computes[0].status.as_mut().unwrap().services[1].state = RunState::Failed;
    assert_eq!(scene.stopped(), Some("run"));
}

#[test]
fn files_are_on_the_host_while_the_cell_is_still_asked() {
    let mut scene = deployed();
    let status = scene.snapshot.computes[0].status.as_mut().unwrap();
    status.services[2].state = RunState::Failed;
    status.deployed_inputs.clear();
    assert_eq!(scene.stopped(), None);
}

#[test]
fn a_run_and_a_job_that_are_cleared_away_take_nothing_from_the_host() {
    let mut scene = deployed();
    scene.job = Read::Missing;
    assert_eq!(scene.stopped(), None);
    scene.snapshot.runs.clear();
    scene.says("not kept any more");
    scene.says("in force: cpu_models = Nehalem");
}

#[test]
fn an_option_that_nobody_wrote_is_the_cells_or_novas_own() {
    let scene = deployed();
    let text = scene.traced_of("DEFAULT", "transport_url").text;
    assert!(text.contains("it is written nowhere"), "{text}");
    assert!(text.contains("transport_url = ********, from 01-nova.conf of NovaCell"), "{text}");
    assert!(!text.contains("bus-pw"), "{text}");
    let text = scene.traced_of("libvirt", "virt_type").text;
    assert!(text.contains("No file sets it"), "{text}");
    let text = scene.traced_of("libvirt", "cpu_modls").text;
    assert!(text.contains("note: nova 34.0.0 has no option [libvirt] cpu_modls"), "{text}");
}

#[test]
fn what_a_human_may_not_read_is_unknown_and_not_missing() {
    let mut scene = deployed();
    scene.rendered = Read::Refused("secrets is forbidden".into());
    scene.says("cannot be read: secrets is forbidden");
    let text = scene.traced().text;
    assert!(text.ends_with("Without the object it is unknown which file sets it.\n"), "{text}");
}
