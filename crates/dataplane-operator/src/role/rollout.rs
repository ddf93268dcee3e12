//! Who of a group counts for its limits, and what is told of a host that they hold back.

use kube::ResourceExt;
use operator_core::run_engine::rollout::{RolloutCounts, named};

use crate::role::host::EvaluatedHost;

/// The hosts that count: those whose own `deploy` is not false.
fn counted(hosts: &[EvaluatedHost]) -> impl Iterator<Item = &EvaluatedHost> {
    let own = |it: &&EvaluatedHost| it.node.spec.deploy_strategy.as_ref().and_then(|it| it.deploy);
    hosts.iter().filter(move |it| own(it) != Some(false))
}

/// The hosts of a group, counted.
pub fn tally(hosts: &[EvaluatedHost]) -> RolloutCounts {
    let is_trying = |it: &&EvaluatedHost| it.is_at_work() && it.rollout_state().is_retry();
    let trying = counted(hosts).filter(is_trying).count();
    RolloutCounts::of(counted(hosts).map(EvaluatedHost::rollout_state)).with_trying(trying)
}

/// The first hosts that hold places and fail, by name.
pub fn failing(hosts: &[EvaluatedHost]) -> String {
    let fails = |it: &&EvaluatedHost| {
        it.rollout_state().counts_as_unavailable() && it.rollout_state().fails()
    };
    let names: Vec<String> = counted(hosts).filter(fails).map(|it| it.node.name_any()).collect();
    named(&names)
}
