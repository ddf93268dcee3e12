//! Which compute a node gets, case by case.

use std::sync::Arc;

use api::conditions::{Condition, Severity, find};
use api::dataplane::{Node, Role};
use api::nova::ExternalCompute;
use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use nova_config::annotations::CELL;
use nova_config::conditions::COMPUTE_CONDITION;
use operator_core::condition_catalog::undeclared;
use operator_core::plan::{Plan, Write};
use operator_core::rejected_write::RejectedWrite;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testkit::conditions::{self, stated};
use testkit::golden::recorded;
use testkit::objects::named;

use super::{Images, Observed, decide};
use crate::condition_catalog::KINDS;
use crate::finalizers;
use crate::group::Group;
use crate::group::conflicting_service::ConflictingService;
use crate::reasons;
use crate::requested::desired_compute::{DesiredCompute, annotated, desired};
use crate::requested::mounted_cell::NovaServices;
use crate::requested::mounted_cell::ObservedCell;

mod cell;
mod names;
mod observed;
mod permission;
mod repeated;

fn object<K: Resource<DynamicType = ()> + DeserializeOwned>(name: &str, spec: &Value) -> K {
    let fields = json!({ "metadata": { "uid": format!("uid-{name}") }, "spec": spec });
    named("ns", name, fields)
}

fn node(cell: Option<&str>) -> Node {
    let spec = json!({ "ansibleHost": "192.0.2.7", "role": "compute" });
    let mut node: Node = object("n0", &spec);
    node.annotations_mut().extend(cell.map(|it| (CELL.to_owned(), it.to_owned())));
    // A node that requested a compute before; the tests of the removal cover its finalizer.
    node.metadata.finalizers = cell.map(|_| vec![finalizers::NODE.to_owned()]);
    node
}

/// What a node publishes about the role that it was evaluated with.
fn observed_role() -> Value {
    json!({ "name": "compute", "uid": "uid-compute", "generation": 1 })
}

fn role(cell: Option<&str>) -> Group {
    let mut role: Role = object("compute", &json!({}));
    role.annotations_mut().extend(cell.map(|it| (CELL.to_owned(), it.to_owned())));
    Group::Role(Arc::new(role))
}

/// A node of that cell, without a compute.
fn seen(cell: Option<&str>) -> Observed {
    let images = Images {
        nova_compute: "default/compute".into(),
        nova_libvirt: "default/libvirt".into(),
        ansible_ee: "default/runner".into(),
    };
    Observed {
        node: Arc::new(node(cell)),
        group: Some(role(None)),
        nova: NovaServices::default(),
        reads_nova: true,
        compute: None,
        has_runs: false,
        images,
        namespace_goes: false,
        cells_are_ours: true,
        health: None,
        read_twice_since: None,
        order: None,
    }
}

/// A compute with the node's name as a user writes it.
fn by_hand(spec: &Value) -> ExternalCompute {
    object("n0", spec)
}

/// The same as the operator creates it, complete.
fn made(cell: &str) -> ExternalCompute {
    let mut compute = by_hand(&json!({
        "dataplaneNodeName": "n0",
        "cellName": cell,
        "novaComputeContainerImage": "mine",
        "novaLibvirtContainerImage": "mine",
        "ansibleEEContainerImage": "mine",
    }));
    let owner = node(None).controller_owner_ref(&());
    compute.metadata.owner_references = owner.map(|it| vec![it]);
    compute.metadata.resource_version = Some("7".into());
    compute
}

fn with(cell: Option<&str>, compute: ExternalCompute) -> Observed {
    Observed { compute: Some(Arc::new(compute)), ..seen(cell) }
}

