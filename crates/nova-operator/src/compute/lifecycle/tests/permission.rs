//! When a deployment of a node set may disturb a host, and when its gate counts.

use std::num::NonZeroUsize;

use api::dataplane::{DisruptionHolder, DisruptionTarget, HostState, SeenDeployment};
use nova_config::annotations::{DRAIN, DRAIN_BEFORE};
use nova_config::conditions::{NOVA_MATCHES, SERVICE_UP};
use operator_core::object_key::Key;
use testkit::set_nodes;

use super::observed::{compute_of, looked_after, node_of, node_set, of_set, report};
use super::*;
use crate::compute::lifecycle::permission::holder;
use crate::nova::drain::order::{
    Drain, DrainMode, HostOrder, IdentityGoal, IdentityOrder, MARKER, OrderOfHost,
};
use crate::nova::drain::progress::{HostProgress, IdentityUse, Occupied};
use crate::nova::health::{HostHealth, ServiceHealth};
use crate::nova::identity::Identity;

const ROLLOUT: &str = "nova.openstack.org/drain: rollout";

/// A host of a node set with that value of `drain-before`, where a deployment is in that state.
fn with_state(before: Option<&str>, state: Option<HostState>) -> Observed {
    let mut seen = looked_after(&["nova-cell1"], Some("nova-cell1"));
    let annotations = before.map_or_else(|| json!({}), |it| json!({ DRAIN_BEFORE: it }));
    seen.group = Some(node_set(&annotations));
    seen.nova.deployed = Some("nova".to_owned());
    if let Some(state) = state {
        set_nodes::begin(node_of(&mut seen), "d1");
        state_of(&mut seen, state);
    }
    seen
}

fn state_of(seen: &mut Observed, state: HostState) {
    let status = node_of(seen).status.as_mut().unwrap();
    status.deployment.as_mut().unwrap().state = state;
}

/// Records what was allowed before.
fn allow(seen: &mut Observed, allowed: Option<DisruptionTarget>) {
    let holder = DisruptionHolder {
        name: "nova.openstack.org".into(),
        holds: true,
        allowed,
        ..DisruptionHolder::default()
    };
    set_nodes::hold(node_of(seen), holder);
}

fn drain() -> Drain {
    let mode = DrainMode::Migrate(NonZeroUsize::new(2).unwrap());
    Drain { mode, reason: "rollout".into() }
}

/// The newest order about the host, for that target, and what its last pass has found.
fn found(seen: &mut Observed, order: HostOrder, for_: Option<DisruptionTarget>, it: HostProgress) {
    let order = OrderOfHost {
        cell: Key::new("ns", "nova-cell1"),
        host: "n0.example.org".into(),
        meant_for: Identity::default(),
        order,
        target: for_,
    };
    seen.order = Some((order, it));
}

/// The service of the host is up, and is disabled with this reason, if with one.
fn up(seen: &mut Observed, disabled: Option<&str>) {
    let disabled = disabled.map(str::to_owned);
    let service = ServiceHealth::Up { disabled: disabled.clone() };
    seen.health = Some(HostHealth { service, disabled, ..HostHealth::default() });
}

fn occupied() -> HostProgress {
    let servers = vec!["s0".to_owned()].into();
    HostProgress::Occupied(Occupied { servers, ..Occupied::default() })
}

fn entry(seen: &Observed) -> DisruptionHolder {
    holder(seen).expect("the compute is looked after")
}

fn allowed(seen: &Observed) -> Option<DisruptionTarget> {
    entry(seen).allowed
}

