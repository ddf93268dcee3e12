//! The hosts of a deployment that may begin: a wave of hosts goes through all services, up to one
//! that waits for all node sets.

use std::collections::BTreeSet;

use api::dataplane::{NodeSetHost, RunState};
use jiff::Timestamp;
use operator_core::run_engine::SequenceState;
use operator_core::run_engine::host_progress::{is_corrected, is_failing, position};
use operator_core::run_engine::rollout::{
    BlockReason, DisruptionBudget, RolloutCounts, RolloutState, named,
};

use crate::deployment::build::{have_arrived, is_for_all, place};
use crate::deployment::disruption;
use crate::deployment::evaluate::{attempts, is_ended};
use crate::deployment::hosts::{in_service, may_serve};
use crate::deployment::node_set_part::{Blocked, EvaluatedHost, Hold, NodeSetPart};
use crate::deployment::observed::{Begun, Observed, OwnProgress};
use crate::host::holders;

/// Returns the hosts that have to wait: for the disruption budget, or until they may be disturbed;
/// `parts` were evaluated without that.
pub fn blocked_by_budget(seen: &Observed, parts: &[NodeSetPart], now: Timestamp) -> Blocked {
    let all: Vec<(&NodeSetPart, &EvaluatedHost, RolloutState)> = rollout_states(seen, parts);
    let trying = all.iter().filter(|it| keeps_retry(seen, it)).count();
    let rollout_counts =
        RolloutCounts::of(all.iter().map(|it| counted(seen, it.0, it.1, it.2))).with_trying(trying);
    let mut limits = seen.deployment.spec.limits();
    // Where a host is disturbed only with permission, a bad change must reach as few as possible.
    limits.pause_on_failure |= disruption::first_restricted(seen, parts).is_some();
    // Failures of other deployments use up the budget; only this deployment's own failures pause
    // it.
    limits.pause_on_failure &= all.iter().any(|it| it.2.fails());
    let mut budget = DisruptionBudget::of(&limits, &rollout_counts);
    let mut holds = Blocked::new();
    for (part, host, state) in all {
        let is_retried = is_failing(&host.live) && host.sequence.needed_run().is_some();
        let begins = begins(seen, part, host);
        if !is_retried && !begins {
            continue;
        }
        let disruption = || disruption_hold(seen, parts, (part, host), now);
        let disruption = (begins && state.was_in_service()).then(disruption).flatten();
        if let Some(hold) = admitted(&mut budget, host, state, disruption) {
            holds.entry(part.name.clone()).or_default().insert(host.name.clone(), hold);
        }
    }
    holds
}

/// Admits a host, and returns what holds it nevertheless; `None` when it goes on now.
fn admitted(
    budget: &mut DisruptionBudget,
    host: &EvaluatedHost,
    state: RolloutState,
    disruption: Option<Hold>,
) -> Option<Hold> {
    if budget.is_paused() && (host.has_place() || disruption == Some(Hold::ServiceForAll)) {
        return Some(Hold::Budget(BlockReason::Paused));
    }
    // One with a place was admitted before, and the others must not lose theirs to one that waits
    // for another node set.
    if host.has_place() || disruption == Some(Hold::ServiceForAll) {
        return disruption;
    }
    budget.admit(state).err().map(Hold::Budget).or(disruption)
}

/// Returns what holds a host that is in service and begins, other than the disruption budget.
///
/// A service for all node sets touches every host at once. It waits for no permission, and neither
/// does what comes before it where its hosts decide when it begins: a host that is disturbed must
/// not wait there for others, which wait for its place. Where another node set leads it, hosts
/// begin once that one has arrived.
fn disruption_hold(
    seen: &Observed,
    parts: &[NodeSetPart],
    (part, host): (&NodeSetPart, &EvaluatedHost),
    now: Timestamp,
) -> Option<Hold> {
    let need = host.sequence.needed_run()?;
    let left = part.services.get(place(part, &need.service)..).unwrap_or_default();
    let leads_later = left.iter().any(|it| is_for_all(seen, it) && part.leads(it));
    let has_to_wait = disruption::has_to_wait(seen, &part.name, &host.name, now);
    if leads_later || !(has_to_wait || disruption::is_restricted(seen, &part.name, &host.name)) {
        return None;
    }
    let is_early = |it: &NodeSetPart| {
        part.joined.iter().any(|service| it.leads(service) && !have_arrived(seen, it, service))
    };
    if !host.has_place() && parts.iter().any(is_early) {
        return Some(Hold::ServiceForAll);
    }
    has_to_wait.then_some(Hold::Disruption)
}

