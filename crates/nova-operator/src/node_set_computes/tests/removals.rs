//! Hosts that leave a node set: which host finalizers a report has, what is done about each host in
//! which order, which are let go without a removal, and what the condition says.

use std::collections::BTreeMap;

use api::ansibleee::AnsibleEe;
use api::conditions::find;
use jiff::SignedDuration;
use kube::ResourceExt;
use nova_config::conditions::HOSTS_REMOVED;
use openstack_client::error::Fault;
use openstack_client::{Error, Service};
use operator_core::object_key::Key;

use super::*;
use crate::cell::mappings::known::Mapping;
use crate::drain::findings::Findings;
use crate::drain::order::{Drain, DrainMode, HostOrder, OwnService, Remove};
use crate::drain::progress::{
    AgentsRemoval, HostProgress, Occupied, PlacementRemoval, Removal, ServiceRemoval,
};
use crate::drain::request::DrainRequest;
use crate::node_set_computes::claims::Claim;
use crate::node_set_computes::observed::{HostAccess, HostDrain};
use crate::node_set_computes::orders::with_progress;
use crate::node_set_computes::removal::decide::host_order;
use crate::node_set_computes::removal::observed::TerminatingHost;
use crate::node_set_computes::removal::record::{HostRecord, records};
use crate::nova_identity::Identity;

pub(super) fn record() -> HostRecord {
    HostRecord {
        cell: "nova-cell1".into(),
        key: String::new(),
        service_id: Some("s".into()),
        compute_id: Some("c".into()),
        ..HostRecord::default()
    }
}

fn fqdn(name: &str) -> String {
    format!("{name}.example.org")
}

/// A node set without a gate, whose hosts `a` and `b` are deployed, with its report.
fn reported_set() -> Observed {
    let mut seen = seen(&[]);
    let set = Arc::make_mut(&mut seen.set);
    set.metadata.uid = Some("u".into());
    for name in ["a", "b"] {
        let ansible = json!({ "ansible": { "ansibleHost": format!("192.0.2.{}", name.len()) } });
        set.spec.nodes.insert(name.into(), serde_json::from_value(ansible).unwrap());
    }
    set.spec.node_template.ansible_ssh_private_key_secret = "key".into();
    let deployed = ["a", "b"].map(|it| (it.to_owned(), (fqdn(it), record())));
    seen.removals.deployed = BTreeMap::from(deployed);
    let report = reported(&mut seen).unwrap();
    let report = HostReadiness { metadata: with_uid(&report), ..HostReadiness::clone(&report) };
    seen.report = Report::Found(Arc::new(report));
    seen
}

fn with_uid(report: &HostReadiness) -> kube::api::ObjectMeta {
    kube::api::ObjectMeta { uid: Some("r".into()), ..report.metadata.clone() }
}

/// The same after host `a` was taken out, in this state.
pub(super) fn leaving(progress: HostProgress) -> Observed {
    let mut seen = reported_set();
    let set = Arc::make_mut(&mut seen.set);
    set.spec.nodes.remove("a");
    let address = json!({ "terminatingAddresses": { "a": "192.0.2.1:22" } });
    set.status = Some(serde_json::from_value(address).unwrap());
    seen.removals.deployed.remove("a");
    seen.removals.terminating.push(TerminatingHost {
        name: "a".into(),
        host: fqdn("a"),
        record: record(),
        cell: Some((Key::new("ns", "nova-cell1"), "nova-cell1-secret".into())),
        claim: Claim::Own,
        health: HostHealth { service: UP, ..HostHealth::default() },
        deployed_at: None,
        drain: Drain { mode: DrainMode::Wait, reason: "host leaves".into() },
        is_reported: true,
        runs: vec![],
        progress,
        mapping: Mapping::NotRead("It is not read.".into()),
        is_on_record: false,
        is_list_full: false,
    });
    seen
}

pub(super) fn host(seen: &mut Observed) -> &mut TerminatingHost {
    &mut seen.removals.terminating[0]
}

pub(super) fn finalizers(seen: &Observed) -> Vec<String> {
    seen.report.found().unwrap().spec.host_finalizers.keys().cloned().collect()
}

