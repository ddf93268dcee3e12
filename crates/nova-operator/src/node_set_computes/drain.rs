//! The condition `nova.openstack.org/Drained` of a node set.

use api::conditions::{Condition, ConditionDraft, first_names, ready};
use nova_config::annotations::DRAIN_BEFORE;
use nova_config::conditions::NODE_DRAINED;

use crate::drain::before::DrainBefore;
use crate::drain::condition::Drained;
use crate::drain::order::is_ours;
use crate::drain::progress::HostProgress;
use crate::drain::request::DrainRequest;
use crate::node_set_computes::claims::contested;
use crate::node_set_computes::observed::{HostAccess, HostDrain, Observed};
use crate::nova_health::ServiceHealth;
use crate::reasons;

/// How many hosts that are drained are named.
const NAMED: usize = 5;
/// Of how many hosts that are not drained the message says why.
const EXPLAINED: usize = 3;

/// Returns the condition; `None` where no host is to be drained or enabled.
///
/// Hosts that are to be drained count. Where there are none, those that are to be enabled do.
pub fn condition(seen: &Observed, previous: Option<&Condition>) -> Option<ConditionDraft> {
    let drains = match &seen.drains {
        Err(message) => {
            return Some(reasons::drain::INVALID.condition(NODE_DRAINED, message.clone()));
        }
        Ok(drains) => drains,
    };
    if let DrainBefore::Invalid(message) = &seen.drain_before {
        let reason = &reasons::compute::DRAIN_BEFORE_INVALID;
        return Some(reason.condition(NODE_DRAINED, message.clone()));
    }
    let drains: Vec<&HostDrain> = drains.iter().filter(|it| counts(it)).collect();
    let is_requested = |it: &HostDrain| it.request != DrainRequest::Absent;
    let has_requested = drains.iter().any(|it| is_requested(it));
    let counted: Vec<&HostDrain> =
        drains.into_iter().filter(|it| !has_requested || is_requested(it)).collect();
    // What was reported before stays, so that a restart of the operator changes nothing.
    let invalid = [reasons::drain::INVALID.word, reasons::compute::DRAIN_BEFORE_INVALID.word];
    let before = previous.filter(|it| !invalid.contains(&it.reason.as_str()));
    if let Some(before) = before.filter(|_| counted.iter().any(|it| is_as_before(it))) {
        return Some(ConditionDraft::repeated(before));
    }
    (!counted.is_empty()).then(|| summary(&counted))
}

/// Whether a host counts: one that the user names, that a rollout drains, or that is enabled again.
fn counts(of: &HostDrain) -> bool {
    let is_concerned = of.request != DrainRequest::Absent || is_marked(of);
    of.is_named || (is_concerned && !of.is_elsewhere())
}

/// Whether a host may be in the state that was reported before: it was not read yet, or was not
/// read since its order changed and still has its service disabled.
fn is_as_before(of: &HostDrain) -> bool {
    match of.access {
        HostAccess::Cell(_) => {
            let is_requested = of.request != DrainRequest::Absent;
            is_requested && is_marked(of) && of.progress == HostProgress::Pending
        }
        HostAccess::NoCell => of.health.service == ServiceHealth::Pending,
        HostAccess::Unproven | HostAccess::Other(_) | HostAccess::Contested(_) => false,
    }
}

fn is_marked(of: &HostDrain) -> bool {
    of.health.disabled.as_deref().is_some_and(is_ours)
}

fn summary(counted: &[&HostDrain]) -> ConditionDraft {
    let all: Vec<(&str, ConditionDraft)> =
        counted.iter().map(|it| (it.name.as_str(), of_host(it))).collect();
    let (drained, others): (Vec<_>, Vec<_>) = all.iter().partition(|(_, it)| it.holds());
    let text = format!("{} of {} hosts are drained", drained.len(), all.len());
    let names: Vec<&str> = drained.iter().map(|(name, _)| *name).collect();
    let all_drained = format!("{text}: {}.", first_names(&names, NAMED));
    let good = reasons::drain::DRAINED.condition(NODE_DRAINED, all_drained);
    let others: Vec<&(&str, ConditionDraft)> = others.into_iter().collect();
    if others.is_empty() {
        return good;
    }
    let explained = others.iter().take(EXPLAINED);
    let mut why: Vec<String> =
        explained.map(|(name, it)| format!("{name}: {}", it.message)).collect();
    if let Some(n_more) = others.len().checked_sub(EXPLAINED).filter(|it| *it > 0) {
        why.push(format!("{n_more} more are not drained."));
    }
    let drafts: Vec<ConditionDraft> = all.iter().map(|(_, it)| it.clone()).collect();
    let worst = ready(&drafts, good).with_type(NODE_DRAINED);
    worst.with_message(format!("{text}; {}", why.join(" ")))
}

fn of_host(of: &HostDrain) -> ConditionDraft {
    let host = &of.host;
    let (secret, progress) = match &of.access {
        HostAccess::Other(owner) => {
            let text = format!(
                "Host {host} is deployed by {owner}, so the entry has no effect: drain it there, \
                 and remove the entry."
            );
            return reasons::drain::INVALID.condition(NODE_DRAINED, text);
        }
        HostAccess::Unproven => {
            let text = format!(
                "Nova has a service of host {host}, and no deployment of a service of type nova by \
                 this node set is known to have succeeded there, so the service is left as it is: \
                 deploy nova on the host, for the time without {DRAIN_BEFORE} of the node set."
            );
            return reasons::drain::NOT_DEPLOYED.condition(NODE_DRAINED, text);
        }
        HostAccess::Contested(other) => {
            let text = format!(
                "{}, so its service is left as it is: take the host out of one of both.",
                contested(host, other)
            );
            return reasons::drain::HOST_CONTESTED.condition(NODE_DRAINED, text);
        }
        HostAccess::NoCell => ("", of_unlocated(&of.health.service)),
        HostAccess::Cell(secret) => (secret.as_str(), of.progress.clone()),
    };
    let drained = Drained {
        request: &of.request,
        progress: Some(&progress),
        is_marked: is_marked(of),
        host: Some(host),
        secret,
        previous: &[],
    };
    match (&progress, drained.condition()) {
        (HostProgress::NotFound, _) => {
            let text = format!(
                "No cell of the namespace has a compute service of host {host}: deploy it, or \
                 remove the entry."
            );
            reasons::drain::SERVICE_NOT_FOUND.condition(NODE_DRAINED, text)
        }
        (HostProgress::Pending, Some(draft)) if of.request == DrainRequest::Absent => draft,
        (HostProgress::Pending, _) | (_, None) => {
            let text = format!(
                "The servers of host {host} have not been read yet. If that lasts, the namespace \
                 has no NovaCell, or NovaAPIReady of one has the cause."
            );
            reasons::drain::NOT_READ.condition(NODE_DRAINED, text)
        }
        (_, Some(draft)) => draft,
    }
}

/// Returns how far the drain of a host is whose cell is not known.
fn of_unlocated(service: &ServiceHealth) -> HostProgress {
    match service {
        ServiceHealth::NotFound => HostProgress::NotFound,
        ServiceHealth::Pending
        | ServiceHealth::ApiFails
        | ServiceHealth::CellNotAnswering
        | ServiceHealth::Up { .. }
        | ServiceHealth::Down { .. } => HostProgress::Pending,
    }
}