/// Writes to the compute in short, and the node's condition.
fn judged(seen: &Observed) -> (Vec<String>, Option<Condition>) {
    let plan: Plan = recorded(decide(seen, None, Timestamp::UNIX_EPOCH));
    let mut condition = None;
    let mut writes = Vec::new();
    for step in &plan.steps {
        match &step.write {
            Write::Status { status, .. } => {
                assert_eq!(undeclared(KINDS, "OpenStackDataPlaneNode", status), [""; 0]);
                let all: Vec<Condition> =
                    serde_json::from_value(status["conditions"].clone()).unwrap();
                condition = find(&all, COMPUTE_CONDITION).cloned();
            }
            Write::Apply { object, force, manager } => {
                let fields: Vec<&str> =
                    object["spec"].as_object().unwrap().keys().map(String::as_str).collect();
                let how = if *force { "force" } else { "yield" };
                let manager = manager.as_deref().unwrap_or("own");
                writes.push(format!("apply {how} {manager} {}", fields.join(",")));
            }
            Write::Delete { resource_version } => {
                writes.push(format!("delete at {}", resource_version.as_deref().unwrap_or("any")));
            }
            Write::Create { .. } => writes.push("create".into()),
            Write::AddFinalizer { .. } | Write::RemoveFinalizer { .. } => {}
        }
    }
    (writes, condition)
}

/// Asserts what is written to the compute, and reason and words of the node's condition.
#[track_caller]
fn judges(seen: &Observed, writes: &[&str], reason: &str, words: &[&str]) {
    let (found, condition) = judged(seen);
    let condition = condition.expect("the node has the condition");
    assert_eq!(found, writes, "{condition:?}");
    assert_eq!(condition.reason, reason);
    conditions::says(&[condition], COMPUTE_CONDITION, words);
}

fn reason(condition: Option<&Condition>) -> &str {
    condition.map(|it| it.reason.as_str()).unwrap_or_default()
}

#[test]
fn the_nodes_annotation_wins_over_its_roles_and_an_empty_one_means_no_compute() {
    let cell = |it: &str| DesiredCompute::Managed(it.to_owned());
    let cases = [
        (None, None, DesiredCompute::Nothing),
        (Some("nova-cell1"), None, cell("nova-cell1")),
        (None, Some("nova-cell2"), cell("nova-cell2")),
        (Some("nova-cell1"), Some("nova-cell2"), cell("nova-cell2")),
        (Some("nova-cell1"), Some(""), DesiredCompute::Nothing),
        (Some(""), None, DesiredCompute::Nothing),
        (Some(" nova-cell1 "), None, cell("nova-cell1")),
    ];
    for (of_role, of_node, expected) in cases {
        let found = annotated(Some(&role(of_role)), &node(of_node));
        assert_eq!(found, expected, "{of_role:?} {of_node:?}");
    }
}

#[test]
fn a_listed_nova_service_wins_over_annotations_and_these_over_one_that_was_run() {
    let nova = |is_listed: bool, is_deployed: bool| NovaServices {
        listed: is_listed.then(rival),
        deployed: is_deployed.then(|| "nova".to_owned()),
        cells: vec!["nova-cell9".into()],
    };
    let observed = DesiredCompute::Observed { cell: ObservedCell::Mounted("nova-cell9".into()) };
    let managed = DesiredCompute::Managed("nova-cell1".into());
    let cases = [
        ((true, false), Some("nova-cell1"), &observed),
        ((true, false), Some(""), &observed),
        ((false, true), None, &observed),
        ((false, true), Some("nova-cell1"), &managed),
        ((false, true), Some(""), &DesiredCompute::Nothing),
        ((false, false), None, &DesiredCompute::Nothing),
    ];
    for ((is_listed, is_deployed), annotation, expected) in cases {
        let found = desired(Some(&role(None)), &node(annotation), &nova(is_listed, is_deployed));
        assert_eq!(found, *expected, "{is_listed} {is_deployed} {annotation:?}");
    }
    let unknown = desired(None, &node(None), &nova(false, true));
    assert!(matches!(unknown, DesiredCompute::Unknown { .. }), "{unknown:?}");
}

#[test]
fn cell0_and_names_that_no_object_can_have_are_refused() {
    for (cell, expected) in [("nova-cell0", "CellZero"), ("Nova Cell", "CellNameInvalid")] {
        judges(&seen(Some(cell)), &[], expected, &[]);
    }
}

#[test]
fn a_node_without_a_cell_costs_nothing() {
    assert_eq!(recorded(decide(&seen(None), None, Timestamp::UNIX_EPOCH)).steps, []);
    // A compute that a user created for such a node stays theirs.
    let theirs = by_hand(&json!({
        "dataplaneNodeName": "n0", "cellName": "nova-cell1", "novaComputeContainerImage": "a",
        "novaLibvirtContainerImage": "b", "ansibleEEContainerImage": "c",
    }));
    assert_eq!(recorded(decide(&with(None, theirs), None, Timestamp::UNIX_EPOCH)).steps, []);
}