/// One reconciliation at a time: its writes are carried out, and are returned as words.
pub(super) fn reconcile(seen: &mut Observed, now: Timestamp) -> Vec<String> {
    let plan = recorded(decide(seen, None, now));
    let mut words = Vec::new();
    for step in plan.all() {
        words.push(match &step.write {
            Write::Status { status, .. } => {
                assert_eq!(undeclared(KINDS, "OpenStackDataPlaneNodeSet", status), [""; 0]);
                let set = Arc::make_mut(&mut seen.set).status.get_or_insert_default();
                set.conditions = serde_json::from_value(status["conditions"].clone()).unwrap();
                "status".to_owned()
            }
            Write::Apply { object, .. } => {
                let report: HostReadiness = serde_json::from_value(object.clone()).unwrap();
                let metadata = with_uid(&report);
                seen.report = Report::Found(Arc::new(HostReadiness { metadata, ..report }));
                "report".to_owned()
            }
            Write::Create { object, .. } => {
                let run: AnsibleEe = serde_json::from_value(object.clone()).unwrap();
                seen.removals.terminating[0].runs.push(Arc::new(run));
                "run".to_owned()
            }
            Write::Delete { .. } => format!("delete {}", step.target.name),
            other @ (Write::AddFinalizer { .. } | Write::RemoveFinalizer { .. }) => {
                panic!("{other:?}")
            }
        });
    }
    words.extend(plan.events.into_iter().map(|(_, event)| event.reason));
    words
}

/// The last run ends with that result.
pub(super) fn end(seen: &mut Observed, result: &str, now: Timestamp) {
    let run = Arc::make_mut(host(seen).runs.last_mut().unwrap());
    let status = json!({
        "JobStatus": if result == "Ok" { "Succeeded" } else { "Failed" },
        "completionTime": now.to_string(),
        "hosts": [{ "name": "a", "result": result }],
    });
    run.status = Some(serde_json::from_value(status).unwrap());
}

pub(super) fn order(seen: &Observed) -> Option<HostOrder> {
    let removals = &seen.removals;
    host_order(&seen.set, removals, &removals.terminating[0], Timestamp::UNIX_EPOCH)
}

pub(super) fn removed() -> HostProgress {
    HostProgress::Removing(Removal {
        service: ServiceRemoval::Done,
        placement: PlacementRemoval::Done,
        agents: Some(AgentsRemoval::NoNeutron),
    })
}

pub(super) fn said(seen: &Observed) -> Option<(String, String)> {
    let found = find(&seen.set.status.as_ref()?.conditions, HOSTS_REMOVED)?;
    assert_ne!(found.status, ConditionStatus::True);
    Some((found.reason.clone(), found.message.clone()))
}

fn remove(is_stopped: bool) -> HostOrder {
    HostOrder::Remove(Remove {
        service: OwnService::Is("s".into()),
        compute_id: Some("c".into()),
        is_stopped,
        is_unmapped: true,
        awaits_agents: true,
    })
}

pub(super) const START: Timestamp = Timestamp::UNIX_EPOCH;

#[test]
fn deployed_hosts_have_finalizers_until_they_leave_whether_or_not_there_is_a_gate() {
    let mut seen = reported_set();
    assert_eq!(finalizers(&seen), ["a", "b"]);
    let report = seen.report.found().unwrap();
    assert_eq!(report.spec.host_finalizers["a"], "a.example.org");
    assert_eq!(records(report)["a"], record());
    assert!(report.spec.not_ready.is_empty());
    assert_eq!(reconcile(&mut seen, START), [""; 0], "nothing has changed");
    // Nova's API does not answer after a restart: no host is known to be deployed.
    seen.removals.deployed.clear();
    assert_eq!(reconcile(&mut seen, START), [""; 0]);
    seen.has_gate = true;
    seen.hosts = self::seen(&[("a", DOWN), ("b", UP)]).hosts;
    assert_eq!(reconcile(&mut seen, START), ["report", "status"]);
    assert_eq!((finalizers(&seen).len(), entries(seen.report.found().unwrap()).len()), (2, 1));
}

#[test]
fn a_report_of_another_operator_is_left() {
    let mut seen = reported_set();
    let mut report = HostReadiness::clone(seen.report.found().unwrap());
    report.spec.condition_type = "example.org/Other".into();
    report.spec.host_finalizers.clear();
    seen.report = Report::Found(Arc::new(report));
    assert_eq!(reconcile(&mut seen, START), [""; 0]);
}

