//! What runs again and what does not: after a restart, after a failure, after a wait.

use super::*;

#[test]
fn a_deployed_compute_whose_runs_are_gone_runs_nothing_again() {
    let mut world = World::deployed();
    world.seen.runs.clear();
    assert_eq!(world.settle(), Vec::<String>::new());
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
}

#[test]
fn a_failure_takes_ready_from_a_deployed_compute_until_a_changed_input_runs() {
    let mut world = World::deployed();
    world.configure(Some("[libvirt]\ncpu_mode = none\n")).settle();
    world.end("Failed").settle();
    let ready = world.condition("Ready");
    assert_eq!((ready.status, ready.reason.as_str()), (ConditionStatus::False, "TaskFailed"));
    let n_runs = world.n_runs();
    world.configure(Some("[libvirt]\ncpu_mode = host-passthrough\n")).settle();
    assert_eq!(world.n_runs(), n_runs + 1);
    world.end_well(2);
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
}

#[test]
fn a_compute_is_deployed_once_its_node_is_ready() {
    let mut world = World::new();
    world.set_node_ready("False");
    world.settle();
    assert_eq!((world.n_runs(), world.reason("NodeReady").as_str()), (0, "NodeNotReady"));
    world.set_node_ready("True");
    assert!(world.settle().contains(&"run libvirt".to_owned()));
}

#[test]
fn where_a_compute_was_deployed_stays_recorded_until_an_attempt_begins_elsewhere() {
    let (old, new) = ("192.0.2.7:22", "192.0.2.8:22");
    let address = |it: &World| it.seen.compute.status.as_ref().unwrap().address.clone().unwrap();
    let mut world = World::deployed();
    world.compute().spec.deploy = Some(false);
    world.node().status.as_mut().unwrap().address = Some(new.into());
    world.settle();
    assert_eq!((world.n_runs(), address(&world).as_str()), (0, old));

    assert!(told_at_its_end(&world).contains(&format!("it was deployed at {old}")));

    world.compute().spec.deploy = Some(true);
    world.settle();
    assert_eq!((world.n_runs(), address(&world).as_str()), (1, new));
    // A running run keeps the address that it was created with.
    world.node().status.as_mut().unwrap().address = Some(old.into());
    world.settle();
    assert_eq!((world.n_runs(), address(&world).as_str()), (1, new));
}

#[test]
fn a_compute_whose_deployment_went_elsewhere_than_the_record_says_is_not_called_cleaned() {
    let mut world = World::deployed();
    assert!(told_at_its_end(&world).contains("is being stopped"), "where it went is cleaned");
    // As earlier versions recorded it, and as a failed attempt leaves it.
    world.compute().status.as_mut().unwrap().address = Some("192.0.2.8:22".into());
    world.node().status.as_mut().unwrap().address = Some("192.0.2.8:22".into());
    let told = told_at_its_end(&world);
    assert!(told.contains("its last complete deployment did not go to 192.0.2.8:22"), "{told}");
}

/// The condition of a compute that runs nothing more, once it is deleted.
fn told_at_its_end(world: &World) -> String {
    let plan = recorded(removal::decide(&leaving(&world.seen), None, world.now));
    let Write::Status { status, .. } = &plan.steps[0].write else { panic!("{plan:?}") };
    let status: ExternalComputeStatus = serde_json::from_value(status.clone()).unwrap();
    find(&status.conditions, "HostCleaned").unwrap().message.clone()
}

#[test]
fn what_the_node_passes_on_reaches_every_run() {
    let mut world = World::new();
    let spec = &mut world.compute().spec;
    spec.env = serde_json::from_value(json!([{ "name": "A", "value": "b" }])).unwrap();
    spec.network_attachments = vec!["internalapi".into()];
    spec.dns_config =
        Some(serde_json::from_value(json!({ "nameservers": ["192.0.2.53"] })).unwrap());
    spec.extra_mounts = serde_json::from_value(json!([{
        "volumes": [{ "name": "ceph", "secret": { "secretName": "ceph" } }],
        "mounts": [{ "name": "ceph", "mountPath": "/etc/ceph" }],
    }]))
    .unwrap();
    world.run_all();
    assert_eq!(world.seen.runs.len(), 3);
    for run in &world.seen.runs {
        let spec = &run.spec;
        assert!(spec.env.iter().any(|it| it.name == "A"), "{spec:?}");
        assert_eq!(spec.network_attachments, ["internalapi"]);
        assert!(spec.dns_config.is_some());
        let mut mounts = spec.extra_mounts.iter().flat_map(|it| &it.mounts);
        assert!(mounts.any(|it| it.mount_path == "/etc/ceph"), "{spec:?}");
    }
}
