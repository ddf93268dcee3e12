//! Files that another release renders otherwise than they were deployed, and what is known of them.

use super::*;
use crate::compute::audit::report::{Differences, LastAudit, Verdict};
use crate::compute::audit::request::{AuditPolicy, AuditRequest};
use crate::compute_status::deployed_files;

/// The newest release of nova whose generated options differ.
fn older() -> Chosen {
    Chosen::Release(Release::named("2025.2").unwrap())
}

/// A deployed compute whose host is audited and repaired.
fn world() -> World {
    let mut world = World::deployed();
    let policy = AuditPolicy { interval: SignedDuration::from_hours(1), repairs: true };
    world.seen.audited.request = AuditRequest::Audit(policy);
    world.settle();
    world.writes.clear();
    world
}

/// Ends an audit that has found a difference; returns what follows.
fn audited(world: &mut World) -> Vec<String> {
    world.now += SignedDuration::from_hours(1);
    let named = vec!["file /a/01-nova.conf: content".to_owned()];
    world.seen.audited.last = Some(LastAudit {
        uid: world.now.to_string(),
        name: "audit".to_owned(),
        created: world.now,
        is_after_deployment: false,
        verdict: Verdict::Differs(Differences { total: 1, named }),
    });
    world.settle()
}

/// Lets every run succeed; returns the services.
fn deploy(world: &mut World) -> Vec<String> {
    let before = world.writes.len();
    while world.seen.runs.iter().any(is_open) {
        world.now += SignedDuration::from_mins(1);
        world.end("Ok").settle();
    }
    world.writes[before..]
        .iter()
        .filter_map(|it| Some(it.strip_prefix("run ")?.to_owned()))
        .collect()
}

fn is_up_to_date(world: &World) -> bool {
    world.condition("UpToDate").status == ConditionStatus::True
}

#[test]
fn what_another_release_would_deploy_is_named_and_comes_with_the_next_deployment_alone() {
    let mut world = world();
    let deployed = world.seen.rendered.clone();
    world.seen.release = older();
    assert_eq!(world.settle(), ["status"], "nothing runs, and the Secret has what was deployed");
    assert_eq!(world.seen.rendered, deployed);
    world.says(
        "UpToDate",
        "OperatorChanged",
        &[" 01-nova.conf.", "novaexternalcompute/n0 nova.openstack.org/redeploy="],
    );
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
    assert_eq!(world.settle(), [""; 0]);
    world.seen.release = Chosen::Release(Release::newest());
    assert_eq!(world.settle(), ["status"]);
    assert!(is_up_to_date(&world), "it is rendered as it was deployed again");
    world.seen.release = older();
    world.settle();
    world.compute().annotations_mut().insert(REDEPLOY.into(), "1".into());
    assert_eq!(world.settle()[..2], ["files", "status"]);
    assert_eq!(deploy(&mut world), ["nova", "nova-registered"]);
    assert!(is_up_to_date(&world));
    assert_ne!(world.seen.rendered, deployed);
}

#[test]
fn an_audit_still_compares_with_what_was_deployed_and_its_repair_brings_the_new_files() {
    let mut world = world();
    world.seen.release = older();
    world.settle();
    assert_eq!(world.reason("ConfigurationInSync"), "NotAudited");
    assert!(audited(&mut world).contains(&"run libvirt".to_owned()));
    deploy(&mut world);
    assert_eq!(world.reason("ConfigurationInSync"), "DeployedSince");
    assert!(is_up_to_date(&world));
}

#[test]
fn a_change_of_libvirt_alone_leaves_the_files_that_were_deployed() {
    let mut world = world();
    let deployed = world.seen.rendered.clone();
    world.seen.release = older();
    world.settle();
    world.compute().spec.nova_libvirt_container_image = Some("libvirt:2".into());
    world.settle();
    assert_eq!(deploy(&mut world), ["nova-registered"]);
    assert_eq!(world.seen.rendered, deployed);
    assert_eq!(world.reason("UpToDate"), "OperatorChanged");
    assert_eq!(world.reason("ConfigurationInSync"), "NotAudited");
}

/// Makes status and Secret what the release before has written.
fn forget_records(world: &mut World) {
    let status = world.compute().status.as_mut().unwrap();
    status.deployed_files.clear();
    let secret = world.seen.rendered.as_mut().unwrap();
    secret.inputs.clear();
    secret.hash = "another".into();
    let left = [CONFIG_HASH, CONFIG_FILES].map(|it| (it.to_owned(), String::new()));
    let left: BTreeMap<String, String> = left.into();
    secret.managed_fields = ManagedFields::applied(
        &json!({ "metadata": { "annotations": left }, "data": world.files }),
    );
}

#[test]
fn an_upgrade_in_the_middle_of_a_run_records_the_files_that_the_run_brings() {
    let mut world = world();
    world.configure(Some("[DEFAULT]\nmax_concurrent_builds = 7\n")).settle();
    while world.reason("UpToDate") != "InputsChanged" || !runs_nova(&mut world) {
        world.now += SignedDuration::from_mins(1);
        world.end("Ok").settle();
    }
    forget_records(&mut world);
    world.seen.release = older();
    let brought = world.seen.rendered.clone();
    assert!(!world.settle().contains(&"files".to_owned()));
    assert_eq!(deploy(&mut world), ["nova-registered"]);
    assert_eq!(world.seen.rendered, brought);
    assert_eq!(world.reason("UpToDate"), "OperatorChanged");
}

fn runs_nova(world: &mut World) -> bool {
    let status = world.compute().status.clone().unwrap();
    deployed_files::nova(&status.services)
        .is_some_and(|it| it.state == api::dataplane::RunState::Running)
}

#[test]
fn an_upgrade_from_a_release_without_records_runs_nothing_and_says_nothing_of_the_files() {
    let mut world = world();
    forget_records(&mut world);
    assert_eq!(world.settle(), ["files", "status"]);
    assert_eq!(audited(&mut world), [""; 0], "an audit of before counts for nothing");
    assert!(is_up_to_date(&world), "the inputs are those that were deployed");
    world.says("ConfigurationInSync", "DeploymentNotRecorded", &["To deploy it: kubectl annotate"]);
    world.configure(Some("[DEFAULT]\nmax_concurrent_builds = 7\n")).settle();
    deploy(&mut world);
    assert_eq!(world.reason("ConfigurationInSync"), "DeployedSince");
    assert!(!world.compute().status.as_ref().unwrap().deployed_files.is_empty());
}

#[test]
fn files_that_are_made_again_otherwise_are_not_taken_for_those_that_were_deployed() {
    let mut world = world();
    world.seen.release = older();
    world.settle();
    world.seen.rendered = None;
    assert!(world.settle().contains(&"files".to_owned()));
    assert_eq!(world.reason("UpToDate"), "OperatorChanged");
    assert_eq!(world.reason("ConfigurationInSync"), "DeploymentNotRecorded");
    assert_eq!(audited(&mut world), [""; 0], "nothing is repaired");
}

#[test]
fn files_of_inputs_that_are_taken_back_are_rendered_again_as_they_were_deployed() {
    let mut world = world();
    world.compute().spec.deploy = Some(false);
    world.configure(Some("[DEFAULT]\nmax_concurrent_builds = 7\n")).settle();
    assert_eq!(world.reason("UpToDate"), "InputsChanged");
    world.configure(Some("[libvirt]\ncpu_mode = custom\n")).settle();
    assert!(is_up_to_date(&world));
    assert_eq!(world.reason("ConfigurationInSync"), "NotAudited");
}
