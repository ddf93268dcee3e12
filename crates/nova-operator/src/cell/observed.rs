//! What was observed of a cell, as plain data.

pub mod cell_on_bus;
pub mod discovery;
pub mod hosts;
pub mod mappings;

use std::sync::Arc;
use std::time::Duration;

use api::nova::{Cell, Credential, ExternalCompute};
use operator_core::keyed::Keys;
use operator_runtime::error::Result;
use operator_runtime::managed_fields::ManagedFields;
use operator_runtime::source_cache::Content;

use crate::cell::observed::cell_on_bus::CellOnBus;
use crate::cell::observed::hosts::HostsSeen;
use crate::cell::probe::amqp::outcome::HostOutcome;
use crate::cell::probe::keystone_fault::KeystoneFault;
use crate::nova::health::ApiHealth;

/// How long after a successful probe the next one follows.
const PACE_GOOD: Duration = Duration::from_secs(30);
/// How long after a failed probe the next one follows.
const PACE_BAD: Duration = Duration::from_secs(10);

/// The results of probing a cell's services.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// The outcome for each broker.
    pub message_bus: Vec<HostOutcome>,
    /// The result for Keystone.
    pub keystone: Result<(), KeystoneFault>,
}

impl Answers {
    fn are_good(&self) -> bool {
        self.keystone.is_ok() && self.message_bus.iter().all(|it| it.login.is_ok())
    }

    /// Returns the time until the next probe.
    pub(super) fn count_for(&self) -> Duration {
        if self.are_good() { PACE_GOOD } else { PACE_BAD }
    }
}

/// A snapshot of everything that the decisions on a cell use.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The cell.
    pub cell: Arc<Cell>,
    /// Content of the Secret with nova's password, or `None` when it does not exist.
    pub secret: Option<Content>,
    /// Content of the Secret with the message bus, or `None` when it does not exist.
    pub message_bus: Option<Content>,
    /// The other cells of the namespace with the same message bus.
    pub on_same_bus: Vec<CellOnBus>,
    /// Whether its services are probed, because the inputs for that are complete.
    pub is_probed: bool,
    /// The last results of the probes with these inputs, or `None` without any.
    pub answers: Option<Answers>,
    /// What is known of nova's API, or `None` where that API is not read.
    pub nova_api: Option<ApiHealth>,
    /// What was seen of the discovery of its hosts, or `None` where nova's API is not read.
    pub discovery: Option<discovery::Seen>,
    /// What was observed in nova of its hosts, or `None` where it has none or nova's API is not used.
    pub hosts: Option<HostsSeen>,
    /// The Secret with the files that the cell's computes share, or `None` when it does not exist.
    pub rendered: Option<Rendered>,
    /// The computes that name the cell, by name.
    pub computes: Vec<Arc<ExternalCompute>>,
    /// Whether the namespace is being deleted; read only for a terminating cell with the finalizer.
    pub namespace_goes: bool,
    /// The keys of the digests of Secret contents.
    pub keys: Keys,
    /// What its computes are deployed with now.
    pub credentials: Vec<Credential>,
}

/// The metadata of the Secret with the cell's files.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rendered {
    /// The hash of its content when it was written.
    pub hash: String,
    /// UID of its controller owner.
    pub controller: Option<String>,
    /// The fields that this operator still owns, so unchanged since its last write.
    pub managed_fields: ManagedFields,
}