/// Returns whether a host that was in service counts as a retry in the disruption budget.
///
/// It does if a retry of this deployment is at work there, or a run of another deployment, so that
/// the hosts out of service stay below the limit in total. A host with which the other deployment
/// only waits does not count: otherwise both deployments might block each other.
fn keeps_retry(
    seen: &Observed,
    (part, host, state): &(&NodeSetPart, &EvaluatedHost, RolloutState),
) -> bool {
    let is_tried = state.is_retry() && (host.has_place() || is_at_work(seen, part, host));
    let is_others = || other(seen, part, host).is_some_and(|it| it.doing == OwnProgress::InRun);
    is_tried || (state.was_in_service() && is_others())
}

/// Returns the rollout state as which a host counts.
///
/// A host on which another deployment is at work is out of service, unless that deployment fails
/// there and this one has succeeded since. So is one that another operator still keeps disturbed.
fn counted(
    seen: &Observed,
    part: &NodeSetPart,
    host: &EvaluatedHost,
    state: RolloutState,
) -> RolloutState {
    if state == RolloutState::Ready && disruption::is_disturbed(seen, &part.name, &host.name) {
        return RolloutState::Disturbed;
    }
    let Some(other) = other(seen, part, host) else { return state };
    match state {
        _ if is_excused(other) && host.live.state == RunState::Succeeded => state,
        RolloutState::Ready if other.doing == OwnProgress::GivenUp => RolloutState::Failed,
        RolloutState::New if other.doing == OwnProgress::GivenUp => RolloutState::FailedNew,
        RolloutState::Ready => RolloutState::Disturbed,
        RolloutState::New => RolloutState::Started,
        RolloutState::Started
        | RolloutState::FailedNew
        | RolloutState::Down
        | RolloutState::Disturbed
        | RolloutState::Failed
        | RolloutState::Corrected => state,
    }
}

/// Returns whether another deployment's state on a host counts only until this one has succeeded
/// there.
fn is_excused(other: &Begun) -> bool {
    matches!(other.doing, OwnProgress::GivenUp | OwnProgress::Failing)
}

/// Returns what another deployment has begun on a host, if anything.
fn other<'a>(seen: &'a Observed, part: &NodeSetPart, host: &EvaluatedHost) -> Option<&'a Begun> {
    seen.others.get(&part.name)?.get(&host.name)
}

fn rollout_states<'a>(
    seen: &Observed,
    parts: &'a [NodeSetPart],
) -> Vec<(&'a NodeSetPart, &'a EvaluatedHost, RolloutState)> {
    let of_part = |part: &'a NodeSetPart| {
        let set = part.node_set.as_deref();
        let in_service = names(set.into_iter().flat_map(in_service));
        let may_serve = names(set.into_iter().flat_map(may_serve));
        let of_host = move |it: &'a EvaluatedHost| {
            let name = it.name.as_str();
            // What may disturb servers counts as in service, also where not all has succeeded.
            let is_restricted = || disruption::is_restricted(seen, &part.name, name);
            let was_deployed =
                in_service.contains(name) || (may_serve.contains(name) && is_restricted());
            (part, it, state(seen, part, it, was_deployed))
        };
        part.hosts.iter().map(of_host)
    };
    parts.iter().flat_map(of_part).collect()
}

fn names<'a>(hosts: impl Iterator<Item = &'a NodeSetHost>) -> BTreeSet<&'a str> {
    hosts.map(|it| it.name.as_str()).collect()
}

/// Returns the rollout state of a host.
fn state(
    seen: &Observed,
    part: &NodeSetPart,
    host: &EvaluatedHost,
    was_deployed: bool,
) -> RolloutState {
    let of = |in_service, never| if was_deployed { in_service } else { never };
    let is_down = seen.node(&part.name, &host.name).is_some_and(holders::is_down);
    let ready = if is_down { RolloutState::Down } else { RolloutState::Ready };
    let idle = of(ready, RolloutState::New);
    let is_corrected = is_corrected(&host.live);
    if is_failing(&host.live) {
        return of(RolloutState::Failed, RolloutState::FailedNew);
    }
    match &host.sequence.state {
        _ if host.live.state == RunState::Succeeded => idle,
        _ if host.has_place() && is_corrected => RolloutState::Corrected,
        _ if host.has_place() => RolloutState::Disturbed,
        // A host that waits for all node sets leaves the budget to the hosts for which it waits.
        SequenceState::NeedsRun(need) if is_for_all(seen, &need.service) => idle,
        SequenceState::NeedsRun(_) if begins(seen, part, host) && !is_corrected => idle,
        SequenceState::NeedsRun(_) | SequenceState::InRun { .. } if is_corrected => {
            of(RolloutState::Corrected, RolloutState::Started)
        }
        // It cannot be tried at present, so other hosts do not wait for it.
        SequenceState::OutOfDate if host.is_untouched() && is_corrected => {
            of(RolloutState::Failed, RolloutState::FailedNew)
        }
        SequenceState::OutOfDate if host.is_untouched() => idle,
        SequenceState::NeedsRun(_)
        | SequenceState::InRun { .. }
        | SequenceState::Done
        | SequenceState::OutOfDate
        | SequenceState::Failed { .. } => of(RolloutState::Disturbed, RolloutState::Started),
    }
}

