//! The hosts of a deployment that may begin: a wave of hosts goes through all services, up to one
//! that waits for all node sets.

use std::collections::BTreeSet;

use jiff::Timestamp;
use operator_core::run_engine::SequenceState;
use operator_core::run_engine::rollout::{
    BlockReason, DisruptionBudget, RolloutCounts, RolloutState, named,
};

use crate::deployment::build::{have_arrived, is_for_all, place};
use crate::deployment::disruption;
use crate::deployment::hosts::{in_service, may_serve};
use crate::deployment::node_set_part::{Blocked, EvaluatedHost, Hold, NodeSetPart};
use crate::deployment::observed::Observed;

/// A host with its part and its state in the rollout.
type Counted<'a> = (&'a NodeSetPart, &'a EvaluatedHost, RolloutState);

/// Returns the hosts that have to wait: for the disruption budget, or until they may be disturbed;
/// `parts` were evaluated without that.
pub fn blocked_by_budget(seen: &Observed, parts: &[NodeSetPart], now: Timestamp) -> Blocked {
    let all = rollout_states(seen, parts);
    let trying = all.iter().filter(|it| is_tried(seen, it)).count();
    let counts = RolloutCounts::of(all.iter().map(counted)).with_trying(trying);
    let mut limits = seen.deployment.spec.limits();
    // Where a host is disturbed only with permission, a bad change must reach as few as possible.
    limits.pause_on_failure |= disruption::first_restricted(parts).is_some();
    let mut budget = DisruptionBudget::of(&limits, &counts);
    let mut holds = Blocked::new();
    for (part, host, state) in all {
        let is_retried = host.live.is_failing() && host.sequence.needed_run().is_some();
        let begins = begins(seen, part, host);
        if !is_retried && !begins {
            continue;
        }
        let disruption = || disruption_hold(seen, parts, part, host, now);
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
    part: &NodeSetPart,
    host: &EvaluatedHost,
    now: Timestamp,
) -> Option<Hold> {
    let need = host.sequence.needed_run()?;
    let left = part.begun.services.get(place(part, &need.service)..).unwrap_or_default();
    let leads_later = left.iter().any(|it| is_for_all(seen, it) && part.leads(it));
    let has_to_wait = disruption::has_to_wait(seen, &part.name, host, now);
    if leads_later || !(has_to_wait || disruption::is_restricted(host)) {
        return None;
    }
    let is_early = |it: &NodeSetPart| {
        part.begun.joined.iter().any(|service| it.leads(service) && !have_arrived(it, service))
    };
    if !host.has_place() && parts.iter().any(is_early) {
        return Some(Hold::ServiceForAll);
    }
    has_to_wait.then_some(Hold::Disruption)
}

/// Returns whether a host counts as a retry in the disruption budget: one is at work there.
fn is_tried(seen: &Observed, (part, host, state): &Counted<'_>) -> bool {
    state.is_retry() && (host.has_place() || is_at_work(seen, part, host))
}

/// Returns the rollout state as which a host counts: one that another operator still keeps disturbed
/// is out of service.
fn counted((_, host, state): &Counted<'_>) -> RolloutState {
    let is_disturbed = *state == RolloutState::Ready && disruption::is_disturbed(host);
    if is_disturbed { RolloutState::Disturbed } else { *state }
}

fn rollout_states<'a>(seen: &Observed, parts: &'a [NodeSetPart]) -> Vec<Counted<'a>> {
    let of_host = |part, it: &'a EvaluatedHost| (part, it, state(seen, part, it));
    parts.iter().flat_map(|part| part.hosts.iter().map(move |it| of_host(part, it))).collect()
}

