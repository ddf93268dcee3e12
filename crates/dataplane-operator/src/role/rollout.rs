//! Which hosts of a group may begin, of those that are evaluated in a pass and those of earlier ones.

use std::sync::Arc;

use operator_core::run_engine::rollout::{BlockReason, DisruptionBudget, RolloutCounts, named};

use crate::role::evaluate::{BlockedRollout, EvaluatedHost, Turn};
use crate::role::observed::Observed;
use crate::role::summary::HostSummary;

/// A host of a group in one pass.
pub enum GroupHost<'a> {
    /// Nothing of it has changed since an earlier pass.
    Known(&'a Arc<HostSummary>),
    /// It was evaluated in this pass: the place of its node in the group, and its turn before any host was
    /// admitted.
    Evaluated(usize, Box<EvaluatedHost<'a>>, Turn),
}

impl<'a> GroupHost<'a> {
    /// Returns an evaluated host.
    pub fn evaluated(place: usize, host: EvaluatedHost<'a>) -> Self {
        let turn = host.turn();
        Self::Evaluated(place, Box::new(host), turn)
    }

    fn turn(&self) -> Turn {
        match self {
            Self::Known(it) => it.turn,
            Self::Evaluated(_, _, turn) => *turn,
        }
    }

    fn shard(&self) -> usize {
        match self {
            Self::Known(it) => it.shard,
            Self::Evaluated(_, it, _) => it.host.shard,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Known(it) => &it.name,
            Self::Evaluated(_, it, _) => &it.host.effective.name,
        }
    }
}

/// Counts the hosts of a group by their rollout state.
pub fn counts(hosts: &[GroupHost<'_>]) -> RolloutCounts {
    let turns = || hosts.iter().map(GroupHost::turn).filter(|it| it.is_counted);
    let trying = turns().filter(|it| it.is_at_work && it.state.is_retry()).count();
    RolloutCounts::of(turns().map(|it| it.state)).with_trying(trying)
}

/// Returns the names of the first failed hosts that use up the disruption budget.
fn failing(hosts: &[GroupHost<'_>]) -> String {
    let fails = |it: &&GroupHost<'_>| {
        let Turn { state, is_counted, .. } = it.turn();
        is_counted && state.counts_as_unavailable() && state.fails()
    };
    let names: Vec<&str> = hosts.iter().filter(fails).map(GroupHost::name).collect();
    named(&names)
}

/// Holds the hosts that the role's disruption budget does not admit.
///
/// The hosts of one inventory object begin one after the other, and then those of the next one: only they
/// can share runs.
///
/// # Errors
/// Returns the names of known hosts that may begin now, or have to wait for another reason than they
/// report: they are to be evaluated.
pub fn admitted<'a>(
    seen: &Observed,
    hosts: Vec<GroupHost<'a>>,
    counts: &RolloutCounts,
) -> Result<Vec<GroupHost<'a>>, Vec<String>> {
    let blocked = blocked(seen, &hosts, counts);
    let is_outdated = |(host, blocked): (&GroupHost<'_>, &Option<BlockedRollout>)| match host {
        GroupHost::Known(known) if known.blocked != *blocked => Some(known.name.clone()),
        GroupHost::Known(_) | GroupHost::Evaluated(..) => None,
    };
    let outdated: Vec<String> = hosts.iter().zip(&blocked).filter_map(is_outdated).collect();
    if !outdated.is_empty() {
        return Err(outdated);
    }
    let admitted = hosts.into_iter().zip(blocked).map(|it| match it {
        (GroupHost::Evaluated(place, host, turn), Some(blocked)) => {
            GroupHost::Evaluated(place, Box::new(host.held(blocked)), turn)
        }
        (host, _) => host,
    });
    Ok(admitted.collect())
}

/// Returns why each host may not begin; `None` where it may, or does not begin now.
fn blocked(
    seen: &Observed,
    hosts: &[GroupHost<'_>],
    counts: &RolloutCounts,
) -> Vec<Option<BlockedRollout>> {
    let mut budget = DisruptionBudget::of(&seen.limits(), counts);
    let failing = failing(hosts);
    let mut places: Vec<usize> = (0..hosts.len()).collect();
    places.sort_by_key(|it| hosts[*it].shard());
    let mut found = vec![None; hosts.len()];
    for place in places {
        let turn = hosts[place].turn();
        if !turn.begins || turn.is_at_work {
            continue;
        }
        found[place] = budget.admit(turn.state).err().map(|blocked| {
            // The others do not name them.
            let is_stuck = blocked == BlockReason::Stuck;
            let failing = if is_stuck { failing.clone() } else { String::new() };
            BlockedRollout { blocked, failing }
        });
    }
    found
}