/// Returns whether a run now would be the host's first one, or the first one after a service for
/// all node sets.
fn begins(seen: &Observed, part: &NodeSetPart, host: &EvaluatedHost) -> bool {
    let Some(need) = host.sequence.needed_run() else { return false };
    let before = place(part, &need.service).checked_sub(1).and_then(|it| part.services.get(it));
    let follows_all = before.is_some_and(|it| is_for_all(seen, it));
    let is_first = host.is_untouched() || follows_all;
    is_first && !is_failing(&host.live) && !is_for_all(seen, &need.service)
}

/// Returns whether a host is in a run, or continues after one.
fn is_at_work(seen: &Observed, part: &NodeSetPart, host: &EvaluatedHost) -> bool {
    match &host.sequence.state {
        SequenceState::InRun { .. } => true,
        SequenceState::NeedsRun(_) => !is_failing(&host.live) && !begins(seen, part, host),
        SequenceState::Done | SequenceState::OutOfDate | SequenceState::Failed { .. } => false,
    }
}

/// The effect of the disruption budget on a deployment's hosts.
#[derive(Clone, Debug, Default)]
pub struct BlockedHosts {
    /// Whether the deployment can make no more progress: the hosts that use up the budget have
    /// failed for good, and the others wait for them.
    pub is_over: bool,
    /// The message about blocked hosts; `None` when no host is blocked.
    pub text: Option<String>,
}

/// Returns the effect of what holds hosts; `parts` were evaluated with it.
pub fn blocked_hosts(seen: &Observed, parts: &[NodeSetPart]) -> BlockedHosts {
    let BlockedHosts { is_over, text } = blocked_by_limits(seen, parts);
    let texts: Vec<String> = text.into_iter().chain(disruption::waiting(seen, parts)).collect();
    BlockedHosts { is_over, text: (!texts.is_empty()).then(|| texts.join(" ")) }
}

fn blocked_by_limits(seen: &Observed, parts: &[NodeSetPart]) -> BlockedHosts {
    let holds = || parts.iter().flat_map(|it| &it.hosts).filter_map(|it| it.blocked);
    let waiting: Vec<BlockReason> = holds().filter_map(Hold::budget).collect();
    let Some(blocked) =
        waiting.iter().find(|it| **it != BlockReason::LimitReached).or_else(|| waiting.first())
    else {
        return BlockedHosts::default();
    };
    let attempts = attempts(seen);
    let rests = |host: &EvaluatedHost| {
        is_ended(&host.live, attempts)
            || host.blocked.is_some_and(|it| it != Hold::Disruption)
            || waits_for_held(seen, parts, host)
    };
    let all = rollout_states(seen, parts);
    // A host that is down may come up without a deployment.
    let waits_for_down = || *blocked == BlockReason::Stuck && all.iter().any(|it| is_down(it.2));
    let is_over = !waiting.contains(&BlockReason::LimitReached)
        && !waits_for_down()
        && !all.iter().any(|it| waits_for_another(seen, it))
        && parts.iter().flat_map(|it| &it.hosts).all(rests);
    let text = blocked_text(seen, parts, &all, (*blocked, is_over));
    BlockedHosts { is_over, text: Some(text) }
}

fn is_down(state: RolloutState) -> bool {
    state == RolloutState::Down
}