#[test]
fn a_host_is_listed_from_when_it_is_drained_until_it_is_enabled_after_the_deployment() {
    let (pending, drained) = (HostProgress::Pending, HostProgress::Drained);
    let (down, released) = (HostProgress::NotReporting, HostProgress::Released);
    let (waits, works) = (HostState::Deployed, HostState::Deploying);
    let unread = HostProgress::Unread { cell: "nova-cell1".into() };
    for (what, state, has_target, was_allowed, progress, is_allowed) in [
        ("it is to be drained", waits, true, false, Some(&pending), false),
        ("it has servers", waits, true, false, Some(&occupied()), false),
        ("it is drained", waits, true, false, Some(&drained), true),
        ("the operator was restarted", waits, true, true, None, true),
        ("no pass has ended since", waits, true, true, Some(&pending), true),
        ("nova is not read", waits, true, true, Some(&unread), true),
        ("a server came", waits, true, true, Some(&occupied()), false),
        ("it is deployed", works, false, true, Some(&drained), true),
        ("restarted meanwhile", works, false, true, None, true),
        ("the permission was taken off by hand", works, false, false, Some(&drained), false),
        ("it is to be enabled", waits, false, true, Some(&pending), true),
        ("it is down", waits, false, true, Some(&down), true),
        ("restarted again", waits, false, true, None, true),
        ("it is enabled", waits, false, true, Some(&released), false),
    ] {
        let mut seen = with_state(Some("true"), Some(state));
        let target = set_nodes::target(node_of(&mut seen), "d2");
        allow(&mut seen, was_allowed.then(|| target.clone()));
        if !has_target {
            node_of(&mut seen).status.as_mut().unwrap().disruption.as_mut().unwrap().target = None;
        }
        if let Some(progress) = progress {
            let (order, of) = if has_target || state == works {
                (HostOrder::DrainForChange(drain()), Some(target.clone()))
            } else {
                (HostOrder::EnableOnceUp, None)
            };
            found(&mut seen, order, of, progress.clone());
        }
        assert_eq!(allowed(&seen), is_allowed.then_some(target), "{what}");
        assert!(holder(&seen).unwrap().holds, "{what}");
    }
}

#[test]
fn a_service_that_was_enabled_before_a_restart_is_given_back() {
    let mut seen = with_state(Some("true"), Some(HostState::Deployed));
    let target = DisruptionTarget { deployment: "d1".into(), number: 1 };
    allow(&mut seen, Some(target.clone()));
    up(&mut seen, Some(ROLLOUT));
    assert_eq!(allowed(&seen), Some(target));
    up(&mut seen, None);
    assert_eq!(allowed(&seen), None, "no order has to enable it any more");
}

#[test]
fn only_what_was_found_for_exactly_this_target_allows_it() {
    let mut seen = with_state(Some("true"), Some(HostState::Deployed));
    let first = set_nodes::target(node_of(&mut seen), "d1");
    let second = set_nodes::target(node_of(&mut seen), "d1");
    assert_ne!(first, second, "the same deployment, given again");
    for of in [None, Some(first.clone())] {
        allow(&mut seen, Some(first.clone()));
        found(&mut seen, HostOrder::DrainForChange(drain()), of, HostProgress::Drained);
        assert_eq!(allowed(&seen), None);
    }
    // Nor what was found while the service is to be enabled.
    found(&mut seen, HostOrder::EnableOnceUp, Some(second.clone()), HostProgress::Drained);
    assert_eq!(allowed(&seen), None);
    let drained = HostOrder::DrainForChange(drain());
    found(&mut seen, drained, Some(second.clone()), HostProgress::Drained);
    assert_eq!(allowed(&seen), Some(second));
}

#[test]
fn a_host_with_a_lost_identity_is_allowed_once_it_is_drained_and_looked_at() {
    let mut seen = with_state(Some("true"), Some(HostState::Failed));
    let target = set_nodes::target(node_of(&mut seen), "d2");
    let order = |drain| {
        let goal = IdentityGoal::Restore;
        HostOrder::Identity(IdentityOrder { compute_id: "c".into(), goal, drain })
    };
    let free = || HostProgress::Identity(IdentityUse::Free);
    found(&mut seen, order(None), Some(target.clone()), free());
    assert_eq!(allowed(&seen), None);
    found(&mut seen, order(Some(drain())), Some(target.clone()), free());
    assert_eq!(allowed(&seen), Some(target));
}

