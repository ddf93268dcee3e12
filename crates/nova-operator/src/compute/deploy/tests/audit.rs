//! What audits of the host do to the status of its compute, and to its deployment.

use api::ansibleee::HostOutcome;

use super::*;
use crate::compute::audit::report::{Differences, LastAudit, Verdict};
use crate::compute::audit::request::{AuditPolicy, AuditRequest};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// A deployed compute whose host is audited.
fn world(repairs: bool) -> World {
    let mut world = World::deployed();
    world.seen.audited.request = AuditRequest::Audit(AuditPolicy { interval: HOUR, repairs });
    world
}

/// Ends an audit an hour later; returns what follows.
fn audited(world: &mut World, verdict: Verdict) -> Vec<String> {
    world.now += HOUR;
    end(world, false, verdict)
}

/// Ends an audit now; returns what follows.
fn end(world: &mut World, is_after_deployment: bool, verdict: Verdict) -> Vec<String> {
    let (uid, created) = (format!("uid-{}", world.now), world.now);
    let name = format!("audit-{}", world.now);
    world.seen.audited.last = Some(LastAudit { uid, name, created, is_after_deployment, verdict });
    world.now += SignedDuration::from_mins(1);
    world.settle()
}

fn differs() -> Verdict {
    let named = ["file /a/01-nova.conf: content", "container nova_compute: not running"];
    Verdict::Differs(Differences { total: 5, named: named.map(str::to_owned).into() })
}

#[track_caller]
fn check(world: &World, status: ConditionStatus, reason: &str, part: &str) {
    assert_eq!(world.condition("ConfigurationInSync").status, status);
    world.says("ConfigurationInSync", reason, &[part]);
    assert_eq!(world.reason("Ready"), "Ready", "an audit changes no Ready");
}

/// Lets every run succeed; returns how many there were.
fn deploy(world: &mut World) -> usize {
    let mut n_runs = 0;
    while world.seen.runs.iter().any(is_open) {
        world.now += SignedDuration::from_mins(1);
        world.end("Ok");
        n_runs += 1;
        world.settle();
    }
    n_runs
}

#[test]
fn the_condition_says_what_the_last_audit_found_and_is_written_once_for_each_result() {
    use ConditionStatus::{False, True, Unknown};
    let mut world = world(false);
    assert_eq!(world.settle(), ["status"]);
    check(&world, Unknown, "NotAudited", "host n0");
    let no_result = Verdict::NoResult;
    let named = "file /a/01-nova.conf: content, container nova_compute: not running and 3 more. To \
                 deploy it again: kubectl annotate";
    for (verdict, status, reason, part) in [
        (Verdict::InSync, True, "InSync", "Host n0 is as it was deployed."),
        (differs(), False, "OutOfSync", named),
        (no_result(HostOutcome::Unreachable), Unknown, "HostNotAnswering", "is unreachable"),
        (no_result(HostOutcome::KeyRefused), Unknown, "HostNotAnswering", "refuses the ssh key"),
        (no_result(HostOutcome::Failed), Unknown, "AuditFailed", "did not come to its end"),
        (
            Verdict::PlaybookUnreadable,
            Unknown,
            "AuditPlaybookUnreadable",
            "ansibleEEContainerImage",
        ),
        (Verdict::Unreadable, Unknown, "AuditFailed", "cannot be read"),
    ] {
        assert_eq!(audited(&mut world, verdict.clone()), ["status"], "{reason}");
        check(&world, status, reason, part);
        assert_eq!(audited(&mut world, verdict), [""; 0], "{reason}: the result is the same");
    }
    world.seen.audited.last = None;
    assert_eq!(world.settle(), [""; 0], "the run of the last audit is gone, its result is not");
    world.seen.audited.request = AuditRequest::Absent;
    assert_eq!(world.settle(), ["status"]);
    assert!(!world.has_condition("ConfigurationInSync"));
}

#[test]
fn a_deployment_that_fails_after_an_audit_leaves_it_unknown_whether_the_host_is_in_sync() {
    let mut world = world(false);
    audited(&mut world, Verdict::InSync);
    world.configure(Some("[DEFAULT]\nmax_concurrent_builds = 7\n")).settle();
    world.now += SignedDuration::from_mins(1);
    world.end("Failed").settle();
    world.says(
        "ConfigurationInSync",
        "DeploymentFailedSince",
        &["on host n0 since its last audit"],
    );
    world.configure(Some("[DEFAULT]\nmax_concurrent_builds = 8\n")).settle();
    assert!(world.seen.runs.iter().any(is_open), "it is tried again");
    assert_eq!(world.condition("ConfigurationInSync").reason, "DeploymentFailedSince");
    world.end("Ok");
    world.configure(None).settle();
    deploy(&mut world);
    check(&world, ConditionStatus::True, "InSync", "n0");
}

