//! A compute that a service of type nova deploys: what is reported, recorded and restored.

use api::dataplane::{HostState, NodeSet, RunState, ServiceRun};
use api::nova::RegisteredNova;
use nova_config::annotations::AUDIT;
use testkit::set_nodes;

use super::*;
use crate::compute::audit::request::{AuditPolicy, AuditRequest};
use crate::group::Group;
use crate::group::conflicting_service::ConflictingService;
use crate::nova::drain::order::{HostOrder, IdentityGoal, IdentityOrder};
use crate::nova::drain::progress::{HostProgress, IdentityUse, Occupied};
use crate::nova::health::{HostHealth, MappingHealth, ServiceHealth};

const ID: &str = "0a3c8b1e-5f0d-4c59-9d5c-7d1b8c0d2e11";
const OTHER: &str = "11111111-2222-4333-8444-555555555555";

/// A host of a node set with this cell, on which the service has not been deployed.
fn new(cell: Option<&str>) -> World {
    let mut world = World::new();
    let node = set_nodes::node("ns", "edpm", "n0", "192.0.2.7");
    world.seen.compute = Arc::new(set_nodes::observed_compute(&node, cell));
    world.seen.node = Some(Arc::new(node));
    let spec = json!({
        "services": ["nova"], "nodes": { "n0": {} },
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key" },
    });
    let set: NodeSet = object("edpm", &spec);
    world.seen.group = Some(Group::NodeSet(Arc::new(set)));
    let listed = ConflictingService { lister: "edpm".into(), service: "nova".into() };
    let cells = cell.into_iter().map(str::to_owned).collect();
    world.seen.nova = NovaServices { listed: Some(listed), deployed: None, cells };
    world.seen.cell = world.seen.cell.filter(|_| cell.is_some());
    world.seen.drain = Some(HostProgress::Pending);
    read(&mut world, None, None);
    world
}

/// What the last reading has of the host: the UUIDs of its service and compute node.
pub(super) fn read(world: &mut World, service: Option<&str>, compute_id: Option<&str>) {
    let (up, none) = (ServiceHealth::Up { disabled: None }, ServiceHealth::NotFound);
    let owned = |it: Option<&str>| it.map(str::to_owned);
    world.seen.health = Some(HostHealth {
        service: if service.is_some() { up } else { none },
        mapping: MappingHealth::Mapped,
        service_id: owned(service),
        compute_id: owned(compute_id),
        read_at: Some(world.now),
        nova: Some(RegisteredNova {
            keystone_auth_url: "http://192.0.2.1:5000".into(),
            region: "r".into(),
        }),
        ..HostHealth::default()
    });
}

/// A deployment of this UID succeeds on the host; nova was not read since.
pub(super) fn deploy(world: &mut World, uid: &str) {
    let node = world.node();
    set_nodes::begin(node, uid);
    set_nodes::succeed(node, &["nova"]);
    world.seen.nova.deployed = Some("nova".to_owned());
    world.seen.read_since_deployment = Some(false);
}

/// A host of a node set that is in service and registered.
pub(super) fn deployed() -> World {
    let mut world = new(Some("nova-cell1"));
    world.settle();
    deploy(&mut world, "d1");
    read(&mut world, Some("s"), Some(ID));
    world.settle();
    world.seen.read_since_deployment = Some(true);
    world.settle();
    world.writes.clear();
    world
}

fn ids(world: &World) -> (Option<&str>, Option<&str>) {
    let status = world.seen.compute.status.as_ref().unwrap();
    (status.service_id.as_deref(), status.compute_id.as_deref())
}

