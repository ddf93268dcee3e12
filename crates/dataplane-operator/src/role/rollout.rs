//! Which hosts of a group may begin, of those that are evaluated in a pass and those of earlier ones.

use std::sync::Arc;

use operator_core::run_engine::rollout::{DisruptionBudget, RolloutCounts, named};

use crate::role::evaluate::{BlockedRollout, EvaluatedHost, Turn};
use crate::role::observed::Observed;
use crate::role::summary::HostSummary;

/// A host of a group in one pass.
pub enum GroupHost<'a> {
    /// Nothing of it has changed since an earlier pass.
    Known(&'a Arc<HostSummary>),
    /// It was evaluated in this pass, with its turn before any host was admitted.
    Evaluated(EvaluatedHost<'a>, Turn),
}

impl<'a> GroupHost<'a> {
    /// Returns an evaluated host.
    pub fn evaluated(host: EvaluatedHost<'a>) -> Self {
        let turn = host.turn();
        Self::Evaluated(host, turn)
    }

    fn turn(&self) -> Turn {
        match self {
            Self::Known(it) => it.turn,
            Self::Evaluated(_, turn) => *turn,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Known(it) => &it.name,
            Self::Evaluated(it, _) => &it.host.effective.name,
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
/// # Errors
/// Returns the names of known hosts that may begin now, or have to wait for another reason than they
/// report: they are to be evaluated.
pub fn admitted<'a>(
    seen: &Observed,
    hosts: Vec<GroupHost<'a>>,
    counts: &RolloutCounts,
) -> Result<Vec<GroupHost<'a>>, Vec<String>> {
    let mut budget = DisruptionBudget::of(&seen.limits(), counts);
    let failing = failing(&hosts);
    let (mut admitted, mut outdated) = (Vec::with_capacity(hosts.len()), Vec::new());
    for host in hosts {
        let turn = host.turn();
        let admission =
            if turn.begins && !turn.is_at_work { budget.admit(turn.state) } else { Ok(()) };
        let blocked = admission.err();
        let blocked = blocked.map(|it| BlockedRollout { blocked: it, failing: failing.clone() });
        match (host, blocked) {
            (GroupHost::Known(known), blocked) if known.blocked != blocked => {
                outdated.push(known.name.clone());
            }
            (GroupHost::Evaluated(host, turn), Some(blocked)) => {
                admitted.push(GroupHost::Evaluated(host.held(blocked), turn));
            }
            (host, _) => admitted.push(host),
        }
    }
    if outdated.is_empty() { Ok(admitted) } else { Err(outdated) }
}
