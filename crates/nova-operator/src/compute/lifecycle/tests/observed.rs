//! Computes that a service of type nova deploys: made, kept in their cell, moved and let go.

use nova_config::annotations::ALLOW_REMOVAL;
use nova_config::conditions::{ANNOTATIONS_IGNORED, HOST_MAPPED, NODE_SERVICE_UP, SERVICE_UP};
use operator_core::plan::Step;
use testkit::set_nodes;

use super::*;
use crate::group::Group;

/// A node set that lists a service of type nova.
pub(super) fn node_set(annotations: &Value) -> Group {
    let set = json!({
        "metadata": {
            "name": "edpm", "namespace": "ns", "uid": "uid-edpm", "annotations": annotations,
        },
        "spec": {
            "services": ["nova"], "nodes": {"n0": {}},
            "nodeTemplate": {"ansibleSSHPrivateKeySecret": "key"},
        },
    });
    Group::NodeSet(Arc::new(serde_json::from_value(set).unwrap()))
}

pub(super) fn listed(cells: &[&str]) -> NovaServices {
    let lister = "OpenStackDataPlaneNodeSet edpm".to_owned();
    NovaServices {
        listed: Some(ConflictingService { lister, service: "nova".into() }),
        deployed: None,
        cells: cells.iter().map(|it| (*it).to_owned()).collect(),
    }
}

/// A node of the node set that was described, without a compute.
pub(super) fn of_set(cells: &[&str]) -> Observed {
    let node = Arc::new(set_nodes::node("ns", "edpm", "n0", "192.0.2.7"));
    Observed { node, group: Some(node_set(&json!({}))), nova: listed(cells), ..seen(None) }
}

/// The same with a compute that is complete; `cell` is the one that is recorded.
pub(super) fn looked_after(cells: &[&str], cell: Option<&str>) -> Observed {
    let mut seen = of_set(cells);
    let mut compute = set_nodes::observed_compute(&seen.node, cell);
    compute.spec.ansible_ee_container_image = Some("mine".into());
    compute.metadata.resource_version = Some("7".into());
    seen.compute = Some(Arc::new(compute));
    node_of(&mut seen).finalizers_mut().push(finalizers::NODE.to_owned());
    seen
}

pub(super) fn node_of(seen: &mut Observed) -> &mut Node {
    Arc::make_mut(&mut seen.node)
}

pub(super) fn compute_of(seen: &mut Observed) -> &mut ExternalCompute {
    Arc::make_mut(seen.compute.as_mut().unwrap())
}

/// Sets the conditions of the compute, by type and status.
pub(super) fn report(seen: &mut Observed, conditions: &[(&str, &str)]) {
    let conditions = conditions
        .iter()
        .map(|(type_, status)| stated(type_, status, &format!("{type_}Is{status}"), "so it is."));
    compute_of(seen).status.get_or_insert_default().conditions = conditions.collect();
}

fn plan(seen: &Observed) -> Plan {
    recorded(decide(seen, None, Timestamp::UNIX_EPOCH))
}

/// What is written into the status of the node; `None` where nothing is.
pub(super) fn status_of(seen: &Observed) -> Option<Value> {
    plan(seen).steps.into_iter().find_map(|it| {
        let Write::Status { status, .. } = it.write else { return None };
        Some(status)
    })
}

fn conditions_of(seen: &Observed) -> Vec<Condition> {
    serde_json::from_value(status_of(seen).unwrap()["conditions"].clone()).unwrap()
}

fn terminates(time: &mut Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>) {
    *time = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
}

#[test]
fn a_node_with_a_service_of_type_nova_is_held_before_its_compute_is_made() {
    let plan = plan(&of_set(&["nova-cell1"]));
    assert!(matches!(plan.steps[0].write, Write::AddFinalizer { .. }), "{plan:?}");
    let Write::Apply { object, force, .. } = &plan.steps[1].write else { panic!("{plan:?}") };
    assert!(!force);
    assert_eq!(
        object["spec"],
        json!({
            "dataplaneNodeName": "n0", "management": "Observed", "cellName": "nova-cell1",
            "sshKeySecretName": "key",
        })
    );
    assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "uid-n0");
    let (_, condition) = judged(&of_set(&["nova-cell1"]));
    assert_eq!(reason(condition.as_ref()), "Deploying");
}

