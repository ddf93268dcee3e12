//! What happens to a compute whose node requests another cell, or none.

use nova_config::annotations::ALLOW_REMOVAL;
use operator_core::plan::Step;

use super::*;

/// A compute that has run, with a user's configuration.
fn ran(cell: &str) -> ExternalCompute {
    let mut compute = made(cell);
    compute.spec.custom_service_config = Some("[libvirt]".into());
    let status = json!({ "services": [{
        "name": "nova", "state": "Succeeded", "hash": "h", "attempt": 1, "deployedHash": "h",
        "since": "2026-01-01T00:00:00Z",
    }] });
    compute.status = Some(serde_json::from_value(status).unwrap());
    compute
}

fn node_of(seen: &mut Observed) -> &mut Node {
    Arc::make_mut(&mut seen.node)
}

/// The node publishes another `deploy`, which its compute follows.
fn deploys(seen: &mut Observed) {
    let status = json!({ "deploy": true, "observedRole": observed_role() });
    node_of(seen).status = Some(serde_json::from_value(status).unwrap());
}

const FOLLOWS: &str = "apply force own cellName,dataplaneNodeName,deploy";

#[test]
fn whatever_is_asked_for_the_compute_keeps_its_cell_and_follows_its_node() {
    let asked = [Some("nova-cell2"), Some(""), None, Some("nova-cell0"), Some("No Name")];
    for asked in asked {
        let mut seen = with(asked, ran("nova-cell1"));
        deploys(&mut seen);
        let (writes, condition) = judged(&seen);
        assert_eq!(writes, [FOLLOWS], "{asked:?}");
        let expected = match asked {
            Some("nova-cell0") => "CellZero",
            Some("No Name") => "CellNameInvalid",
            _ => "CellMismatch",
        };
        assert_eq!(reason(condition.as_ref()), expected);
        let plan = recorded(decide(&seen, None, Timestamp::UNIX_EPOCH));
        let is_apply = |it: &&Step| matches!(it.write, Write::Apply { .. });
        let apply = plan.steps.iter().find(is_apply).map(|it| &it.write);
        let Some(Write::Apply { object, .. }) = apply else { panic!("{plan:?}") };
        assert_eq!(object["spec"]["cellName"], "nova-cell1", "{asked:?}");
    }
}

#[test]
fn a_mismatch_is_repaired_by_setting_the_annotation_back() {
    let slipped = with(Some("nova-cell2"), ran("nova-cell1"));
    let told = judged(&slipped).1.unwrap();
    for words in ["asks for cell nova-cell2", "is in cell nova-cell1", "back to nova-cell1"] {
        assert!(told.message.contains(words), "{}", told.message);
    }
    let mut repaired = with(Some("nova-cell1"), ran("nova-cell1"));
    let status = json!({ "conditions": [told] });
    node_of(&mut repaired).status = Some(serde_json::from_value(status).unwrap());
    judges(&repaired, &[], "Deploying", &[]);
}

#[test]
fn the_roles_annotation_counts_only_where_the_node_has_none() {
    let of = |of_role: Option<&str>, of_node: Option<&str>| {
        let group = Some(role(of_role));
        judged(&Observed { group, ..with(of_node, ran("nova-cell1")) })
    };
    for (of_role, of_node, expected) in [
        (Some("nova-cell2"), None, "CellMismatch"),
        (Some("nova-cell2"), Some("nova-cell1"), "Deploying"),
        (Some("nova-cell1"), None, "Deploying"),
        (Some("nova-cell1"), Some(""), "CellMismatch"),
        (None, None, "CellMismatch"),
    ] {
        let (writes, condition) = of(of_role, of_node);
        assert_eq!(writes, Vec::<String>::new());
        assert_eq!(reason(condition.as_ref()), expected, "{of_role:?} {of_node:?}");
    }
}

#[test]
fn what_would_be_lost_is_said_with_the_command() {
    let lost =
        |compute: ExternalCompute| judged(&with(Some("nova-cell2"), compute)).1.unwrap().message;
    let text = lost(ran("nova-cell1"));
    assert!(text.contains("its customServiceConfig is lost with it"), "{text}");
    assert!(text.ends_with("kubectl delete -n ns novaexternalcompute n0"), "{text}");
    let mut plain = ran("nova-cell1");
    plain.spec.custom_service_config = None;
    let text = lost(plain);
    assert!(text.contains("no customServiceConfig to lose"), "{text}");
}

