//! Hosts that deployments disturb: which are drained, which the report lists, and when they are
//! enabled again.

use std::num::NonZeroUsize;

use nova_config::annotations::{DRAIN_BEFORE, MAX_MIGRATIONS};
use nova_config::conditions::NODE_DRAINED;
use operator_core::object_key::Key;

use super::*;
use crate::drain::before::drain_before_of;
use crate::drain::order::{Drain, DrainMode, HostOrder, MARKER};
use crate::drain::progress::{HostProgress, Occupied};
use crate::drain::request::DrainRequest;
use crate::node_set_computes::observed::{HostAccess, HostDrain};
use crate::node_set_computes::rollout::{disruption_allowed, disruptions, enabling, request};
use crate::nova_identity::Identity;

const ROLLOUT: &str = "nova.openstack.org/drain: rollout";

/// The deployment that waits for a host, if one does.
const D1: Option<&str> = Some("d1");

/// What is asked of a host, and how its service is enabled where nothing is.
type Asked = (Option<DrainRequest>, Option<HostOrder>);

fn node_set(annotations: &[(&str, &str)], (state, target): (&str, Option<&str>)) -> NodeSet {
    let annotations: BTreeMap<&str, &str> = annotations.iter().copied().collect();
    serde_json::from_value(json!({
        "metadata": {"name": "set", "namespace": "ns", "uid": "u", "annotations": annotations},
        "spec": {
            "nodes": {"c0": {}}, "services": [],
            "nodeTemplate": {"ansibleSSHPrivateKeySecret": "ssh"},
        },
        "status": {"hosts": [
            {"name": "c0", "state": state, "hash": "01234567", "disruptionTarget": target},
            {"name": "removed", "state": "Terminating", "hash": "01234567"},
        ]},
    }))
    .unwrap()
}

/// The report with that UID for both hosts, if it is there.
fn report(uid: Option<&str>) -> Report {
    let Some(uid) = uid else { return Report::Missing };
    let spec = json!({
        "nodeSet": "set", "conditionType": "nova.openstack.org/ServiceUp", "notReady": {},
        "disruptionAllowed": {"c0": uid, "removed": uid},
    });
    Report::Found(Arc::new(HostReadiness::new("set-nova", serde_json::from_value(spec).unwrap())))
}

fn rollout() -> DrainRequest {
    let mode = DrainMode::Migrate(NonZeroUsize::new(2).unwrap());
    DrainRequest::Drain(Drain { mode, reason: "rollout".into() })
}

/// A host of a node set that drains, as it is observed while the report lists `allowed`.
fn seen_with(
    annotations: &[(&str, &str)],
    host: (&str, Option<&str>),
    allowed: Option<&str>,
    drain: impl Fn(Asked) -> Option<HostDrain>,
    disabled: Option<&str>,
) -> Observed {
    let (set, report) = (node_set(annotations, host), report(allowed));
    let (drain_before, disruptions) = (drain_before_of(&set), disruptions(&set, &report));
    let of = (&drain_before, disruptions.get("c0"), disabled);
    let drains = request(&set, of).map(|it| drain((it, enabling(of))).into_iter().collect());
    let (set, hosts) = (Arc::new(set), None);
    Observed { set, hosts, drains, drain_before, disruptions, report, ..seen(&[]) }
}

/// The host as a compute of the cell with that reason of its service.
fn in_cell(progress: HostProgress, disabled: Option<&str>, asked: Asked) -> Option<HostDrain> {
    let service = ServiceHealth::Up { disabled: disabled.map(str::to_owned) };
    Some(HostDrain {
        name: "c0".into(),
        host: "c0.example.org".into(),
        is_named: false,
        request: asked.0?,
        is_awaited: true,
        enabling: asked.1,
        health: HostHealth {
            service,
            disabled: disabled.map(str::to_owned),
            ..HostHealth::default()
        },
        access: HostAccess::Cell("nova-cell1".into()),
        cell: Some(Key::new("ns", "nova-cell1")),
        recorded: Identity::default(),
        progress,
    })
}

/// The same with `drain-before`, and this progress.
fn drained(
    host: (&str, Option<&str>),
    allowed: Option<&str>,
    progress: &HostProgress,
    disabled: Option<&str>,
) -> Observed {
    let drain = |asked| in_cell(progress.clone(), disabled, asked);
    seen_with(&[(DRAIN_BEFORE, "true")], host, allowed, drain, disabled)
}

