//! The controllers of the process: how each kind is observed and evaluated.

use jiff::Timestamp;
use operator_core::object_key::Key;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::controller::Controller;
use operator_runtime::error::Result;

use crate::node_set::{self, Caches as Sets};
use crate::role::observe::{self, Caches};
use crate::role::{Observed, decide};
use crate::{data_plane, deployment};

/// The controller of data planes.
pub(crate) struct Maps {
    /// The caches that it reads.
    pub(crate) caches: data_plane::observe::Caches,
}

impl Controller for Maps {
    type Observed = data_plane::Observed;

    const NAME: &'static str = "data-plane";

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
pub(crate) struct Groups {
    /// The caches that it reads.
    pub(crate) caches: Caches,
}

impl Controller for Groups {
    type Observed = Observed;

    const NAME: &'static str = "group";

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
    pub(crate) caches: deployment::observe::Caches,
}

impl Controller for Deployments {
    type Observed = deployment::Observed;

    const NAME: &'static str = "deployment";

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
    pub(crate) caches: Sets,
}

impl Controller for NodeSets {
    type Observed = node_set::Observed;

    const NAME: &'static str = "node-set";

    async fn observe(&self, key: &Key) -> Result<Option<node_set::Observed>> {
        node_set::observe::observe(&self.caches, key).await
    }

    fn decide(seen: &node_set::Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
        node_set::decide::decide(seen, rejected, now)
    }
}
