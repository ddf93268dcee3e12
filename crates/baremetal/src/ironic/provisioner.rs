//! Ironic as the provisioner of a set: when its machines are looked at again, and what the status
//! tells of them.

use std::time::Duration;

use api::baremetal::{Failure, HostStatus};
use api::conditions::{ConditionDraft, Severity, truncated};
use api::problem::Problem;
use ironic::{Cause, DeployRecord, Next, Node, State, Step, Verb, deployment, history};
use jiff::Timestamp;

use super::Nodes;
use super::hosts::{Host, HostState, evaluate};
use super::remediation::next_step;
use crate::backoff::{POLL_INTERVAL, RETRY_INTERVAL, Refused};
use crate::hosts::{Evaluated, Provisioner};
use crate::observe::{Observed, Unseen};
use crate::reasons;
use crate::remediation::retained;
use crate::status::{POWERING_ON, SERVER_READY};

/// Requeue interval while requests of other sets come first.
const BEHIND_OTHERS: Duration = Duration::from_secs(2);
/// Requeue interval after a request that Ironic completes before it answers.
const COMPLETED_REQUEUE: Duration = Duration::from_secs(1);
/// Requeue interval after a request that starts an operation.
const STARTED_REQUEUE: Duration = Duration::from_secs(5);
/// Requeue interval while only an edit helps, which enqueues the set anyway.
const IDLE_REQUEUE: Duration = Duration::from_mins(5);

impl Provisioner for Nodes {
    type Machine = Node;
    type Next = Next;

    fn evaluate(seen: &Observed, now: Timestamp) -> Evaluated<'_, Self> {
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

    // Ironic sends no events, so machines are polled, rarely if no change is expected.
    fn pace(seen: &Observed, hosts: &[Host<'_>], now: Timestamp) -> Duration {
        match &seen.machines {
            Err(Unseen::NotAsked | Unseen::NoSecret { .. }) => return IDLE_REQUEUE,
            Err(Unseen::NotYet) => return BEHIND_OTHERS,
            Err(Unseen::Error(error)) => {
                return if error.heals() { RETRY_INTERVAL } else { POLL_INTERVAL };
            }
            Ok(_) => {}
        }
        let of_host = |host: &Host<'_>| {
            let HostState::At(node, next) = &host.state else { return POLL_INTERVAL };
            let left = || seen.refused.get(&node.uuid).and_then(|it| it.left(now));
            match next {
                Next::Do(_) if !seen.is_held() => COMPLETED_REQUEUE,
                Next::Do(step) => match (left(), step) {
                    (Some(left), _) => left.max(COMPLETED_REQUEUE),
                    (None, Step::Reserve(_) | Step::Record(_) | Step::Unreserve(_)) => {
                        COMPLETED_REQUEUE
                    }
                    (None, Step::Tell(_) | Step::Deploy | Step::PowerOn) => STARTED_REQUEUE,
                },
                Next::Wait { seconds, .. } => Duration::from_secs((*seconds).into()),
                Next::Stop(_) | Next::Done { .. } => POLL_INTERVAL,
            }
        };
        hosts.iter().map(of_host).min().unwrap_or(POLL_INTERVAL)
    }

    fn server(seen: &Observed) -> ConditionDraft {
        let endpoint =
            seen.set.spec.ironic.as_ref().map(|it| it.endpoint.as_str()).unwrap_or_default();
        match &seen.machines {
            Ok(_) => {
                let text = format!("Ironic answers at {endpoint}.");
                reasons::ANSWERING.condition(SERVER_READY, text)
            }
            Err(Unseen::NotAsked | Unseen::NotYet | Unseen::NoSecret { .. }) => {
                let text = "Ironic is not contacted until the Secret named in InputReady exists.";
                reasons::SERVER_NOT_ASKED.condition(SERVER_READY, text)
            }
            Err(Unseen::Error(error)) => {
                let text = format!("{error}, at {endpoint}: {}.", next_step(error));
                let severity = if error.heals() { Severity::Warning } else { Severity::Error };
                error.reason().condition(SERVER_READY, text).with_severity(severity)
            }
        }
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
        (node, next): (&Node, &Next),
        words: usize,
    ) -> Option<Problem> {
        let refused = seen.refused.get(&node.uuid).filter(|_| matches!(next, Next::Do(_)));
        if let Some(Refused { error, .. }) = refused {
            let text = format!("machine {}: {error}; {}", node.title(), next_step(error));
            return Some(Problem::new(error.reason(), text));
        }
        let reported = seen.set.host_status(&host.name);
        let message = |it: &Cause| it.message(&explained(seen, node, reported, words));
        match next {
            Next::Done { .. } => None,
            Next::Do(Step::Unreserve(_)) if node.provision_state.has_system() => {
                let text = retained(seen, &host.name, node.title());
                Some(Problem::new(&reasons::MACHINE_RETAINED, text))
            }
            Next::Do(step) => Some(Problem::new(Cause::Working.reason(), doing(node, step))),
            Next::Wait { cause, .. } | Next::Stop(cause) => {
                Some(Problem::new(cause.reason(), message(cause)))
            }
        }
    }

