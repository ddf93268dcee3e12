//! What was observed of a compute that is being deleted, or whose host leaves, as plain data.

use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::Node;
use api::nova::{Cell, ExternalCompute};
use operator_core::certificates::Issued;
use operator_core::finalizers::is_terminating;
use operator_runtime::source_cache::Digests;

use crate::group::Group;
use crate::nova::drain::progress::HostProgress;
use crate::nova::health::HostHealth;
use crate::nova::identity::IdentitySources;

/// A snapshot of everything that the decisions on its removal use.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The compute.
    pub compute: Arc<ExternalCompute>,
    /// The node, or `None` when it does not exist.
    pub node: Option<Arc<Node>>,
    /// What the node belongs to, or `None` when it names nothing or that does not exist.
    pub group: Option<Group>,
    /// The cell, or `None` when it does not exist.
    pub cell: Option<Arc<Cell>>,
    /// Whether this operator reconciles the cells.
    pub cells_are_ours: bool,
    /// Whether the namespace is being deleted.
    pub namespace_goes: bool,
    /// Whether the inventory with the host's connection exists.
    pub has_inventory: bool,
    /// The digests of the ssh Secret, or `None` when it does not exist.
    pub ssh: Option<Digests>,
    /// What was observed of cert-manager; empty for a host that neither gets nor has a certificate.
    pub issued: Issued,
    /// The runs that the compute owns, and those that clean up after it.
    pub runs: Vec<Arc<AnsibleEe>>,
    /// What nova's API says of the host, or `None` where that API is not read.
    pub health: Option<HostHealth>,
    /// Whether nova was read twice since a deployment by others has ended well on the host; `None` where
    /// none has, or nova's API is not read.
    pub read_since_deployment: Option<bool>,
    /// How far the order about the host is, as the decision has it; or `None` where nova's API is not
    /// used.
    pub drain: Option<HostProgress>,
}

impl Observed {
    /// Returns what the identity of the host follows from.
    pub fn identity_sources(&self) -> IdentitySources<'_> {
        IdentitySources {
            compute: &self.compute,
            node: self.node.as_deref(),
            cell: self.cell.as_deref(),
            runs: &self.runs,
            health: self.health.as_ref(),
            read_since_deployment: self.read_since_deployment,
        }
    }

    /// Whether the compute stays if the host stops leaving: it is not deleted before its host is empty, so
    /// that nothing was stopped there.
    pub fn is_revocable(&self) -> bool {
        !is_terminating(&*self.compute)
    }
}
