//! The rollout state of one compute, as its status and its node show it.

use api::conditions::{self, ConditionStatus, READY, find};
use api::dataplane::{Node, RunState};
use api::nova::ExternalCompute;
use kube::ResourceExt;
use nova_config::annotations::DRAIN;
use nova_config::conditions::{
    DEPLOYMENT_READY, DRAINED, INPUT_READY, NODE_READY, NOVA_CELL_READY, SERVICE_CONFIG_READY,
};
use operator_core::finalizers::is_terminating;
use operator_core::run_engine::rollout::{BlockReason, RolloutState};
use operator_core::run_engine::service_sequence::has_begun;

use crate::compute_status::computes_up::{is_not_up, service_up};
use crate::compute_status::deployed_files::has_present_inputs;
use crate::compute_status::registration::was_deployed;
use crate::rollout::deploy_strategy::deploys;

/// Returns the rollout state of a compute.
///
/// A host that a rollout drained belongs to that rollout until its service is enabled again; one
/// that a user drains, or whose service an administrator disabled, is in service.
pub(super) fn state(compute: &ExternalCompute, node: Option<&Node>) -> RolloutState {
    let state = deployment_state(compute, node);
    if state != RolloutState::Ready || is_terminating(compute) {
        return state;
    }
    if is_given_back(compute, node) {
        // With a further change it needs a slot, as a compute that is down does: its drain may have
        // been its user's.
        let is_done = has_present_inputs(compute.conditions());
        return if is_done { RolloutState::Disturbed } else { RolloutState::Down };
    }
    if is_down(compute) { RolloutState::Down } else { RolloutState::Ready }
}

/// Whether its service is down, or gone, or was so when nova last answered; not so where that was
/// never known.
fn is_down(compute: &ExternalCompute) -> bool {
    let ready = find(compute.conditions(), READY);
    let was_down = ready.is_some_and(|it| is_not_up(&it.reason));
    was_down || service_up(compute) == Some(ConditionStatus::False)
}

/// Whether its host is drained although its user does not request that, so that its service is yet
/// to be enabled; not so while that is unknown, because nova's API holds no deployment.
fn is_given_back(compute: &ExternalCompute, node: Option<&Node>) -> bool {
    let is_requested = node.is_some_and(|it| it.annotations().contains_key(DRAIN));
    let drained = find(compute.conditions(), DRAINED);
    drained.is_some_and(|it| it.status != ConditionStatus::Unknown) && !is_requested
}

/// Returns the rollout state of a compute as far as its runs decide it.
pub fn deployment_state(compute: &ExternalCompute, node: Option<&Node>) -> RolloutState {
    let state = RolloutState::of(compute.services(), was_deployed(compute));
    let holds_back = matches!(state, RolloutState::Corrected | RolloutState::Disturbed);
    if !holds_back || is_at_work(compute) || may_run(compute, node) {
        return state;
    }
    // It cannot be retried now, and no other compute waits for that. If it did not fail, its run
    // was withdrawn or never created, so it is still in service.
    if state == RolloutState::Corrected { RolloutState::Failed } else { RolloutState::Ready }
}

/// Returns whether one of its runs has started and its attempt has not ended.
pub fn is_at_work(compute: &ExternalCompute) -> bool {
    has_begun(compute.services())
}

/// Whether no condition in its status keeps it from a run.
fn may_run(compute: &ExternalCompute, node: Option<&Node>) -> bool {
    let Some(status) = &compute.status else { return false };
    let holds = |it: &&str| conditions::is_true(&status.conditions, it);
    deploys(compute, node)
        && [INPUT_READY, NODE_READY, NOVA_CELL_READY, SERVICE_CONFIG_READY].iter().all(holds)
}

/// Whether it waits for nothing but a slot.
pub(super) fn waits(compute: &ExternalCompute, node: Option<&Node>, state: RolloutState) -> bool {
    let is_due = if state.is_retry() {
        reports_waiting(compute)
    } else {
        state.starts_now() && !has_present_inputs(compute.conditions())
    };
    is_due && may_run(compute, node)
}

/// Whether its status reports that a retry waits for a slot, instead of the failure.
fn reports_waiting(compute: &ExternalCompute) -> bool {
    let conditions = compute.conditions().iter();
    let mut reported = conditions.filter(|it| it.type_ == DEPLOYMENT_READY);
    reported.any(|it| it.reason == BlockReason::LimitReached.reason().word)
}

/// Whether an unavailable compute has an attempt in progress: it is recorded, and nothing keeps it
/// from a run. Computes that did not fail count as well, because a failure is no longer known once
/// the failed service has succeeded. A terminating compute is not retried.
pub(super) fn is_trying(
    compute: &ExternalCompute,
    node: Option<&Node>,
    state: RolloutState,
) -> bool {
    let may_go_on = || is_at_work(compute) || may_run(compute, node) && !reports_waiting(compute);
    let may_be_tried = is_under_way(compute) && !is_terminating(compute);
    state.counts_as_unavailable() && may_be_tried && may_go_on()
}

/// Returns whether an attempt is recorded that has neither succeeded nor failed.
pub fn is_under_way(compute: &ExternalCompute) -> bool {
    // The first service that has not succeeded decides; later ones are recorded together with it.
    let due = compute.services().iter().map(|it| it.state).find(|it| *it != RunState::Succeeded);
    matches!(due, Some(RunState::Pending | RunState::Running))
}