#[test]
fn it_is_ready_once_the_service_has_succeeded_and_nova_was_read_twice_since() {
    let mut world = new(Some("nova-cell1"));
    assert_eq!(world.settle(), ["status"]);
    assert_eq!((world.reason("Ready"), world.n_runs()), ("NotRequested".into(), 0));
    assert!(world.condition("Ready").message.contains("nodeSets: [edpm]"));
    assert_eq!(world.reason("ServiceUp"), "NotRegistered");
    deploy(&mut world, "d1");
    read(&mut world, Some("s"), Some(ID));
    world.settle();
    assert_eq!(world.reason("DeploymentReady"), "Deployed");
    assert_eq!(world.reason("Ready"), "WaitingForNova");
    assert_eq!(ids(&world), (None, None), "it may be what was there before");
    world.seen.read_since_deployment = Some(true);
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.reason("Ready"), "Ready");
    assert_eq!(ids(&world), (Some("s"), Some(ID)));
    assert_eq!(world.settle(), [""; 0]);
    let types: Vec<&str> = world
        .seen
        .compute
        .status
        .iter()
        .flat_map(|it| &it.conditions)
        .map(|it| &*it.type_)
        .collect();
    for absent in ["InputReady", "ServiceConfigReady", "UpToDate"] {
        assert!(!types.contains(&absent), "{types:?}");
    }
}

#[test]
fn a_failure_of_the_service_is_repeated_and_what_is_recorded_outlives_the_status_of_the_node() {
    let mut world = deployed();
    let record = |world: &mut World| -> ServiceRun {
        world.node().status.as_mut().unwrap().services.remove(0)
    };
    let mut failed = record(&mut world);
    failed.state = RunState::Failed;
    (failed.reason, failed.message) = (Some("TaskFailed".into()), Some("so it is".into()));
    world.node().status.as_mut().unwrap().services.push(failed);
    world.settle();
    let ready = world.condition("Ready");
    assert_eq!((ready.reason.as_str(), ready.message.as_str()), ("TaskFailed", "so it is"));
    let before = world.seen.compute.status.clone();
    world.node().status = None;
    world.seen.read_since_deployment = None;
    assert_eq!(world.settle(), [""; 0]);
    assert_eq!(world.seen.compute.status, before);
}

#[test]
fn another_identity_than_the_recorded_one_holds_everything_until_a_deployment_has_registered_it() {
    let mut world = deployed();
    world.now += SignedDuration::from_hours(1);
    read(&mut world, Some("t"), Some(OTHER));
    world.settle();
    assert_eq!(world.reason("Ready"), "OtherIdentity");
    assert_eq!((ids(&world), host_order(&world.seen)), ((Some("s"), Some(ID)), None));
    world.mentions("NovaMatches", &["nodeSets: [edpm]"]);
    deploy(&mut world, "d2");
    let now = Timestamp::to_string(&world.now);
    let services = &mut world.node().status.as_mut().unwrap().services;
    (services[0].hash, services[0].since) = ("i".into(), Time(now.parse().unwrap()));
    world.settle();
    assert_eq!(ids(&world), (Some("s"), Some(ID)), "nova was not read since");
    world.seen.read_since_deployment = Some(true);
    world.settle();
    assert_eq!((world.reason("Ready"), ids(&world)), ("Ready".into(), (Some("t"), Some(OTHER))));
}

#[test]
fn a_cell_that_is_not_known_is_said_and_nothing_is_ordered() {
    let mut world = new(None);
    deploy(&mut world, "d1");
    read(&mut world, Some("s"), Some(ID));
    world.seen.read_since_deployment = Some(true);
    world.settle();
    for type_ in ["Ready", "NovaCellReady", "CellMatches"] {
        world.says(type_, "CellUnknown", &["dataSources"]);
    }
    assert_eq!(world.reason("ServiceUp"), "ServiceUp", "all cells are read");
    world.node().annotations_mut().insert("nova.openstack.org/drain".into(), "wait".into());
    assert_eq!((host_order(&world.seen), world.pass().orders), (None, vec![]));
}

#[test]
fn a_repair_after_an_audit_is_refused_and_audits_name_the_deployment() {
    let mut world = deployed();
    let policy = AuditPolicy { interval: SignedDuration::from_hours(1), repairs: true };
    world.seen.audited.request = AuditRequest::Audit(policy);
    world.settle();
    world.says("ConfigWarnings", "RepairNotPossible", &[&format!("{AUDIT}-repair")]);
    assert_eq!(world.reason("ConfigurationInSync"), "NotAudited");
    assert_eq!(world.reason("Ready"), "Ready");
}

