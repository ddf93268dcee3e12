//! The hosts of a node set that deployments disturb: each is drained before and enabled afterwards
//! where annotation `nova.openstack.org/drain-before` of the node set says so.
//!
//! All of it follows from what was observed, so that an operator which was killed anywhere comes to
//! the same end: the node set's status has the deployment that waits for a host, and whether one is
//! at it; the report has the hosts that may be disturbed; and nova has the marker of those that are
//! drained.

use std::collections::{BTreeMap, BTreeSet};

use api::dataplane::{HostState, NodeSet, NodeSetHost};
use operator_core::node_set_host::hosts;

use crate::drain::before::DrainBefore;
use crate::drain::hosts_request::of_rollout;
use crate::drain::order::{HostOrder, is_of_rollout, is_ours};
use crate::drain::progress::HostProgress;
use crate::drain::request::DrainRequest;
use crate::node_set_computes::observed::{Disruption, HostDrain, Observed, Report};

/// What a drain of a host follows from that the user does not request: what the annotation of its
/// node set says, what deployments do to it, and the reason of its service if that is disabled.
pub type RolloutInputs<'a> = (&'a DrainBefore, Option<&'a Disruption>, Option<&'a str>);

/// Returns what deployments do to the hosts of a node set, by their names in the inventory; hosts
/// are absent that its status does not have.
pub fn disruptions(set: &NodeSet, report: &Report) -> BTreeMap<String, Disruption> {
    let present: BTreeSet<String> = hosts(set).into_iter().map(|it| it.name).collect();
    let allowed = match report {
        Report::Found(found) => found.spec.disruption_allowed.as_ref(),
        Report::NotServed | Report::Missing => None,
    };
    let disruption = |it: &NodeSetHost| Disruption {
        target: it.disruption_target.clone(),
        allowed: allowed.and_then(|all| all.get(&it.name)).cloned(),
        state: it.state,
    };
    let recorded = set.status.iter().flat_map(|it| &it.hosts);
    let recorded = recorded.filter(|it| present.contains(&it.name));
    recorded.map(|it| (it.name.clone(), disruption(it))).collect()
}

/// Returns what is requested for a host that the user's annotation does not name: a drain by the
/// rollout, or no drain of one whose service may have to be enabled again. `None` for a host with
/// which there is nothing to do.
///
/// An annotation that is not valid changes nothing.
///
/// # Errors
/// Returns the message about a number of migrations that is not legal.
pub fn request(
    set: &NodeSet,
    (before, of, disabled): RolloutInputs<'_>,
) -> Result<Option<DrainRequest>, String> {
    let is_listed = of.is_some_and(|it| it.target.is_some() || it.allowed.is_some());
    if !is_listed && !disabled.is_some_and(is_ours) {
        return Ok(None);
    }
    if let DrainBefore::Invalid(message) = before {
        return Ok(Some(DrainRequest::Invalid(message.clone())));
    }
    let is_drained = of.is_some_and(|it| it.is_drained(before, disabled));
    Ok(Some(if is_drained { DrainRequest::Drain(of_rollout(set)?) } else { DrainRequest::Absent }))
}

/// Returns how the service of a host is enabled that no drain is requested for: after a rollout
/// only once it is up. `None` where this operator has not disabled it.
pub fn enabling((before, of, disabled): RolloutInputs<'_>) -> Option<HostOrder> {
    let is_listed = of.is_some_and(|it| it.allowed.is_some());
    let is_after_rollout =
        is_listed || *before == DrainBefore::Yes || disabled.is_some_and(is_of_rollout);
    let is_disabled = is_listed || disabled.is_some_and(is_ours);
    is_disabled.then_some(if is_after_rollout {
        HostOrder::EnableOnceUp
    } else {
        HostOrder::Enable
    })
}

/// Returns the hosts that deployments may disturb, each with the UID of the deployment that may:
/// from when it is drained until its service is enabled again, or the deployment has failed there.
/// `None` where deployments wait for no drain.
///
/// While an annotation is not valid, no host is added.
pub fn disruption_allowed(seen: &Observed) -> Option<BTreeMap<String, String>> {
    let drains: BTreeMap<&str, &HostDrain> =
        seen.drains.iter().flatten().map(|it| (it.name.as_str(), it)).collect();
    let allowed = |(name, it): (&String, &Disruption)| {
        let uid = match (&seen.drain_before, drains.get(name.as_str())) {
            (DrainBefore::Yes, Some(drain)) => it.allowed(drain),
            (DrainBefore::Invalid(_), _) if it.target.is_some() => None,
            _ => it.allowed.as_ref(),
        };
        Some((name.clone(), uid?.clone()))
    };
    (seen.drain_before != DrainBefore::No)
        .then(|| seen.disruptions.iter().filter_map(allowed).collect())
}

impl Disruption {
    /// Whether the host is drained although the user does not request it: it is to be disturbed, is
    /// being disturbed, or was drained for a deployment that has failed there.
    fn is_drained(&self, before: &DrainBefore, disabled: Option<&str>) -> bool {
        let drains = *before == DrainBefore::Yes;
        let is_marked = disabled.is_some_and(is_of_rollout);
        let is_awaited = drains && self.target.is_some();
        is_awaited
            || match self.state {
                // Servers that came now would be disturbed, whatever the annotation says meanwhile.
                HostState::Deploying => is_marked || self.allowed.is_some(),
                HostState::Failed => drains && is_marked,
                HostState::Undeployed | HostState::Deployed | HostState::Terminating => false,
            }
    }

    /// Returns the UID of the deployment that may disturb the host.
    fn allowed(&self, drain: &HostDrain) -> Option<&String> {
        let Some(target) = &self.target else {
            let is_kept = match self.state {
                HostState::Deploying => true,
                HostState::Undeployed | HostState::Deployed => !is_given_back(drain),
                // It counts as unavailable because it has failed.
                HostState::Failed | HostState::Terminating => false,
            };
            return self.allowed.as_ref().filter(|_| is_kept);
        };
        // Another deployment is at the host, and needs its permission until it ends there.
        if self.state == HostState::Deploying
            && let Some(other) = self.allowed.as_ref().filter(|it| *it != target)
        {
            return Some(other);
        }
        if is_empty(drain) {
            return Some(target);
        }
        // What is not known, after a restart or while nova does not answer, takes nothing back.
        let is_occupied = matches!(drain.progress, HostProgress::Occupied(_));
        self.allowed.as_ref().filter(|it| *it == target && !is_occupied)
    }
}

/// Whether a host may be disturbed as far as nova is concerned: it is drained, or no servers of it
/// are in nova.
fn is_empty(of: &HostDrain) -> bool {
    let is_drained = matches!(of.progress, HostProgress::Drained | HostProgress::NotFound);
    is_drained || of.is_elsewhere()
}

/// Whether nothing has to be enabled any more after a deployment: the service is enabled or gone,
/// or the user drains the host.
fn is_given_back(of: &HostDrain) -> bool {
    let is_enabled = matches!(of.progress, HostProgress::Released | HostProgress::NotFound);
    is_enabled || of.is_named || of.is_elsewhere()
}
