//! Which hosts of a deployment may begin: a wave goes through all services, up to one that waits for
//! all node sets.

use std::collections::BTreeSet;

use api::dataplane::RunState;
use operator_core::run_engine::SequenceState;
use operator_core::run_engine::host_progress::is_failing;
use operator_core::run_engine::host_progress::{is_corrected, position};
use operator_core::run_engine::rollout::{
    BlockReason, DisruptionBudget, RolloutCounts, RolloutState, named,
};

use crate::deployment::build::{is_for_all, place};
use crate::deployment::evaluate::{attempts, is_ended};
use crate::deployment::hosts::in_service;
use crate::deployment::node_set_part::{Blocked, EvaluatedHost, NodeSetPart};
use crate::deployment::observed::{Begun, Observed, OwnProgress};

/// Whom the limits of the deployment hold back, of parts that were judged without them.
pub fn holds(seen: &Observed, parts: &[NodeSetPart]) -> Blocked {
    let all: Vec<(&NodeSetPart, &EvaluatedHost, RolloutState)> = standings(seen, parts);
    let trying = all.iter().filter(|it| holds_try(seen, it)).count();
    let rollout_counts =
        RolloutCounts::of(all.iter().map(|it| counted(seen, it.0, it.1, it.2))).with_trying(trying);
    let mut limits = seen.deployment.spec.limits();
    // What fails elsewhere holds its place; only own failures pause the rest.
    limits.pause_on_failure &= all.iter().any(|it| it.2.fails());
    let mut budget = DisruptionBudget::of(&limits, &rollout_counts);
    let mut holds = Blocked::new();
    for (part, host, state) in all {
        let is_retried =
            is_failing(&host.live) && matches!(host.sequence.state, SequenceState::NeedsRun(_));
        if !is_retried && !begins(seen, part, host) {
            continue;
        }
        if let Err(blocked) = budget.admit(state) {
            holds.entry(part.name.clone()).or_default().insert(host.name.clone(), blocked);
        }
    }
    holds
}

/// Whether a host that was in service takes one of the places for tries: a try of this deployment is at
/// work there, or a run of another one, for all that is out of service together stays below the limit.
/// One that the other deployment only waits with takes none, or neither might go on.
fn holds_try(
    seen: &Observed,
    (part, host, state): &(&NodeSetPart, &EvaluatedHost, RolloutState),
) -> bool {
    let is_tried = state.is_retry() && is_at_work(seen, part, host);
    let is_others = || other(seen, part, host).is_some_and(|it| it.doing == OwnProgress::InRun);
    is_tried || (state.was_in_service() && is_others())
}

/// As what a host counts: what another deployment is at is out of service, but for hosts that fail there
/// and that this one has brought back since.
fn counted(
    seen: &Observed,
    part: &NodeSetPart,
    host: &EvaluatedHost,
    state: RolloutState,
) -> RolloutState {
    let Some(other) = other(seen, part, host) else { return state };
    match state {
        _ if is_excused(other) && host.live.state == RunState::Succeeded => state,
        RolloutState::Ready if other.doing == OwnProgress::GivenUp => RolloutState::Failed,
        RolloutState::New if other.doing == OwnProgress::GivenUp => RolloutState::FailedNew,
        RolloutState::Ready => RolloutState::Disturbed,
        RolloutState::New => RolloutState::Started,
        RolloutState::Started
        | RolloutState::FailedNew
        | RolloutState::Disturbed
        | RolloutState::Failed
        | RolloutState::Corrected => state,
    }
}

/// Whether what another deployment has begun on a host counts only until this one has succeeded there.
fn is_excused(other: &Begun) -> bool {
    matches!(other.doing, OwnProgress::GivenUp | OwnProgress::Failing)
}

/// What another deployment has begun on a host.
fn other<'a>(seen: &'a Observed, part: &NodeSetPart, host: &EvaluatedHost) -> Option<&'a Begun> {
    seen.others.get(&part.name)?.get(&host.name)
}

fn standings<'a>(
    seen: &Observed,
    parts: &'a [NodeSetPart],
) -> Vec<(&'a NodeSetPart, &'a EvaluatedHost, RolloutState)> {
    let of_part = |part: &'a NodeSetPart| {
        let in_service = part.node_set.iter().flat_map(|it| in_service(it));
        let in_service: BTreeSet<&str> = in_service.map(|it| it.name.as_str()).collect();
        let of_host = move |it: &'a EvaluatedHost| {
            (part, it, state(seen, part, it, in_service.contains(it.name.as_str())))
        };
        part.hosts.iter().map(of_host)
    };
    parts.iter().flat_map(of_part).collect()
}