#[test]
fn a_failed_host_stays_drained_and_counts_as_failed() {
    let mut seen = with_state(Some("true"), Some(HostState::Failed));
    allow(&mut seen, Some(DisruptionTarget { deployment: "d1".into(), number: 1 }));
    up(&mut seen, Some(ROLLOUT));
    assert_eq!(allowed(&seen), None);
    let next = set_nodes::target(node_of(&mut seen), "d2");
    let order = HostOrder::DrainForChange(drain());
    found(&mut seen, order, Some(next.clone()), HostProgress::Drained);
    assert_eq!(allowed(&seen), Some(next));
}

#[test]
fn another_deployment_waits_until_the_one_at_the_host_has_ended() {
    let mut seen = with_state(Some("true"), Some(HostState::Deploying));
    let first = set_nodes::target(node_of(&mut seen), "d1");
    let second = set_nodes::target(node_of(&mut seen), "d2");
    allow(&mut seen, Some(first.clone()));
    let order = HostOrder::DrainForChange(drain());
    found(&mut seen, order, Some(second.clone()), HostProgress::Drained);
    assert_eq!(allowed(&seen), Some(first));
    state_of(&mut seen, HostState::Deployed);
    assert_eq!(allowed(&seen), Some(second));
}

#[test]
fn a_deployment_that_asks_again_while_it_is_at_the_host_waits_for_no_permission_of_before() {
    // Its own one, or that of a deployment which ended there and has not given the host back.
    for before in ["d1", "d0"] {
        let mut seen = with_state(Some("true"), Some(HostState::Deploying));
        let first = set_nodes::target(node_of(&mut seen), before);
        let second = set_nodes::target(node_of(&mut seen), "d1");
        allow(&mut seen, Some(first));
        let order = || HostOrder::DrainForChange(drain());
        found(&mut seen, order(), Some(second.clone()), HostProgress::Pending);
        assert_eq!(allowed(&seen), None, "{before}");
        found(&mut seen, order(), Some(second.clone()), HostProgress::Drained);
        assert_eq!(allowed(&seen), Some(second), "{before}");
    }
}

#[test]
fn a_deployment_that_is_taken_back_gives_the_host_back() {
    let target = || Some(DisruptionTarget { deployment: "d1".into(), number: 1 });
    for state in [None, Some(HostState::Undeployed), Some(HostState::Deployed)] {
        let mut seen = with_state(Some("true"), state);
        allow(&mut seen, target());
        up(&mut seen, Some(ROLLOUT));
        found(&mut seen, HostOrder::EnableOnceUp, None, HostProgress::Pending);
        assert_eq!(allowed(&seen), target(), "{state:?}");
        found(&mut seen, HostOrder::EnableOnceUp, None, HostProgress::Released);
        assert_eq!(allowed(&seen), None, "{state:?}");
    }
}

#[test]
fn a_host_that_the_user_drains_may_be_disturbed_and_does_not_hold_the_rollout_afterwards() {
    let mut seen = with_state(Some("true"), Some(HostState::Deployed));
    node_of(&mut seen).annotations_mut().insert(DRAIN.into(), "wait".into());
    let target = set_nodes::target(node_of(&mut seen), "d1");
    up(&mut seen, Some(MARKER));
    let order =
        || HostOrder::DrainForChange(Drain { mode: DrainMode::Wait, reason: String::new() });
    found(&mut seen, order(), Some(target.clone()), occupied());
    assert_eq!(allowed(&seen), None);
    found(&mut seen, order(), Some(target.clone()), HostProgress::Drained);
    assert_eq!(allowed(&seen), Some(target.clone()));
    allow(&mut seen, Some(target.clone()));
    node_of(&mut seen).status.as_mut().unwrap().disruption.as_mut().unwrap().target = None;
    state_of(&mut seen, HostState::Deploying);
    assert_eq!(allowed(&seen), Some(target));
    state_of(&mut seen, HostState::Deployed);
    assert_eq!(allowed(&seen), None);
}

