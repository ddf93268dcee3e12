//! A compute whose host has lost its identity in nova: what its runs are given, and what holds them.

use operator_core::host_identity::{DUPLICATE, MISMATCH, MISSING, NAME_TAKEN, NOT_FOUND};

use super::*;
use crate::nova::drain::order::{HostOrder, IdentityGoal, IdentityOrder};
use crate::nova::drain::progress::{HostProgress, IdentityUse, Occupied};
use crate::nova::health::{HostHealth, MappingHealth, ServiceHealth};

const ID: &str = "0a3c8b1e-5f0d-4c59-9d5c-7d1b8c0d2e11";
pub(super) const ROLE: &str = "/usr/share/ansible/collections/ansible_collections/osp/edpm/roles/edpm_nova/tasks/identity.yml:3";

/// A deployed compute whose identity nova has.
fn world() -> World {
    let mut world = World::deployed();
    world.seen.drain = Some(HostProgress::Pending);
    let compute_id = Some(ID.to_owned());
    let (service, mapping) = (ServiceHealth::Up { disabled: None }, MappingHealth::Mapped);
    world.seen.health = Some(HostHealth { service, mapping, compute_id, ..HostHealth::default() });
    world.settle();
    world.writes.clear();
    world
}

/// Fails the running run in this task.
pub(super) fn fail(world: &mut World, path: &str, task: &str, message: &str) {
    let run = world.seen.runs.iter().position(is_open).unwrap();
    let status = json!({
        "JobStatus": "Failed",
        "completionTime": world.now.to_string(),
        "hosts": [{ "name": "n0", "result": "Failed" }],
        "failures": [{ "host": "n0", "task": task, "path": path, "message": message }],
    });
    Arc::make_mut(&mut world.seen.runs[run]).status = Some(serde_json::from_value(status).unwrap());
    world.settle();
}

/// The host was installed anew, and the run found it without its identity.
fn reinstalled() -> World {
    let mut world = world();
    world.node().status.as_mut().unwrap().host_instance = Some("another".into());
    world.settle();
    world.end("Ok").settle();
    assert_eq!(given(&world), (json!(ID), json!(false)));
    fail(&mut world, ROLE, &format!("osp.edpm.edpm_nova : {MISSING}"), "so it is");
    world.writes.clear();
    world
}

/// What the last run of nova was given: the recorded identity, and whether it may be restored.
pub(super) fn given(world: &World) -> (Value, Value) {
    let vars = &world.run_of_nova().spec.extra_vars;
    let variable = |name: &str| vars.get(name).cloned().unwrap_or_default();
    (variable("edpm_nova_compute_id"), variable("edpm_nova_restore_compute_id"))
}

/// A pass over nova's API found this, long after the last attempt.
fn found(world: &mut World, progress: HostProgress) {
    world.seen.drain = Some(progress);
    world.now += SignedDuration::from_mins(20);
    world.settle();
}

fn free() -> HostProgress {
    HostProgress::Identity(IdentityUse::Free)
}

#[track_caller]
fn says(world: &World, reason: &str, part: &str) {
    for type_ in ["Ready", "DeploymentReady"] {
        assert_eq!(world.condition(type_).status, ConditionStatus::False);
        world.says(type_, reason, &[part]);
    }
}

#[test]
fn a_recorded_identity_deploys_nothing_and_later_runs_are_given_it() {
    let mut world = world();
    assert_eq!(world.settle(), [""; 0], "nothing runs because of it");
    world.configure(None).settle();
    assert_eq!(given(&world), (json!(ID), json!(false)));
    world.seen.drain = None;
    world.end("Failed");
    world.configure(Some("[libvirt]\ncpu_mode = host-model\n")).settle();
    assert_eq!(given(&world), (Value::Null, Value::Null), "nova's API is not used");
}

#[test]
fn what_nova_had_under_the_name_before_the_compute_registered_is_given_to_no_run() {
    let mut world = World::new();
    world.seen.drain = Some(HostProgress::Pending);
    let compute_id = Some(ID.to_owned());
    world.seen.health = Some(HostHealth { compute_id, ..HostHealth::default() });
    world.settle();
    world.end("Ok").settle();
    assert_eq!(given(&world), (Value::Null, Value::Null));
    let recorded = |it: &World| it.seen.compute.status.as_ref().unwrap().compute_id.clone();
    assert_eq!(recorded(&world), None);
    world.end_well(2);
    assert_eq!(recorded(&world).as_deref(), Some(ID), "the compute has registered");
}

#[test]
fn a_host_without_its_identity_gets_it_back_once_nova_has_nothing_there() {
    let mut world = reinstalled();
    says(&world, "IdentityMissing", "has lost its identity (service nova");
    let order =
        IdentityOrder { compute_id: ID.to_owned(), goal: IdentityGoal::Restore, drain: None };
    assert_eq!(host_order(&world.seen), Some(HostOrder::Identity(order)));
    found(&mut world, HostProgress::Pending);
    assert_eq!(world.n_runs(), 0, "nothing runs before nova was asked");
    found(&mut world, free());
    assert_eq!((world.n_runs(), given(&world)), (1, (json!(ID), json!(true))));
    world.end_well(2);
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
    assert_eq!(host_order(&world.seen), None);
}

