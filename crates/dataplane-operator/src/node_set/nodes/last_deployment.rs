//! The deployment that is at a host, or was last, as the host's node names it.

use api::dataplane::{
    Deployment, HostProgress, HostState, Node, NodeDeployment, NodeSetProgress, ServiceRun,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use operator_core::run_engine::host_progress::is_untouched;

use crate::node_set::deployment_history::ended;
use crate::node_set::nodes::services::is_settled;
use crate::node_set::observed::Observed;

/// What a node records of deployments.
pub struct Recorded<'a> {
    /// The deployment that was last.
    pub deployment: Option<&'a NodeDeployment>,
    /// Its services.
    pub services: &'a [ServiceRun],
    /// Whether it is the node of a new host, whatever ran there before.
    pub is_new: bool,
}

/// Returns the deployment that is at a host, or was last, also one of some tasks alone; `since` is when
/// the host's machine was installed, if that replaced another one, and `services` are its present
/// records.
pub fn of_host(
    seen: &Observed,
    (host, since): (&str, Option<Timestamp>),
    recorded: &Recorded<'_>,
    services: &[ServiceRun],
    now: Timestamp,
) -> Option<NodeDeployment> {
    let newest = newest(seen, host, since).filter(|it| is_news(it, recorded));
    let Some((newest, state)) = newest.filter(|it| !recorded.is_new || !is_settled(it.0, seen))
    else {
        return recorded.deployment.map(|it| left(seen, it, now));
    };
    let uid = newest.uid().unwrap_or_default();
    let same = recorded.deployment.filter(|it| it.uid == uid);
    let n_failures = |services: &[ServiceRun]| services.iter().map(|it| it.failures).sum::<i64>();
    let begins = state == HostState::Deploying && same.is_some_and(|it| it.state != state);
    let is_tried_again = n_failures(services) > n_failures(recorded.services);
    let same = same.filter(|_| !begins && !is_tried_again);
    let attempt = recorded.deployment.map_or(0, |it| it.attempt);
    let attempt = if same.is_some() { attempt } else { attempt + 1 };
    let entered = same.filter(|it| it.state == state).map(|it| it.since.clone());
    Some(NodeDeployment {
        name: newest.name_any(),
        uid,
        state,
        attempt,
        since: entered.unwrap_or(Time(now)),
    })
}

/// Returns whether a node records the deployment that was last at its host.
pub fn is_recorded(seen: &Observed, (host, since): (&str, Option<Timestamp>), node: &Node) -> bool {
    let status = node.status.as_ref();
    let Some(deployment) = status.and_then(|it| it.deployment.as_ref()) else { return false };
    let recorded = Recorded { deployment: Some(deployment), services: &[], is_new: false };
    let newest = newest(seen, host, since).filter(|it| is_news(it, &recorded));
    newest.is_none_or(|(it, state)| {
        it.uid().as_ref() == Some(&deployment.uid) && state == deployment.state
    })
}

/// Returns the deployment that is at the host, else the newest one that was, and how far it is there.
fn newest<'a>(
    seen: &'a Observed,
    host: &str,
    since: Option<Timestamp>,
) -> Option<(&'a Deployment, HostState)> {
    let created = |it: &Deployment| it.creation_timestamp().map(|it| it.0);
    let begun = seen.deployments.iter().filter_map(|it| {
        let progress = it.progress_of(&seen.set)?;
        let at = progress.hosts.get(host).filter(|it| !is_untouched(it))?;
        Some((&**it, state(it, progress, at)))
    });
    let begun = begun.filter(|(it, _)| since.is_none() || created(it) >= since);
    begun.max_by_key(|(it, state)| (*state == HostState::Deploying, created(it), it.name_any()))
}

fn state(deployment: &Deployment, progress: &NodeSetProgress, at: &HostProgress) -> HostState {
    if progress.is_done_on(at) {
        HostState::Deployed
    } else if deployment.has_ended() {
        ended(at)
    } else {
        HostState::Deploying
    }
}

/// Returns whether a deployment is not one of before the recorded one, which may be deleted by now.
fn is_news((it, state): &(&Deployment, HostState), recorded: &Recorded<'_>) -> bool {
    let Some(recorded) = recorded.deployment else { return true };
    let is_same = it.uid().is_some_and(|it| it == recorded.uid);
    let is_newer = it.creation_timestamp().is_none_or(|it| it.0 > recorded.since.0);
    is_same || is_newer || *state == HostState::Deploying
}

/// Returns the recorded deployment, which is gone or cannot be read; one that was at the host and is
/// gone has failed there.
fn left(seen: &Observed, recorded: &NodeDeployment, now: Timestamp) -> NodeDeployment {
    let is_open = seen.unreadable_deployments.iter().any(|it| it.uid == recorded.uid);
    if recorded.state != HostState::Deploying || is_open {
        return recorded.clone();
    }
    NodeDeployment { state: HostState::Failed, since: Time(now), ..recorded.clone() }
}