#[test]
fn a_compute_of_a_human_on_a_node_without_a_cell_gets_the_default_images_and_nothing_else() {
    let theirs = by_hand(&json!({ "dataplaneNodeName": "n0", "cellName": "nova-cell1" }));
    let (writes, condition) = judged(&with(None, theirs));
    let fields = "ansibleEEContainerImage,novaComputeContainerImage,novaLibvirtContainerImage";
    assert_eq!(writes, [format!("apply yield nova-operator-defaults {fields}")]);
    assert_eq!(condition, None);
}

#[test]
fn a_node_with_a_cell_gets_a_compute_before_its_status_is_published() {
    judges(
        &seen(Some("nova-cell1")),
        &["apply yield own cellName,dataplaneNodeName"],
        "Deploying",
        &[],
    );
}

#[test]
fn fields_are_taken_over_only_of_a_compute_that_was_seen_to_be_the_nodes_own() {
    let apply = |seen: &Observed| {
        let plan = recorded(decide(seen, None, Timestamp::UNIX_EPOCH));
        let write = plan.steps.first().map(|it| it.write.clone());
        let Some(Write::Apply { object, force, .. }) = write else { panic!("{plan:?}") };
        (force, object["metadata"]["uid"].as_str().map(str::to_owned))
    };
    // A user's manifest may exist already, and not be in the cache yet.
    assert_eq!(apply(&seen(Some("nova-cell1"))), (false, None));
    let theirs = by_hand(&json!({ "dataplaneNodeName": "n0", "cellName": "nova-cell1" }));
    assert_eq!(apply(&with(Some("nova-cell1"), theirs)), (false, None));
    let mut ours = made("nova-cell1");
    ours.spec.network_attachments = vec!["net".into()];
    assert_eq!(apply(&with(Some("nova-cell1"), ours)), (true, Some("uid-n0".into())));
}

#[test]
fn what_the_node_publishes_reaches_its_compute_and_nothing_else_is_written() {
    let mut seen = with(Some("nova-cell1"), made("nova-cell1"));
    let status = json!({
        "inventoryConfigMapName": "inv", "sshKeySecretName": "key", "deploy": true,
        "networkAttachments": ["net"], "observedRole": observed_role(),
    });
    Arc::make_mut(&mut seen.node).status = Some(serde_json::from_value(status).unwrap());
    let (writes, _) = judged(&seen);
    let fields = "cellName,dataplaneNodeName,deploy,inventoryConfigMapName,networkAttachments,\
                  sshKeySecretName";
    assert_eq!(writes, [format!("apply force own {fields}")]);
    let compute = Arc::make_mut(seen.compute.as_mut().unwrap());
    compute.spec.inventory_config_map_name = Some("inv".into());
    compute.spec.ssh_key_secret_name = Some("key".into());
    compute.spec.deploy = Some(true);
    compute.spec.network_attachments = vec!["net".into()];
    compute.spec.custom_service_config = Some("[libvirt]".into());
    assert_eq!(judged(&seen).0, Vec::<String>::new());
}

#[test]
fn a_list_that_the_node_emptied_is_emptied_in_its_compute() {
    let mut compute = made("nova-cell1");
    compute.spec.network_attachments = vec!["net".into()];
    let (writes, _) = judged(&with(Some("nova-cell1"), compute));
    assert_eq!(writes, ["apply force own cellName,dataplaneNodeName,networkAttachments"]);
}

#[test]
fn unset_images_are_filled_once_and_images_of_a_human_stay() {
    let mut compute = made("nova-cell1");
    assert_eq!(judged(&with(Some("nova-cell1"), compute.clone())).0, Vec::<String>::new());
    compute.spec.nova_libvirt_container_image = None;
    let (writes, _) = judged(&with(Some("nova-cell1"), compute));
    let fields = "ansibleEEContainerImage,novaComputeContainerImage,novaLibvirtContainerImage";
    assert_eq!(writes, [format!("apply yield nova-operator-defaults {fields}")]);
}