fn occupied() -> HostProgress {
    HostProgress::Occupied(Occupied {
        servers: vec!["s0".to_owned()].into(),
        ..Occupied::default()
    })
}

/// What the report lists for the host from now on.
fn listed(seen: &Observed) -> Option<String> {
    let Some(all) = disruption_allowed(seen) else { panic!("no deployment waits") };
    assert_eq!(all.keys().filter(|it| *it != "c0").count(), 0, "a removed host has no entry");
    all.get("c0").cloned()
}

fn asked_of(seen: &Observed) -> Asked {
    let host = seen.drains.as_ref().unwrap().first();
    host.map_or((None, None), |it| (Some(it.request.clone()), it.enabling.clone()))
}

#[test]
fn a_host_is_listed_from_when_it_is_drained_until_it_is_enabled_after_the_deployment() {
    let rollout = || Some(rollout());
    let up = || Some(HostOrder::EnableOnceUp);
    let (pending, marked) = (HostProgress::Pending, Some(ROLLOUT));
    let (waits, works, done) = (("Deployed", D1), ("Deploying", None), ("Deployed", None));
    let absent = Some(DrainRequest::Absent);
    for (what, host, before, progress, disabled, request, enabling, after) in [
        ("it is to be drained", waits, None, &pending, None, rollout(), None, None),
        ("it has servers", waits, None, &occupied(), marked, rollout(), up(), None),
        ("it is drained", waits, None, &HostProgress::Drained, marked, rollout(), up(), D1),
        ("nova has nothing of it", waits, None, &HostProgress::NotFound, None, rollout(), None, D1),
        ("the operator was restarted", waits, D1, &pending, None, rollout(), up(), D1),
        ("a server came", waits, D1, &occupied(), marked, rollout(), up(), None),
        ("it is deployed", works, D1, &HostProgress::Drained, marked, rollout(), up(), D1),
        ("restarted meanwhile", works, D1, &pending, None, rollout(), up(), D1),
        ("the report was deleted", works, None, &pending, marked, rollout(), up(), None),
        ("it is to be enabled", done, D1, &pending, marked, absent.clone(), up(), D1),
        ("it is down", done, D1, &HostProgress::NotReporting, marked, absent.clone(), up(), D1),
        ("restarted again", done, D1, &pending, None, absent.clone(), up(), D1),
        ("it is enabled", done, D1, &HostProgress::Released, marked, absent.clone(), up(), None),
        ("enabled before a restart", done, D1, &HostProgress::Released, None, absent, up(), None),
    ] {
        let seen = drained(host, before, progress, disabled);
        assert_eq!(asked_of(&seen), (request, enabling), "{what}");
        assert_eq!(listed(&seen).as_deref(), after, "{what}");
    }
    assert_eq!(asked_of(&drained(done, None, &pending, None)), (None, None), "nothing is left");
}

#[test]
fn a_failed_host_stays_drained_and_the_next_deployment_begins_there_at_once() {
    let failed = drained(("Failed", None), D1, &HostProgress::Drained, Some(ROLLOUT));
    assert_eq!(asked_of(&failed).0, Some(rollout()));
    assert_eq!(listed(&failed), None);
    let next = drained(("Failed", Some("d2")), None, &HostProgress::Drained, Some(ROLLOUT));
    assert_eq!((asked_of(&next).0, listed(&next)), (Some(rollout()), Some("d2".into())));
    // A failure without a drain drains nothing.
    let other = drained(("Failed", None), None, &HostProgress::Pending, Some(MARKER));
    assert_eq!(asked_of(&other).0, Some(DrainRequest::Absent));
}

#[test]
fn another_deployment_is_allowed_only_once_the_host_is_drained_for_it() {
    let target = ("Deployed", Some("d2"));
    assert_eq!(listed(&drained(target, D1, &HostProgress::Pending, None)), None);
    let drained = drained(target, D1, &HostProgress::Drained, Some(ROLLOUT));
    assert_eq!(listed(&drained), Some("d2".into()));
}

