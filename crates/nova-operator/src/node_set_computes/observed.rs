//! What was observed of the hosts of a node set, as plain data.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::dataplane::{HostReadiness, HostState, NodeSet};
use operator_core::object_key::Key;

use crate::drain::before::DrainBefore;
use crate::drain::order::HostOrder;
use crate::drain::progress::HostProgress;
use crate::drain::request::DrainRequest;
use crate::node_set_computes::removal::observed::Removals;
use crate::nova_health::{HostHealth, ServiceHealth};
use crate::nova_identity::Identity;

/// The pause before a cluster is examined again for a kind that it lacks.
pub const CRD_POLL_INTERVAL: Duration = Duration::from_mins(1);

/// A host of a node set, and what the cells of its namespace say of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostReading {
    /// Its name in the inventory.
    pub name: String,
    /// What is known of it.
    pub health: HostHealth,
    /// The cell that has its service, if this operator discovers the hosts of that cell.
    pub discovered_by: Option<String>,
}

/// A host of a node set that is to be drained, or that was drained and is to be enabled again.
#[derive(Clone, Debug)]
pub struct HostDrain {
    /// Its name in the inventory.
    pub name: String,
    /// The name under which its service is registered.
    pub host: String,
    /// Whether the user's annotation names it.
    pub is_named: bool,
    /// What is requested for it: a drain, by the user or by a rollout; or nothing for one whose
    /// service has the marker of this operator, or that the report lists.
    pub request: DrainRequest,
    /// Whether a deployment waits until it is drained.
    pub is_awaited: bool,
    /// How its service is enabled where nothing is requested; `None` where it is not.
    pub enabling: Option<HostOrder>,
    /// What is known of it.
    pub health: HostHealth,
    /// Whether something is done about it in nova.
    pub access: HostAccess,
    /// The cell through which that is done; `None` where nothing is.
    pub cell: Option<Key>,
    /// What is recorded of it under this name, as far as it is the node set's.
    pub recorded: Identity,
    /// How far that is, as the decision has it.
    pub progress: HostProgress,
}

impl HostDrain {
    /// Returns what is to be done about it in nova, or `None` for nothing.
    pub fn order(&self) -> Option<HostOrder> {
        self.request.order(self.enabling.clone(), self.is_awaited)
    }

    /// Whether nothing is to be done about it in nova: no cell has its service, or another object has
    /// it.
    pub fn is_elsewhere(&self) -> bool {
        match self.access {
            HostAccess::Cell(_) | HostAccess::Contested(_) => false,
            HostAccess::NoCell => self.health.service == ServiceHealth::NotFound,
            // Its service has no marker to be taken back. A drain is held, because servers may be there.
            HostAccess::Unproven => self.request == DrainRequest::Absent,
            HostAccess::Other(_) => true,
        }
    }
}

/// What deployments do to a host of a node set.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Disruption {
    /// The UID of the deployment that waits for the host; `None` where none does.
    pub target: Option<String>,
    /// The UID of the deployment that the present report allows to disturb the host.
    pub allowed: Option<String>,
    /// How far the host is.
    pub state: HostState,
}

/// Whether a node set decides what is done in nova about a host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HostAccess {
    /// It does, through the cell with this Secret.
    Cell(String),
    /// No cell is known to have its service.
    NoCell,
    /// No deployment of nova is known to have succeeded on the host, so its service may be another's.
    Unproven,
    /// This object does, which has the host too.
    Other(String),
    /// None does: this object has deployed nova under the host's name too.
    Contested(String),
}

/// A node set, or what one has left.
#[derive(Clone, Debug)]
pub enum Seen {
    /// It exists.
    Present(Box<Observed>),
    /// It is gone, and has left this report.
    Gone(Arc<HostReadiness>),
}

/// A snapshot of everything that the decision on a node set uses.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The node set.
    pub set: Arc<NodeSet>,
    /// Its hosts by name; `None` where it lists no service of type nova.
    pub hosts: Option<Vec<HostReading>>,
    /// The hosts that are to be drained or enabled, or the message about the annotation that is not
    /// valid.
    pub drains: Result<Vec<HostDrain>, String>,
    /// The hosts that have, get or leave a host finalizer.
    pub removals: Removals,
    /// Whether deployments wait until its hosts are drained.
    pub drain_before: DrainBefore,
    /// What deployments do to its hosts, by name.
    pub disruptions: BTreeMap<String, Disruption>,
    /// Whether its namespace has a cell; the hosts are counted only there.
    pub has_cells: bool,
    /// Whether a listed service of type nova lists the readiness gate of this operator.
    pub has_gate: bool,
    /// What is there of the report about its hosts.
    pub report: Report,
}

/// The report about the hosts of a node set.
#[derive(Clone, Debug)]
pub enum Report {
    /// The cluster does not serve the kind.
    NotServed,
    /// It does not exist.
    Missing,
    /// It is there.
    Found(Arc<HostReadiness>),
}

impl Report {
    /// Returns the report if it is there.
    pub fn found(&self) -> Option<&HostReadiness> {
        match self {
            Self::Found(found) => Some(found),
            Self::NotServed | Self::Missing => None,
        }
    }
}