#[test]
fn a_compute_that_a_human_wrote_first_is_adopted_without_force() {
    let compute = by_hand(&json!({
        "dataplaneNodeName": "n0", "cellName": "nova-cell1",
        "customServiceConfig": "[libvirt]", "sshKeySecretName": "key",
        "novaComputeContainerImage": "a", "novaLibvirtContainerImage": "b",
        "ansibleEEContainerImage": "c",
    }));
    let (writes, _) = judged(&with(Some("nova-cell1"), compute));
    assert_eq!(writes, ["apply yield own cellName,dataplaneNodeName"]);
}

#[test]
fn a_compute_of_a_human_that_differs_is_left_alone_and_the_difference_is_named() {
    for (field, spec) in [
        ("spec.cellName", json!({ "dataplaneNodeName": "n0", "cellName": "nova-cell9" })),
        ("spec.dataplaneNodeName", json!({ "dataplaneNodeName": "x", "cellName": "nova-cell1" })),
    ] {
        judges(&with(Some("nova-cell1"), by_hand(&spec)), &[], "ComputeDiffers", &[field]);
    }
}

#[test]
fn a_compute_of_someone_else_is_left_alone() {
    let mut compute = made("nova-cell1");
    compute.metadata.owner_references.as_mut().unwrap()[0].kind = "Nova".into();
    compute.metadata.owner_references.as_mut().unwrap()[0].uid = "other".into();
    judges(&with(Some("nova-cell1"), compute.clone()), &[], "ComputeNotOurs", &[]);
    // The compute of a node that was recreated under its name is about to be deleted.
    compute.metadata.owner_references.as_mut().unwrap()[0].kind = "OpenStackDataPlaneNode".into();
    judges(&with(Some("nova-cell1"), compute), &[], "ComputeTerminating", &[]);
}

#[test]
fn a_typo_in_the_cell_is_mended_by_correcting_it_as_long_as_nothing_is_lost() {
    let typo = made("nova-cel1");
    judges(&with(Some("nova-cell1"), typo.clone()), &["delete at 7"], "Deploying", &[]);

    let mut configured = typo.clone();
    configured.spec.custom_service_config = Some("[libvirt]".into());
    let mut attempted = typo.clone();
    let status = json!({ "services": [{
        "name": "nova", "state": "Pending", "hash": "h", "attempt": 1,
        "since": "2026-01-01T00:00:00Z",
    }] });
    attempted.status = Some(serde_json::from_value(status).unwrap());
    let running = Observed { has_runs: true, ..with(Some("nova-cell1"), typo) };
    for seen in [with(Some("nova-cell1"), configured), with(Some("nova-cell1"), attempted), running]
    {
        let command = "kubectl delete -n ns novaexternalcompute n0";
        judges(&seen, &[], "CellMismatch", &[command]);
    }
}

#[test]
fn a_mismatch_keeps_the_computes_own_cell_and_lets_the_rest_follow() {
    let mut compute = made("nova-cell1");
    compute.spec.custom_service_config = Some("[libvirt]".into());
    let mut seen = with(Some("nova-cell2"), compute);
    let status = json!({ "deploy": true, "observedRole": observed_role() });
    Arc::make_mut(&mut seen.node).status = Some(serde_json::from_value(status).unwrap());
    let plan = recorded(decide(&seen, None, Timestamp::UNIX_EPOCH));
    let Write::Apply { object, .. } = &plan.steps[0].write else { panic!("{plan:?}") };
    assert_eq!(object["spec"]["cellName"], "nova-cell1");
    assert_eq!(object["spec"]["deploy"], true);
}

#[test]
fn a_cell_that_is_taken_away_removes_only_what_never_ran() {
    let (writes, condition) = judged(&with(None, made("nova-cell1")));
    assert_eq!((writes, condition), (vec!["delete at 7".into()], None));
    let running = Observed { has_runs: true, ..with(None, made("nova-cell1")) };
    judges(&running, &[], "CellMismatch", &[]);
}

