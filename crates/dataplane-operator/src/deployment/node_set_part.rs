//! A node set's part of a deployment, with each of its hosts as it was judged.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::dataplane::{HostProgress, NodeSet, NodeSetProgress};
use jiff::Timestamp;
use operator_core::run_engine::host_key::HostKeyTrust;
use operator_core::run_engine::rollout::BlockReason;
use operator_core::run_engine::service_sequence::ServiceSequence;

use crate::deployment::faults::MissingInputs;

/// One host, judged.
#[derive(Clone, Debug)]
pub struct EvaluatedHost {
    /// Its name in the inventory.
    pub name: String,
    /// Its `host:port`; unknown while its node set is.
    pub address: Option<String>,
    /// By which key it is known.
    pub trust: HostKeyTrust,
    /// Where it stands.
    pub sequence: ServiceSequence,
    /// Where it is now, in few words.
    pub live: HostProgress,
    /// What the status does not say of it.
    pub pending_progress: Option<PendingProgress>,
    /// Whether the status tells that it is not begun with.
    pub is_untouched: bool,
    /// Why it is not begun with now, or not gone on with after a service for all node sets.
    pub blocked: Option<BlockReason>,
}

/// A node set's part of a deployment that has begun.
#[derive(Clone, Debug)]
pub struct NodeSetPart {
    /// The node set's name.
    pub name: String,
    /// The node set, where it exists.
    pub node_set: Option<Arc<NodeSet>>,
    /// Its services in order, as they were when the deployment began.
    pub services: Vec<String>,
    /// Those of them that begin with another node set.
    pub joined: Vec<String>,
    /// What keeps its next runs from being made.
    pub lacking: MissingInputs,
    /// Its hosts, by name.
    pub hosts: Vec<EvaluatedHost>,
    /// Whether this pass tells where each host is now.
    pub is_news: bool,
    /// When what is not told yet will be, whatever the others do.
    pub told_at: Option<Timestamp>,
    /// What the status says of it.
    pub shown: NodeSetProgress,
}

impl NodeSetPart {
    /// Whether a service begins with this node set.
    pub fn leads(&self, service: &str) -> bool {
        let is_it = |it: &String| it == service;
        self.services.iter().any(is_it) && !self.joined.iter().any(is_it)
    }
}

/// What the status does not say of a host yet, and since when.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PendingProgress {
    /// A run that was made then is at work.
    Begun(Timestamp),
    /// Its last service succeeded then.
    Done(Timestamp),
    /// Anything else: it is written at once.
    Urgent,
}

/// Node set → host → why it waits.
pub type Blocked = BTreeMap<String, BTreeMap<String, BlockReason>>;
