//! Who of a group counts for its limits, and what is told of a host that they hold back.

use kube::ResourceExt;
use operator_core::engine::rollout::{Tally, named};

use crate::group::host::Judged;

/// The hosts that count: those whose own `deploy` is not false.
fn counted(hosts: &[Judged]) -> impl Iterator<Item = &Judged> {
    let own = |it: &&Judged| it.node.spec.deploy_strategy.as_ref().and_then(|it| it.deploy);
    hosts.iter().filter(move |it| own(it) != Some(false))
}

/// The hosts of a group, counted.
pub fn tally(hosts: &[Judged]) -> Tally {
    let is_trying = |it: &&Judged| it.is_at_work() && it.standing().is_retry();
    let trying = counted(hosts).filter(is_trying).count();
    Tally::of(counted(hosts).map(Judged::standing)).with_trying(trying)
}

/// The first hosts that hold places and fail, by name.
pub fn failing(hosts: &[Judged]) -> String {
    let fails = |it: &&Judged| it.standing().holds_place() && it.standing().fails();
    let names: Vec<String> = counted(hosts).filter(fails).map(|it| it.node.name_any()).collect();
    named(&names)
}