#[test]
fn a_host_that_leaves_is_drained_stopped_removed_and_then_let_go() {
    let occupied = Occupied { servers: vec!["server".to_owned()].into(), ..Occupied::default() };
    let mut seen = leaving(HostProgress::Occupied(occupied));
    assert!(matches!(order(&seen), Some(HostOrder::DrainForRemoval(..))));
    assert_eq!(reconcile(&mut seen, START), ["status"]);
    let (reason, message) = said(&seen).unwrap();
    assert_eq!(reason, "ServersOnHost");
    for part in ["1 host to be removed from nova; a: Host a.example.org has 1 server", "skip-clean"]
    {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(reconcile(&mut seen, START), [""; 0], "nothing has changed");

    host(&mut seen).progress = HostProgress::Drained;
    assert_eq!(reconcile(&mut seen, START), ["run", "status"]);
    assert_eq!(said(&seen).unwrap().0, "CleaningHost");
    let run = Arc::clone(&host(&mut seen).runs[0]);
    assert_eq!(run.owner_references()[0].uid, "r");
    assert_eq!(run.spec.hosts[0].address, "192.0.2.1:22");
    for variable in ["edpm_nova_remove_files", "edpm_nova_host_leaves"] {
        assert_eq!(run.spec.extra_vars[variable], json!(true));
    }
    assert!(matches!(order(&seen), Some(HostOrder::DrainForRemoval(..))), "it stays drained");
    assert_eq!(reconcile(&mut seen, START), [""; 0], "one run");

    end(&mut seen, "Ok", START);
    assert_eq!(order(&seen), Some(remove(true)));
    // Nova has no service of the host any more: that is the removal's own work.
    host(&mut seen).health.service = ServiceHealth::NotFound;
    let service =
        ServiceRemoval::Kept { servers: vec!["server".to_owned()].into(), message: "no".into() };
    host(&mut seen).progress = HostProgress::Removing(Removal::of_service(service));
    assert_eq!(reconcile(&mut seen, START), ["status"]);
    assert_eq!(said(&seen).unwrap().0, "ServiceKept");
    assert_eq!(finalizers(&seen), ["a", "b"]);

    host(&mut seen).progress = removed();
    assert_eq!(reconcile(&mut seen, START), ["report", "status"]);
    assert_eq!((finalizers(&seen), said(&seen)), (vec!["b".to_owned()], None));
    assert_eq!(records(seen.report.found().unwrap()).into_keys().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_host_that_does_not_answer_is_tried_three_times_and_then_removed_once_it_is_down() {
    let mut seen = leaving(HostProgress::Drained);
    let mut now = START;
    for _ in 0..3 {
        assert!(reconcile(&mut seen, now).contains(&"run".to_owned()));
        end(&mut seen, "Unreachable", now);
        now += SignedDuration::from_mins(11);
    }
    assert!(!reconcile(&mut seen, now).contains(&"run".to_owned()));
    let names: Vec<String> = host(&mut seen).runs.iter().map(|it| it.name_any()).collect();
    assert!(names[0] != names[1] && names[1] != names[2], "{names:?}");
    assert_eq!(order(&seen), Some(remove(false)));
    let still_up = Removal::of_service(ServiceRemoval::StillUp);
    host(&mut seen).progress = HostProgress::Removing(still_up);
    reconcile(&mut seen, now);
    let (reason, message) = said(&seen).unwrap();
    assert_eq!(reason, "StillUp");
    assert!(message.contains("nova-compute was not stopped on host a.example.org"), "{message}");
}

#[test]
fn what_another_object_has_or_nova_does_not_is_let_go_at_once() {
    let pending = || leaving(HostProgress::Pending);
    let mut moved = pending();
    host(&mut moved).claim = Claim::Other("OpenStackDataPlaneNodeSet other".into());
    let mut unknown = pending();
    host(&mut unknown).health.service = ServiceHealth::NotFound;
    (host(&mut unknown).cell, host(&mut unknown).record.cell) = (None, String::new());
    host(&mut unknown).claim = Claim::Unproven;
    host(&mut unknown).health.missing_since = Some(START);
    let mut gone = pending();
    gone.removals.namespace_goes = true;
    for mut seen in [moved, unknown, gone] {
        assert_eq!(order(&seen), None);
        assert_eq!(reconcile(&mut seen, START), ["report"]);
        assert_eq!(finalizers(&seen), ["b"]);
    }
}

#[test]
fn a_host_whose_service_is_gone_is_looked_at_and_stopped_all_the_same() {
    let mut seen = leaving(HostProgress::Pending);
    host(&mut seen).health.service = ServiceHealth::NotFound;
    assert!(matches!(order(&seen), Some(HostOrder::DrainForRemoval(..))));
    // Servers of it may be on record without a service.
    let occupied = Occupied { servers: vec!["server".to_owned()].into(), ..Occupied::default() };
    host(&mut seen).progress = HostProgress::Occupied(occupied);
    assert_eq!(reconcile(&mut seen, START), ["status"]);
    assert_eq!((said(&seen).unwrap().0, finalizers(&seen).len()), ("ServersOnHost".into(), 2));
    host(&mut seen).progress = HostProgress::NotFound;
    assert_eq!(reconcile(&mut seen, START), ["run", "status"]);
    end(&mut seen, "Ok", START);
    assert!(matches!(order(&seen), Some(HostOrder::Remove(_))));
}

#[test]
fn a_host_at_which_a_deployment_may_be_is_not_begun_with() {
    let mut seen = leaving(HostProgress::Drained);
    host(&mut seen).is_reported = false;
    assert_eq!(order(&seen), None);
    assert_eq!(reconcile(&mut seen, START), ["status"]);
    let (reason, message) = said(&seen).unwrap();
    assert_eq!(reason, "WaitingForDeployment");
    assert!(message.contains("once no deployment of OpenStackDataPlaneNodeSet set"), "{message}");
    assert_eq!(reconcile(&mut seen, START), [""; 0], "nothing has changed");
    host(&mut seen).is_reported = true;
    assert_eq!(reconcile(&mut seen, START), ["run", "status"]);
}

#[test]
fn an_api_that_does_not_answer_keeps_the_host_unless_the_user_lets_it_go() {
    let fault = || Fault { service: Service::Compute, error: Error::Unreachable("gone".into()) };
    let mut seen = leaving(HostProgress::Fails(fault()));
    assert_eq!(reconcile(&mut seen, START), ["status"]);
    assert_eq!(said(&seen).unwrap().0, "NovaNotAnswering");
    // After a restart nothing is known at first.
    host(&mut seen).progress = HostProgress::Pending;
    assert_eq!(reconcile(&mut seen, START), [""; 0]);
    assert_eq!(finalizers(&seen), ["a", "b"]);

    seen.removals.is_skipped = true;
    assert_eq!(order(&seen), None);
    assert_eq!(reconcile(&mut seen, START), ["status"]);
    let (reason, message) = said(&seen).unwrap();
    assert_eq!(reason, "CleanupSkipped");
    assert!(message.contains("status.leftovers of NovaCell nova-cell1"), "{message}");
    host(&mut seen).is_on_record = true;
    assert_eq!(reconcile(&mut seen, START), ["report", "status"]);
    assert_eq!(finalizers(&seen), ["b"]);
}

#[test]
fn of_a_node_set_that_is_being_deleted_all_hosts_leave_and_the_progress_is_reported() {
    let mut seen = leaving(HostProgress::Drained);
    let set = Arc::make_mut(&mut seen.set);
    set.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
    assert_eq!(reconcile(&mut seen, START), ["run", "status"]);
    end(&mut seen, "Ok", START);
    host(&mut seen).progress = removed();
    let before = seen.report.found().unwrap().spec.clone();
    assert_eq!(reconcile(&mut seen, START), ["report"]);
    assert_eq!(finalizers(&seen), ["b"], "the other one has its turn");
    let owners = seen.report.found().unwrap().owner_references();
    assert_eq!(owners, [], "the garbage collector would delete it");
    let after = seen.report.found().unwrap().spec.clone();
    assert_eq!(HostReadinessFields::of(&before), HostReadinessFields::of(&after));
    seen.report = Report::Missing;
    seen.removals.terminating.clear();
    assert_eq!(reconcile(&mut seen, START), [""; 0], "it is not written anew");
}

/// What of a report stays while its node set is being deleted.
#[derive(Debug, PartialEq)]
struct HostReadinessFields(String, usize, Vec<String>);

impl HostReadinessFields {
    fn of(spec: &api::dataplane::HostReadinessSpec) -> Self {
        let (gate, n_not_ready) = (spec.condition_type.clone(), spec.not_ready.len());
        Self(gate, n_not_ready, spec.observed_deployments.clone())
    }
}

#[test]
fn a_host_without_a_known_address_is_waited_for_until_the_inventory_has_lost_it() {
    let mut seen = leaving(HostProgress::Drained);
    Arc::make_mut(&mut seen.set).status = None;
    assert_eq!(reconcile(&mut seen, START), ["status"]);
    let hosts = json!({ "hosts": [{ "name": "a", "state": "Terminating" }] });
    Arc::make_mut(&mut seen.set).status = Some(serde_json::from_value(hosts).unwrap());
    assert!(reconcile(&mut seen, START).contains(&"run".to_owned()));
}

#[test]
fn a_run_of_a_host_that_comes_back_is_deleted() {
    let mut seen = leaving(HostProgress::Drained);
    reconcile(&mut seen, START);
    let run = host(&mut seen).runs.remove(0);
    seen.removals.terminating.clear();
    seen.removals.unneeded_runs.push(Arc::clone(&run));
    let words = reconcile(&mut seen, START);
    assert!(words.contains(&format!("delete {}", run.name_any())), "{words:?}");
    assert_eq!(finalizers(&seen), ["a", "b"]);
}

/// The orders of the present plan, by host.
fn ordered(seen: &Observed) -> BTreeMap<String, OrderOfHost> {
    let orders = planned(seen).orders.into_iter().map(|it| it.what);
    orders.map(|it| (it.host.clone(), it)).collect()
}

#[test]
fn orders_about_hosts_that_leave_have_the_uuids_that_are_recorded_and_proved() {
    let mut seen = leaving(HostProgress::Pending);
    let a = ordered(&seen).remove("a.example.org").unwrap();
    assert_eq!(a.cell, Key::new("ns", "nova-cell1"));
    assert_eq!(
        (a.meant_for.service_id.as_deref(), a.meant_for.compute_id.as_deref()),
        (Some("s"), Some("c"))
    );
    assert!(matches!(a.order, HostOrder::DrainForRemoval(..)), "{a:?}");
    host(&mut seen).record.is_unproven = true;
    host(&mut seen).claim = Claim::Unproven;
    let a = ordered(&seen).remove("a.example.org").unwrap();
    assert_eq!(a.meant_for, Identity::default(), "they may be those of another owner");
    assert!(matches!(a.order, HostOrder::InspectForRemoval(_)), "{a:?}");
    host(&mut seen).claim = Claim::Contested("x".into());
    assert_eq!(ordered(&seen), BTreeMap::new());
}

#[test]
fn what_was_found_of_a_host_counts_for_the_order_of_the_present_plan_alone() {
    let now = Timestamp::UNIX_EPOCH;
    let seen = leaving(HostProgress::Pending);
    let orders = ordered(&seen).into_values();
    let found: Findings = orders.map(|it| (it, HostProgress::Drained)).collect();
    let progress =
        |seen: &Observed| with_progress(seen, &found, now).removals.terminating[0].progress.clone();
    assert_eq!(progress(&seen), HostProgress::Drained);
    let mut other = seen.clone();
    host(&mut other).record.service_id = Some("t".into());
    assert_eq!(progress(&other), HostProgress::Pending, "it was found of service s");
    let mut other = seen;
    host(&mut other).drain.mode = DrainMode::Migrate(std::num::NonZeroUsize::MIN);
    assert_eq!(progress(&other), HostProgress::Pending, "it was found with another drain");
}

#[test]
fn the_removal_of_a_host_counts_where_another_one_of_its_name_is_to_be_drained() {
    let mut seen = leaving(HostProgress::Pending);
    let drain = Drain { mode: DrainMode::Wait, reason: String::new() };
    seen.drains = Ok(vec![HostDrain {
        name: "b".into(),
        host: fqdn("a"),
        is_named: true,
        request: DrainRequest::Drain(drain),
        is_awaited: false,
        enabling: None,
        health: HostHealth::default(),
        access: HostAccess::Cell("nova-cell1".into()),
        cell: Some(Key::new("ns", "nova-cell1")),
        recorded: Identity::default(),
        progress: HostProgress::Pending,
    }]);
    let orders = planned(&seen).orders;
    assert_eq!(orders.len(), 1, "{orders:?}");
    assert!(matches!(orders[0].what.order, HostOrder::DrainForRemoval(..)), "{orders:?}");
}

#[test]
fn a_host_whose_name_nova_has_with_another_service_is_held_before_it_is_stopped() {
    let mut seen = leaving(HostProgress::OtherService { id: "t".into() });
    let words = reconcile(&mut seen, Timestamp::UNIX_EPOCH);
    assert!(!words.contains(&"run".to_owned()), "{words:?}");
    let conditions = &seen.set.status.as_ref().unwrap().conditions;
    let removed = find(conditions, HOSTS_REMOVED).unwrap();
    assert_eq!(removed.reason, "OtherIdentity");
    assert!(removed.message.contains("nova has service t under its name"), "{}", removed.message);
}
