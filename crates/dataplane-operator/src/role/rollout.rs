//! The hosts of a group that count for the disruption budget.

use kube::ResourceExt;
use operator_core::run_engine::rollout::{RolloutCounts, named};

use crate::role::host::EvaluatedHost;

/// Returns the hosts that count: those whose own `deploy` is not false.
fn counted(hosts: &[EvaluatedHost]) -> impl Iterator<Item = &EvaluatedHost> {
    let own = |it: &&EvaluatedHost| it.node.spec.deploy_strategy.as_ref().and_then(|it| it.deploy);
    hosts.iter().filter(move |it| own(it) != Some(false))
}

/// Counts the hosts of a group by their rollout state.
pub fn counts(hosts: &[EvaluatedHost]) -> RolloutCounts {
    let is_trying = |it: &&EvaluatedHost| it.is_at_work() && it.rollout_state().is_retry();
    let trying = counted(hosts).filter(is_trying).count();
    RolloutCounts::of(counted(hosts).map(EvaluatedHost::rollout_state)).with_trying(trying)
}

/// Returns the names of the first failed hosts that use up the disruption budget.
pub fn failing(hosts: &[EvaluatedHost]) -> String {
    let fails = |it: &&EvaluatedHost| {
        it.rollout_state().counts_as_unavailable() && it.rollout_state().fails()
    };
    let names: Vec<String> = counted(hosts).filter(fails).map(|it| it.node.name_any()).collect();
    named(&names)
}
