//! The hosts of a group that count for the disruption budget.

use kube::ResourceExt;
use operator_core::run_engine::rollout::{RolloutCounts, named};

use crate::role::evaluate::EvaluatedHost;

/// Returns the hosts that count: those whose own `deploy` is not false.
fn counted<'a>(hosts: &'a [EvaluatedHost<'a>]) -> impl Iterator<Item = &'a EvaluatedHost<'a>> {
    let own = |it: &&EvaluatedHost<'_>| it.host.node.spec.deploy_strategy.as_ref()?.deploy;
    hosts.iter().filter(move |it| own(it) != Some(false))
}

/// Counts the hosts of a group by their rollout state.
pub fn counts(hosts: &[EvaluatedHost<'_>]) -> RolloutCounts {
    let is_trying = |it: &&EvaluatedHost<'_>| it.is_at_work() && it.rollout_state().is_retry();
    let trying = counted(hosts).filter(is_trying).count();
    RolloutCounts::of(counted(hosts).map(EvaluatedHost::rollout_state)).with_trying(trying)
}

/// Returns the names of the first failed hosts that use up the disruption budget.
pub fn failing(hosts: &[EvaluatedHost<'_>]) -> String {
    let fails = |it: &&EvaluatedHost<'_>| {
        it.rollout_state().counts_as_unavailable() && it.rollout_state().fails()
    };
    let names: Vec<String> =
        counted(hosts).filter(fails).map(|it| it.host.node.name_any()).collect();
    named(&names)
}