/// The host was installed anew, and a deployment found it without its identity.
fn reinstalled() -> World {
    let mut world = deployed();
    set_nodes::begin(world.node(), "d2");
    let status = world.node().status.as_mut().unwrap();
    status.deployment.as_mut().unwrap().state = HostState::Failed;
    let record = &mut status.services[0];
    record.state = RunState::Failed;
    (record.hash, record.attempt) = ("i".into(), 2);
    (record.reason, record.message) = (Some("IdentityMissing".into()), Some("it is lost".into()));
    world.seen.read_since_deployment = None;
    world.settle();
    world.writes.clear();
    world
}

fn found(world: &mut World, progress: HostProgress) -> Vec<String> {
    world.seen.drain = Some(progress);
    world.settle()
}

const FREE: HostProgress = HostProgress::Identity(IdentityUse::Free);

#[test]
fn a_lost_identity_is_restored_once_nova_has_nothing_there_and_then_a_deployment_is_asked_for() {
    let mut world = reinstalled();
    let order =
        IdentityOrder { compute_id: ID.to_owned(), goal: IdentityGoal::Restore, drain: None };
    assert_eq!(host_order(&world.seen), Some(HostOrder::Identity(order)));
    assert_eq!((world.reason("Ready"), world.n_runs()), ("RestoringIdentity".into(), 0));
    let servers = Occupied { servers: vec!["b0".to_owned()].into(), ..Occupied::default() };
    found(&mut world, HostProgress::Occupied(servers));
    assert_eq!((world.reason("Ready"), world.n_runs()), ("IdentityHasServers".into(), 0));
    assert_eq!(found(&mut world, FREE)[..2], ["status", "run nova-restore"]);
    let run = world.seen.runs.last().unwrap();
    assert_eq!(run.spec.extra_vars["edpm_nova_compute_id"], json!(ID));
    let play = run.spec.playbook_contents.clone().unwrap_or_default();
    assert!(play.contains("Look for guests") && play.contains("Write the host's identity"));
    world.end("Ok").settle();
    world.says("Ready", "IdentityRestored", &["nodeSets: [edpm]"]);
    assert_eq!(host_order(&world.seen), None, "a deployment that drains first is not kept from it");
    assert_eq!(found(&mut world, HostProgress::Pending), [""; 0]);
    assert_eq!(world.n_runs(), 1);

    deploy(&mut world, "d3");
    world.settle();
    world.seen.read_since_deployment = Some(true);
    world.settle();
    assert_eq!((world.reason("Ready"), ids(&world)), ("Ready".into(), (Some("s"), Some(ID))));
}

#[test]
fn a_host_that_loses_its_identity_again_gets_it_back_again() {
    let mut world = reinstalled();
    found(&mut world, FREE);
    world.end("Ok").settle();
    let record = &mut world.node().status.as_mut().unwrap().services[0];
    record.attempt += 1;
    // Its order has ended, so that nothing is known of another one.
    world.seen.drain = Some(HostProgress::Pending);
    world.settle();
    assert_eq!(world.n_runs(), 1, "nova is asked anew");
    assert!(found(&mut world, HostProgress::Pending).is_empty());
    assert!(found(&mut world, FREE).contains(&"run nova-restore".to_owned()));
}

#[test]
fn a_restoration_that_waits_is_withdrawn_when_something_uses_the_identity() {
    let mut world = reinstalled();
    world.is_queueing = true;
    found(&mut world, FREE);
    assert_eq!(world.n_runs(), 1);
    let used = HostProgress::Identity(IdentityUse::Reporting);
    assert!(found(&mut world, used).contains(&"delete run".to_owned()));
    assert_eq!(world.reason("Ready"), "IdentityInUse");
}

#[test]
fn where_novas_api_is_not_read_any_more_nothing_holds_the_compute() {
    let mut world = deployed();
    Arc::make_mut(&mut world.seen.compute).metadata.finalizers = None;
    let holds = |world: &World| {
        let plan = crate::compute::deploy::observed_host::decide(&world.seen, None, world.now);
        plan.steps.iter().any(|it| matches!(it.write, Write::AddFinalizer { .. }))
    };
    assert!(holds(&world));
    world.seen.drain = None;
    assert!(!holds(&world));
}