#[test]
fn a_host_with_servers_gets_no_identity_and_the_servers_are_named() {
    let mut world = reinstalled();
    let servers: Vec<String> = (0..7).map(|idx| format!("b{idx}")).collect();
    let occupied =
        HostProgress::Occupied(Occupied { servers: servers.into(), ..Occupied::default() });
    found(&mut world, occupied.clone());
    says(&world, "IdentityHasServers", "servers b0, b1, b2, b3, b4 and 2 more");
    says(&world, "IdentityHasServers", &format!("put {ID} into /var/lib/nova/compute_id"));
    found(&mut world, HostProgress::Pending);
    says(&world, "IdentityHasServers", "servers b0");
    assert_eq!(world.n_runs(), 0);
    // A user who restored it by hand has the compute deployed again.
    found(&mut world, occupied);
    world.compute().annotations_mut().insert(REDEPLOY.into(), "1".into());
    world.settle();
    world.end("Ok").settle();
    assert_eq!((world.n_runs(), given(&world)), (2, (json!(ID), json!(false))));
}

#[test]
fn an_identity_that_something_else_uses_or_that_nova_is_silent_about_is_not_restored() {
    let other = IdentityUse::OtherHost { compute_id: ID.to_owned(), host: "n1".to_owned() };
    for (progress, reason, part) in [
        (HostProgress::Identity(IdentityUse::Reporting), "IdentityInUse", "still reports to nova"),
        (HostProgress::Identity(other), "IdentityInUse", "is not given to host n0.example.org"),
        (HostProgress::CellNotAnswering, "IdentityNotChecked", "start that database"),
    ] {
        let mut world = reinstalled();
        found(&mut world, progress);
        says(&world, reason, part);
        assert_eq!(world.n_runs(), 0);
    }
}

#[test]
fn a_host_with_another_identity_waits_for_a_user() {
    let mut world = world();
    world.configure(None).settle();
    fail(&mut world, ROLE, &format!("osp.edpm.edpm_nova : {MISMATCH}"), "so it is");
    world.writes.clear();
    says(&world, "IdentityMismatch", "has another identity than the recorded one");
    found(&mut world, free());
    assert_eq!((world.n_runs(), host_order(&world.seen)), (0, None));
}

#[test]
fn a_provider_that_has_the_name_of_the_host_is_deleted_and_the_check_runs_again() {
    let mut world = world();
    world.configure(None).settle();
    world.end("Ok").settle();
    fail(&mut world, "/runner/project/playbook.yaml:9", NAME_TAKEN, "so it is");
    world.writes.clear();
    says(&world, "ProviderNameTaken", "has no resource provider of its own");
    let order = IdentityOrder { compute_id: ID.to_owned(), goal: IdentityGoal::Name, drain: None };
    assert_eq!(host_order(&world.seen), Some(HostOrder::Identity(order)));
    world.seen.drain = Some(free());
    world.settle();
    says(&world, "ProviderNameTaken", "it is retried automatically");
    found(&mut world, free());
    assert_eq!(world.n_runs(), 1);
    world.end("Ok").settle();
    assert_eq!((world.reason("Ready"), host_order(&world.seen)), ("Ready".to_owned(), None));
}

#[test]
fn the_tasks_that_are_recognized_are_those_of_the_plays() {
    let role =
        include_str!("../../../../../../ansible/osp/edpm/roles/edpm_nova/tasks/identity.yml");
    let play = include_str!("../../../../plays/nova-registered.yaml");
    for (text, tasks) in
        [(role, &[MISSING, MISMATCH][..]), (play, &[NOT_FOUND, DUPLICATE, NAME_TAKEN])]
    {
        for task in tasks {
            let name = format!("- name: {task}\n");
            let (_, after) = text.split_once(&name).unwrap();
            assert!(after.trim_start().starts_with("ansible.builtin.fail:"), "{task}");
        }
    }
}

#[test]
fn an_identity_is_restored_before_a_service_is_enabled_that_a_rollout_disabled() {
    let mut world = reinstalled();
    let disabled = Some("nova.openstack.org/drain: rollout".to_owned());
    world.seen.health.as_mut().unwrap().disabled = disabled;
    let Some(HostOrder::Identity(order)) = host_order(&world.seen) else { panic!("no identity") };
    assert_eq!((order.goal, order.drain), (IdentityGoal::Restore, None));
}

#[test]
fn a_run_that_waits_to_restore_an_identity_goes_when_something_reports_under_the_name() {
    let servers = vec!["b0".to_owned()];
    let occupied =
        HostProgress::Occupied(Occupied { servers: servers.into(), ..Occupied::default() });
    let reporting = HostProgress::Identity(IdentityUse::Reporting);
    for (found_since, reason) in [(reporting, "IdentityInUse"), (occupied, "IdentityHasServers")] {
        let mut world = reinstalled();
        world.is_queueing = true;
        found(&mut world, free());
        assert_eq!((world.n_runs(), given(&world)), (1, (json!(ID), json!(true))));
        // The operator has just started: what nova has is not known yet.
        found(&mut world, HostProgress::Pending);
        let is_waiting = |it: &World| it.seen.runs.iter().any(is_open);
        assert!(is_waiting(&world));
        found(&mut world, found_since);
        assert!(!is_waiting(&world));
        says(&world, reason, "");
    }
}

#[test]
fn what_is_no_id_in_a_status_is_given_to_no_run() {
    let mut world = world();
    world.seen.health = None;
    let text = "{{ lookup('pipe', 'cat /runner/env/ssh_key') }}";
    let status = Arc::make_mut(&mut world.seen.compute).status.as_mut().unwrap();
    status.compute_id = Some(text.to_owned());
    world.configure(None).settle();
    assert_eq!(given(&world), (Value::Null, Value::Null));
}