#[test]
fn an_annotation_that_is_not_valid_lets_nothing_begin_and_takes_nothing_back() {
    let mut seen = with_state(Some("yes"), Some(HostState::Deploying));
    let target = set_nodes::target(node_of(&mut seen), "d1");
    allow(&mut seen, Some(target.clone()));
    let order = HostOrder::DrainForChange(drain());
    found(&mut seen, order, Some(target.clone()), HostProgress::Drained);
    assert_eq!(allowed(&seen), None);
    assert!(holder(&seen).unwrap().holds);
    node_of(&mut seen).status.as_mut().unwrap().disruption.as_mut().unwrap().target = None;
    for state in [HostState::Deploying, HostState::Deployed] {
        state_of(&mut seen, state);
        assert_eq!(allowed(&seen), Some(target.clone()), "{state:?}");
    }
}

#[test]
fn without_the_annotation_no_deployment_waits() {
    for before in [None, Some("false")] {
        let mut seen = with_state(before, Some(HostState::Deployed));
        let target = set_nodes::target(node_of(&mut seen), "d1");
        allow(&mut seen, Some(target));
        let found = holder(&seen).unwrap();
        assert_eq!((found.holds, found.allowed), (false, None), "{before:?}");
    }
    // The node takes it back for its host.
    let mut seen = with_state(Some("true"), None);
    node_of(&mut seen).annotations_mut().insert(DRAIN_BEFORE.into(), "false".into());
    assert!(!holder(&seen).unwrap().holds);
    // A compute that the operator deploys, and hosts of roles, are waited for by their own rollouts.
    assert_eq!(holder(&with(Some("nova-cell1"), made("nova-cell1"))), None);
    assert_eq!(holder(&of_set(&["nova-cell1"])), None);
}

#[test]
fn a_host_without_a_compute_of_its_own_is_not_disturbed_where_it_is_to_be_drained() {
    let mut none = of_set(&["nova-cell1"]);
    none.group = Some(node_set(&json!({ DRAIN_BEFORE: "true" })));
    none.nova.deployed = Some("nova".to_owned());
    let mut theirs = none.clone();
    theirs.compute = Some(Arc::new(by_hand(&json!({ "dataplaneNodeName": "n0" }))));
    let beside = Observed { compute: Some(Arc::new(made("nova-cell1"))), ..none.clone() };
    for seen in [&none, &theirs, &beside] {
        let found = holder(seen).unwrap();
        assert_eq!((found.holds, found.allowed, found.seen), (true, None, None));
    }
    // Neither where nothing can look after it, nor where a service deploys nothing there.
    assert_eq!(holder(&Observed { reads_nova: false, ..none.clone() }), None);
    assert_eq!(holder(&Observed { nova: NovaServices::default(), ..none }), None);
}

#[test]
fn a_host_on_which_no_deployment_of_nova_has_begun_waits_for_nothing() {
    let mut seen = with_state(Some("true"), Some(HostState::Failed));
    seen.nova.deployed = None;
    assert!(!entry(&seen).holds);
    // One that was in service before the node had records of its services is none of those.
    node_of(&mut seen).status.as_mut().unwrap().deployed_config_hash = Some("0a1b2c3d".into());
    assert!(entry(&seen).holds);
}

#[test]
fn a_node_set_that_is_not_known_changes_nothing_that_was_said() {
    let mut seen = with_state(Some("true"), Some(HostState::Deployed));
    seen.group = None;
    assert_eq!(holder(&seen), None);
    let target = set_nodes::target(node_of(&mut seen), "d1");
    allow(&mut seen, Some(target.clone()));
    let found = holder(&seen).unwrap();
    assert_eq!((found.holds, found.allowed), (true, Some(target)));
}

#[test]
fn a_host_that_nova_does_not_list_is_not_empty() {
    let mut seen = with_state(Some("true"), Some(HostState::Deployed));
    let target = set_nodes::target(node_of(&mut seen), "d1");
    allow(&mut seen, Some(target.clone()));
    let order = HostOrder::DrainForChange(drain());
    found(&mut seen, order, Some(target.clone()), HostProgress::NotFound);
    assert_eq!(allowed(&seen), None);
    // Nor is one that nova has under another identity, about which no order is given.
    seen.order = None;
    assert_eq!(allowed(&seen), Some(target));
    report(&mut seen, &[(NOVA_MATCHES, "False")]);
    assert_eq!(allowed(&seen), None);
}