#[test]
fn a_compute_goes_only_with_permission() {
    for asked in [None, Some("")] {
        let mut seen = with(asked, ran("nova-cell1"));
        let kept = judged(&seen);
        assert_eq!((kept.0, reason(kept.1.as_ref())), (vec![], "CellMismatch"));
        let text = kept.1.unwrap().message;
        let command = "kubectl annotate --overwrite -n ns openstackdataplanenode/n0 \
                       nova.openstack.org/allow-removal=true";
        assert!(text.contains(command), "{text}");
        node_of(&mut seen).annotations_mut().insert(ALLOW_REMOVAL.into(), "false".into());
        assert_eq!(judged(&seen).0, Vec::<String>::new());
        node_of(&mut seen).annotations_mut().insert(ALLOW_REMOVAL.into(), "true".into());
        judges(&seen, &["delete at any"], "ComputeTerminating", &[]);
    }
    // The permission to delete is no permission to move.
    let mut seen = with(Some("nova-cell2"), ran("nova-cell1"));
    node_of(&mut seen).annotations_mut().insert(ALLOW_REMOVAL.into(), "true".into());
    judges(&seen, &[], "CellMismatch", &[]);
}

#[test]
fn while_a_compute_terminates_nothing_is_written_and_afterwards_the_annotation_is_read_anew() {
    let mut compute = ran("nova-cell1");
    compute.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    for (asked, words) in
        [(Some("nova-cell2"), "made in cell nova-cell2"), (None, "has no cell any more")]
    {
        judges(&with(asked, compute.clone()), &[], "ComputeTerminating", &[words]);
    }
    let plan = recorded(decide(&seen(Some("nova-cell2")), None, Timestamp::UNIX_EPOCH));
    let Write::Apply { object, .. } = &plan.steps[0].write else { panic!("{plan:?}") };
    assert_eq!(object["spec"]["cellName"], "nova-cell2");
}

#[test]
fn a_role_that_is_deleted_changes_no_compute() {
    for asked in [None, Some("nova-cell1")] {
        let mut compute = ran("nova-cell1");
        compute.spec.env = serde_json::from_value(json!([{ "name": "A", "value": "b" }])).unwrap();
        let mut seen = Observed { group: None, ..with(asked, compute) };
        deploys(&mut seen);
        judges(&seen, &[], "RoleNotFound", &["OpenStackDataPlaneRole compute"]);
    }
    // A compute that never ran stays too: the role may be about to be restored.
    let fresh = Observed { group: None, ..with(None, made("nova-cell1")) };
    judges(&fresh, &[], "RoleNotFound", &[]);
    // The node's own annotation still counts.
    let moved = Observed { group: None, ..with(Some("nova-cell2"), ran("nova-cell1")) };
    assert_eq!(reason(judged(&moved).1.as_ref()), "CellMismatch");
    // Without a compute there is nothing to keep.
    let none = Observed { group: None, ..seen(None) };
    assert_eq!(recorded(decide(&none, None, Timestamp::UNIX_EPOCH)).steps, []);
}

#[test]
fn what_a_node_publishes_without_its_role_is_not_followed() {
    let mut compute = ran("nova-cell1");
    compute.spec.deploy = Some(true);
    compute.spec.ssh_key_secret_name = Some("key".into());
    let mut seen = with(Some("nova-cell1"), compute);
    // The node's controller knows already that the role is gone, or not yet that it is back.
    node_of(&mut seen).status = Some(serde_json::from_value(json!({ "deploy": false })).unwrap());
    assert_eq!(judged(&seen).0, Vec::<String>::new());
    node_of(&mut seen).spec.role = None;
    assert_eq!(judged(&seen).0, [FOLLOWS]);
}

#[test]
fn a_node_that_is_made_again_gets_a_compute_of_its_new_cell_once_the_old_one_is_gone() {
    let mut again = with(Some("nova-cell2"), ran("nova-cell1"));
    node_of(&mut again).metadata.uid = Some("uid-again".into());
    judges(&again, &[], "ComputeTerminating", &[]);
    again.compute = None;
    let (writes, condition) = judged(&again);
    assert_eq!(writes, ["apply yield own cellName,dataplaneNodeName"]);
    assert!(condition.unwrap().message.contains("nova-cell2"));
}