#[test]
fn three_intervals_without_an_audit_leave_it_unknown_whether_the_host_is_in_sync() {
    let mut world = world(false);
    audited(&mut world, Verdict::InSync);
    let last = world.seen.audited.last.clone().unwrap();
    world.now = last.created + HOUR * 3 - SignedDuration::from_secs(1);
    assert_eq!(world.settle(), [""; 0]);
    world.now = last.created + HOUR * 3;
    assert_eq!(world.settle(), ["status"]);
    check(&world, ConditionStatus::Unknown, "AuditOverdue", "Host n0 was as it was deployed");
    world.now += HOUR;
    assert_eq!(world.settle(), [""; 0]);
    audited(&mut world, Verdict::InSync);
    check(&world, ConditionStatus::True, "InSync", "n0");
    world.seen.audited.last = None;
    assert_eq!(world.settle(), [""; 0], "the run of the last audit is gone, its result is not");
    world.now += HOUR * 3;
    world.settle();
    check(&world, ConditionStatus::Unknown, "AuditOverdue", "no result of the last 3 intervals");
    assert_eq!(world.settle(), [""; 0]);
    audited(&mut world, differs());
    world.now += HOUR * 9;
    world.settle();
    check(&world, ConditionStatus::False, "OutOfSync", "n0");
}

#[test]
fn an_annotation_that_is_not_understood_is_a_condition_and_changes_nothing_else() {
    let mut world = world(true);
    audited(&mut world, Verdict::InSync);
    world.seen.audited.request = AuditRequest::Invalid("Annotation x is wrong.".into());
    assert_eq!(audited(&mut world, differs()), ["status"]);
    check(&world, ConditionStatus::False, "AuditInvalid", "Annotation x is wrong.");
}

#[test]
fn a_host_that_is_out_of_sync_is_deployed_again_once_for_each_result() {
    let mut world = world(true);
    assert!(audited(&mut world, differs()).contains(&"run libvirt".to_owned()));
    let running = world.condition("ConfigurationInSync");
    assert_eq!(running.reason, "OutOfSync", "{}", running.message);
    let allows = "as soon as deploy and its role's maxUnavailable allow it";
    assert!(running.message.contains(allows), "{}", running.message);
    assert_eq!(deploy(&mut world), 3);
    check(&world, ConditionStatus::Unknown, "DeployedSince", "audited once more");
    assert_eq!(world.settle(), [""; 0]);
    audited(&mut world, Verdict::InSync);
    check(&world, ConditionStatus::True, "InSync", "n0");
    audited(&mut world, differs());
    assert_eq!(deploy(&mut world), 3, "another result is repaired again");
    audited(&mut world, differs());
    assert_eq!(deploy(&mut world), 3, "and so is the next one");
}

#[test]
fn a_repair_restarts_nova_compute_as_a_redeploy_does() {
    let mut world = world(true);
    audited(&mut world, differs());
    world.end("Ok").settle();
    let run = world.seen.runs.iter().find(|it| is_open(it)).unwrap();
    assert_eq!(run.spec.extra_vars["edpm_nova_restart"], true);
}

#[test]
fn nothing_is_repaired_where_that_is_not_requested_or_the_host_did_not_answer() {
    let mut host = world(false);
    audited(&mut host, differs());
    assert_eq!((host.n_runs(), deploy(&mut host)), (0, 0));
    let mut host = world(true);
    for verdict in [Verdict::NoResult(HostOutcome::Unreachable), Verdict::Unreadable] {
        audited(&mut host, verdict);
    }
    assert_eq!(host.n_runs(), 0);
}

#[test]
fn neither_the_end_of_the_audits_nor_an_earlier_redeploy_deploys_a_repaired_host_once_more() {
    let mut world = world(true);
    world.compute().annotations_mut().insert(REDEPLOY.into(), "1".into());
    world.settle();
    deploy(&mut world);
    audited(&mut world, differs());
    assert_eq!(deploy(&mut world), 3);
    world.writes.clear();
    world.compute().annotations_mut().clear();
    world.seen.audited = Audited::default();
    world.settle();
    assert_eq!(world.n_runs(), 0);
    assert_eq!(world.condition("UpToDate").status, ConditionStatus::True);
    world.compute().annotations_mut().insert(REDEPLOY.into(), "2".into());
    world.settle();
    assert_eq!(deploy(&mut world), 3, "a redeploy that is requested later still works");
}

#[test]
fn what_a_deployment_did_not_mend_waits_for_the_next_audit() {
    let mut world = world(true);
    audited(&mut world, differs());
    assert!(deploy(&mut world) > 0);
    world.now += HOUR;
    end(&mut world, true, differs());
    assert!(!world.seen.runs.iter().any(is_open), "it is deployed without end");
    check(&world, ConditionStatus::False, "OutOfSync", "did not mend that");
    audited(&mut world, differs());
    assert!(world.seen.runs.iter().any(is_open), "the next audit is repaired again");
}

