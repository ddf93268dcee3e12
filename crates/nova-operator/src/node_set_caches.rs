//! The caches of node sets and of the reports about them, whose definitions a cluster may lack.

use std::future::pending;

use api::dataplane::{HostReadiness, NodeSet};
use operator_runtime::api::Api;
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::error::Result;
use operator_runtime::manager::ManagerBuilder;
use operator_runtime::optional_informer::{OptionalInformer, appears};

use crate::node_set_computes::observed::CRD_POLL_INTERVAL;

/// Node sets, and the reports about them; each is watched once the cluster serves the kind.
pub struct NodeSetCaches {
    /// All node sets.
    pub node_sets: OptionalInformer<NodeSet>,
    /// All reports about hosts of node sets, of every operator.
    pub reports: OptionalInformer<HostReadiness>,
}

impl NodeSetCaches {
    /// Creates the caches without starting an informer.
    pub fn new(builder: &ManagerBuilder, registry: &mut CacheRegistry) -> Self {
        let node_sets = OptionalInformer::new(builder, registry);
        Self { node_sets, reports: OptionalInformer::new(builder, registry) }
    }

    /// Watches node sets as soon as the cluster serves them; it never returns.
    ///
    /// Their events enqueue what reads the reports, which opens the watch of these.
    pub async fn follow(&self, api: &Api) -> Result<()> {
        appears(|| self.node_sets.open(api), CRD_POLL_INTERVAL).await;
        pending().await
    }
}
