//! Tests of `diff`, on a compute whose options differ in every way.

use api::conditions::ConditionStatus;
use api::dataplane::condition_types::UP_TO_DATE;
use api::dataplane::{RunState, Service};
use api::nova::Management;
use k8s_openapi::ByteString;
use nova_config::conf::DEFAULT_FILE;

use super::changes::listed;
use super::*;
use crate::cluster::Read;
use crate::config_files::Content;
use crate::option_sources::DefaultConfig;
use crate::snapshot::Snapshot;
use crate::testdata;

const CUSTOM: &str =
    "[libvirt]\ncpu_mode = custom\ncpu_models = Haswell\n[keystone]\npassword = pw\n";

fn options<'a>(snapshot: &'a Snapshot, rendered_custom: &str) -> Options<'a> {
    Options {
        compute: &snapshot.computes[0],
        default_config: Some(DefaultConfig {
            name: "compute-defaults".into(),
            text: Read::Found((DEFAULT_FILE.into(), testdata::DEFAULTS.into())),
        }),
        secret: Read::Found(testdata::rendered(rendered_custom)),
    }
}

/// The test data with a compute whose last deployment had its current options.
fn deployed() -> Snapshot {
    let mut snapshot = testdata::snapshot();
    testdata::deployed_with_present_inputs(&mut snapshot);
    snapshot
}

fn told(snapshot: &Snapshot, rendered_custom: &str) -> String {
    let host = snapshot.host("openstack", "edpm-compute-0").unwrap();
    let road = ConfigPath::Compute(Box::new(options(snapshot, rendered_custom)));
    text(&host, Some(&road), Paint::default())
}

#[test]
fn other_options_are_shown_as_they_would_reach_the_host_and_secrets_are_not() {
    let mut snapshot = deployed();
    snapshot.computes[0].spec.custom_service_config = Some(CUSTOM.into());
    snapshot.computes[0].spec.deploy = Some(false);
    let text = told(&snapshot, CUSTOM);
    assert_eq!(text, include_str!("../../testdata/diff-changed.txt"));
    assert!(!text.contains("pw"), "{text}");
}

#[test]
fn what_has_run_with_the_new_inputs_is_not_said_to_run_again() {
    let mut snapshot = deployed();
    let compute = &mut snapshot.computes[0];
    compute.spec.custom_service_config = Some(CUSTOM.into());
    compute.spec.deploy = Some(true);
    let status = compute.status.as_mut().unwrap();
    status.observed_generation = compute.metadata.generation;
    status.services[2].state = RunState::Failed;
    let text = told(&snapshot, CUSTOM);
    assert!(text.contains("services that would run: nova-registered\n"), "{text}");
    // For an edit that the operator has not observed, nothing has run.
    snapshot.computes[0].metadata.generation = Some(99);
    let text = told(&snapshot, CUSTOM);
    assert!(text.contains("services that would run: nova, nova-registered\n"), "{text}");
}

#[test]
fn an_application_credential_that_changes_shows_the_options_that_log_in_with_it() {
    let mut snapshot = deployed();
    let custom = snapshot.computes[0].spec.custom_service_config.clone().unwrap();
    let conditions = &mut snapshot.computes[0].status.as_mut().unwrap().conditions;
    let told = conditions.iter_mut().find(|it| it.type_ == UP_TO_DATE).unwrap();
    let inputs = "Secret nova-cell1 ACID, Secret nova-cell1 ACSecret";
    (told.status, told.message) =
        (ConditionStatus::False, format!("Changed since the last deployment: {inputs}."));
    let mut options = options(&snapshot, &custom);
    let Read::Found(secret) = &mut options.secret else { panic!("it is rendered") };
    let rendered = "[placement]\nauth_type = v3applicationcredential\napplication_credential_id = \
                    i\napplication_credential_secret = s\n";
    let rendered = ByteString(rendered.into());
    secret.data.as_mut().unwrap().insert("01-nova.conf".to_owned(), rendered);
    let host = snapshot.host("openstack", "edpm-compute-0").unwrap();
    let text = text(&host, Some(&ConfigPath::Compute(Box::new(options))), Paint::default());
    for words in [
        "services that would run: nova, nova-registered\n",
        "> [placement] auth_type = v3applicationcredential\n",
        "> [placement] application_credential_id = ********\n",
        "> [placement] application_credential_secret = ********\n",
    ] {
        assert!(text.contains(words), "{words} is not in: {text}");
    }
}