#[test]
fn another_deployment_waits_until_the_one_at_the_host_has_ended() {
    let at_work = drained(("Deploying", Some("d2")), D1, &HostProgress::Drained, Some(ROLLOUT));
    assert_eq!((asked_of(&at_work).0, listed(&at_work)), (Some(rollout()), Some("d1".into())));
    let waiting = drained(("Deploying", D1), D1, &HostProgress::Drained, Some(ROLLOUT));
    assert_eq!(listed(&waiting), Some("d1".into()), "its own permission stays");
}

#[test]
fn a_deployment_that_is_taken_back_gives_the_host_back() {
    for state in ["Deployed", "Undeployed"] {
        let seen = drained((state, None), D1, &HostProgress::Pending, Some(ROLLOUT));
        let expected = (Some(DrainRequest::Absent), Some(HostOrder::EnableOnceUp));
        assert_eq!((asked_of(&seen), listed(&seen)), (expected, Some("d1".into())));
    }
}

#[test]
fn a_host_that_is_no_compute_of_the_node_set_waits_for_nothing() {
    let with = |access: &HostAccess, service: ServiceHealth, allowed| {
        let drain = |asked| {
            let mut drain = in_cell(HostProgress::Pending, None, asked)?;
            (drain.access, drain.health.service) = (access.clone(), service.clone());
            Some(drain)
        };
        let target = if allowed { ("Deployed", None) } else { ("Deployed", D1) };
        let mut seen =
            seen_with(&[(DRAIN_BEFORE, "true")], target, D1.filter(|_| allowed), drain, None);
        let listed = listed(&seen);
        seen.report = Report::NotServed;
        (listed, pass(&mut seen).is_some())
    };
    let other = HostAccess::Other("NovaExternalCompute ns/n0".into());
    for (access, service) in [(&other, UP), (&HostAccess::NoCell, ServiceHealth::NotFound)] {
        assert_eq!(with(access, service.clone(), false), (Some("d1".into()), false));
        assert_eq!(with(access, service, true), (None, false), "there is nothing to enable");
    }
    let unread = [ServiceHealth::Pending, ServiceHealth::ApiFails];
    for unread in unread {
        assert_eq!(with(&HostAccess::NoCell, unread.clone(), false), (None, true));
        assert_eq!(with(&HostAccess::NoCell, unread, true), (Some("d1".into()), false));
    }
}

#[test]
fn a_host_that_the_user_drains_may_be_disturbed_and_does_not_hold_the_rollout_afterwards() {
    let named = |progress: HostProgress| {
        move |asked: Asked| {
            let mode = DrainMode::Wait;
            let own = DrainRequest::Drain(Drain { mode, reason: String::new() });
            let drain = in_cell(progress.clone(), Some(MARKER), (Some(own), asked.1))?;
            Some(HostDrain { is_named: true, ..drain })
        }
    };
    let seen = |host, allowed, progress| {
        let annotations = [(DRAIN_BEFORE, "true")];
        seen_with(&annotations, host, allowed, named(progress), Some(MARKER))
    };
    assert_eq!(listed(&seen(("Deployed", D1), None, occupied())), None);
    assert_eq!(listed(&seen(("Deployed", D1), None, HostProgress::Drained)), Some("d1".into()));
    assert_eq!(listed(&seen(("Deploying", None), D1, HostProgress::Drained)), Some("d1".into()));
    assert_eq!(listed(&seen(("Deployed", None), D1, HostProgress::Drained)), None);
}

#[test]
fn an_annotation_that_is_not_valid_lets_nothing_begin_and_enables_nothing() {
    let invalid = |host, allowed| {
        let drain = |asked| in_cell(HostProgress::Pending, Some(ROLLOUT), asked);
        seen_with(&[(DRAIN_BEFORE, "yes")], host, allowed, drain, Some(ROLLOUT))
    };
    let mut waits = invalid(("Deployed", D1), D1);
    assert_eq!(asked_of(&waits).0.unwrap().order(Some(HostOrder::Enable), true), None);
    assert_eq!(listed(&waits), None);
    assert_eq!(listed(&invalid(("Deploying", None), D1)), Some("d1".into()));
    assert_eq!(listed(&invalid(("Deployed", None), D1)), Some("d1".into()));
    waits.report = Report::NotServed;
    pass(&mut waits);
    let conditions = &waits.set.status.as_ref().unwrap().conditions;
    let found = api::conditions::find(conditions, NODE_DRAINED).unwrap();
    assert_eq!(found.reason, "DrainBeforeInvalid");
    assert!(found.message.contains("OpenStackDataPlaneNodeSet set is \"yes\""), "{found:?}");

    let annotations = [(DRAIN_BEFORE, "true"), (MAX_MIGRATIONS, "0")];
    let drain = |asked| in_cell(HostProgress::Pending, Some(ROLLOUT), asked);
    let seen = seen_with(&annotations, ("Deploying", None), D1, drain, Some(ROLLOUT));
    assert!(seen.drains.as_ref().unwrap_err().contains(MAX_MIGRATIONS));
    assert_eq!(listed(&seen), Some("d1".into()), "nothing is changed");
}

