//! Tests of what a deployment would change, on a compute whose options differ in every way.

use super::*;
use crate::testdata;
use crate::world::World;

const CUSTOM: &str =
    "[libvirt]\ncpu_mode = custom\ncpu_models = Haswell\n[keystone]\npassword = pw\n";

fn options<'a>(world: &'a World, rendered_custom: &str) -> Options<'a> {
    Options {
        compute: &world.computes[0],
        default_config: Some(DefaultConfig {
            name: "compute-defaults".into(),
            text: Read::Found((DEFAULT_FILE.into(), testdata::DEFAULTS.into())),
        }),
        secret: Read::Found(testdata::rendered(rendered_custom)),
    }
}

/// The world with a compute whose last deployment had the options that it has now.
fn deployed() -> World {
    let mut world = testdata::world();
    testdata::deployed_with_present_inputs(&mut world);
    world
}

fn told(world: &World, rendered_custom: &str) -> String {
    let host = world.host("openstack", "edpm-compute-0").unwrap();
    text(&host, Some(&options(world, rendered_custom)), Paint::default())
}

#[test]
fn a_host_that_is_up_to_date_has_no_difference() {
    let world = deployed();
    let custom = world.computes[0].spec.custom_service_config.clone().unwrap();
    assert_eq!(told(&world, &custom), "");
}

#[test]
fn other_options_are_shown_as_they_would_reach_the_host_and_secrets_are_not() {
    let mut world = deployed();
    world.computes[0].spec.custom_service_config = Some(CUSTOM.into());
    world.computes[0].spec.deploy = Some(false);
    let text = told(&world, CUSTOM);
    assert_eq!(text, include_str!("../../testdata/diff-changed.txt"));
    assert!(!text.contains("pw"), "{text}");
}

#[test]
fn what_was_written_and_not_rendered_is_shown_line_by_line() {
    let mut world = deployed();
    let before = world.computes[0].spec.custom_service_config.clone().unwrap();
    world.computes[0].spec.custom_service_config = Some(CUSTOM.into());
    let text = told(&world, &before);
    for line in [
        "- [libvirt] cpu_models = Nehalem",
        "+ [libvirt] cpu_models = Haswell",
        "+ [keystone] password = ********",
    ] {
        assert!(text.contains(line), "{line} is not in: {text}");
    }
    assert!(!text.contains("[libvirt] cpu_mode = custom\n    +"), "{text}");
}

#[test]
fn the_names_of_inputs_are_read_from_the_operators_sentence() {
    let names = |it: &str| listed(it).map(|(names, is_cut)| (names.join("|"), is_cut));
    let one = "Changed since the last deployment: ansibleVars.edpm_x, ConfigMap a.b.";
    assert_eq!(names(one), Some(("ansibleVars.edpm_x|ConfigMap a.b".into(), false)));
    let held = "Changed since the last deployment: env. It waits for its turn: as many.";
    assert_eq!(names(held), Some(("env".into(), false)));
    let cut = "Changed since the last deployment: env, ansibleVars.edp….";
    assert_eq!(names(cut), Some(("env".into(), true)));
    assert_eq!(names("Only a part of the services has run."), None);
}

#[test]
fn a_host_that_was_never_deployed_gets_everything() {
    let world = testdata::world();
    let host = world.host("openstack", "edpm-compute-2").unwrap();
    let text = text(&host, None, Paint::default());
    let all = "nothing was deployed yet, so all of it would be: configure-network, install-os\n";
    assert!(text.contains(all), "{text}");
}

#[test]
fn each_service_of_a_compute_has_inputs_of_its_own() {
    let services = |names: &[&str]| {
        services(&names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()).join(" ")
    };
    assert_eq!(services(&["customServiceConfig"]), "nova nova-registered");
    assert_eq!(services(&["novaLibvirtContainerImage"]), "libvirt nova-registered");
    assert_eq!(services(&["redeploy"]), "libvirt nova nova-registered");
}
