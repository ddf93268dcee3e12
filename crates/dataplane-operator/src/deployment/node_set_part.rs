//! A node set's part of a deployment, with each of its evaluated hosts.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::Reason;
use api::dataplane::{HostProgress, NodeSet, NodeSetProgress};
use jiff::Timestamp;
use operator_core::reasons::AWAITING_DISRUPTION;
use operator_core::run_engine::host_key::HostKeyTrust;
use operator_core::run_engine::host_progress::{
    awaits_disruption, from_service_runs, is_untouched,
};
use operator_core::run_engine::rollout::BlockReason;
use operator_core::run_engine::service_sequence::ServiceSequence;

use crate::deployment::faults::MissingInputs;
use crate::reasons;

/// The result of evaluating one host.
#[derive(Clone, Debug)]
pub struct EvaluatedHost {
    /// Its inventory name.
    pub name: String,
    /// Its `host:port`; `None` while the node set does not describe it.
    pub address: Option<String>,
    /// The trusted ssh host key.
    pub trust: HostKeyTrust,
    /// The progress that it begins this pass with.
    pub kept: HostProgress,
    /// The result of its service sequence.
    pub sequence: ServiceSequence,
    /// Its present progress, in the short form of the status.
    pub live: HostProgress,
    /// The progress that the status does not contain yet.
    pub pending_progress: Option<PendingProgress>,
    /// Why it may not begin now, or not continue after a service for all node sets.
    pub blocked: Option<Hold>,
}

impl EvaluatedHost {
    /// Returns whether nothing of its deployment has begun according to the status.
    pub fn is_untouched(&self) -> bool {
        is_untouched(&self.kept)
    }

    /// Returns whether it was admitted by the disruption budget, and waited to be disturbed since.
    pub fn has_place(&self) -> bool {
        awaits_disruption(&self.kept) || self.blocked == Some(Hold::Disruption)
    }

    /// Returns a host that needs a run as one that gets none now.
    #[must_use]
    pub fn held(self, hold: Hold) -> Self {
        let sequence = self.sequence.held();
        let live = if is_untouched(&self.kept) {
            self.kept.clone()
        } else {
            from_service_runs(&sequence.services)
        };
        let pending_progress = (live != self.kept).then_some(PendingProgress::Urgent);
        Self { sequence, live, pending_progress, blocked: Some(hold), ..self }.with_place()
    }

    /// Returns it with the reason of its progress, if it waits until it may be disturbed.
    #[must_use]
    pub fn with_place(self) -> Self {
        if !self.has_place() || self.sequence.is_due() {
            return self;
        }
        let reason = Some(AWAITING_DISRUPTION.word.to_owned());
        let is_news = !awaits_disruption(&self.kept);
        Self {
            live: HostProgress { reason, ..self.live },
            pending_progress: is_news.then_some(PendingProgress::Urgent),
            ..self
        }
    }
}

/// A node set's part of a deployment that has begun.
#[derive(Clone, Debug)]
pub struct NodeSetPart {
    /// The node set's name.
    pub name: String,
    /// The node set, if it still exists.
    pub node_set: Option<Arc<NodeSet>>,
    /// Its services in order, as recorded when the deployment began.
    pub services: Vec<String>,
    /// Those of them that another node set leads.
    pub joined: Vec<String>,
    /// The missing inputs that keep its next runs from being created.
    pub lacking: MissingInputs,
    /// Its hosts, by name.
    pub hosts: Vec<EvaluatedHost>,
    /// Whether this pass writes the present progress of each host.
    pub is_news: bool,
    /// When pending progress is written at the latest; `None` when there is none or it is written
    /// now.
    pub report_at: Option<Timestamp>,
    /// The progress that the status shows.
    pub shown: NodeSetProgress,
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
        self.services.iter().any(is_it) && !self.joined.iter().any(is_it)
    }
}

/// Progress of a host that the status does not contain yet, and its time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PendingProgress {
    /// A run that was created at that time is at work.
    Begun(Timestamp),
    /// Its last service succeeded at that time.
    Done(Timestamp),
    /// Anything else, which is written at once.
    Urgent,
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