/// Returns the rollout state of a host.
fn state(seen: &Observed, part: &NodeSetPart, host: &EvaluatedHost) -> RolloutState {
    let node = host.node.as_deref();
    // What may disturb servers counts as in service, also where not all has succeeded.
    let may_serve = |it| may_serve(seen, it) && disruption::is_restricted(host);
    let was_deployed = node.is_some_and(|it| in_service(it) || may_serve(it));
    let of = |in_service, never| if was_deployed { in_service } else { never };
    let is_down = node.is_some_and(disruption::is_down);
    let ready = if is_down { RolloutState::Down } else { RolloutState::Ready };
    let idle = of(ready, RolloutState::New);
    let is_corrected = host.live.is_corrected();
    if host.live.is_failing() {
        return of(RolloutState::Failed, RolloutState::FailedNew);
    }
    match &host.sequence.state {
        _ if host.live.is_done() => idle,
        _ if host.has_place() && is_corrected => RolloutState::Corrected,
        _ if host.has_place() => RolloutState::Disturbed,
        // A host that waits for all node sets leaves the budget to the hosts for which it waits.
        SequenceState::NeedsRun(need) if is_for_all(seen, &need.service) => idle,
        SequenceState::NeedsRun(_) if begins(seen, part, host) && !is_corrected => idle,
        SequenceState::NeedsRun(_) | SequenceState::InRun { .. } if is_corrected => {
            of(RolloutState::Corrected, RolloutState::Started)
        }
        // It cannot be tried at present, so other hosts do not wait for it.
        SequenceState::OutOfDate if !host.has_begun && is_corrected => {
            of(RolloutState::Failed, RolloutState::FailedNew)
        }
        SequenceState::OutOfDate if !host.has_begun => idle,
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
    let before = place(part, &need.service).checked_sub(1);
    let follows_all = before.is_some_and(|it| is_for_all(seen, &part.begun.services[it]));
    let is_first = !host.has_begun || follows_all;
    is_first && !host.live.is_failing() && !is_for_all(seen, &need.service)
}

/// Returns whether a host is in a run, or continues after one.
fn is_at_work(seen: &Observed, part: &NodeSetPart, host: &EvaluatedHost) -> bool {
    match &host.sequence.state {
        SequenceState::InRun { .. } => true,
        SequenceState::NeedsRun(_) => !host.live.is_failing() && !begins(seen, part, host),
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
    let rests = |host: &EvaluatedHost| {
        host.is_ended()
            || host.blocked.is_some_and(|it| it != Hold::Disruption)
            || waits_for_held(seen, parts, host)
    };
    let all = rollout_states(seen, parts);
    // A host that is down may come up without a deployment.
    let waits_for_down =
        || *blocked == BlockReason::Stuck && all.iter().any(|it| it.2 == RolloutState::Down);
    let is_over = !waiting.contains(&BlockReason::LimitReached)
        && !waits_for_down()
        && parts.iter().flat_map(|it| &it.hosts).all(rests);
    let text = blocked_text(seen, parts, &all, *blocked, is_over);
    BlockedHosts { is_over, text: Some(text) }
}

/// Returns the message about hosts that a limit blocks, which may end the deployment.
fn blocked_text(
    seen: &Observed,
    parts: &[NodeSetPart],
    all: &[Counted<'_>],
    blocked: BlockReason,
    is_over: bool,
) -> String {
    let hosts = parts.iter().flat_map(|it| &it.hosts);
    let n_waiting = hosts.filter_map(|it| it.blocked?.budget()).count();
    let counts = |(.., state): &&Counted<'_>| match blocked {
        BlockReason::Paused => state.fails(),
        BlockReason::LimitReached | BlockReason::Stuck => {
            *state == RolloutState::Down || (state.fails() && state.counts_as_unavailable())
        }
    };
    let are_down = all.iter().filter(counts).any(|it| it.2 == RolloutState::Down);
    let fail = if are_down { "fail or are down" } else { "fail" };
    let failing: Vec<&str> = all.iter().filter(counts).map(|it| it.1.name.as_str()).collect();
    let max = seen.deployment.spec.limits().max_unavailable_text();
    let n_all = all.len();
    let holding = format!("; hosts that {fail} hold places: {}", named(&failing));
    let holding = if failing.is_empty() { "" } else { &holding };
    let cause = match blocked {
        BlockReason::LimitReached => format!("as maxUnavailable ({max}) has it{holding}"),
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
        (_, true) => format!("{}: {cause}. {WAY_ON}", left(parts)),
    }
}

/// Returns the text that says why the deployment stops at the first failure.
fn pause(seen: &Observed, parts: &[NodeSetPart]) -> String {
    let restricted = disruption::first_restricted(parts);
    match restricted.filter(|_| !seen.deployment.spec.limits().pause_on_failure) {
        Some((host, holder)) => format!(
            "{holder} (see OpenStackDataPlaneNode {host}) has it that hosts are disturbed one after \
             the other"
        ),
        None => "pauseOnFailure is set".to_owned(),
    }
}

/// Returns the text about hosts that have not failed but are left without further services.
fn left(parts: &[NodeSetPart]) -> String {
    let hosts = || parts.iter().flat_map(|part| part.hosts.iter().map(move |it| (part, it)));
    let open: Vec<_> = hosts().filter(|it| !it.1.is_ended()).collect();
    let begun: Vec<_> = open.iter().filter(|it| it.1.has_begun).collect();
    let (n_all, n_begun, n_left) = (hosts().count(), begun.len(), open.len() - begun.len());
    let left = format!("{n_left} of {n_all} hosts were left as they are");
    let next = begun.iter().filter_map(|it| it.0.begun.services.get(it.1.live.done));
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
