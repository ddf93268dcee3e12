//! The controllers of the process: how each kind is observed and evaluated.

use std::sync::Arc;

use jiff::Timestamp;
use operator_core::object_key::Key;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::controller::Controller;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::controller_names::{DATA_PLANE, DEPLOYMENT, GROUP, NODE_SET};
use crate::role::observe;
use crate::role::{Observed, decide};
use crate::{data_plane, deployment, node_set};

/// The controller of data planes.
pub(crate) struct DataPlanes {
    /// The caches that it reads.
    pub(crate) caches: Arc<Caches>,
}

impl Controller for DataPlanes {
    type Observed = data_plane::Observed;

    const NAME: &'static str = DATA_PLANE;

    async fn observe(&self, key: &Key) -> Result<Option<data_plane::Observed>> {
        data_plane::observe::observe(&self.caches, key)
    }

    fn decide(
        seen: &data_plane::Observed,
        rejected: Option<&RejectedWrite>,
        now: Timestamp,
    ) -> Plan {
        data_plane::decide::decide(seen, rejected, now)
    }
}

/// The controller of roles and nodes.
pub(crate) struct NodeGroups {
    /// The caches that it reads.
    pub(crate) caches: Arc<Caches>,
}

impl Controller for NodeGroups {
    type Observed = Observed;

    const NAME: &'static str = GROUP;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        observe::observe(&self.caches, key).await
    }

    fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
        decide::decide(seen, rejected, now)
    }
}

/// The controller of deployments.
pub(crate) struct Deployments {
    /// The caches that it reads.
    pub(crate) caches: Arc<Caches>,
}

impl Controller for Deployments {
    type Observed = deployment::Observed;

    const NAME: &'static str = DEPLOYMENT;

    async fn observe(&self, key: &Key) -> Result<Option<deployment::Observed>> {
        deployment::observe::observe(&self.caches, key).await
    }

    fn decide(
        seen: &deployment::Observed,
        rejected: Option<&RejectedWrite>,
        now: Timestamp,
    ) -> Plan {
        deployment::decide::decide(seen, rejected, now)
    }
}

/// The controller of node sets.
pub(crate) struct NodeSets {
    /// The caches that it reads.
    pub(crate) caches: Arc<Caches>,
    /// Whether it may make nodes, and the cluster's definition knows those of node sets.
    pub(crate) makes_nodes: bool,
}

impl Controller for NodeSets {
    type Observed = node_set::Observed;

    const NAME: &'static str = NODE_SET;

    async fn observe(&self, key: &Key) -> Result<Option<node_set::Observed>> {
        node_set::observe::observe(&self.caches, key, self.makes_nodes).await
    }

    fn decide(seen: &node_set::Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
        node_set::decide::decide(seen, rejected, now)
    }
}
