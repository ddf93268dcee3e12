//! What is written again after others changed it, and what is reported when the API server rejects
//! it.

use operator_core::rejected_write::RejectedWrite;

use super::*;
use crate::reasons;

impl World {
    /// One reconciliation in which the API server rejects the steps that `refuses` selects.
    fn refused_pass(&mut self, refuses: impl Fn(&Step) -> bool, words: &str) {
        let plan = recorded(decide(&self.seen, None, self.now));
        let at = plan.steps.iter().position(refuses).unwrap();
        let refusal = RejectedWrite::of(&plan.steps[at], &reasons::FORBIDDEN, words);
        let mut telling = recorded(decide(&self.seen, Some(&refusal), self.now).only_statuses());
        telling.steps.retain(|it| !plan.steps[..at].contains(it));
        self.take(&plan.steps[..at]);
        self.take(&telling.steps);
    }
}

fn is_run(step: &Step) -> bool {
    matches!(step.write, Write::Create { .. })
}

fn is_secret(step: &Step) -> bool {
    matches!(step.write, Write::Apply { .. })
}

#[test]
fn files_that_are_deleted_or_edited_by_hand_are_written_again_and_nothing_runs() {
    let mut world = World::deployed();
    let written = world.seen.rendered.clone().unwrap();
    world.seen.rendered = None;
    assert_eq!(world.settle(), ["files"]);
    assert_eq!(world.seen.rendered, Some(written));
    let taken_over: [Value; 3] = [
        json!({
            "metadata": { "annotations": { CONFIG_HASH: "", CONFIG_FILES: "", CONFIG_INPUTS: "" } },
        }),
        json!({ "metadata": { "annotations": { CONFIG_HASH: "" } }, "data": world.files }),
        json!({}),
    ];
    for left in taken_over {
        world.writes.clear();
        world.seen.rendered.as_mut().unwrap().managed_fields = ManagedFields::applied(&left);
        assert_eq!(world.settle(), ["files"], "{left}");
    }
}

#[test]
fn a_run_that_is_refused_is_told_once_and_heals() {
    let mut world = World::new();
    let quota = "openstackansibleees \"x\" is forbidden: exceeded quota: q";
    world.refused_pass(is_run, quota);
    assert_eq!(world.reason("Ready"), "Forbidden");
    let told = world.condition("WritesAccepted");
    assert_eq!((told.status, told.reason.as_str()), (ConditionStatus::False, "Forbidden"));
    assert!(told.message.starts_with("OpenStackAnsibleEE libvirt-"), "{}", told.message);
    assert!(told.message.contains(quota), "{}", told.message);
    world.writes.clear();
    for _ in 0..3 {
        world.refused_pass(is_run, quota);
        assert_eq!(world.writes, Vec::<String>::new(), "told once");
    }
    world.settle();
    assert!(!world.has_condition("WritesAccepted"));
    assert_eq!(world.reason("Ready"), "Deploying");
}

#[test]
fn a_secret_that_is_refused_is_named_without_its_content() {
    let mut world = World::new();
    let words = "admission webhook \"w\" denied the request: transport_url = bus-password";
    world.refused_pass(is_secret, words);
    let told = world.condition("Ready");
    assert_eq!(told.reason, "Forbidden");
    assert!(
        told.message.starts_with("Secret n0-config-data cannot be written"),
        "{}",
        told.message
    );
    assert!(!serde_json::to_string(&world.seen.compute.status).unwrap().contains("bus-password"));
    world.writes.clear();
    world.refused_pass(is_secret, words);
    assert_eq!(world.writes, Vec::<String>::new());
    assert_eq!(world.settle(), ["files", "run libvirt", "status"]);
    assert_eq!(world.reason("Ready"), "Deploying");
}

#[test]
fn a_refusal_takes_nothing_from_a_compute_that_is_deployed() {
    let mut world = World::deployed();
    world.seen.rendered = None;
    world.refused_pass(is_secret, "no");
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
    assert_eq!(world.reason("WritesAccepted"), "Forbidden");
    world.settle();
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
}

#[test]
fn a_secret_of_the_files_name_that_another_made_is_left_alone_and_told() {
    let stranger = Some(Rendered::default());
    let mut world = World::new();
    world.seen.rendered.clone_from(&stranger);
    assert_eq!(world.settle(), ["status"]);
    let told = world.condition("Ready");
    assert_eq!((told.status, told.reason.as_str()), (ConditionStatus::False, "SecretNotOurs"));
    assert!(told.message.contains("kubectl delete -n ns secret n0-config-data"), "{told:?}");
    assert_eq!(world.reason("DeploymentReady"), "Waiting");
    world.seen.rendered = None;
    assert_eq!(world.settle()[..3], ["files", "status", "run libvirt"]);

    let mut world = World::deployed();
    world.seen.rendered = stranger;
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.condition("Ready").status, ConditionStatus::True, "it undoes nothing");
    assert_eq!(world.reason("ServiceConfigReady"), "SecretNotOurs");
    assert_eq!(world.configure(Some("[libvirt]\ncpu_mode = none\n")).settle(), ["status"]);
    assert_eq!(world.reason("UpToDate"), "InputsChanged");
    assert_eq!(world.reason("Ready"), "SecretNotOurs");
}