#[test]
fn without_novas_api_none_is_made_and_one_that_is_there_is_let_go_with_an_event() {
    let none = Observed { reads_nova: false, ..of_set(&["nova-cell1"]) };
    assert_eq!(judged(&none).0, Vec::<String>::new());
    let mut seen =
        Observed { reads_nova: false, ..looked_after(&["nova-cell1"], Some("nova-cell1")) };
    let released = |seen: &Observed| {
        let plan = plan(seen);
        let held = |kind: &str| {
            let mut steps = plan.steps.iter().filter(|it| it.target.kind.kind == kind);
            !steps.any(|it| matches!(it.write, Write::RemoveFinalizer { .. }))
        };
        assert!(!held("NovaExternalCompute") && !held("OpenStackDataPlaneNode"), "{plan:?}");
        let deletes = plan.steps.iter().filter(|it| matches!(it.write, Write::Delete { .. }));
        (deletes.count(), plan.events.iter().map(|it| it.1.reason.clone()).collect::<Vec<_>>())
    };
    assert_eq!(released(&seen), (1, vec!["ObservedReleased".to_owned()]));
    // In the middle of a removal too: nothing could go on with it.
    terminates(&mut compute_of(&mut seen).metadata.deletion_timestamp);
    terminates(&mut node_of(&mut seen).metadata.deletion_timestamp);
    assert_eq!(released(&seen), (0, vec![]));
}

#[test]
fn the_cell_is_recorded_once_it_is_known_and_stays() {
    let unknown = looked_after(&[], None);
    judges(&unknown, &[], "CellUnknown", &[]);
    let several = looked_after(&["nova-cell1", "nova-cell2"], None);
    judges(&several, &[], "CellUnknown", &["nova-cell1 and nova-cell2"]);

    let known = looked_after(&["nova-cell1"], None);
    let fields = "cellName,dataplaneNodeName,management,sshKeySecretName";
    assert_eq!(judged(&known).0, [format!("apply force own {fields}")]);
    for still in [&["nova-cell1"][..], &[], &["nova-cell1", "nova-cell2"]] {
        let kept = looked_after(still, Some("nova-cell1"));
        judges(&kept, &[], "Deploying", &[]);
    }
}

#[test]
fn another_cell_than_the_recorded_one_is_held_once_nova_was_deployed() {
    let fresh = looked_after(&["nova-cell2"], Some("nova-cell1"));
    judges(&fresh, &["delete at 7"], "Deploying", &[]);

    let mut deployed = fresh.clone();
    deployed.nova.deployed = Some("nova".into());
    let mut found = fresh;
    compute_of(&mut found).status.get_or_insert_default().service_id = Some("x".into());
    for seen in [deployed, found] {
        judges(
            &seen,
            &[],
            "CellMismatch",
            &["deployed in cell nova-cell1", "asks for cell nova-cell2"],
        );
    }
}

#[test]
fn a_service_that_is_not_listed_any_more_is_looked_after_until_the_user_lets_it_go() {
    let mut seen = looked_after(&["nova-cell1"], Some("nova-cell1"));
    seen.nova = NovaServices { deployed: Some("nova".into()), ..NovaServices::default() };
    assert_eq!(reason(judged(&seen).1.as_ref()), "Deploying");
    node_of(&mut seen).annotations_mut().insert(CELL.into(), String::new());
    let command = "openstackdataplanenode/n0 nova.openstack.org/allow-removal=true";
    judges(&seen, &[], "CellMismatch", &[command]);
    node_of(&mut seen).annotations_mut().insert(ALLOW_REMOVAL.into(), "true".into());
    assert_eq!(judged(&seen).0, ["delete at any"]);
    // Another way to deploy it does not take it over.
    node_of(&mut seen).annotations_mut().insert(CELL.into(), "nova-cell1".into());
    judges(&seen, &[], "CellMismatch", &[]);
}

