//! The caches of node sets and of the reports about them, whose definitions a cluster may lack.

use std::future::pending;
use std::sync::Arc;

use api::dataplane::{HostReadiness, NodeSet};
use operator_core::node_set_host::is_about;
use operator_runtime::api::Api;
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::error::Result;
use operator_runtime::manager::ManagerBuilder;
use operator_runtime::optional_informer::{OptionalInformer, appears};

use crate::node_set_computes::observed::CRD_POLL_INTERVAL;
use crate::node_set_readiness::{is_ours, report_key};

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

    /// Returns this operator's report about a node set, as far as reports are cached.
    pub fn report_about(&self, set: &NodeSet) -> Option<Arc<HostReadiness>> {
        let report = self.reports.cache().get(&report_key(set))?;
        (is_ours(&report) && is_about(&report, set)).then_some(report)
    }

    /// Watches node sets as soon as the cluster serves them; it never returns.
    ///
    /// Their events enqueue what reads the reports, which opens the watch of these.
    pub async fn follow(&self, api: &Api) -> Result<()> {
        appears(|| self.node_sets.open(api), CRD_POLL_INTERVAL).await;
        pending().await
    }
}
