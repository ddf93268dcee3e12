//! A node set's part of a deployment, with each of its evaluated hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::conditions::Reason;
use api::dataplane::{DeploymentNodeSet, Node, NodeSet, ServiceRun};
use operator_core::run_engine::host_key::HostKeyTrust;
use operator_core::run_engine::host_progress::HostProgress;
use operator_core::run_engine::rollout::BlockReason;
use operator_core::run_engine::{SequenceState, ServiceSequence};

use crate::host::services::ServiceFaults;
use crate::reasons;

/// The result of evaluating one host.
#[derive(Clone, Debug)]
pub struct EvaluatedHost {
    /// Its inventory name.
    pub name: String,
    /// Its node; `None` while its node set is gone.
    pub node: Option<Arc<Node>>,
    /// Its `host:port`; `None` while the node set does not describe it.
    pub address: Option<String>,
    /// The trusted ssh host key.
    pub trust: HostKeyTrust,
    /// What its node records of the deployment's services, in their order; the first attempt where it
    /// records nothing.
    pub recorded: Vec<ServiceRun>,
    /// Whether its node records that the deployment has begun there.
    pub has_begun: bool,
    /// Whether its node records that the deployment waits to disturb it.
    pub has_target: bool,
    /// The result of its service sequence.
    pub sequence: ServiceSequence,
    /// Its present progress.
    pub live: HostProgress,
    /// Whether it has failed for good.
    pub is_given_up: bool,
    /// Why it may not begin now, or not continue after a service for all node sets.
    pub blocked: Option<Hold>,
}

impl EvaluatedHost {
    /// Returns whether it was admitted by the disruption budget, and waited to be disturbed since.
    pub fn has_place(&self) -> bool {
        self.has_target || self.blocked == Some(Hold::Disruption)
    }

    /// Returns whether it has succeeded or failed for good.
    pub fn is_ended(&self) -> bool {
        self.live.is_done() || self.is_given_up
    }

    /// Returns it as one that gets no run now.
    #[must_use]
    pub fn stopped(self) -> Self {
        let sequence = self.sequence.held();
        let live = progress(self.has_begun, &self.recorded, &sequence);
        Self { sequence, live, ..self }
    }

    /// Returns a host that needs a run as one that gets none now, for this reason.
    #[must_use]
    pub fn held(self, hold: Hold) -> Self {
        Self { blocked: Some(hold), ..self.stopped() }
    }
}

/// Returns how far a host is: as its node records it where another deployment has begun there since, and
/// this one gets no run now.
pub fn progress(
    has_begun: bool,
    recorded: &[ServiceRun],
    sequence: &ServiceSequence,
) -> HostProgress {
    let is_known = has_begun || sequence.state != SequenceState::OutOfDate;
    HostProgress::of(if is_known { sequence.standing() } else { recorded }, recorded.len())
}

/// A node set's part of a deployment that has begun.
#[derive(Clone, Debug)]
pub struct NodeSetPart {
    /// The node set's name.
    pub name: String,
    /// The node set, if it still exists.
    pub node_set: Option<Arc<NodeSet>>,
    /// What was recorded when the deployment began.
    pub begun: DeploymentNodeSet,
    /// The hosts in the node set's inventory that no run is for.
    pub left_out: BTreeSet<String>,
    /// The missing inputs that keep its next runs from being created.
    pub lacking: ServiceFaults,
    /// Its hosts that take part no more although the node set still lists them.
    pub lost: Vec<String>,
    /// Its hosts that take part, by name.
    pub hosts: Vec<EvaluatedHost>,
}

impl NodeSetPart {
    /// Returns the part with those of its hosts held that must not go on now.
    #[must_use]
    pub fn held(self, holds: &BTreeMap<String, Hold>) -> Self {
        let hosts = self.hosts.into_iter().map(|it| match holds.get(&it.name) {
            Some(hold) => it.held(*hold),
            None => it,
        });
        Self { hosts: hosts.collect(), ..self }
    }

    /// Returns whether this node set leads a service: its hosts decide when the service begins.
    pub fn leads(&self, service: &str) -> bool {
        let is_it = |it: &String| it == service;
        self.begun.services.iter().any(is_it) && !self.begun.joined.iter().any(is_it)
    }

    /// Returns whether every service has succeeded on every host that the node set still lists.
    pub fn is_done(&self) -> bool {
        self.lost.is_empty() && self.hosts.iter().all(|it| it.live.is_done())
    }
}

/// Why a host may not begin, or not continue after a service for all node sets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hold {
    /// The disruption budget blocks it.
    Budget(BlockReason),
    /// It has a place, and an operator does not let it be disturbed yet.
    Disruption,
    /// It could be disturbed, but would then wait at a service for all node sets, at which another
    /// node set has not arrived.
    ServiceForAll,
}

impl Hold {
    /// Returns the condition reason.
    pub fn reason(self) -> &'static Reason {
        match self {
            Self::Budget(blocked) => blocked.reason(),
            Self::Disruption | Self::ServiceForAll => &reasons::AWAITING_DISRUPTION,
        }
    }

    /// Returns why the disruption budget blocks it; `None` if something else holds it.
    pub fn budget(self) -> Option<BlockReason> {
        match self {
            Self::Budget(blocked) => Some(blocked),
            Self::Disruption | Self::ServiceForAll => None,
        }
    }
}

/// Node set → host → what holds it.
pub type Blocked = BTreeMap<String, BTreeMap<String, Hold>>;
