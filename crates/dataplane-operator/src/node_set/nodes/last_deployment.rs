//! The deployment that is at a host, or was last, as the host's node names it.

use api::dataplane::{Deployment, HostState, Node, NodeDeployment, ServiceRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use operator_core::run_engine::host_progress::{is_failing, is_untouched};

use crate::node_set::deployment_history::ended;
use crate::node_set::nodes::services::is_settled;
use crate::node_set::observed::Observed;

/// What a node records of deployments.
pub struct Recorded<'a> {
    /// The deployment that was last.
    pub deployment: Option<&'a NodeDeployment>,
    /// The records of the host's services.
    pub services: &'a [ServiceRun],
    /// How far its host is.
    pub state: HostState,
}

impl Recorded<'_> {
    /// Returns whether it is the node of a new host, whatever ran there before.
    fn is_new(&self) -> bool {
        self.deployment.is_none() && self.state == HostState::Undeployed
    }

    /// Returns what it says once its deployment is gone or cannot be read: one that was at the host and
    /// is gone has failed there. The name of one that was never recorded is not known.
    fn left(&self, seen: &Observed, now: Timestamp) -> Option<NodeDeployment> {
        let is_open = |uid: &str| seen.unreadable_deployments.iter().any(|it| it.uid == uid);
        let Some(recorded) = self.deployment else {
            let (name, uid) = (String::new(), String::new());
            let (state, since) = (HostState::Deployed, Time(now));
            let unknown = NodeDeployment { name, uid, state, attempt: 1, since };
            return (self.state == state).then_some(unknown);
        };
        if recorded.state != HostState::Deploying || is_open(&recorded.uid) {
            return Some(recorded.clone());
        }
        let (state, since) = (HostState::Failed, Time(now));
        Some(NodeDeployment { state, since, ..recorded.clone() })
    }
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
    let newest = Begun::newest(seen, host, since).filter(|it| it.is_news(recorded));
    let newest = newest.filter(|it| !recorded.is_new() || !is_settled(it.deployment, seen));
    let Some(Begun { deployment: newest, state, .. }) = newest else {
        return recorded.left(seen, now);
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
    let state = deployment.state;
    let recorded = Recorded { deployment: Some(deployment), services: &[], state };
    let newest = Begun::newest(seen, host, since).filter(|it| it.is_news(&recorded));
    newest.is_none_or(|it| {
        it.deployment.uid().as_ref() == Some(&deployment.uid) && it.state == deployment.state
    })
}

/// A deployment that has begun on a host.
struct Begun<'a> {
    deployment: &'a Deployment,
    /// How far the host is.
    state: HostState,
    /// Whether it goes on there; one that fails may have given up.
    is_at_work: bool,
}

impl<'a> Begun<'a> {
    /// Returns the deployment that is at the host, else the newest one that was.
    fn newest(seen: &'a Observed, host: &str, since: Option<Timestamp>) -> Option<Self> {
        let begun = seen.deployments.iter().filter_map(|it| Self::of(it, seen, host));
        let begun = begun.filter(|it| since.is_none() || it.created() >= since);
        begun.max_by_key(|it| (it.is_at_work, it.created(), it.deployment.name_any()))
    }

    fn of(deployment: &'a Deployment, seen: &Observed, host: &str) -> Option<Self> {
        let progress = deployment.progress_of(&seen.set)?;
        let at = progress.hosts.get(host).filter(|it| !is_untouched(it))?;
        let state = if progress.is_done_on(at) {
            HostState::Deployed
        } else if deployment.has_ended() {
            ended(at)
        } else {
            HostState::Deploying
        };
        let is_at_work = state == HostState::Deploying && !is_failing(at);
        Some(Self { deployment, state, is_at_work })
    }

    fn created(&self) -> Option<Timestamp> {
        self.deployment.creation_timestamp().map(|it| it.0)
    }

    /// Returns whether it is the recorded deployment, a younger one, or one at work: an older one that has
    /// ended says nothing new, and the recorded one may be deleted by now.
    fn is_news(&self, recorded: &Recorded<'_>) -> bool {
        let Some(recorded) = recorded.deployment else { return true };
        let is_same = self.deployment.uid().is_some_and(|it| it == recorded.uid);
        let is_newer = self.created().is_none_or(|it| it >= recorded.since.0);
        is_same || is_newer || self.is_at_work
    }
}