    fn entry(
        seen: &Observed,
        host: &Host<'_>,
        (node, next): (&Node, Option<&Next>),
        blank: HostStatus,
        words: usize,
    ) -> HostStatus {
        // Chosen but not reserved yet; another host may have taken it.
        let is_its = node.is_of(&host.instance);
        if !is_its && host.desired.is_some() {
            return blank;
        }
        let reported = seen.set.host_status(&host.name).filter(|it| it.bmh_ref == node.uuid);
        let (state, ledger) = (&node.provision_state, DeployRecord::of(node));
        let (has_system, is_deployed) = (state.has_system(), *state == State::Active);
        // A machine that is being undeployed keeps running if that fails.
        let may_have = !state.is_undeployed() || *state == State::Deleting;
        let is_current = next.and_then(Self::is_current);
        let is_off =
            is_deployed && host.desired.is_some() && next.is_some() && is_current.is_none();
        // A host with faults has no drive to compare with.
        let is_known = host.drive.is_some() || host.desired.is_some_and(|it| it.adopt);
        // Removing the record from a running machine does not mean that it was deployed again.
        let kept = reported.filter(|_| has_system && ledger.is_none());
        let kept = kept.and_then(|it| it.instance.clone());
        // Undeployed while the network of its ramdisk is still to be removed, or undeploying
        // failed.
        let former = blank.instance.clone().filter(|_| !is_its);
        let drive = ledger.filter(|it| is_deployed && !it.is_of_adopted());
        HostStatus {
            bmh_ref: node.uuid.clone(),
            provisioning_state: if is_off { POWERING_ON } else { state.word() }.to_owned(),
            instance: former.or(kept).or_else(|| deployment(node)),
            config_drive_hash: drive.map(|it| it.drive),
            installed: has_system || (may_have && reported.is_some_and(|it| it.installed)),
            powered_off: is_deployed && node.is_off(),
            is_current: is_current.filter(|_| is_known),
            failure: failure(seen, node, reported, words),
            ..blank
        }
    }
}

fn doing(node: &Node, step: &Step) -> String {
    let name = node.title();
    match step {
        Step::Reserve(_) => format!("machine {name} is reserved"),
        Step::Record(_) | Step::Deploy => format!("machine {name} is about to be deployed"),
        Step::Tell(verb) => {
            let end = match verb {
                Verb::Manage => "managed",
                Verb::Provide => "made available",
                Verb::Active => "deployed",
                Verb::Adopt => "adopted",
                Verb::Deleted => "undeployed",
            };
            format!("machine {name} is about to be {end}")
        }
        Step::PowerOn => format!("machine {name} is powered on"),
        Step::Unreserve(_) => format!("machine {name} is no longer managed"),
    }
}

/// Returns the node with at most `words` bytes of Ironic's errors, including a recorded failure
/// that Ironic has cleared since.
fn explained(seen: &Observed, node: &Node, reported: Option<&HostStatus>, words: usize) -> Node {
    let said = failure(seen, node, reported, words).map(|it| it.said);
    let own = || history::cause(node.last_error.as_deref()).map(|it| truncated(it, words));
    let last_error = said.or_else(own);
    let maintenance_reason = node.maintenance_reason.as_ref().map(|it| truncated(it, words));
    Node { last_error, maintenance_reason, ..node.clone() }
}

/// Returns Ironic's error in the machine's present state, else the one of its history; `reported` is
/// the previous status entry. Errors of deployed machines are skipped, because errors about their
/// power change without a state change.
fn failure(
    seen: &Observed,
    node: &Node,
    reported: Option<&HostStatus>,
    words: usize,
) -> Option<Failure> {
    let since =
        node.provision_updated_at.as_ref().filter(|_| node.provision_state != State::Active)?;
    let said = history::cause(node.last_error.as_deref());
    let before = || {
        let reported = reported.filter(|it| it.bmh_ref == node.uuid)?.failure.as_ref();
        reported.filter(|it| it.since == *since).map(|it| it.said.clone())
    };
    let in_history = || seen.machines.as_ref().ok()?.causes.get(&node.uuid).cloned();
    let said = said.map(str::to_owned).or_else(before).or_else(in_history)?;
    Some(Failure { said: truncated(&said, words), since: since.clone() })
}