/// What beginning or going on with a host means.
fn state(
    seen: &Observed,
    part: &NodeSetPart,
    host: &EvaluatedHost,
    was_deployed: bool,
) -> RolloutState {
    let of = |in_service, never| if was_deployed { in_service } else { never };
    let idle = of(RolloutState::Ready, RolloutState::New);
    let is_corrected = is_corrected(&host.live);
    if is_failing(&host.live) {
        return of(RolloutState::Failed, RolloutState::FailedNew);
    }
    match &host.sequence.state {
        _ if host.live.state == RunState::Succeeded => idle,
        // It gives its place to those that it waits for.
        SequenceState::NeedsRun(need) if is_for_all(seen, &need.service) => idle,
        SequenceState::NeedsRun(_) if begins(seen, part, host) && !is_corrected => idle,
        SequenceState::NeedsRun(_) | SequenceState::InRun { .. } if is_corrected => {
            of(RolloutState::Corrected, RolloutState::Started)
        }
        // It cannot be tried at present, and nobody waits for that.
        SequenceState::OutOfDate if host.is_untouched && is_corrected => {
            of(RolloutState::Failed, RolloutState::FailedNew)
        }
        SequenceState::OutOfDate if host.is_untouched => idle,
        SequenceState::NeedsRun(_)
        | SequenceState::InRun { .. }
        | SequenceState::Done
        | SequenceState::OutOfDate
        | SequenceState::Failed { .. } => of(RolloutState::Disturbed, RolloutState::Started),
    }
}

/// Whether a run now would be the host's first one, or the first one after a service for all node sets.
fn begins(seen: &Observed, part: &NodeSetPart, host: &EvaluatedHost) -> bool {
    let SequenceState::NeedsRun(need) = &host.sequence.state else { return false };
    let before = place(part, &need.service).checked_sub(1).and_then(|it| part.services.get(it));
    let follows_all = before.is_some_and(|it| is_for_all(seen, it));
    let is_first = host.is_untouched || follows_all;
    is_first && !is_failing(&host.live) && !is_for_all(seen, &need.service)
}

/// Whether a host is in a run, or goes on after one.
fn is_at_work(seen: &Observed, part: &NodeSetPart, host: &EvaluatedHost) -> bool {
    match &host.sequence.state {
        SequenceState::InRun { .. } => true,
        SequenceState::NeedsRun(_) => !is_failing(&host.live) && !begins(seen, part, host),
        SequenceState::Done | SequenceState::OutOfDate | SequenceState::Failed { .. } => false,
    }
}

/// What the limits of a deployment do to its hosts.
#[derive(Clone, Debug, Default)]
pub struct BlockedHosts {
    /// Whether nothing will be done about any host any more: those that hold the places have failed
    /// for good, and the others wait for them.
    pub is_over: bool,
    /// What is told of those that wait; nothing where nobody does.
    pub text: Option<String>,
}

