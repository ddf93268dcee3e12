//! Name and owner of a compute, its cell's name, and the field that is never written.

use super::*;

/// What is applied, in order.
fn applied(seen: &Observed) -> Vec<Value> {
    let steps = recorded(decide(seen, None, Timestamp::UNIX_EPOCH)).steps.into_iter();
    let objects = steps.filter_map(|it| {
        if let Write::Apply { object, .. } = it.write { Some(object) } else { None }
    });
    objects.collect()
}

#[test]
fn a_compute_bears_its_nodes_name_and_belongs_to_it() {
    let plan = recorded(decide(&seen(Some("nova-cell1")), None, Timestamp::UNIX_EPOCH));
    let target = &plan.steps[0].target;
    assert_eq!((target.kind.kind.as_str(), target.name.as_str()), ("NovaExternalCompute", "n0"));
    let object = &applied(&seen(Some("nova-cell1")))[0];
    let owner = &object["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["uid"], &owner["controller"]), (&json!("uid-n0"), &json!(true)));
    assert_eq!(object["spec"]["dataplaneNodeName"], "n0");
}

#[test]
fn cells_of_two_novas_with_one_short_name_are_two_cells() {
    for cell in ["nova-cell1", "other-cell1"] {
        assert_eq!(applied(&seen(Some(cell)))[0]["spec"]["cellName"], cell);
    }
    let moved = Observed { has_runs: true, ..with(Some("other-cell1"), made("nova-cell1")) };
    assert_eq!(reason(judged(&moved).1.as_ref()), "CellMismatch");
}

#[test]
fn the_humans_options_are_in_no_write() {
    let mut configured = made("nova-cell1");
    configured.spec.custom_service_config = Some("[libvirt]".into());
    let follows = |asked: &str, compute: &ExternalCompute| {
        let mut seen = with(Some(asked), compute.clone());
        let status = json!({ "deploy": true, "observedRole": observed_role() });
        Arc::make_mut(&mut seen.node).status = Some(serde_json::from_value(status).unwrap());
        seen
    };
    let mut without_images = configured.clone();
    without_images.spec.nova_compute_container_image = None;
    let written_first = by_hand(&json!({
        "dataplaneNodeName": "n0", "cellName": "nova-cell1", "customServiceConfig": "[libvirt]",
    }));
    let cases = [
        seen(Some("nova-cell1")),
        follows("nova-cell1", &configured),
        follows("nova-cell2", &configured),
        follows("nova-cell1", &without_images),
        with(Some("nova-cell1"), written_first),
    ];
    for seen in cases {
        let objects = applied(&seen);
        assert!(!objects.is_empty());
        for object in objects {
            assert_eq!(object["spec"].get("customServiceConfig"), None, "{object}");
        }
    }
}

#[test]
fn the_environment_is_the_nodes_else_the_roles() {
    let env = |name: &str| serde_json::from_value(json!([{ "name": name, "value": "x" }])).unwrap();
    let mut seen = with(Some("nova-cell1"), made("nova-cell1"));
    seen.group.as_mut().unwrap().role_mut().spec.env = env("ROLE");
    assert_eq!(applied(&seen)[0]["spec"]["env"][0]["name"], "ROLE");
    Arc::make_mut(&mut seen.node).spec.env = env("NODE");
    assert_eq!(applied(&seen)[0]["spec"]["env"][0]["name"], "NODE");
}

#[test]
fn the_mounts_are_the_nodes_else_the_roles() {
    let section = |name: &str| {
        let volume = json!({ "name": name, "secret": { "secretName": name } });
        let mount = json!({ "name": name, "mountPath": "/etc/x" });
        let section = json!({ "extraMounts": [{ "volumes": [volume], "mounts": [mount] }] });
        serde_json::from_value(section).unwrap()
    };
    let volume = |seen: &Observed| {
        applied(seen)[0].pointer("/spec/extraMounts/0/volumes/0/name").unwrap().clone()
    };
    let mut seen = with(Some("nova-cell1"), made("nova-cell1"));
    seen.group.as_mut().unwrap().role_mut().spec.node_template = Some(section("role"));
    assert_eq!(volume(&seen), "role");
    Arc::make_mut(&mut seen.node).spec.node = Some(section("node"));
    assert_eq!(volume(&seen), "node");
}