/// A deployed compute of a node whose services of phase 0 are audited too.
fn beside_phase_zero(repairs: bool) -> World {
    let mut world = world(repairs);
    world.own();
    world.node().annotations_mut().insert(CELL.into(), "nova-cell1".into());
    world.seen.audited.playbooks = vec!["example.site.motd_audit".to_owned()];
    world.settle();
    world.writes.clear();
    world
}

/// The node's services run once more, as another instance of the host; then those of the compute.
fn deploy_node(world: &mut World, instance: &str) -> usize {
    world.node().status.as_mut().unwrap().host_instance = Some(instance.to_owned());
    world.set_node_ready("False");
    world.settle();
    assert!(!world.seen.runs.iter().any(is_open), "the node is not ready");
    world.set_node_ready("True");
    world.settle();
    deploy(world)
}

const REQUESTED: &str = "RedeployRequested";

#[test]
fn a_repair_beside_audited_services_requests_the_nodes_deployment_once_for_each_result() {
    let mut world = beside_phase_zero(true);
    let mut messages = Vec::new();
    for instance in ["q1", "q2"] {
        assert_eq!(audited(&mut world, differs()), ["status"], "the compute alone is not deployed");
        check(&world, ConditionStatus::False, "OutOfSync", "maxUnavailable");
        let found = world.condition(REQUESTED);
        assert_eq!(
            (found.status, found.reason.as_str()),
            (ConditionStatus::True, "RepairRequested")
        );
        let run = &world.seen.audited.last.as_ref().unwrap().name;
        let text = format!(
            "Audit {run} found differences on host n0: file /a/01-nova.conf: content and 4 more."
        );
        assert!(found.message.starts_with(&text), "{}", found.message);
        messages.push(found.message);
        assert_eq!(world.settle(), [""; 0]);
        assert_eq!(deploy_node(&mut world, instance), 3);
        assert!(!world.has_condition(REQUESTED), "it is served");
        check(&world, ConditionStatus::Unknown, "DeployedSince", "audited once more");
        assert_eq!(world.settle(), [""; 0]);
    }
    assert_ne!(messages[0], messages[1], "another result is requested anew");
}

#[test]
fn a_node_that_is_not_deployed_is_not_requested_although_its_compute_is() {
    let mut world = beside_phase_zero(true);
    world.compute().spec.deploy = Some(true);
    for (deploy, is_requested) in [(Some(false), false), (Some(true), true), (None, true)] {
        world.node().status.as_mut().unwrap().deploy = deploy;
        audited(&mut world, differs());
        assert_eq!(world.has_condition(REQUESTED), is_requested, "{deploy:?}");
    }
}

#[test]
fn the_compute_of_a_repaired_node_starts_nova_again() {
    let mut world = beside_phase_zero(true);
    audited(&mut world, differs());
    world.node().status.as_mut().unwrap().host_instance = Some("q1".into());
    world.settle();
    world.end("Ok").settle();
    let run = world.seen.runs.iter().find(|it| is_open(it)).unwrap();
    assert_eq!(run.spec.extra_vars["edpm_nova_restart"], true);
}

#[test]
fn what_a_deployment_of_the_node_did_not_mend_waits_for_the_next_audit() {
    let mut world = beside_phase_zero(true);
    audited(&mut world, differs());
    assert_eq!(deploy_node(&mut world, "q1"), 3);
    end(&mut world, true, differs());
    check(&world, ConditionStatus::False, "OutOfSync", "did not mend that");
    assert!(!world.has_condition(REQUESTED), "it is deployed without end");
    audited(&mut world, differs());
    assert!(world.has_condition(REQUESTED));
    audited(&mut world, Verdict::InSync);
    assert!(!world.has_condition(REQUESTED), "nothing is left to repair");
    assert!(!world.seen.runs.iter().any(is_open));
}

#[test]
fn without_a_repair_the_command_deploys_what_is_audited() {
    let of_node = "openstackdataplanenode/n0 dataplane.openstack.org/redeploy=";
    let of_compute = "novaexternalcompute/n0 nova.openstack.org/redeploy=";
    let mut world = beside_phase_zero(false);
    audited(&mut world, differs());
    check(&world, ConditionStatus::False, "OutOfSync", of_node);
    assert!(!world.has_condition(REQUESTED));
    world.seen.audited.playbooks.clear();
    world.settle();
    check(&world, ConditionStatus::False, "OutOfSync", of_compute);
}

#[test]
fn nothing_is_requested_of_a_node_that_is_not_deployed_or_does_not_own_the_compute() {
    let mut world = beside_phase_zero(true);
    world.compute().spec.deploy = Some(false);
    audited(&mut world, differs());
    assert!(!world.has_condition(REQUESTED));
    let mut world = beside_phase_zero(true);
    world.compute().metadata.owner_references = None;
    audited(&mut world, differs());
    assert!(!world.has_condition(REQUESTED));
    assert_eq!(deploy(&mut world), 3, "it is repaired alone");
}