/// What the limits do to the hosts of parts that were judged with them.
pub fn blocked_hosts(seen: &Observed, parts: &[NodeSetPart]) -> BlockedHosts {
    let waiting: Vec<BlockReason> =
        parts.iter().flat_map(|it| &it.hosts).filter_map(|it| it.blocked).collect();
    let Some(blocked) =
        waiting.iter().find(|it| **it != BlockReason::LimitReached).or_else(|| waiting.first())
    else {
        return BlockedHosts::default();
    };
    let attempts = attempts(seen);
    let rests = |host: &EvaluatedHost| {
        is_ended(&host.live, attempts)
            || host.blocked.is_some()
            || waits_for_held(seen, parts, host)
    };
    let all = standings(seen, parts);
    let is_over = !waiting.contains(&BlockReason::LimitReached)
        && !all.iter().any(|it| waits_for_another(seen, it))
        && parts.iter().flat_map(|it| &it.hosts).all(rests);
    let counts = |(part, host, state): &&(&NodeSetPart, &EvaluatedHost, RolloutState)| match blocked
    {
        BlockReason::Paused => state.fails(),
        BlockReason::LimitReached | BlockReason::Stuck => {
            let counted = counted(seen, part, host, *state);
            counted.fails() && counted.counts_as_unavailable()
        }
    };
    let failing: Vec<&str> = all.iter().filter(counts).map(|it| it.1.name.as_str()).collect();
    let max = seen.deployment.spec.limits().max_unavailable_text();
    let (n_waiting, n_all) = (waiting.len(), all.len());
    let cause = match blocked {
        BlockReason::LimitReached if failing.is_empty() => {
            format!("as maxUnavailable ({max}) has it{}", beside(seen, &all))
        }
        BlockReason::LimitReached => format!(
            "as maxUnavailable ({max}) has it{}; hosts that fail hold places: {}",
            beside(seen, &all),
            named(&failing)
        ),
        BlockReason::Stuck => format!(
            "all places that maxUnavailable ({max}) allows are held by hosts that fail: {}",
            named(&failing)
        ),
        BlockReason::Paused => {
            format!("pauseOnFailure is set, and hosts fail: {}", named(&failing))
        }
    };
    let text = match (blocked, is_over) {
        (BlockReason::LimitReached, _) => {
            let way_on = if failing.is_empty() { String::new() } else { format!(" {WAY_ON}") };
            format!("{n_waiting} of {n_all} hosts wait for their turn, {cause}.{way_on}")
        }
        (_, false) => format!("{n_waiting} of {n_all} hosts wait: {cause}. {WAY_ON}"),
        (_, true) => format!("{}: {cause}. {WAY_ON}", left(parts, attempts)),
    };
    BlockedHosts { is_over, text: Some(text) }
}

/// Whether a place is held by another deployment that will come to an end: one that has given up there
/// may wait for this one, and then the older one ends first.
fn waits_for_another(
    seen: &Observed,
    (part, host, state): &(&NodeSetPart, &EvaluatedHost, RolloutState),
) -> bool {
    let Some(other) = other(seen, part, host) else { return false };
    let counts = counted(seen, part, host, *state) != *state;
    counts && (other.is_older || other.doing != OwnProgress::GivenUp)
}

/// Which other deployments hold places too.
fn beside(seen: &Observed, all: &[(&NodeSetPart, &EvaluatedHost, RolloutState)]) -> String {
    let names = all.iter().filter_map(|it| Some(other(seen, it.0, it.1)?.deployment.as_str()));
    let names: Vec<&str> = names.collect::<BTreeSet<_>>().into_iter().collect();
    if names.is_empty() {
        return String::new();
    }
    format!("; hosts of OpenStackDataPlaneDeployment {} count too", named(&names))
}

/// How the hosts are that nothing more will be done about, and that have not failed.
fn left(parts: &[NodeSetPart], attempts: i64) -> String {
    let hosts = || parts.iter().flat_map(|part| part.hosts.iter().map(move |it| (part, it)));
    let open: Vec<_> = hosts().filter(|it| !is_ended(&it.1.live, attempts)).collect();
    let begun: Vec<_> = open.iter().filter(|it| !it.1.is_untouched).collect();
    let (n_all, n_begun, n_left) = (hosts().count(), begun.len(), open.len() - begun.len());
    let left = format!("{n_left} of {n_all} hosts were left as they are");
    let next = begun.iter().filter_map(|it| it.0.services.get(position(&it.1.live)));
    let next: BTreeSet<&str> = next.map(String::as_str).collect();
    let next: Vec<&str> = next.into_iter().collect();
    let half = format!(
        "{n_begun} of {n_all} hosts are half changed (they lack {} and what follows it)",
        named(&next)
    );
    match (n_left, n_begun) {
        (_, 0) => left,
        (0, _) => half,
        (_, _) => format!("{left}; {half}"),
    }
}

/// How hosts that fail hold up the others no longer.
const WAY_ON: &str = "Correct their causes; another OpenStackDataPlaneDeployment goes to them first. \
                      One with a larger maxUnavailable, or with an ansibleLimit that leaves them \
                      out, goes on without them.";

/// Whether a host has come to a service for all node sets that begins with hosts of which some wait for
/// their turn.
fn waits_for_held(seen: &Observed, parts: &[NodeSetPart], host: &EvaluatedHost) -> bool {
    let SequenceState::NeedsRun(need) = &host.sequence.state else { return false };
    let is_held = |it: &NodeSetPart| {
        it.leads(&need.service) && it.hosts.iter().any(|it| it.blocked.is_some())
    };
    is_for_all(seen, &need.service) && parts.iter().any(is_held)
}