#[test]
fn a_compute_of_a_user_that_the_operator_would_deploy_is_not_adopted_as_observed() {
    let theirs = by_hand(&json!({ "dataplaneNodeName": "n0", "cellName": "nova-cell1" }));
    let seen = Observed { compute: Some(Arc::new(theirs)), ..of_set(&["nova-cell1"]) };
    judges(&seen, &[], "ComputeDiffers", &[r#"spec.management would be "Observed""#]);
}

#[test]
fn a_node_that_another_node_set_takes_over_keeps_its_compute() {
    let mut seen = looked_after(&["nova-cell1"], Some("nova-cell1"));
    node_of(&mut seen).spec.node_set = Some("other".into());
    let status = node_of(&mut seen).status.get_or_insert_default();
    status.ssh_key_secret_name = Some("other-key".into());
    let fields = "cellName,dataplaneNodeName,management,sshKeySecretName";
    assert_eq!(judged(&seen).0, [format!("apply force own {fields}")]);
    // While the other one is not known, nothing changes.
    let gone = Observed { group: None, nova: NovaServices::default(), ..seen };
    judges(&gone, &[], "NodeSetNotFound", &["OpenStackDataPlaneNodeSet other"]);
}

#[test]
fn a_host_that_leaves_is_held_until_its_compute_is_gone_and_gets_no_other_one() {
    let mut seen = looked_after(&["nova-cell1"], Some("nova-cell1"));
    node_of(&mut seen).spec.leaving = Some(true);
    judges(&seen, &[], "ComputeTerminating", &[]);
    let finalizers = |seen: &Observed| {
        let steps = plan(seen).steps.into_iter();
        let is_removal = |it: &Step| matches!(it.write, Write::RemoveFinalizer { .. });
        steps.filter(is_removal).count()
    };
    assert_eq!(finalizers(&seen), 0);
    seen.compute = None;
    assert_eq!((judged(&seen).0, finalizers(&seen)), (vec![], 1));
    // The entry is back.
    node_of(&mut seen).spec.leaving = None;
    let fields = "cellName,dataplaneNodeName,management,sshKeySecretName";
    assert_eq!(judged(&seen).0, [format!("apply yield own {fields}")]);
}

#[test]
fn a_host_that_is_up_and_not_mapped_does_not_satisfy_the_gate_and_is_not_down() {
    let gate = |conditions: &[(&str, &str)]| {
        let mut seen = looked_after(&["nova-cell1"], Some("nova-cell1"));
        report(&mut seen, conditions);
        conditions::condition(&conditions_of(&seen), NODE_SERVICE_UP)
    };
    for (up, mapped, status, reason) in [
        ("True", "True", "True", "ServiceUpIsTrue"),
        ("True", "False", "Unknown", "HostMappedIsFalse"),
        ("True", "Unknown", "Unknown", "HostMappedIsUnknown"),
        ("False", "False", "False", "ServiceUpIsFalse"),
    ] {
        assert_eq!(
            gate(&[(SERVICE_UP, up), (HOST_MAPPED, mapped)]),
            conditions::is(status, reason)
        );
    }
}

#[test]
fn each_write_of_a_node_has_conditions_holder_and_variables_and_nothing_else() {
    let mut seen = looked_after(&["nova-cell1"], Some("nova-cell1"));
    let id = "0c2a4b6e-1111-4222-8333-444455556666";
    compute_of(&mut seen).status.get_or_insert_default().compute_id = Some(id.into());
    let settled = |seen: &mut Observed| {
        let status = status_of(seen).unwrap();
        let fields: Vec<&str> = status.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, ["conditions", "disruption", "hostVars"]);
        assert_eq!(status["disruption"].as_object().unwrap().len(), 1, "{status}");
        let vars = json!([{
            "name": "nova.openstack.org", "vars": { "edpm_nova_compute_id": id },
        }]);
        assert_eq!(status["hostVars"], vars);
        let node = node_of(seen).status.get_or_insert_default();
        node.conditions = serde_json::from_value(status["conditions"].clone()).unwrap();
        node.disruption = serde_json::from_value(status["disruption"].clone()).unwrap();
        node.host_vars = serde_json::from_value(status["hostVars"].clone()).unwrap();
    };
    settled(&mut seen);
    assert_eq!(status_of(&seen), None, "nothing has changed");
    // Each of the three alone has all of them written.
    report(&mut seen, &[(SERVICE_UP, "False")]);
    settled(&mut seen);
    seen.group = Some(node_set(&json!({ "nova.openstack.org/drain-before": "true" })));
    settled(&mut seen);
    node_of(&mut seen).status.get_or_insert_default().host_vars.clear();
    settled(&mut seen);
    assert_eq!(status_of(&seen), None);
}

#[test]
fn annotations_that_count_for_nothing_on_a_host_are_in_a_condition_of_its_node() {
    let said = |seen: &Observed| {
        let all = conditions_of(seen);
        find(&all, ANNOTATIONS_IGNORED).map(|it| it.message.clone()).unwrap_or_default()
    };
    let mut seen = looked_after(&["nova-cell1"], Some("nova-cell1"));
    assert_eq!(said(&seen), "");
    let redeploy = "nova.openstack.org/redeploy";
    compute_of(&mut seen).annotations_mut().insert(redeploy.into(), "1".into());
    let text = said(&seen);
    assert!(text.contains("create an OpenStackDataPlaneDeployment"), "{text}");
    node_of(&mut seen).annotations_mut().insert(redeploy.into(), "1".into());
    let text = said(&seen);
    assert!(text.contains("set it on NovaExternalCompute"), "{text}");

    // A role is not drained before a service of type nova.
    let drains = "nova.openstack.org/drain-before";
    let mut of_role = Observed { nova: listed(&[]), ..super::seen(None) };
    let role = of_role.group.as_mut().unwrap().role_mut();
    role.annotations_mut().insert(drains.into(), "true".into());
    let text = said(&of_role);
    assert!(text.contains("by the annotation of the cell instead"), "{text}");
    let without_api = Observed { reads_nova: false, ..of_role };
    let text = said(&without_api);
    assert!(text.contains("nova.api.enabled"), "{text}");
}

#[test]
fn a_default_configuration_beside_a_service_and_a_repair_without_an_audit_count_for_nothing() {
    let said = |seen: &Observed| {
        let status = status_of(seen).unwrap_or_default();
        let all: Vec<Condition> =
            serde_json::from_value(status["conditions"].clone()).unwrap_or_default();
        find(&all, ANNOTATIONS_IGNORED).map(|it| it.message.clone()).unwrap_or_default()
    };
    let of_set = |annotations: Value| {
        let seen = looked_after(&["nova-cell1"], Some("nova-cell1"));
        said(&Observed { group: Some(node_set(&annotations)), ..seen })
    };
    let defaults = "nova.openstack.org/default-config";
    let text = of_set(json!({ defaults: "defaults" }));
    for words in ["config of OpenStackDataPlaneNodeSet edpm counts", "which is nova-extra-config"] {
        assert!(text.contains(words), "{text}");
    }
    assert_eq!(of_set(json!({ defaults: "" })), "");
    // Where the operator deploys the compute, it counts.
    let mut of_role = super::seen(Some("nova-cell1"));
    let role = of_role.group.as_mut().unwrap().role_mut();
    role.annotations_mut().insert(defaults.into(), "defaults".into());
    assert_eq!(said(&of_role), "");

    let repair = "nova.openstack.org/audit-repair";
    let text = of_set(json!({ repair: "true" }));
    let words = "counts for nothing without nova.openstack.org/audit: set that";
    assert!(text.contains(words), "{text}");
    for interval in ["6h", ""] {
        assert_eq!(of_set(json!({ repair: "true", "nova.openstack.org/audit": interval })), "");
    }
    assert_eq!(of_set(json!({ repair: "false" })), "");
}