#[test]
fn without_the_annotation_no_deployment_waits_and_what_was_drained_is_given_back() {
    for annotations in [&[][..], &[(DRAIN_BEFORE, "false")]] {
        let of = |host, disabled: Option<&'static str>| {
            let drain = move |asked| in_cell(HostProgress::Pending, disabled, asked);
            seen_with(annotations, host, None, drain, disabled)
        };
        let seen = of(("Deployed", D1), Some(ROLLOUT));
        assert_eq!(disruption_allowed(&seen), None);
        let expected = (Some(DrainRequest::Absent), Some(HostOrder::EnableOnceUp));
        assert_eq!(asked_of(&seen), expected);
        assert_eq!(asked_of(&of(("Failed", None), Some(ROLLOUT))), expected);
        assert_eq!(asked_of(&of(("Deployed", None), Some(MARKER))).1, Some(HostOrder::Enable));
        // A deployment that is at the host is not disturbed by servers that come.
        assert_eq!(asked_of(&of(("Deploying", None), Some(ROLLOUT))).0, Some(rollout()));
    }
}

#[test]
fn a_report_without_a_gate_is_there_while_deployments_wait_and_written_when_it_changes() {
    let mut seen = drained(("Deployed", None), None, &HostProgress::Pending, None);
    let report = reported(&mut seen).unwrap();
    assert_eq!(
        (entries(&report), &report.spec.disruption_allowed),
        (vec![], &Some(<_>::default()))
    );
    assert_eq!(reported(&mut seen), None, "nothing has changed");
    seen.report = Report::NotServed;
    assert_eq!(planned(&seen).requeue_after, Some(CRD_POLL_INTERVAL));
    seen.report = Report::Found(report);
    seen.drain_before = DrainBefore::No;
    assert!(matches!(report_step(&seen).unwrap().write, Write::Delete { .. }));
    seen.has_gate = true;
    let written = reported(&mut seen).unwrap();
    assert_eq!(written.spec.disruption_allowed, None, "the gate alone is left");
}

#[test]
fn hosts_of_a_rollout_are_in_the_condition() {
    let says = |seen: &mut Observed| {
        seen.report = Report::NotServed;
        pass(seen);
        let conditions = seen.set.status.as_ref().map(|it| it.conditions.clone());
        let found = api::conditions::find(&conditions?, NODE_DRAINED).cloned();
        found.map(|it| (it.reason, it.message))
    };
    let mut seen = drained(("Deployed", D1), None, &occupied(), Some(ROLLOUT));
    let (reason, message) = says(&mut seen).unwrap();
    assert!(reason == "Migrating" && message.starts_with("0 of 1 hosts are drained; c0: "));
    let down = HostProgress::NotReporting;
    let (reason, _) = says(&mut drained(("Deployed", None), D1, &down, Some(ROLLOUT))).unwrap();
    assert_eq!(reason, "WaitingForService");
    let released = HostProgress::Released;
    assert_eq!(says(&mut drained(("Deployed", None), D1, &released, None)), None);
}

#[test]
fn a_host_whose_service_may_be_anothers_waits_for_its_deployment() {
    for access in [HostAccess::Unproven, HostAccess::Contested("other".into())] {
        let drain = |asked| {
            let of = in_cell(HostProgress::Pending, None, asked)?;
            Some(HostDrain { access: access.clone(), ..of })
        };
        let seen = seen_with(&[(DRAIN_BEFORE, "true")], ("Deployed", D1), None, drain, None);
        assert_eq!(listed(&seen), None, "{access:?}");
    }
}