#[test]
fn while_a_compute_is_removed_no_deployment_begins_on_its_host() {
    let mut seen = with_state(Some("true"), Some(HostState::Deploying));
    let target = set_nodes::target(node_of(&mut seen), "d1");
    allow(&mut seen, Some(target.clone()));
    let now = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    compute_of(&mut seen).metadata.deletion_timestamp = Some(now);
    assert_eq!(allowed(&seen), Some(target), "the one that is there goes on");
    state_of(&mut seen, HostState::Deployed);
    assert_eq!(allowed(&seen), None);
    assert!(holder(&seen).unwrap().holds);
}

/// A host on which a deployment has ended in its first attempt, and whose service is up, as the compute says
/// too.
fn deployed() -> Observed {
    let mut seen = with_state(None, Some(HostState::Deployed));
    up(&mut seen, None);
    report(&mut seen, &[(SERVICE_UP, "True")]);
    seen.read_twice_since = last_ended(&seen);
    seen
}

/// The attempt of the deployment on the node, which has ended.
fn last_ended(seen: &Observed) -> Option<SeenDeployment> {
    seen.node.status.as_ref()?.deployment.as_ref()?.succeeded()
}

fn seen_attempt(seen: &Observed) -> Option<i64> {
    entry(seen).seen.map(|it| it.attempt)
}

#[test]
fn an_attempt_is_seen_once_nova_was_read_twice_since_it_has_ended() {
    let mut seen = deployed();
    assert_eq!(
        holder(&seen).unwrap().seen,
        Some(SeenDeployment { deployment: "d1".into(), attempt: 1 })
    );
    seen.read_twice_since = None;
    assert_eq!(seen_attempt(&seen), None);
    let mut going = deployed();
    for state in [HostState::Deploying, HostState::Failed, HostState::Undeployed] {
        state_of(&mut going, state);
        assert_eq!(seen_attempt(&going), None, "{state:?}");
    }
}

#[test]
fn an_attempt_is_not_seen_while_the_condition_is_of_before_it() {
    let mut seen = deployed();
    let down = ServiceHealth::Down { since: None, is_forced: false };
    seen.health = Some(HostHealth { service: down, ..HostHealth::default() });
    assert_eq!(seen_attempt(&seen), None, "the compute still says that it is up");
    report(&mut seen, &[(SERVICE_UP, "False")]);
    assert_eq!(seen_attempt(&seen), Some(1), "it is down, and that is said");
    up(&mut seen, None);
    assert_eq!(seen_attempt(&seen), None);
    report(&mut seen, &[]);
    assert_eq!(seen_attempt(&seen), None);
}

#[test]
fn what_is_unknown_leaves_the_attempt_that_was_seen() {
    let mut seen = deployed();
    let before = holder(&seen).unwrap();
    for unknown in
        [ServiceHealth::Pending, ServiceHealth::ApiFails, ServiceHealth::CellNotAnswering]
    {
        seen.health = Some(HostHealth { service: unknown, ..HostHealth::default() });
        assert_eq!(seen_attempt(&seen), None);
        set_nodes::hold(node_of(&mut seen), before.clone());
        assert_eq!(holder(&seen).unwrap(), before);
        set_nodes::hold(node_of(&mut seen), DisruptionHolder { seen: None, ..before.clone() });
    }
}

#[test]
fn an_attempt_that_was_seen_says_nothing_of_the_next_one() {
    let mut seen = deployed();
    let first = holder(&seen).unwrap();
    set_nodes::hold(node_of(&mut seen), first);
    set_nodes::begin(node_of(&mut seen), "d1");
    assert_eq!(seen_attempt(&seen), Some(1));
    state_of(&mut seen, HostState::Deployed);
    seen.read_twice_since = None;
    assert_eq!(seen_attempt(&seen), Some(1), "the readings are those of before");
    seen.read_twice_since = last_ended(&seen);
    assert_eq!(seen_attempt(&seen), Some(2));
}
