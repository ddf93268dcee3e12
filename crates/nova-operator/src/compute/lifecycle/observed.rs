//! What was observed of a node that may get a compute, as plain data.

use std::sync::Arc;

use api::dataplane::{Node, SeenDeployment};
use api::nova::ExternalCompute;

use crate::group::Group;
use crate::images::Images;
use crate::nova::drain::order::OrderOfHost;
use crate::nova::drain::progress::HostProgress;
use crate::nova::health::HostHealth;
use crate::requested::cell_immutability::owns;
use crate::requested::mounted_cell::NovaServices;

/// A snapshot of everything that the decisions on a node use.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Observed {
    /// The node.
    pub node: Arc<Node>,
    /// What the node belongs to, or `None` when it names nothing or that does not exist.
    pub group: Option<Group>,
    /// The services of type nova that deploy nova-compute to the host.
    pub nova: NovaServices,
    /// Whether nova's API is read.
    pub reads_nova: bool,
    /// The compute with the node's name, or `None` when it does not exist.
    pub compute: Option<Arc<ExternalCompute>>,
    /// Whether a run of that compute exists.
    pub has_runs: bool,
    /// The default images.
    pub images: Images,
    /// Whether the namespace is being deleted; read only for a terminating node with the finalizer.
    pub namespace_goes: bool,
    /// Whether this operator reconciles the cells, which then record what remains in nova.
    pub cells_are_ours: bool,
    /// What nova's API says of the host of a compute that a service deploys; `None` for any other.
    pub health: Option<HostHealth>,
    /// The attempt of a deployment that has ended well on the host, once nova was read twice since.
    pub read_twice_since: Option<SeenDeployment>,
    /// The newest order about the host, and what its last pass has found; `None` without one.
    pub order: Option<(OrderOfHost, HostProgress)>,
}

impl Observed {
    /// Returns the compute if it is the node's own; one of an earlier node of that name is not.
    pub fn own_compute(&self) -> Option<&ExternalCompute> {
        self.compute.as_deref().filter(|it| owns(&self.node, it))
    }
}