/// Returns the message about hosts that a limit blocks, which may end the deployment.
fn blocked_text(
    seen: &Observed,
    parts: &[NodeSetPart],
    all: &[(&NodeSetPart, &EvaluatedHost, RolloutState)],
    (blocked, is_over): (BlockReason, bool),
) -> String {
    let hosts = parts.iter().flat_map(|it| &it.hosts);
    let n_waiting = hosts.filter_map(|it| it.blocked?.budget()).count();
    let counts = |(part, host, state): &&(&NodeSetPart, &EvaluatedHost, RolloutState)| match blocked
    {
        BlockReason::Paused => state.fails(),
        BlockReason::LimitReached | BlockReason::Stuck => {
            let counted = counted(seen, part, host, *state);
            is_down(counted) || (counted.fails() && counted.counts_as_unavailable())
        }
    };
    let are_down = all.iter().filter(counts).any(|it| is_down(it.2));
    let fail = if are_down { "fail or are down" } else { "fail" };
    let failing: Vec<&str> = all.iter().filter(counts).map(|it| it.1.name.as_str()).collect();
    let max = seen.deployment.spec.limits().max_unavailable_text();
    let n_all = all.len();
    let cause = match blocked {
        BlockReason::LimitReached if failing.is_empty() => {
            format!("as maxUnavailable ({max}) has it{}", beside(seen, all))
        }
        BlockReason::LimitReached => format!(
            "as maxUnavailable ({max}) has it{}; hosts that {fail} hold places: {}",
            beside(seen, all),
            named(&failing)
        ),
        BlockReason::Stuck => format!(
            "all places that maxUnavailable ({max}) allows are held by hosts that {fail}: {}",
            named(&failing)
        ),
        BlockReason::Paused => {
            format!("{}, and hosts fail: {}", pause(seen, parts), named(&failing))
        }
    };
    match (blocked, is_over) {
        (BlockReason::LimitReached, _) => {
            let way_on = if failing.is_empty() { String::new() } else { format!(" {WAY_ON}") };
            format!("{n_waiting} of {n_all} hosts wait for their turn, {cause}.{way_on}")
        }
        (_, false) => format!("{n_waiting} of {n_all} hosts wait: {cause}. {WAY_ON}"),
        (_, true) => format!("{}: {cause}. {WAY_ON}", left(parts, attempts(seen))),
    }
}

/// Returns the text that says why the deployment stops at the first failure.
fn pause(seen: &Observed, parts: &[NodeSetPart]) -> String {
    let restricted = disruption::first_restricted(seen, parts);
    match restricted.filter(|_| !seen.deployment.spec.limits().pause_on_failure) {
        Some((host, holder)) => format!(
            "{holder} (see OpenStackDataPlaneNode {host}) has it that hosts are disturbed one after \
             the other"
        ),
        None => "pauseOnFailure is set".to_owned(),
    }
}

/// Returns whether another deployment that is going to end uses up a part of the budget.
///
/// If the other one has given up on the host, it may be waiting for this one: then the older one
/// ends first.
fn waits_for_another(
    seen: &Observed,
    (part, host, state): &(&NodeSetPart, &EvaluatedHost, RolloutState),
) -> bool {
    let Some(other) = other(seen, part, host) else { return false };
    let counts = counted(seen, part, host, *state) != *state;
    counts && (other.is_older || other.doing != OwnProgress::GivenUp)
}

/// Returns the text that names the other deployments that use up a part of the budget.
fn beside(seen: &Observed, all: &[(&NodeSetPart, &EvaluatedHost, RolloutState)]) -> String {
    let names = all.iter().filter_map(|it| Some(other(seen, it.0, it.1)?.deployment.as_str()));
    let names: Vec<&str> = names.collect::<BTreeSet<_>>().into_iter().collect();
    if names.is_empty() {
        return String::new();
    }
    format!("; hosts of OpenStackDataPlaneDeployment {} count too", named(&names))
}

/// Returns the text about hosts that have not failed but are left without further services.
fn left(parts: &[NodeSetPart], attempts: i64) -> String {
    let hosts = || parts.iter().flat_map(|part| part.hosts.iter().map(move |it| (part, it)));
    let open: Vec<_> = hosts().filter(|it| !is_ended(&it.1.live, attempts)).collect();
    let begun: Vec<_> = open.iter().filter(|it| !it.1.is_untouched()).collect();
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

/// How the user unblocks the hosts that wait for failed hosts.
const WAY_ON: &str = "Correct their causes; another OpenStackDataPlaneDeployment goes to them first. \
                      One with a larger maxUnavailable, or with an ansibleLimit that leaves them \
                      out, goes on without them.";

/// Returns whether a host waits at a service for all node sets whose leading node set has blocked
/// hosts.
fn waits_for_held(seen: &Observed, parts: &[NodeSetPart], host: &EvaluatedHost) -> bool {
    let Some(need) = host.sequence.needed_run() else { return false };
    let is_held = |it: &NodeSetPart| {
        it.leads(&need.service) && it.hosts.iter().any(|it| it.blocked.is_some())
    };
    is_for_all(seen, &need.service) && parts.iter().any(is_held)
}