#[test]
fn the_condition_mirrors_the_compute_and_is_dropped_with_the_cell() {
    let now = Timestamp::UNIX_EPOCH;
    let mut compute = made("nova-cell1");
    for (status, severity, expected) in [
        ("True", None, "Ready"),
        ("False", Some(Severity::Error), "SecretNotFound"),
        ("False", Some(Severity::Warning), "SecretNotFound"),
        ("False", Some(Severity::Info), "Deploying"),
        ("Unknown", None, "Deploying"),
    ] {
        let ready = Condition { severity, ..stated("Ready", status, "SecretNotFound", "what") };
        compute.status.get_or_insert_default().conditions = vec![ready];
        let (_, condition) = judged(&with(Some("nova-cell1"), compute.clone()));
        assert_eq!(reason(condition.as_ref()), expected, "{status}");
    }

    let mut seen = seen(None);
    let stale = stated(COMPUTE_CONDITION, "True", "Ready", "x");
    Arc::make_mut(&mut seen.node).status.get_or_insert_default().conditions = vec![stale];
    let plan = recorded(decide(&seen, None, now));
    let Write::Status { status, .. } = &plan.steps[0].write else { panic!("{plan:?}") };
    assert_eq!(*status, json!({ "conditions": [] }));
}

#[test]
fn a_refused_compute_is_told_on_the_node_once_and_heals() {
    let mut seen = seen(Some("nova-cell1"));
    let plan = recorded(decide(&seen, None, Timestamp::UNIX_EPOCH));
    let told = |seen: &Observed, words: &str| {
        let refusal = RejectedWrite::of(&plan.steps[0], &reasons::INVALID, words);
        recorded(decide(seen, Some(&refusal), Timestamp::UNIX_EPOCH).only_statuses())
    };
    let first = told(&seen, "the policy wants a label (request 17)");
    let Write::Status { status, notices, .. } = &first.steps[0].write else { panic!("{first:?}") };
    let condition = &status["conditions"][0];
    assert_eq!(
        (condition["type"].as_str(), condition["reason"].as_str()),
        (Some(COMPUTE_CONDITION), Some("Invalid"))
    );
    let message = condition["message"].as_str().unwrap();
    assert!(
        message.starts_with("NovaExternalCompute n0 cannot be written: the policy"),
        "{message}"
    );
    assert_eq!((notices.len(), notices[0].warning), (1, true));
    let status = json!({ "conditions": status["conditions"] });
    Arc::make_mut(&mut seen.node).status = Some(serde_json::from_value(status).unwrap());
    assert_eq!(told(&seen, "the policy wants a label (request 18)").steps, []);
    assert_eq!(reason(judged(&seen).1.as_ref()), "Deploying", "the same pass that writes it heals");
}

/// A service of type nova that the role lists.
fn rival() -> ConflictingService {
    ConflictingService { lister: "OpenStackDataPlaneRole compute".into(), service: "own".into() }
}

#[test]
fn a_cell_annotation_beside_a_service_of_type_nova_counts_for_nothing() {
    let nova = NovaServices { listed: Some(rival()), ..NovaServices::default() };
    let beside = |seen: Observed| Observed { nova: nova.clone(), ..seen };
    let told = |seen: &Observed| {
        let (writes, condition) = judged(seen);
        assert_eq!(reason(condition.as_ref()), "NovaServiceListed");
        (writes, condition.unwrap().message)
    };
    // A compute that the operator deploys stays, and runs nothing.
    let made = beside(with(Some("nova-cell1"), made("nova-cell1")));
    let (writes, message) = told(&made);
    assert_eq!(writes, Vec::<String>::new());
    assert!(message.contains("OpenStackDataPlaneService own of type nova"), "{message}");
    // Without one, the service is looked after.
    let none = beside(seen(Some("nova-cell1")));
    let (writes, message) = told(&none);
    assert_eq!(writes, ["apply yield own dataplaneNodeName,management"]);
    assert!(message.contains("OpenStackDataPlaneNode n0 counts for nothing"), "{message}");
    let without_api = Observed { reads_nova: false, ..none };
    assert_eq!(told(&without_api).0, Vec::<String>::new());
    // What has to be corrected first is reported first.
    let moved = Observed { has_runs: true, ..with(Some("nova-cell2"), self::made("nova-cell1")) };
    assert_eq!(reason(judged(&beside(moved)).1.as_ref()), "CellMismatch");
}