#[test]
fn what_was_written_and_not_rendered_is_shown_line_by_line() {
    let mut snapshot = deployed();
    let before = snapshot.computes[0].spec.custom_service_config.clone().unwrap();
    snapshot.computes[0].spec.custom_service_config = Some(CUSTOM.into());
    let text = told(&snapshot, &before);
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
fn of_a_compute_that_is_only_looked_after_nothing_would_be_deployed() {
    let mut snapshot = deployed();
    let compute = &mut snapshot.computes[0];
    compute.spec.management = Management::Observed;
    compute.status.as_mut().unwrap().conditions.retain(|it| it.type_ != UP_TO_DATE);
    compute.status.as_mut().unwrap().deployed_inputs.clear();
    let host = snapshot.host("openstack", "edpm-compute-0").unwrap();
    assert_eq!(text(&host, None, Paint::default()), "");
    assert_eq!(host.up_to_date(), ConditionStatus::True);
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
    let snapshot = testdata::snapshot();
    let host = snapshot.host("openstack", "edpm-compute-2").unwrap();
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
    assert_eq!(services(&["Secret cert-libvirt-n0"]), "libvirt nova-registered");
    for of_nova in
        ["Secret nova-cell1 ACID", "defaultConfigOverwrite policy.yaml", "nova-migration-ssh-key"]
    {
        assert_eq!(services(&[of_nova]), "nova nova-registered", "{of_nova}");
    }
}

#[test]
fn a_host_of_a_node_set_is_told_what_concerns_it_and_which_options_come() {
    let mut snapshot = testdata::node_set();
    let change = |snapshot: &mut Snapshot, message: &str| {
        for node in &mut snapshot.nodes {
            let status = node.status.as_mut().unwrap();
            status.deployed_config_hash = Some("01234567".to_owned());
            let told = status.conditions.iter_mut().find(|it| it.type_ == UP_TO_DATE).unwrap();
            (told.status, told.message) = (ConditionStatus::False, message.to_owned());
        }
    };
    let service: Service = testdata::only("OpenStackDataPlaneService");
    let content = Content::of_config_map(&testdata::only("ConfigMap"), "openstack");
    let given = testdata::given(service, [Read::Missing, Read::Found(content)]);
    let road = ConfigPath::Service(Box::new(given));
    let told = |snapshot: &Snapshot, name: &str| {
        let host = snapshot.host("openstack", name).unwrap();
        text(&host, Some(&road), Paint::default())
    };
    assert_eq!(told(&snapshot, "edpm-compute-5"), "");
    change(
        &mut snapshot,
        "Changed since the last deployment: nodes.compute-6. Create an OpenStackDataPlaneDeployment \
         to bring it to the hosts.",
    );
    assert_eq!(told(&snapshot, "edpm-compute-5"), "");
    assert!(told(&snapshot, "edpm-compute-6").contains("~ nodes.compute-6\n"));
    change(
        &mut snapshot,
        "Changed since the last deployment: ConfigMap nova-extra-config of service nova-custom. \
         Create an OpenStackDataPlaneDeployment to bring it to the hosts.",
    );
    let text = told(&snapshot, "edpm-compute-5");
    for words in [
        "OpenStackDataPlaneNode edpm-compute-5\n",
        "~ ConfigMap nova-extra-config of service nova-custom\n",
        "it is not deployed until an OpenStackDataPlaneDeployment is created\n",
        "25-nova-extra.conf, as it would reach the host:\n    > [libvirt] cpu_models = Nehalem\n",
    ] {
        assert!(text.contains(words), "{words} is not in: {text}");
    }
}
