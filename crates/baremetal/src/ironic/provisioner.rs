//! Ironic as the provisioner of a set: when its machines are looked at again, and what the shared
//! flow asks of it.

use std::time::Duration;

use api::baremetal::HostStatus;
use api::conditions::{ConditionDraft, Severity};
use ironic::{Next, Node, Step};
use jiff::Timestamp;
use operator_core::plan;

use crate::backoff::{AGAIN, SELDOM};
use crate::decide::BEHIND_OTHERS;
use crate::hosts::Evaluated;
use crate::ironic::hosts::{Host, HostState, evaluate};
use crate::ironic::{Nodes, status};
use crate::observe::{Observed, Unseen};
use crate::provisioner::Provisioner;

/// Requeue interval after a request that Ironic completes before it answers.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Requeue interval after a request that starts an operation.
const SOON: Duration = Duration::from_secs(5);
/// Requeue interval while only an edit helps, which enqueues the set anyway.
const RARELY: Duration = Duration::from_mins(5);

impl Provisioner for Nodes {
    type Machine = Node;
    type Next = Next;

    fn evaluate(seen: &Observed, now: Timestamp) -> Evaluated<'_, Node, Next> {
        evaluate(seen, now)
    }

    fn is_over(seen: &Observed, hosts: &[Host<'_>]) -> bool {
        let is_done = match &seen.machines {
            Ok(_) => hosts.iter().all(|it| matches!(it.state, HostState::Released)),
            Err(Unseen::NotAsked) => !seen.has_machines(),
            Err(Unseen::NoSecret { .. } | Unseen::NotYet | Unseen::Error(_)) => false,
        };
        is_done || seen.is_abandoned
    }

    // Its machines advance by requests, which were sent before.
    fn writes(_: &Observed, _: &[Host<'_>]) -> Vec<plan::Step> {
        Vec::new()
    }

    // Ironic sends no events, so machines are polled, rarely if no change is expected.
    fn pace(seen: &Observed, hosts: &[Host<'_>], now: Timestamp) -> Duration {
        match &seen.machines {
            Err(Unseen::NotAsked | Unseen::NoSecret { .. }) => return RARELY,
            Err(Unseen::NotYet) => return BEHIND_OTHERS,
            Err(Unseen::Error(error)) => return if error.heals() { AGAIN } else { SELDOM },
            Ok(_) => {}
        }
        let of_host = |host: &Host<'_>| match &host.state {
            HostState::At(_, Next::Do(_)) if !seen.is_held() => AT_ONCE,
            HostState::At(node, Next::Do(step)) => {
                match seen.refused.get(&node.uuid).and_then(|it| it.left(now)) {
                    Some(left) => left.max(AT_ONCE),
                    None => match step {
                        Step::Reserve(_) | Step::Record(_) | Step::Unreserve(_) => AT_ONCE,
                        Step::Tell(_) | Step::Deploy | Step::PowerOn => SOON,
                    },
                }
            }
            HostState::At(_, Next::Wait { seconds, .. }) => Duration::from_secs((*seconds).into()),
            HostState::Unseen
            | HostState::Faulty(_)
            | HostState::Without(_)
            | HostState::Lost(..)
            | HostState::Kept(_)
            | HostState::At(_, Next::Stop(_) | Next::Done { .. })
            | HostState::Released => SELDOM,
        };
        hosts.iter().map(of_host).min().unwrap_or(SELDOM)
    }

    fn server(seen: &Observed) -> ConditionDraft {
        status::server(seen)
    }

    fn title(machine: &Node) -> String {
        machine.title().to_owned()
    }

    fn is_current(next: &Next) -> Option<bool> {
        if let Next::Done { is_current } = next { Some(*is_current) } else { None }
    }

    fn matter(
        seen: &Observed,
        host: &Host<'_>,
        at: (&Node, &Next),
        words: usize,
    ) -> Option<(Severity, &'static str, String)> {
        status::matter(seen, host, at, words)
    }

    fn entry(
        seen: &Observed,
        host: &Host<'_>,
        at: (&Node, Option<&Next>),
        blank: HostStatus,
        words: usize,
    ) -> HostStatus {
        status::entry(seen, host, at, blank, words)
    }
}
