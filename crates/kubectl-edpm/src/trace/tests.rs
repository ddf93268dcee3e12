//! Tests of the way of an option, with each step in turn being the one that is missing.

use common::api::ansibleee::JobStatus;
use common::api::dataplane::RunState;
use nova_operator::conf::DEFAULT_FILE;
use nova_operator::oslo::Release;

use super::*;
use crate::diff::DefaultConfig;
use crate::testdata;
use crate::world::World;

/// What the cluster holds beside the world.
struct Around {
    rendered: Read<k8s_openapi::api::core::v1::Secret>,
    default: Read<(String, String)>,
    job: Read<Job>,
    pod: Read<Pod>,
}

fn custom(world: &World) -> String {
    world.computes[0].spec.custom_service_config.clone().unwrap_or_default()
}

fn deployed() -> (World, Around) {
    let mut world = testdata::world();
    testdata::deployed_with_present_inputs(&mut world);
    let mut pod = Pod::default();
    pod.metadata.name = Some("nova-pod".into());
    let around = Around {
        rendered: Read::Found(testdata::rendered(&custom(&world))),
        default: Read::Found((DEFAULT_FILE.into(), testdata::DEFAULTS.into())),
        job: Read::Found(Job::default()),
        pod: Read::Found(pod),
    };
    (world, around)
}

fn with<T>(world: &World, around: &Around, make: impl Fn(&Seen<'_>) -> T) -> T {
    let host = world.host("openstack", "edpm-compute-0").unwrap();
    let options = Options {
        compute: &world.computes[0],
        default_config: Some(DefaultConfig {
            name: "compute-defaults".into(),
            text: around.default.clone(),
        }),
        secret: around.rendered.clone(),
    };
    make(&Seen {
        host: &host,
        stage: &host.stages[1],
        options: &options,
        job: Some(around.job.clone()),
        pod: Some(around.pod.clone()),
    })
}

fn traced(world: &World, around: &Around, section: &str, key: &str) -> String {
    let named = Named::new(section, key, Release::newest());
    with(world, around, |seen| text(seen, (section, key), &named, Paint::default()))
}

/// The step at which the option of the first compute stops.
fn stopped(world: &World, around: &Around) -> Option<&'static str> {
    let named = Named::new("libvirt", "cpu_models", Release::newest());
    let stops = with(world, around, |seen| stops(seen, &named));
    stops.into_iter().find(|it| it.mark == Mark::NotYet).map(|it| it.name)
}

#[test]
fn the_humans_option_is_followed_to_the_host_and_the_process_is_said_to_be_unknown() {
    let (world, around) = deployed();
    let text = traced(&world, &around, "libvirt", "cpu_models");
    assert_eq!(text, include_str!("../../testdata/trace.txt"));
}

#[test]
fn an_option_that_was_not_rendered_stops_at_the_secret() {
    let (mut world, mut around) = deployed();
    world.computes[0].spec.custom_service_config = Some("[libvirt]\ncpu_models = Haswell\n".into());
    assert_eq!(stopped(&world, &around), Some("rendered"));
    around.rendered = Read::Missing;
    assert_eq!(stopped(&world, &around), Some("rendered"));
}

#[test]
fn an_option_that_was_not_deployed_stops_at_the_run() {
    let (mut world, mut around) = deployed();
    world.computes[0].spec.custom_service_config = Some("[libvirt]\ncpu_models = Haswell\n".into());
    around.rendered = Read::Found(testdata::rendered(&custom(&world)));
    assert_eq!(stopped(&world, &around), Some("run"));
    let text = traced(&world, &around, "libvirt", "cpu_models");
    assert!(text.contains("an earlier text may have had the option already"), "{text}");
    assert!(
        text.ends_with("It stops at step 3, run: what follows is not deployed yet.\n"),
        "{text}"
    );
}

#[test]
fn a_run_that_goes_on_or_has_failed_is_where_it_stops() {
    let (mut world, around) = deployed();
    world.runs[0].status.as_mut().unwrap().job_status = Some(JobStatus::Running);
    assert_eq!(stopped(&world, &around), Some("run"));
    let (mut world, around) = deployed();
    world.computes[0].status.as_mut().unwrap().services[1].state = RunState::Failed;
    assert_eq!(stopped(&world, &around), Some("run"));
    let (mut world, around) = deployed();
    world.runs[0].spec.extra_mounts.clear();
    assert_eq!(stopped(&world, &around), Some("run"));
}

#[test]
fn files_are_on_the_host_while_the_cell_is_still_asked() {
    let (mut world, around) = deployed();
    let status = world.computes[0].status.as_mut().unwrap();
    status.services[2].state = RunState::Failed;
    status.deployed_inputs.clear();
    assert_eq!(stopped(&world, &around), None);
}

#[test]
fn a_run_and_a_job_that_are_cleared_away_take_nothing_from_the_host() {
    let (mut world, mut around) = deployed();
    (around.job, around.pod) = (Read::Missing, Read::Missing);
    assert_eq!(stopped(&world, &around), None);
    world.runs.clear();
    let text = traced(&world, &around, "libvirt", "cpu_models");
    assert!(text.contains("not kept any more"), "{text}");
    assert!(text.contains("in force: cpu_models = Nehalem"), "{text}");
}

#[test]
fn an_option_that_nobody_wrote_is_the_cells_or_novas_own() {
    let (world, around) = deployed();
    let text = traced(&world, &around, "DEFAULT", "transport_url");
    assert!(text.contains("nobody has written it"), "{text}");
    assert!(text.contains("transport_url = ********, from 01-nova.conf of NovaCell"), "{text}");
    assert!(!text.contains("bus-pw"), "{text}");
    let text = traced(&world, &around, "libvirt", "virt_type");
    assert!(text.contains("No file sets it"), "{text}");
    let text = traced(&world, &around, "libvirt", "cpu_modls");
    assert!(text.contains("note: nova 34.0.0 does not know [libvirt] cpu_modls"), "{text}");
}

#[test]
fn what_a_human_may_not_read_is_unknown_and_not_missing() {
    let (world, mut around) = deployed();
    around.rendered = Read::Refused("secrets is forbidden".into());
    let text = traced(&world, &around, "libvirt", "cpu_models");
    assert!(text.contains("cannot be read: secrets is forbidden"), "{text}");
    assert!(text.ends_with("Without the Secret nobody can tell which file sets it.\n"), "{text}");
}
