//! When the status tells what is new of the hosts: what runs tell shortly after each other is written
//! together, and what fails at once.

use api::dataplane::{HostProgress, NodeSetProgress, RunState};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use operator_core::engine::chain::Chain;
use operator_core::engine::{Run, State};

use crate::deployment::part::{Judged, News};
use operator_core::engine::host_progress::{compacted, position};

/// How long the news of one run waits for those of the others at the same service.
const TOGETHER: SignedDuration = SignedDuration::from_secs(10);

/// What the status does not say of a host, where there is anything.
pub fn news(kept: &HostProgress, chain: &Chain, runs: &[Run<'_>]) -> Option<News> {
    let next = compacted(&chain.services);
    (next != *kept).then(|| match (kept.state, next.state) {
        (RunState::Pending, RunState::Running) => {
            let run = runs.iter().find(|it| Some(it.name()) == next.run);
            let made = run.and_then(|it| it.object.creation_timestamp());
            News::Begun(made.map(|it| it.0).unwrap_or_default())
        }
        (_, RunState::Succeeded) => {
            News::Done(chain.services.last().map(|it| it.since.0).unwrap_or_default())
        }
        _ => News::Urgent,
    })
}

/// From when on the status tells the news of hosts; nothing where there are none.
///
/// Runs of one service begin, and end, one shortly after the other: their news wait a moment for the
/// last of them, so that one write tells all.
pub fn told_at(hosts: &[Judged]) -> Option<Timestamp> {
    let last = hosts.iter().map(|it| position(&it.live)).max().unwrap_or_default();
    let is_going_on = |it: &&Judged| match &it.chain.state {
        State::NeedsRun(_) | State::InRun { waiting_for: None, .. } => true,
        State::InRun { .. } | State::Done | State::OutOfDate | State::Failed { .. } => false,
    };
    let going_on: Vec<&Judged> = hosts.iter().filter(is_going_on).collect();
    let others_begin = going_on.iter().any(|it| it.live.state == RunState::Pending);
    let others_end = going_on.iter().any(|it| position(&it.live) + 1 >= last);
    let at = |news: News| match news {
        News::Begun(since) if others_begin => since + TOGETHER,
        News::Done(since) if others_end => since + TOGETHER,
        News::Begun(_) | News::Done(_) | News::Urgent => Timestamp::UNIX_EPOCH,
    };
    hosts.iter().filter_map(|it| it.news.map(at)).min()
}

/// Whether all hosts have left a service, and the next runs have begun.
///
/// What the runs tell themselves in the middle of the chains is written only then: one write for each
/// service, which also names the runs that are at work. Hosts that wait for their turn delay nobody's
/// news.
pub fn has_advanced(hosts: &[Judged], kept: &NodeSetProgress) -> bool {
    let in_turn = || hosts.iter().filter(|it| it.hold.is_none());
    let front = in_turn().map(|it| position(&it.live)).min().unwrap_or_default();
    let told = in_turn().filter_map(|it| kept.hosts.get(&it.name));
    let told = told.map(position).min();
    let is_about_to_begin = |it: &Judged| match &it.chain.state {
        // Another node set may be long in coming to it.
        State::NeedsRun(need) => !kept.joined.contains(&need.service),
        State::InRun { waiting_for, .. } => {
            waiting_for.is_none() && it.live.state == RunState::Pending
        }
        State::Done | State::OutOfDate | State::Failed { .. } => false,
    };
    let at_front = |it: &&Judged| position(&it.live) == front;
    told.is_some_and(|it| it < front) && !in_turn().filter(at_front).any(is_about_to_begin)
}
